"""Which module may import which: the house plan as a table. A new module has to be given a room here."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedcdh

SOURCE = Path(fedcdh.__file__).parent

ROOMS = {
    "ground": {"errors", "questions"},
    "search": {
        "admission",
        "certainty",
        "colliders",
        "conditioning",
        "equivalence",
        "exact",
        "families",
        "graph",
        "knowledge",
        "meek",
        "oracle",
        "ordering",
        "orientation",
        "removal",
        "settings",
        "skeleton",
    },
    "statistics": {
        "basis",
        "budget",
        "change",
        "blas",
        "client_fits",
        "cohort",
        "column_profile",
        "deviation",
        "encoding",
        "evidence",
        "exact_sum",
        "features",
        "independence",
        "order_statistics",
        "partial",
        "plan",
        "profile",
        "resampling",
        "rounds",
        "row_workers",
        "screening",
        "sources",
        "summary",
        "summing",
        "tables",
        "tails",
    },
    "bridge": {"algorithm", "discovery", "drift", "engines", "result", "stability", "workers"},
    "edge": {
        "adding",
        "agreement",
        "arrival",
        "baselines",
        "clusters",
        "codes",
        "conversions",
        "demo",
        "estimator",
        "experiments",
        "exports",
        "extras",
        "few_values",
        "files",
        "findings",
        "flower",
        "meaning",
        "metrics",
        "moment_hull",
        "needed",
        "notebook",
        "one_look",
        "online",
        "picture",
        "plots",
        "policy",
        "privacy",
        "processors",
        "reading",
        "releases",
        "releasing",
        "report",
        "running_sum",
        "simulate",
        "sketch",
        "standing_out",
        "taking_part",
    },
    "door": {"__init__", "__main__", "cli"},
}

MAY_IMPORT = {
    "ground": {"ground"},
    "search": {"ground", "search"},
    "statistics": {"ground", "statistics"},
    "bridge": {"ground", "search", "statistics", "bridge"},
    "edge": {"ground", "search", "statistics", "bridge", "edge"},
    "door": {"ground", "search", "statistics", "bridge", "edge"},
}

SEAMS = {
    ("result", "exports"): "result.report(), when it is asked for",
    ("result", "report"): "result.report(), when it is asked for",
    ("result", "plots"): "result.plot(), when it is asked for",
    ("result", "notebook"): "what a notebook shows of a result",
    ("result", "picture"): "what a notebook shows of a result, as a picture only",
    ("workers", "extras"): "more than one worker needs a library",
    ("__main__", "cli"): "starting the program is all that __main__ does",
}

OPTIONAL = {
    "causallearn",
    "dask",
    "flwr",
    "igraph",
    "joblib",
    "matplotlib",
    "networkx",
    "pandas",
    "pgmpy",
    "polars",
    "pydot",
    "ray",
    "sklearn",
    "tenseal",
}
"""What an extra brings: imported within a function, or by a module that is all about it."""

THIRD_PARTY = {
    "ground": set(),
    "search": {"networkx"},  # a conversion of the graph, imported when it is asked for
    "statistics": {"numpy", "scipy", "narwhals", "threadpoolctl"},  # narwhals in tables and sources
    "bridge": {"threadpoolctl", "joblib"},  # joblib in workers, when there are to be more than one
    "edge": {"numpy", "scipy", "pyarrow", "cryptography", "threadpoolctl"} | OPTIONAL,
    "door": {"typer", "rich"},
}

STANDARD = sys.stdlib_module_names
ROOM_OF = {module: room for room, modules in ROOMS.items() for module in modules}


def module_of(path: Path) -> str:
    """The module's name within the package; all files of a subpackage go by the name of the subpackage."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))
MODULES = sorted({module_of(path) for path in FILES})
PLACED = [module for module in MODULES if module in ROOM_OF]  # the others fail once, in the first test


def imported(code: str, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names of all a file of a package imports; in a function or for type checking counts as well."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*origin, *([node.module] if node.module else [])])
            if source == "fedcdh":  # from fedcdh import graph: the name may be a module, or one the package exports
                yield from (f"fedcdh.{alias.name if alias.name in MODULES else '__init__'}" for alias in node.names)
            else:
                yield source


def imports_of(module: str) -> set[str]:
    files = [path for path in FILES if module_of(path) == module]
    packages = {path: ("fedcdh", *path.relative_to(SOURCE).parts[:-1]) for path in files}
    return {name for path in files for name in imported(path.read_text(encoding="utf-8"), packages[path])}


def neighbours(module: str) -> set[str]:
    """The modules of the package that a module imports, itself not counted."""
    names = {name for name in imports_of(module) if name.split(".")[0] == "fedcdh"}
    return {name.split(".")[1] if "." in name else "__init__" for name in names} - {module}


def test_every_module_has_one_room():
    homeless = set(MODULES) - set(ROOM_OF)
    assert not homeless, f"give {', '.join(sorted(homeless))} a room in the table at the head of this file"
    assert len(ROOM_OF) == sum(map(len, ROOMS.values())), "a module stands in two rooms"


@pytest.mark.parametrize("module", PLACED)
def test_modules_import_only_what_their_room_may(module: str):
    room = ROOM_OF[module]
    broken = {
        other
        for other in neighbours(module)
        if ROOM_OF.get(other) not in MAY_IMPORT[room] and (module, other) not in SEAMS
    }
    assert not broken, f"{module} ({room}) must not import {', '.join(sorted(broken))}"


@pytest.mark.parametrize("module", PLACED)
def test_modules_use_only_the_libraries_of_their_room(module: str):
    tops = {name.split(".")[0] for name in imports_of(module)} - {"fedcdh"}
    foreign = tops - STANDARD - THIRD_PARTY[ROOM_OF[module]]
    assert not foreign, f"{module} ({ROOM_OF[module]}) must not import {', '.join(sorted(foreign))}"


def test_the_columns_do_not_know_each_other():
    assert "statistics" not in MAY_IMPORT["search"]
    assert "search" not in MAY_IMPORT["statistics"]
    crossing = {"search", "statistics"}
    assert not [pair for pair in SEAMS if {ROOM_OF[pair[0]], ROOM_OF[pair[1]]} == crossing]


def test_imports_are_seen_wherever_they_stand():
    code = """
import numpy.linalg
from fedcdh import graph, Discovery
from ..plan import StudyPlan
from . import fourier
def late():
    from fedcdh.cli import main
"""
    found = {"numpy.linalg", "fedcdh.graph", "fedcdh.__init__", "fedcdh.plan", "fedcdh.features", "fedcdh.cli"}
    assert set(imported(code, ("fedcdh", "features"))) == found
