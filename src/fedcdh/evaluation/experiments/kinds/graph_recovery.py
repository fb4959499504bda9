"""Graphs against the truth: simulated studies, real ones as far as their truth is known, and noise of any shape.

Parameters of a simulated case: model ("linear", "general", or "products" of causes), variables, clients, rows (per
client), density (edges per variable), changing, dialect ("paper" or "authors"), scale ("raw" or "standardised"), sizes
("equal", or "unequal" with the same total), order ("given", or "shuffled": the clients swap names), and width, the
number h of features (0: as the method has it).

Parameters of a real case: study, clients (0: all), rows (per client; 0: all).

Parameters of a case with noise of any shape: noise, mechanism and size, each a name of `noise_shape_data`. Measured are
also shares of the true edges: with a right arrow, with a reversed one, with a line, and without an edge.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind as ColumnKind
from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.baselines import BaselineResult, find_baseline
from fedcdh.evaluation.baselines.fitted_weights import FittedWeights
from fedcdh.evaluation.experiments.definition import ExperimentCase
from fedcdh.evaluation.experiments.interaction_data import simulate_interactions
from fedcdh.evaluation.experiments.noise_shape_data import Cell, draw
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, keep_one_per_pair, load_study
from fedcdh.evaluation.simulation import AUTHORS, PAPER, Simulation, keyed_generator, simulate
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.metrics import Score, compare, compare_changing
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.protocols import DOMAIN

ORACLE_METHOD = "oracle"
"""Not a method: the class of the true augmented graph, extended to a DAG, which perfect tests and rules would find."""
MIN_ROWS_PER_CLIENT = 10  # rows of the smallest client, where sizes are unequal

_SCORES = ("f1", "precision", "recall", "shd")
GRAPH_MEASURES = (
    *(f"{part}_{score}" for part in ("skeleton", "direction") for score in _SCORES),
    "changing_precision",
    "changing_recall",
    "messages_up",
    "bytes_up",
    "messages_down",
    "bytes_down",
    "graph",  # a fingerprint: equal where graphs are
)
ARROW_SHARES = ("right", "reversed", "open", "missed")


@dataclass(frozen=True, eq=False)
class GraphInstance:
    """The tables of all clients and the truth. Where a → b and b → a are both true, either is right."""

    tables: Mapping[str, Array]
    names: tuple[str, ...]
    arrows: frozenset[Arrow]
    changing: frozenset[str] | None  # None: not known
    kinds: Mapping[str, ColumnKind]
    targets: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of interventions, by client


class GraphRecovery:
    """Graphs that methods find, compared with the truth."""

    measures: tuple[str, ...] = GRAPH_MEASURES

    def prepare_method(self, name: str) -> None:
        """Import the libraries of a method by calling it once, on three variables."""
        if name != ORACLE_METHOD and find_baseline(name).extra not in _IMPORTED_EXTRAS:
            find_baseline(name)(_WARM_UP_STUDY.tables, _WARM_UP_STUDY.names)
            _IMPORTED_EXTRAS.add(find_baseline(name).extra)

    def fit_name(self, name: str) -> str:
        """Return the name of the fit that thresholds share."""
        return "" if name == ORACLE_METHOD else find_baseline(name).fit_name

    def fit(self, prepared: GraphInstance, name: str, seed: int) -> FittedWeights:
        """Fit the weights that thresholds share."""
        return find_baseline(name).fit(prepared.tables, prepared.names, seed)

    def measure(
        self, prepared: GraphInstance, case: ExperimentCase, name: str, seed: int, fitted: FittedWeights | None = None
    ) -> dict[str, Any]:
        """Return the scores of one method on one instance."""
        if fitted is not None:
            return self.score(prepared, find_baseline(name).apply_threshold(fitted, prepared.names))
        return self.score(prepared, _run_method(prepared, case, name, seed))

    def failure_measures(self, prepared: GraphInstance) -> dict[str, Any]:
        """Return the scores of an empty graph, which a method that fails gets."""
        nothing = BaselineResult(PartialGraph((*prepared.names, DOMAIN)))
        return {**self.score(prepared, nothing), "graph": ""}

    def score(self, instance: GraphInstance, found: BaselineResult) -> dict[str, Any]:
        """Return the value of every measure."""
        return score_result(instance, found)


class SimulatedGraphs(GraphRecovery):
    """Graph recovery in the paper's synthetic studies."""

    def prepare_instance(self, case: ExperimentCase, seed: int) -> GraphInstance:
        study = _simulate_case(case, seed)
        if case["scale"] == "standardised":
            study = study.standardised()
        return GraphInstance(_order_tables(study, case["order"], seed), study.names, study.arrows, study.changing, {})


