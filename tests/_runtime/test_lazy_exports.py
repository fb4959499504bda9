"""Public names are loaded when they are first used, and are those that packages list."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import fedcdh
from fedcdh._runtime.lazy_exports import attach

PACKAGES = ["fedcdh", *(found.name for found in pkgutil.walk_packages(fedcdh.__path__, "fedcdh.") if found.ispkg)]


def test_a_name_is_loaded_from_its_module_and_an_unknown_one_refused():
    load, names = attach("fedcdh", {"compare": "fedcdh.graphs.metrics"})
    assert load("compare") is fedcdh.compare
    assert names() == ["compare"]
    with pytest.raises(AttributeError, match="'fedcdh' has no attribute 'contrast'"):
        load("contrast")


@pytest.mark.parametrize("name", [name for name in PACKAGES if "flower" not in name])
def test_every_name_that_a_package_lists_is_there(name):
    package = importlib.import_module(name)
    for public in getattr(package, "__all__", ()):
        assert getattr(package, public) is not None
        assert public in dir(package)


def test_importing_the_package_loads_no_large_library():
    code = "import sys, fedcdh; print(sorted({'numpy', 'pyarrow', 'narwhals', 'scipy'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"
