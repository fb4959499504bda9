"""Aliases of array types are defined once."""

import re
from pathlib import Path

import numpy as np

import fedcdh
from fedcdh._runtime.array_types import Array, Indices


def test_aliases_are_what_their_names_say():
    assert Array.__args__[1].__args__ == (np.float64,)
    assert Indices.__args__[1].__args__ == (np.intp,)


def test_no_other_module_defines_them():
    sources = Path(fedcdh.__file__).parent.rglob("*.py")
    defining = [path.name for path in sources if re.search(r"^(Array|Indices)\b.*=", path.read_text("utf-8"), re.M)]
    assert defining == ["array_types.py"]
