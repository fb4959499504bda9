"""DARLIS, in its own paper DARLS (Ye, Amini and Zhou 2022, arXiv 2201.09194): annealing over orders of variables.

For a given order of the variables, the best sparse graph is a convex problem: every node is regressed on those before
it, with the penalty λ Σ_ij ‖B_ij‖. It is solved over all clients by exchanging gradients (`darlis_rounds`). Simulated
annealing searches the orders. A proposal turns round or permutes a short stretch of the order, so that only its nodes
are fitted again. Arrows that remain in the best order have to pass a likelihood-ratio test. The result is the
equivalence class, since the model need not be identifiable.

No public program was found, and details are ours:

- Numbers have the Gaussian likelihood with a variance for every node, in its convex form. The likelihood alone is then
  the same for all complete orders, and what tells orders apart is the penalty: sparser is better.
- Variables are scaled by their standard deviation within clients, so that the penalty does not read variances.
- Clients have intercepts of their own, which they keep.
- λ has the smallest BIC among twenty values at the first order, which is drawn at random.
- The first temperature accepts half of the proposals that make the score worse, judged by the first twenty. It falls
  to a ten-thousandth.
- Fits are remembered: a node with the same candidates is not asked again.

The rounds are run as they are counted. For numbers, the first answers contain the second moments of the clients'
variables: who sees single answers could add them up and anneal alone (`tests` do, and reach the same optimum).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.column_scales import ColumnScales, exchange_scales
from fedcdh.evaluation.baselines.darlis_clients import DarlisClient, DesignLayout, FamilyProblem
from fedcdh.evaluation.baselines.darlis_rounds import DarlisServer, FamilyFit
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph

Order = tuple[int, ...]


@dataclass(frozen=True)
class DarlisSettings:
    """The settings of DARLIS, none chosen by the graphs found.

    Scores were compared with those of more proposals at 12 variables (two studies), and of all orders at 6. At 30
    variables runs that cool at another pace still differ a little: there annealing has not converged.

    `tolerance` bounds the gradient mapping of a fit, and `max_rounds` its rounds. `stretch` is the longest stretch that
    a proposal changes. `level` is that of the tests in the end.
    """

    proposals_per_variable: int = 200
    stretch: int = 5
    penalties: int = 20
    min_penalty_ratio: float = 1e-3
    trial_proposals: int = 20
    cooling: float = 1e-4
    tolerance: float = 1e-4
    max_rounds: int = 500
    level: float = 1e-3


NUMBER_SETTINGS = DarlisSettings()
LABEL_SETTINGS = DarlisSettings(proposals_per_variable=40, tolerance=1e-3, max_rounds=200)
"""Settings where some variables are labels, whose gradients take all rows, not second moments.

