"""Dialects of CSV files."""

from __future__ import annotations

import pytest

from fedcdh.data.readers import CsvStyle
from fedcdh.errors import SettingsError


@pytest.mark.parametrize(
    "style",
    [
        {"delimiter": ";;"},
        {"delimiter": "\n"},
        {"delimiter": ""},
        {"delimiter": ",", "decimal": ","},
        {"decimal": "·"},
        {"encoding": "klingon"},
        {"missing": "NA"},
        {"missing": (1,)},
    ],
)
def test_a_style_that_cannot_be_is_refused(style):
    with pytest.raises(SettingsError, match=r"expected|change one|there is no encoding"):
        CsvStyle(**style)