def _simulate_case(case: ExperimentCase, seed: int) -> Simulation:
    sizes = {name: case[name] for name in ("variables", "clients", "changing")}
    if case["model"] == "products":
        return simulate_interactions(**sizes, rows=case["rows"], edges=_edge_count(case), seed=seed)
    dialect = {"paper": PAPER, "authors": AUTHORS}[case["dialect"]]
    return simulate(
        case["model"], **sizes, rows=_client_row_counts(case, seed), edges=_edge_count(case), seed=seed, dialect=dialect
    )


class RealDataGraphs(GraphRecovery):
    """Graph recovery in the studies of `real_data`; clients and rows are sampled where fewer than all are wanted."""

    def prepare_instance(self, case: ExperimentCase, seed: int) -> GraphInstance:
        study = load_study(case["study"])
        draw = keyed_generator(seed, "real", case["study"])
        domains = np.unique(study.columns[DOMAIN_COLUMN])
        chosen = draw.permutation(domains)[: case["clients"]] if case["clients"] else domains
        table = np.column_stack([study.columns[name] for name in study.names]).astype(float)
        tables = {}
        for domain in sorted(map(str, chosen)):
            rows = np.flatnonzero(study.columns[DOMAIN_COLUMN] == domain)
            if case["rows"]:
                rows = np.sort(keyed_generator(seed, "rows", case["study"], domain).permutation(rows)[: case["rows"]])
            tables[domain] = table[rows]
        targets = {client: study.targets.get(client, frozenset()) for client in tables} if study.targets else {}
        return GraphInstance(tables, study.names, study.arrows, study.changing, study.kinds, targets)


class NoiseShapeGraphs(GraphRecovery):
    """Graph recovery in the studies of `noise_shape_data`, which share the assumptions of no method."""

    measures = (*GRAPH_MEASURES, *ARROW_SHARES)

    def prepare_instance(self, case: ExperimentCase, seed: int) -> GraphInstance:
        study = draw(Cell(case["noise"], case["mechanism"], case["size"]), seed)
        return GraphInstance(study.matrices(), study.names, study.arrows, study.changing, {})

    def score(self, instance: GraphInstance, found: BaselineResult) -> dict[str, Any]:
        """Score a graph, and count its arrows as they are drawn: a line is neither right nor wrong."""
        graph = found.graph
        outcomes = Counter(_classify_edge(arrow, graph) for arrow in instance.arrows)
        shares = {name: outcomes[name] / len(instance.arrows) for name in ARROW_SHARES}
        return {**score_result(instance, found), **shares}


def _classify_edge(arrow: Arrow, graph: PartialGraph) -> str:
    if arrow in graph.arrows:
        return "right"
    if arrow[::-1] in graph.arrows:
        return "reversed"
    return "open" if frozenset(arrow) in graph.lines else "missed"


SIMULATED_GRAPHS, REAL_DATA_GRAPHS, NOISE_SHAPE_GRAPHS = SimulatedGraphs(), RealDataGraphs(), NoiseShapeGraphs()
_WARM_UP_STUDY = simulate(variables=3, clients=2, rows=40, changing=1, seed=1)
_IMPORTED_EXTRAS: set[str] = {""}  # extras whose libraries are imported