They limit the time: convergence of the annealing was not examined with labels.
"""


def run_darlis(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, str] | None = None,
    settings: DarlisSettings | None = None,
) -> BaselineResult:
    """Return the class of the best graph that annealing finds; `kinds` says which variables are "categorical".

    `settings` are NUMBER_SETTINGS unless given, or LABEL_SETTINGS where some variables are labels.

    >>> draw = np.random.default_rng(0)
    >>> x, y, e = draw.standard_normal((3, 2, 200))
    >>> tables = {f"client{k}": np.column_stack([x[k], y[k], x[k] + y[k] + e[k]]) for k in range(2)}
    >>> print(run_darlis(tables, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    scales = exchange_scales(tables, channel)
    order = scales.order
    if len(order) == 0:
        return BaselineResult(PartialGraph(tuple(names)), channel.traffic)
    chosen = {client: np.ascontiguousarray(tables[client][:, order]) for client in sorted(tables)}
    labels = [i for i, place in enumerate(order) if (kinds or {}).get(names[place]) == "categorical"]
    layout = _agree_on_layout(chosen, labels, channel)
    inner = ColumnScales(scales.rows, scales.deviations[order], scales.shapes[order])
    server = DarlisServer([DarlisClient(table, inner, layout) for table in chosen.values()], layout, channel)
    chosen_settings = settings or (LABEL_SETTINGS if labels else NUMBER_SETTINGS)
    parents = _find_parents(server, layout, scales.rows, seed, chosen_settings)
    arrows = {(names[order[i]], names[order[j]]) for j, found in parents.items() for i in found}
    return BaselineResult(to_cpdag(PartialGraph.from_dag(tuple(names), arrows)), channel.traffic)


def _agree_on_layout(tables: Mapping[str, Array], labels: Sequence[int], channel: CountingChannel) -> DesignLayout:
    """Collect the values of every label from all clients, and send them the union."""
    levels: list[tuple[float, ...]] = [()] * next(iter(tables.values())).shape[1]
    for variable in labels:
        sent = [channel.to_server(np.unique(table[:, variable])) for table in tables.values()]
        levels[variable] = tuple(channel.to_clients(np.unique(np.concatenate(sent))).tolist())
    return DesignLayout(tuple(levels))


def _find_parents(
    server: DarlisServer, layout: DesignLayout, rows: int, seed: int, settings: DarlisSettings
) -> dict[int, tuple[int, ...]]:
    """Anneal over orders, and test the arrows of the best one."""
    draw = keyed_generator(seed, "darlis")
    start = tuple(draw.permutation(len(layout.levels)).tolist())
    penalty = choose_penalty(server, layout, start, rows, settings)
    search = OrderSearch(server, layout, penalty, settings)
    best = search.anneal(start, draw)
    parents = {node: fit.parents for node, fit in search.fits_of(best).items()}
    return prune_parents(server, layout, parents, rows, settings)


def choose_penalty(
    server: DarlisServer, layout: DesignLayout, order: Order, rows: int, settings: DarlisSettings
) -> float:
    """Return the λ with the smallest BIC at this order, on a path from the largest that matters downwards."""
    problems = _problems_of(order)
    empty = server.fit(problems, np.inf, tolerance=settings.tolerance, max_rounds=settings.max_rounds)
    largest = server.largest_slope(problems, [fit.parameters for fit in empty])
    path = largest * np.geomspace(1.0, settings.min_penalty_ratio, settings.penalties)
    fits, chosen = empty, (np.inf, largest)
    for penalty in path.tolist():
        fits = server.fit(
            problems,
            penalty,
            [fit.parameters for fit in fits],
            tolerance=settings.tolerance,
            max_rounds=settings.max_rounds,
        )
        size = sum(layout.freedom(p.node, i) for p, fit in zip(problems, fits, strict=True) for i in fit.parents)
        bic = 2.0 * rows * sum(fit.loss for fit in fits) + math.log(rows) * size
        chosen = min(chosen, (bic, penalty))
    return chosen[1]


def _problems_of(order: Order) -> list[FamilyProblem]:
    return [FamilyProblem(node, tuple(sorted(order[:place]))) for place, node in enumerate(order)]


@dataclass
class OrderSearch:
    """Annealing over orders at one λ; it remembers every fit."""

    server: DarlisServer
    layout: DesignLayout
    penalty: float
    settings: DarlisSettings
    _known: dict[FamilyProblem, FamilyFit] = field(default_factory=dict)

    def fits_of(self, order: Order, warm: Mapping[int, FamilyProblem] | None = None) -> dict[int, FamilyFit]:
        """Return the fit of every node after those before it, and ask the clients for the ones that are not known."""
        problems = _problems_of(order)
        new = [problem for problem in problems if problem not in self._known]
        starts = [self._warm_start(problem, (warm or {}).get(problem.node)) for problem in new]
        fits = self.server.fit(
            new, self.penalty, starts, tolerance=self.settings.tolerance, max_rounds=self.settings.max_rounds
        )
        self._known.update(zip(new, fits, strict=True))
        return {problem.node: self._known[problem] for problem in problems}

    def score(self, order: Order, warm: Mapping[int, FamilyProblem] | None = None) -> float:
        """Return the penalised loss of an order; smaller is better."""
        return math.fsum(fit.objective for fit in self.fits_of(order, warm).values())

    def anneal(self, start: Order, draw: np.random.Generator) -> Order:
        """Return the best order found."""
        settings, size = self.settings, len(start)
        order, score = start, self.score(start)
        best = (score, order)
        if size < 2:
            return start
        total = settings.proposals_per_variable * size
        rises: list[float] = []
        temperature, factor = math.inf, settings.cooling ** (1.0 / total)
        for number in range(total):
            proposal = _propose_order(order, settings.stretch, draw)
            value = self.score(proposal, {problem.node: problem for problem in _problems_of(order)})
            if number < settings.trial_proposals:
                rises = [*rises, *([value - score] if value > score else [])]
                temperature = float(np.median(rises)) / math.log(2.0) if rises else math.inf
            if value <= score or draw.random() < math.exp(-(value - score) / temperature):
                order, score = proposal, value
            best = min(best, (score, order), key=lambda found: found[0])
            temperature *= factor
        return best[1]

    def _warm_start(self, problem: FamilyProblem, before: FamilyProblem | None) -> Array | None:
        """Return the parameters of the same node after other candidates, with 0 for new ones."""
        if before is None or before not in self._known:
            return None
        levels = max(len(self.layout.levels[problem.node]), 1)
        head = 0 if self.layout.is_label(problem.node) else 1
        old = self._known[before].parameters
        blocks, at = {}, head
        for candidate in before.candidates:
            size = len(self.layout.places[candidate]) * levels
            blocks[candidate], at = old[at : at + size], at + size
        fresh = [blocks.get(i, np.zeros(len(self.layout.places[i]) * levels)) for i in problem.candidates]
        return np.concatenate([old[:head], *fresh])


def _propose_order(order: Order, stretch: int, draw: np.random.Generator) -> Order:
    """Turn round or permute a stretch of at least two places."""
    length = int(draw.integers(2, min(stretch, len(order)) + 1))
    start = int(draw.integers(len(order) - length + 1))
    part = order[start : start + length]
    turned = part[::-1] if draw.random() < 0.5 else tuple(part[i] for i in draw.permutation(length))
    return (*order[:start], *turned, *order[start + length :])


def prune_parents(
    server: DarlisServer,
    layout: DesignLayout,
    parents: Mapping[int, tuple[int, ...]],
    rows: int,
    settings: DarlisSettings,
) -> dict[int, tuple[int, ...]]:
    """Drop parents, the least needed first, until all pass a likelihood-ratio test without penalty."""
    kept = dict(parents)
    open_nodes = [node for node in sorted(kept) if kept[node]]
    while open_nodes:
        problems = [
            FamilyProblem(node, tuple(i for i in kept[node] if i != left_out))
            for node in open_nodes
            for left_out in (-1, *kept[node])
        ]
        fits = iter(server.fit(problems, 0.0, tolerance=settings.tolerance, max_rounds=settings.max_rounds))
        changed = []
        for node in open_nodes:
            full = next(fits).loss
            p_values = {
                i: float(stats.chi2.sf(max(2.0 * rows * (next(fits).loss - full), 0.0), layout.freedom(node, i)))
                for i in kept[node]
            }
            weakest = max(p_values, key=lambda i: (p_values[i], -i))
            if p_values[weakest] > settings.level:
                kept[node] = tuple(i for i in kept[node] if i != weakest)
                changed.append(node)
        open_nodes = [node for node in changed if kept[node]]
    return kept
