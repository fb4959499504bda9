"""An optional library that is missing is named with the extra that installs it."""

import subprocess
import sys
from pathlib import Path

import pytest
from oracle import CHAIN

import fedcdh
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.clusters import DaskRows, RayRows
from fedcdh.errors import MissingDependencyError
from fedcdh.graphs import convert
from fedcdh.graphs.convert import to_adjacency

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")

SOURCES = Path(fedcdh.__file__).parent
OPTIONAL = ["causallearn", "dask", "distributed", "flwr", "joblib", "matplotlib", "networkx"]
OPTIONAL += ["pandas", "pgmpy", "polars", "pydot", "ray", "sklearn", "tenseal"]


def pretend_missing(module, monkeypatch):
    for loaded in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("networkx", lambda: CHAIN.to_networkx(), "graphs"),
        ("networkx", lambda: convert.to_networkx(CHAIN), "graphs"),
        ("networkx", lambda: convert.to_gml(CHAIN.drop("c")), "graphs"),
        ("networkx", lambda: convert.from_gml(""), "graphs"),
        ("causallearn", lambda: convert.to_causal_learn(CHAIN), "graphs"),
        ("pgmpy", lambda: convert.to_pgmpy(CHAIN), "graphs"),
        ("pgmpy", lambda: convert.to_pgmpy_dag(CHAIN.drop("c")), "graphs"),
        ("pydot", lambda: convert.from_dot("digraph {}"), "graphs"),
        ("pandas", lambda: to_adjacency(CHAIN, "from-to").to_pandas(), "graphs"),
        ("dask", lambda: DaskRows(None), "dask"),
        ("ray", lambda: RayRows(None), "ray"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(module, call, extra, monkeypatch):
    pretend_missing(module, monkeypatch)
    with pytest.raises(MissingDependencyError, match=rf"not installed.*pip install 'fedcdh\[{extra}\]'$"):
        call()


def test_a_broken_library_speaks_for_itself():
    with pytest.raises(ImportError, match="out of order"), optional_import("dragons", extra="plot"):
        raise ImportError("out of order")


def test_the_package_is_imported_without_any_optional_library():
    code = (
        "import sys, pkgutil, importlib\n"
        f"sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"
        "import fedcdh\n"
        "for found in pkgutil.walk_packages(fedcdh.__path__, 'fedcdh.'):\n"
        "    if '__main__' in found.name: continue\n"
        "    try: importlib.import_module(found.name)\n"
        "    except fedcdh.FedCDHError as problem: assert 'pip install' in str(problem)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(SOURCES.parent)})