def score_result(instance: GraphInstance, found: BaselineResult) -> dict[str, Any]:
    """Score skeleton, directions and changing mechanisms, count what was sent, and take a fingerprint of the graph."""
    directed, graph, traffic = found.directed, found.graph, found.traffic
    skeleton = compare(graph.arrows, keep_one_per_pair(instance.arrows, graph.arrows), graph.lines).skeleton
    direction = compare(directed, keep_one_per_pair(instance.arrows, directed)).direction
    changing: tuple[float | None, float | None] = (None, None)
    if instance.changing is not None and found.changing is not None:
        score = compare_changing(found.changing, instance.changing)
        changing = (score.precision, score.recall)
    return {
        **_name_scores("skeleton", skeleton),
        **_name_scores("direction", direction),
        "changing_precision": changing[0],
        "changing_recall": changing[1],
        "messages_up": traffic.messages_up,
        "bytes_up": traffic.bytes_up,
        "messages_down": traffic.messages_down,
        "bytes_down": traffic.bytes_down,
        "graph": hashlib.sha256(str(found.augmented).encode()).hexdigest()[:12],
    }


def _name_scores(part: str, score: Score) -> dict[str, float]:
    return {f"{part}_{name}": getattr(score, name) for name in _SCORES}


def _run_method(instance: GraphInstance, case: ExperimentCase, name: str, seed: int) -> BaselineResult:
    if name == ORACLE_METHOD:
        augmented = instance.arrows | {(DOMAIN, changing) for changing in instance.changing or ()}
        return BaselineResult(to_cpdag(PartialGraph.from_dag((DOMAIN, *instance.names), augmented)))
    entry = find_baseline(name)
    accepted = inspect.signature(entry.load()).parameters
    chosen: dict[str, Any] = {"targets": instance.targets} if "targets" in accepted else {}
    if width := case.get("width", 0):
        if "width" not in accepted:
            raise SettingsError(
                f"found the method {name!r} with a number of features; expected one of ours; leave it out of this "
                "experiment"
            )
        chosen["width"] = width
    order = _find_true_order(instance) if entry.truth == "order" else None
    configured = replace(entry, options={**entry.options, **chosen})
    return configured(instance.tables, instance.names, seed, kinds=instance.kinds, order=order)


def _find_true_order(instance: GraphInstance) -> list[str]:
    """Return an order in which the true causes precede their effects."""
    causes = {name: sorted(tail for tail, head in instance.arrows if head == name) for name in instance.names}
    try:
        return [*TopologicalSorter(causes).static_order()]
    except CycleError as reason:
        raise DataError(
            "found a true graph with a cycle; expected one that has an order; leave methods that need the true order "
            "out of this study"
        ) from reason


def _client_row_counts(case: ExperimentCase, seed: int) -> int | list[int]:
    """Return the rows of each client; unequal sizes have the same sum, and at least ten rows (or the equal share)."""
    rows, clients = int(case["rows"]), int(case["clients"])
    if case["sizes"] == "equal":
        return rows
    least = min(MIN_ROWS_PER_CLIENT, rows)
    share = keyed_generator(seed, "sizes").dirichlet(np.ones(clients))
    free = (rows - least) * clients
    counts = np.floor(share * free).astype(int)
    counts[int(np.argmax(share))] += free - counts.sum()
    return [least + int(count) for count in counts]


def _edge_count(case: ExperimentCase) -> int:
    variables = int(case["variables"])
    return min(round(float(case["density"]) * variables), variables * (variables - 1) // 2)


def _order_tables(study: Simulation, order: str, seed: int) -> dict[str, Array]:
    """Return the tables; "shuffled" gives every client the name, and so the domain index, of another."""
    clients = list(study.tables)
    if order == "given":
        return dict(study.tables)
    renamed = keyed_generator(seed, "shuffled").permutation(clients)
    tables = {str(new): study.tables[old] for new, old in zip(renamed, clients, strict=True)}
    return {client: tables[client] for client in clients}
