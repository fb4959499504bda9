"""Every example in the documentation runs and shows what it says."""

import doctest
import importlib
import pkgutil
import re
import warnings
from pathlib import Path

import pytest
from pages import as_pattern

import fedcdh

README = Path(fedcdh.__file__).parents[2] / "README.md"
MODULES = [module.name for module in pkgutil.walk_packages(fedcdh.__path__, "fedcdh.") if "__main__" not in module.name]

LIBRARIES = {
    **{f"fedcdh.federation.flower.{module}": ["flwr"] for module in ("payload", "client_app", "server_app")},
    "fedcdh.data.clusters.dask_source": ["dask.dataframe"],
    "fedcdh.graphs.convert.causal_learn": ["causallearn"],
    "fedcdh.graphs.convert.dot": ["pydot"],
    "fedcdh.graphs.convert.gml": ["networkx"],
    "fedcdh.graphs.convert.knowledge": ["causallearn", "pgmpy"],
    "fedcdh.graphs.convert.networkx": ["networkx"],
    "fedcdh.graphs.convert.pgmpy": ["pgmpy"],
}
"""Optional libraries that the examples of a module need; what they deprecate is not our concern."""


@pytest.mark.parametrize("name", ["fedcdh", *MODULES])
def test_examples_in_docstrings(name):
    with warnings.catch_warnings():
        if name in LIBRARIES:
            warnings.simplefilter("ignore")
        for library in LIBRARIES.get(name, ()):
            pytest.importorskip(library)
        assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "Knowledge",
        "StudyPlan",
        "add_up",
        "discover",
        "discover_from",
        "profile",
        "simulate",
        "simulate_federation",
        "summarize",
    ],
)
def test_public_functions_have_examples(name):
    found = doctest.DocTestFinder(exclude_empty=True).find(getattr(fedcdh, name))
    assert any(test.examples for test in found)


def test_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_the_readme_shows_what_is_printed():
    text = README.read_text(encoding="utf-8")
    (shown,) = re.findall(r"```\n(8 variables.*?)\n\.\.\.\n```", text, re.DOTALL)
    result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    assert re.match(as_pattern(shown), str(result))


def test_no_page_is_unfinished():
    pages = [README, *README.parent.glob("*.md"), *(README.parent / "docs").glob("*.md")]
    assert not [page.name for page in pages if "@@" in page.read_text(encoding="utf-8")]
