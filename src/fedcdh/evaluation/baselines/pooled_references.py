"""Central references: all rows at one place, in causal-learn's programs; and what perfect tests would find.

causal-learn's CD-NOD takes the client's number as its domain index. Its independent change principle is not implemented
there ("under development"). causal-learn marks i → j by graph[i, j] = −1 and graph[j, i] = 1, i — j by twice −1, i ↔ j
by twice 1. The latter says that both directions were demanded, and counts as a line. All edges of the domain point away
from it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import BaselineError
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph
from fedcdh.protocols import DOMAIN

ALPHA = 0.05


def run_cdnod(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, test: str = "fisherz", alpha: float = ALPHA
) -> BaselineResult:
    """causal-learn's CD-NOD on all rows with one of its tests ("fisherz", "rcit", "kci"), else as it comes."""
    search = import_causal_learn("search.ConstraintBased.CDNOD", "cdnod")
    pooled, wire = _pool_rows(tables)
    client = np.repeat(np.arange(len(tables)), [len(table) for table in tables.values()])[:, None].astype(float)
    with wrap_causal_learn(f"CD-NOD with {test}", seed):
        marks = search(pooled, client, alpha, test).G.graph
    return BaselineResult(graph_from_endpoint_marks(marks, (*names, DOMAIN)), wire.traffic)


def run_pc(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, test: str = "fisherz", alpha: float = ALPHA
) -> BaselineResult:
    """causal-learn's PC on all rows, which is told nothing of clients: what differences between them do to a graph."""
    search = import_causal_learn("search.ConstraintBased.PC", "pc")
    pooled, wire = _pool_rows(tables)
    with wrap_causal_learn(f"PC with {test}", seed):
        marks = search(pooled, alpha, test, show_progress=False).G.graph
    return BaselineResult(graph_from_endpoint_marks(marks, names), wire.traffic)


def oracle_result(names: Sequence[str], augmented: Iterable[Arrow]) -> BaselineResult:
    """What perfect tests and rules could find: the class of the true graph, arrows of the domain included.

    It needs the truth, so it is no method: a ceiling for those that are.

    >>> print(oracle_result(("x", "y", "z"), {("x", "y"), ("y", "z"), (DOMAIN, "z")}).graph)
    y → z
    x — y
    """
    return BaselineResult(to_cpdag(PartialGraph.from_dag((DOMAIN, *names), augmented)))


def graph_from_endpoint_marks(marks: Array, nodes: Sequence[str]) -> PartialGraph:
    """causal-learn's matrix as a graph (see above for its codes)."""
    arrows: set[Arrow] = set()
    lines: set[Pair] = set()
    for i, j in combinations(range(len(nodes)), 2):
        here, there = marks[i, j], marks[j, i]
        if not (here or there):
            continue
        if DOMAIN in (nodes[i], nodes[j]):
            arrows.add((DOMAIN, nodes[i] if nodes[j] == DOMAIN else nodes[j]))
        elif here == there:
            lines.add(frozenset((nodes[i], nodes[j])))
        else:
            arrows.add((nodes[i], nodes[j]) if there == 1 else (nodes[j], nodes[i]))
    return PartialGraph(tuple(nodes), frozenset(arrows), frozenset(lines))


def import_causal_learn(module: str, name: str) -> Any:
    """Something of causal-learn, imported when it is needed: everything else does without that library."""
    with optional_import("causal-learn", extra="experiments"):
        return getattr(import_module(f"causallearn.{module}"), name)


@contextlib.contextmanager
def wrap_causal_learn(program: str, seed: int) -> Iterator[None]:
    """Around a call of causal-learn: NumPy's common generator is set for it and put back after, progress bars are
    kept from the screen, and whatever it raises comes out as one kind of error."""
    before = np.random.get_state()  # noqa: NPY002 (rcit and kci draw from it and take no generator)
    np.random.seed(seed)  # noqa: NPY002
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except Exception as reason:
        said = " ".join(str(reason).split()) or type(reason).__name__
        raise BaselineError(
            f"causal-learn's {program} gave up on these rows: {said}; look for constant or duplicate columns and for "
            "clients with few rows, or choose another test"
        ) from reason
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _pool_rows(tables: Mapping[str, Array]) -> tuple[Array, CountingChannel]:
    wire = CountingChannel(len(tables))
    return np.concatenate([wire.to_server(table) for table in tables.values()]), wire
