"""Fed-CD, later FedCDI (Abyaneh et al. 2022, arXiv 2211.03846): clients learn beliefs, the server averages them.

In a round the server sends its beliefs about arrows (two matrices of logits), every client learns on from there
(`fed_cd_learner`) and returns its own, and the server combines these:

- "naive": the mean, weighted by rows.
- "proximity": client k weighs w_0 a^distance for an arrow i → j of the last global graph, where the distance is that
  from the nearest variable that the client has intervened on to i, and at least w_min = 1. In the first round the graph
  is the client's own. Without interventions all clients weigh the same.

The original learner is ENCO, with a network per variable. This one regresses on features, in closed form, and needs no
training. Beyond that, these are ours: a penalty for each arrow in the steps on directions, since the loss is computed
on the rows that were fitted; directions from curvature where no client has intervened, on which ENCO says nothing; the
weights w_0 = 8 and a = ½; rounds, steps and step size. Interventions count as perfect: the target has no other causes.

Arrows with s(G) > ½ and s(T) > ½ are the graph; of those in a cycle the least probable go. Where T is exactly 0, as
with linear mechanisms and no interventions, the edge is a line.

Masks are drawn by the seed, for variables sorted by their content (`column_scales`), so that names do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from scipy.special import expit

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.column_scales import exchange_scales
from fedcdh.evaluation.baselines.fed_cd_learner import (
    Beliefs,
    ClosedFormLearner,
    LearnerSettings,
    add_hermite_features,
    keep_values,
)
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.graphs.partial_graph import PartialGraph

Combination = Literal["naive", "proximity"]
Mechanisms = Literal["linear", "features"]
InterventionTargets = Mapping[str, Collection[str]]
"""For each client the variables that it has intervened on; a client that is missing has none."""

MIN_WEIGHT, INITIAL_WEIGHT, DECAY = 1.0, 8.0, 0.5
_FEATURES = {"linear": keep_values, "features": add_hermite_features}
_LEARNER = LearnerSettings()


def run_fed_cd(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    combination: Combination = "naive",
    mechanisms: Mechanisms = "features",
    rounds: int = 8,
    learner: LearnerSettings = _LEARNER,
) -> BaselineResult:
    """Run Fed-CD on observational rows.

    >>> draw = np.random.default_rng(0)
    >>> cause = draw.standard_normal((2, 300))
    >>> tables = {f"c{k}": np.column_stack([x, x**2 + 0.3 * draw.standard_normal(300)]) for k, x in enumerate(cause)}
    >>> print(run_fed_cd(tables, ("dose", "effect")).graph)
    dose → effect
    """
    return _run(tables, names, seed, {}, combination, mechanisms, rounds, learner)


def run_fed_cd_with_targets(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    targets: InterventionTargets | None = None,
    combination: Combination = "naive",
    mechanisms: Mechanisms = "features",
    rounds: int = 8,
    learner: LearnerSettings = _LEARNER,
) -> BaselineResult:
    """Run Fed-CD where the targets of interventions are known, which is an advantage that no other method has.

    >>> draw = np.random.default_rng(0)
    >>> x, e, f, g = draw.standard_normal((4, 400))
    >>> tables = {"watch": np.column_stack([x, x + e]), "set effect": np.column_stack([f, g])}
    >>> tables["set dose"] = tables["watch"][::-1]
    >>> targets = {"set effect": ["effect"], "set dose": ["dose"]}
    >>> print(run_fed_cd_with_targets(tables, ("dose", "effect"), targets=targets).graph)
    dose → effect
    """
    if not targets or not any(targets.values()):
        raise SettingsError(
            "found no target of an intervention; expected for some client the variables that it has intervened on; "
            "choose 'fed-cd-naive' or 'fed-cd-proximity' for rows without interventions",
            parameter="targets",
        )
    unknown = sorted(
        {name for chosen in targets.values() for name in chosen} - set(names) | (set(targets) - set(tables))
    )
    if unknown:
        raise SettingsError(
            f"found {', '.join(map(repr, unknown))} among the targets; expected names of clients and variables; "
            "correct these",
            parameter="targets",
        )
    return _run(tables, names, seed, targets, combination, mechanisms, rounds, learner)


def _run(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int,
    targets: InterventionTargets,
    combination: Combination,
    mechanisms: Mechanisms,
    rounds: int,
    learner: LearnerSettings,
) -> BaselineResult:
    _check_choices(combination, mechanisms)
    channel = CountingChannel(len(tables))
    scales = exchange_scales(tables, channel)
    order = scales.order
    inside = [names[place] for place in order]
    if not inside:
        return BaselineResult(PartialGraph(tuple(names)), channel.traffic)
    aims = {
        client: frozenset(inside.index(name) for name in targets.get(client, ()) if name in inside) for client in tables
    }
    clients = {
        client: ClosedFormLearner(
            np.ascontiguousarray(tables[client][:, order]) / scales.deviations[order],
            _FEATURES[mechanisms],
            aims[client],
            uses_curvature=not any(aims.values()),
            settings=learner,
            draw=keyed_generator(seed, "fed-cd", client),
        )
        for client in sorted(tables)
    }
    shares = np.array([len(tables[client]) / scales.rows for client in clients])
    beliefs = Beliefs.open(len(inside))
    for number in range(rounds):
        _send(beliefs, channel.to_clients)
        answers = [_send(client.learn(beliefs), channel.to_server) for client in clients.values()]
        if combination == "naive":
            weights = np.broadcast_to(shares[:, None, None], (len(answers), len(inside), len(inside)))
        else:
            graphs = [find_arrows(beliefs if number else answer) for answer in answers]
            weights = np.array([weigh_arrows(g, aims[client]) for g, client in zip(graphs, clients, strict=True)])
        beliefs = combine_beliefs(answers, weights)
    return BaselineResult(_graph_of(beliefs, inside, names), channel.traffic)


def _check_choices(combination: str, mechanisms: str) -> None:
    for parameter, value, known in (
        ("combination", combination, get_args(Combination)),
        ("mechanisms", mechanisms, get_args(Mechanisms)),
    ):
        if value not in known:
            raise SettingsError(
                f"found {parameter} {value!r}; expected one of {', '.join(known)}; choose one of these",
                parameter=parameter,
            )


def _send(beliefs: Beliefs, send: Callable[[Array], Array]) -> Beliefs:
    """Send both matrices."""
    return Beliefs(send(beliefs.existence), send(beliefs.direction))


def find_arrows(beliefs: Beliefs) -> np.ndarray:
    """Return which arrows are believed in: s(G) > ½ and s(T) > ½."""
    return np.asarray((beliefs.existence > 0) & (beliefs.direction > 0))


def weigh_arrows(arrows: np.ndarray, targets: frozenset[int]) -> Array:
    """Return a client's weight for every arrow, which falls with the distance from the nearest target.

    >>> weigh_arrows(np.array([[False, True, False], [False, False, True], [False, False, False]]), frozenset({0}))
    array([[1., 8., 1.],
           [1., 1., 4.],
           [1., 1., 1.]])
    """
    distances = np.full(len(arrows), np.inf)
    near = sorted(targets)
    distances[near] = 0.0
    for distance in range(1, len(arrows)):
        reached = arrows[near].any(axis=0) & np.isinf(distances)
        near = np.flatnonzero(reached).tolist()
        distances[near] = distance
    decayed = np.where(np.isinf(distances), MIN_WEIGHT, np.maximum(MIN_WEIGHT, INITIAL_WEIGHT * DECAY**distances))
    return np.where(arrows, decayed[:, None], MIN_WEIGHT)


def combine_beliefs(answers: Sequence[Beliefs], weights: Array) -> Beliefs:
    """Return the weighted means of all clients' beliefs, with T made antisymmetric."""
    total = weights.sum(axis=0)
    existence = (weights * [answer.existence for answer in answers]).sum(axis=0) / total
    direction = (weights * [answer.direction for answer in answers]).sum(axis=0) / total
    return Beliefs(existence, (direction - direction.T) / 2.0)


def _graph_of(beliefs: Beliefs, inside: Sequence[str], names: Sequence[str]) -> PartialGraph:
    """Return the arrows believed in without cycles, and lines where nothing is known about the direction."""
    chances = np.where(find_arrows(beliefs), expit(beliefs.existence) * expit(beliefs.direction), 0.0)
    arrows = dag_of_weights(chances, inside, 0.0).arrows
    joined = np.maximum(beliefs.existence, beliefs.existence.T) > 0
    open_pairs = np.argwhere(np.triu(joined & (beliefs.direction == 0), 1)).tolist()
    lines = frozenset(frozenset((inside[i], inside[j])) for i, j in open_pairs)
    return PartialGraph(tuple(names), arrows, lines)
