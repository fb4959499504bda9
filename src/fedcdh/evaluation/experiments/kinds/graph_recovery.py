"""Graphs against the truth: simulated studies, and real ones as far as their truth is known.

Parameters of a simulated case: model ("linear", "general", or "products" of causes), variables, clients, rows (per
client), density (edges per variable), changing, dialect ("paper" or "authors"), scale ("raw" or "standardised"), sizes
("equal", or "unequal" with the same total), order ("given", or "shuffled": the clients swap names), and width, the
number h of features (0: as the method has it).

Of a real one: study, clients (0: all), rows (per client; 0: all).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcdh.data.sources import Kind as ColumnKind
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines import Found, method
from fedcdh.evaluation.baselines.fedcdh_methods import ours
from fedcdh.evaluation.experiments.definition import Case
from fedcdh.evaluation.experiments.interaction_data import product_study
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, load, one_per_pair
from fedcdh.evaluation.simulation import AUTHORS, PAPER, Array, Simulation, generator, simulate
from fedcdh.graphs.equivalence import cpdag
from fedcdh.graphs.metrics import Score, compare, compare_changing
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.protocols import DOMAIN

ORACLE = "oracle"
"""Not a method: the class of the true augmented graph, extended to a DAG. Perfect tests and rules give this."""
FEWEST = 10  # rows of a client, where sizes are unequal

_SCORES = ("f1", "precision", "recall", "shd")
MEASURES = (
    *(f"{part}_{score}" for part in ("skeleton", "direction") for score in _SCORES),
    "changing_precision",
    "changing_recall",
    "messages_up",
    "bytes_up",
    "messages_down",
    "bytes_down",
    "graph",  # a fingerprint: equal where graphs are
)


@dataclass(frozen=True, eq=False)
class Instance:
    """Tables of all clients and the truth. Where a → b and b → a are both true, either is right."""

    tables: Mapping[str, Array]
    names: tuple[str, ...]
    arrows: frozenset[Arrow]
    changing: frozenset[str] | None  # None: not known
    kinds: Mapping[str, ColumnKind]


class Graphs:
    """Methods find graphs, which are held against the truth."""

    measures = MEASURES

    def ready(self, name: str) -> None:
        """Methods of other libraries import them when first called; so they are called once, on three variables."""
        if name != ORACLE and method(name).needs not in _WARM:
            method(name)(_TINY.tables, _TINY.names)
            _WARM.add(method(name).needs)

    def measure(self, prepared: Instance, case: Case, name: str, seed: int) -> dict[str, Any]:
        return scores(prepared, _found(prepared, case, name, seed))

    def failed(self, prepared: Instance) -> dict[str, Any]:
        """Whoever uses a method that fails goes home without a graph."""
        nothing = Found(PartialGraph((*prepared.names, DOMAIN)))
        return {**scores(prepared, nothing), "graph": ""}


class Simulated(Graphs):
    """The paper's synthetic studies."""

    def prepare(self, case: Case, seed: int) -> Instance:
        study = _simulated(case, seed)
        if case["scale"] == "standardised":
            study = study.standardised()
        return Instance(_in_order(study, case["order"], seed), study.names, study.arrows, study.changing, {})


def _simulated(case: Case, seed: int) -> Simulation:
    sizes = {name: case[name] for name in ("variables", "clients", "changing")}
    if case["model"] == "products":
        return product_study(**sizes, rows=case["rows"], edges=_edges(case), seed=seed)
    dialect = {"paper": PAPER, "authors": AUTHORS}[case["dialect"]]
    return simulate(case["model"], **sizes, rows=_rows(case, seed), edges=_edges(case), seed=seed, dialect=dialect)


