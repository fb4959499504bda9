"""Central references: programs of causal-learn on all rows, and what perfect tests would find.

causal-learn's CD-NOD takes the client's number as its domain index. It does not implement the independent change
principle ("under development"). causal-learn marks i → j by graph[i, j] = −1 and graph[j, i] = 1, i — j by twice −1,
and i ↔ j by twice 1. The last mark says that both directions were demanded, and counts as a line. All edges of the
domain point away from it.

BOSS and GRaSP search over orders of the variables for the best BIC, −(n/2) log v − (log n / 2)(parents + 1).
causal-learn would multiply the penalty by four unless asked otherwise.
"""

from __future__ import annotations

import contextlib
import io
import random
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
    """Run causal-learn's CD-NOD on all rows with one of its tests ("fisherz", "rcit", "kci")."""
    search = import_causal_learn("search.ConstraintBased.CDNOD", "cdnod")
    pooled, channel = pool_rows(tables)
    client = np.repeat(np.arange(len(tables)), [len(table) for table in tables.values()])[:, None].astype(float)
    with wrap_causal_learn(f"CD-NOD with {test}", seed):
        marks = search(pooled, client, alpha, test).G.graph
    return BaselineResult(graph_from_endpoint_marks(marks, (*names, DOMAIN)), channel.traffic)


def run_pc(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, test: str = "fisherz", alpha: float = ALPHA
) -> BaselineResult:
    """Run causal-learn's PC on all rows; it does not know of clients, so that their differences distort its graph."""
    search = import_causal_learn("search.ConstraintBased.PC", "pc")
    pooled, channel = pool_rows(tables)
    with wrap_causal_learn(f"PC with {test}", seed):
        marks = search(pooled, alpha, test, show_progress=False).G.graph
    return BaselineResult(graph_from_endpoint_marks(marks, names), channel.traffic)


def run_order_search(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, search: str = "boss"
) -> BaselineResult:
    """Run causal-learn's BOSS or GRaSP ("boss", "grasp") with BIC on all rows; it does not know of clients."""
    found = import_causal_learn(f"search.PermutationBased.{_ORDER_SEARCHES[search]}", search)
    pooled, channel = pool_rows(tables)
    with wrap_causal_learn(_ORDER_SEARCHES[search], seed):
        marks = found(pooled, parameters={"lambda_value": 0.5}, verbose=False).graph
    return BaselineResult(graph_from_endpoint_marks(marks, names), channel.traffic)


_ORDER_SEARCHES = {"boss": "BOSS", "grasp": "GRaSP"}


def oracle_result(names: Sequence[str], augmented: Iterable[Arrow]) -> BaselineResult:
    """Find what perfect tests and rules could find: the equivalence class of the true graph, with the domain's arrows.

    It needs the truth, so it is no method: it is an upper bound for methods.

    Parameters
    ----------
    names : sequence of str
        Names of the variables.
    augmented : iterable of (str, str)
        True arrows, those of the domain included.

    Returns
    -------
    BaselineResult
        The class of the true graph.

    Examples
    --------
    >>> from fedcdh import DOMAIN
    >>> from fedcdh.evaluation.baselines import oracle_result
    >>> print(oracle_result(("x", "y", "z"), {("x", "y"), ("y", "z"), (DOMAIN, "z")}).graph)
    y → z
    x — y
    """
    return BaselineResult(to_cpdag(PartialGraph.from_dag((DOMAIN, *names), augmented)))


def graph_from_endpoint_marks(marks: Array, nodes: Sequence[str]) -> PartialGraph:
    """Return the graph of causal-learn's matrix of marks; the module's docstring explains them."""
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
    """Import something of causal-learn when it is needed; everything else does without this library."""
    with optional_import("causal-learn", extra="experiments"):
        return getattr(import_module(f"causallearn.{module}"), name)


def wrap_causal_learn(program: str, seed: int) -> contextlib.AbstractContextManager[None]:
    """Wrap a call of causal-learn; see `wrap_library`."""
    return wrap_library("causal-learn", program, seed)


@contextlib.contextmanager
def wrap_library(library: str, program: str, seed: int) -> Iterator[None]:
    """Wrap a call of a library: set the global generators, hide progress bars, raise one kind of error."""
    before, plain = np.random.get_state(), random.getstate()  # noqa: NPY002 (libraries draw from both)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except Exception as reason:
        said = " ".join(str(reason).split()) or type(reason).__name__
        raise BaselineError(
            f"{library}'s {program} failed on these rows: {said}; expected rows that it can use; look for constant or "
            "duplicate columns and for clients with few rows, or choose another test"
        ) from reason
    finally:
        np.random.set_state(before)  # noqa: NPY002
        random.setstate(plain)


def pool_rows(tables: Mapping[str, Array]) -> tuple[Array, CountingChannel]:
    """Send the rows of all clients to one place, in the order of the tables, and count them."""
    channel = CountingChannel(len(tables))
    return np.concatenate([channel.to_server(table) for table in tables.values()]), channel
