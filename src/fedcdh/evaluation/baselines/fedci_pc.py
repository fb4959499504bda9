"""PC with the fedCI test: Hahn, Zajak, Heider and Ribeiro (2026), likelihood ratios of federated regressions.

x ⫫ y | Z compares four generalised linear models: x on Z with and without y, and y on Z with and without x. Every
client has its own intercepts (`federated_glm`). The two likelihood ratios give p₁ and p₂, and the question gets
p = min(2 min(p₁, p₂), max(p₁, p₂)).

The authors use their test for sites with different columns and hidden causes. Here PC-stable asks it, colliders follow
from separating sets, and then Meek's rules. Left out: cumulative logits for ordered labels, and pairwise masks on the
messages, which change no sum. All questions of a level share their messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.evaluation.baselines.federated_glm import Design, GlmClient, GlmServer
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.labelled_rows import Fit
from fedcdh.protocols import Answer, Query
from fedcdh.search.colliders import separating_set_rule
from fedcdh.search.orientation import orient_skeleton
from fedcdh.search.skeleton import find_skeleton

ALPHA = 0.05
_MIN_SHARE = 1e-9  # a target with a smaller share of its variance left is explained already


def run_fedci_pc(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    alpha: float = ALPHA,
    max_conditioning_size: int | None = None,
) -> BaselineResult:
    """Run PC-stable with the fedCI test; `kinds` says which numbers are codes of labels. Nothing is random.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_fedci_pc({"north": table[:90], "south": table[90:] + 5}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    labels = [place for place, name in enumerate(names) if kinds is not None and kinds.get(name) == "categorical"]
    own = [tables[client] for client in sorted(tables)]
    design = Design.of(len(names), _agree_on_levels(own, labels, channel))
    server = GlmServer([GlmClient(table, design) for table in own], channel, design, max(map(len, own)))
    test = FedCiTest(server, names, sum(len(table) for table in own))
    skeleton = find_skeleton(names, test, alpha, max_conditioning_size=max_conditioning_size)
    return BaselineResult(orient_skeleton(skeleton, separating_set_rule).graph, channel.traffic)


def _agree_on_levels(tables: Sequence[Array], labels: Sequence[int], channel: CountingChannel) -> dict[int, Array]:
    """Return all levels of each variable that holds labels: clients send theirs, the server sends the union."""
    levels = {}
    for place in labels:
        sent = [channel.to_server(np.unique(table[:, place])) for table in tables]
        levels[place] = channel.to_clients(np.unique(np.concatenate(sent)))
    return levels


class FedCiTest:
    """The fedCI test as an `IndependenceTest` over the names of the variables."""

    def __init__(self, server: GlmServer, names: Sequence[str], rows: int) -> None:
        self._server, self._rows = server, rows
        self._places = {name: place for place, name in enumerate(names)}

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Answer the queries; one batch shares its rounds."""
        wanted: list[Fit] = [(place, ()) for place in self._places.values()]
        for query in queries:
            for target, given, larger in self._models(query):
                wanted += [(target, given), (target, larger)]
        self._server.fit(wanted)
        return [self._answer(query) for query in queries]

    def _models(self, query: Query) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """Return target, smaller and larger set of predictors, for both directions."""
        given = sorted(self._places[name] for name in query.given)
        x, y = self._places[query.x], self._places[query.y]
        return [(target, tuple(given), tuple(sorted([*given, other]))) for target, other in ((x, y), (y, x))]

    def _answer(self, query: Query) -> Answer:
        found = [self._likelihood_ratio(*model) for model in self._models(query)]
        p_values = [p_value for _, p_value in found]
        p_value = min(2 * min(p_values), max(p_values))
        return Answer(query, max(statistic for statistic, _ in found), p_value, self._rows)

    def _likelihood_ratio(self, target: int, given: tuple[int, ...], larger: tuple[int, ...]) -> tuple[float, float]:
        design, deviances = self._server.design, self._server.deviances
        before, after = deviances[target, given], deviances[target, larger]
        width = len(design.columns(larger)) - len(design.columns(given))
        if target in design.levels:
            freedom = width * (len(design.levels[target]) - 1)
        else:
            freedom = width
            if before <= deviances[target, ()] + self._rows * np.log(_MIN_SHARE):
                return 0.0, 1.0
        statistic = max(before - after, 0.0)
        return statistic, float(special.chdtrc(freedom, statistic)) if freedom else 1.0