class Real(Graphs):
    """The studies of `real_data`: clients and rows are drawn at random where fewer than all are asked for."""

    def prepare(self, case: Case, seed: int) -> Instance:
        study = load(case["study"])
        draw = generator(seed, "real", case["study"])
        domains = np.unique(study.columns[DOMAIN_COLUMN])
        chosen = draw.permutation(domains)[: case["clients"]] if case["clients"] else domains
        table = np.column_stack([study.columns[name] for name in study.names]).astype(float)
        tables = {}
        for domain in sorted(map(str, chosen)):
            rows = np.flatnonzero(study.columns[DOMAIN_COLUMN] == domain)
            if case["rows"]:
                rows = np.sort(generator(seed, "rows", case["study"], domain).permutation(rows)[: case["rows"]])
            tables[domain] = table[rows]
        return Instance(tables, study.names, study.arrows, study.changing, study.kinds)


SIMULATED, REAL = Simulated(), Real()
_TINY = simulate(variables=3, clients=2, rows=40, changing=1, seed=1)
_WARM: set[str] = {""}  # extras whose libraries are imported


def scores(instance: Instance, found: Found) -> dict[str, Any]:
    """Skeleton and directions, changing mechanisms, what was sent, and a fingerprint of the graph."""
    directed, graph, traffic = found.directed, found.graph, found.traffic
    skeleton = compare(graph.arrows, one_per_pair(instance.arrows, graph.arrows), graph.lines).skeleton
    direction = compare(directed, one_per_pair(instance.arrows, directed)).direction
    changing: tuple[float | None, float | None] = (None, None)
    if instance.changing is not None and found.changing is not None:
        score = compare_changing(found.changing, instance.changing)
        changing = (score.precision, score.recall)
    return {
        **_named("skeleton", skeleton),
        **_named("direction", direction),
        "changing_precision": changing[0],
        "changing_recall": changing[1],
        "messages_up": traffic.messages_up,
        "bytes_up": traffic.bytes_up,
        "messages_down": traffic.messages_down,
        "bytes_down": traffic.bytes_down,
        "graph": hashlib.sha256(str(found.augmented).encode()).hexdigest()[:12],
    }


def _named(part: str, score: Score) -> dict[str, float]:
    return {f"{part}_{name}": getattr(score, name) for name in _SCORES}


def _found(instance: Instance, case: Case, name: str, seed: int) -> Found:
    if name == ORACLE:
        augmented = instance.arrows | {(DOMAIN, changing) for changing in instance.changing or ()}
        return Found(cpdag(PartialGraph.from_dag((DOMAIN, *instance.names), augmented)))
    if name.startswith("fedcdh-"):
        width = case.get("width", 0) or None
        chosen = method(name).options
        return ours(instance.tables, instance.names, seed, width=width, kinds=instance.kinds, **chosen)
    if case.get("width", 0):
        raise SettingsError(f"{name} has no number of features to set; leave it out of this experiment")
    return method(name)(instance.tables, instance.names, seed)


def _rows(case: Case, seed: int) -> int | list[int]:
    """Per client; unequal sizes add up to the same, and no client has fewer than ten (or the equal share, if less)."""
    rows, clients = int(case["rows"]), int(case["clients"])
    if case["sizes"] == "equal":
        return rows
    least = min(FEWEST, rows)
    share = generator(seed, "sizes").dirichlet(np.ones(clients))
    free = (rows - least) * clients
    counts = np.floor(share * free).astype(int)
    counts[int(np.argmax(share))] += free - counts.sum()
    return [least + int(count) for count in counts]


def _edges(case: Case) -> int:
    variables = int(case["variables"])
    return min(round(float(case["density"]) * variables), variables * (variables - 1) // 2)


def _in_order(study: Simulation, order: str, seed: int) -> dict[str, Array]:
    """The tables; "shuffled" hands every client the name, and so the domain index, of another."""
    clients = list(study.tables)
    if order == "given":
        return dict(study.tables)
    renamed = generator(seed, "shuffled").permutation(clients)
    tables = {str(new): study.tables[old] for new, old in zip(renamed, clients, strict=True)}
    return {client: tables[client] for client in clients}
