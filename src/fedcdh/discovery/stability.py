"""Would the graph be the same with other clients? Summaries add up, so the search can be repeated without any message.

By default every client is left out once, which also tells who is to be asked when something disappears. With `runs`,
clients are drawn with replacement, as many as there are. A client that is drawn twice counts as two clients. Where
nothing differs, each of them is off from the common mean by one chance deviation, as a degree of freedom between
clients allows; one client of double weight would be off by two, and look as if its mechanism differed
(`benchmarks.bench_stability` counts how often). Either way rows appear more than once, so shares of bootstrap runs say
how much depends on which clients took part; they are not p-values.

With `copies`, which clients send along (`resampling`, `fedcdh summarize --bootstrap`), clients stay and rows are drawn
anew within each of them. A row that counts twice is taken for two, so dependences look surer in a copy than they are,
and edges that are not there are found more often than in new rows: an edge of the result that is missing in many copies
is doubtful, one that is only in copies is no finding.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from operator import length_hint
from random import Random
from typing import Literal

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.discovery.algorithm import SearchResult
from fedcdh.discovery.methods import get_method
from fedcdh.discovery.settings import Settings
from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Progress
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

StabilityKind = Literal["leave-one-out", "bootstrap", "row-bootstrap"]
Replicate = Iterable[Summary] | Cohort | Aggregate


@dataclass(frozen=True)
class StabilityRun:
    """One repetition: the clients that took part (one named twice counted twice), and what was found.

    Where rows were drawn anew, all clients take part in every run, and nobody is left out.
    """

    clients: tuple[str, ...]
    left_out: tuple[str, ...]
    arrows: frozenset[Arrow]
    lines: frozenset[Pair]
    changing: frozenset[str] | None  # None where only one client was left: then it cannot be asked
    weights: Mapping[Pair, float] = field(default_factory=dict)  # how much speaks for each link, see `Influence`

    def mark(self, source: str, target: str) -> str:
        """ "→", "←", "—" or "", nothing."""
        if (source, target) in self.arrows:
            return "→"
        if (target, source) in self.arrows:
            return "←"
        return "—" if frozenset((source, target)) in self.lines else ""


@dataclass(frozen=True)
class EdgeStability:
    """A pair of variables that is adjacent in the result or in some run, and the shares of runs that agree.

    `mark` is that of the result: "→", "—", or "" where the result has no edge. `adjacent` is the share of runs with an
    edge, `same` that of runs with the very same mark; `forward` and `backward` are the shares with source → target and
    with the reverse. `gone_without` and `turned_without` name the clients without whom the edge disappears (appears,
    where the result has none) or points otherwise; empty in a bootstrap, where clients do not leave one by one.
    """

    source: str
    target: str
    mark: str
    adjacent: float
    same: float
    forward: float
    backward: float
    gone_without: tuple[str, ...]
    turned_without: tuple[str, ...]


@dataclass(frozen=True)
class ChangeStability:
    """A variable whose mechanism changes in the result or in some run; None where runs could not ask."""

    variable: str
    changing: bool  # in the result
    share: float | None  # of the runs in which it changes
    differs_without: tuple[str, ...]  # clients without whom the opposite is found


@dataclass(frozen=True)
class Influence:
    """How much hangs on one client: of all that speaks for or against the links, what goes when it is left out.

    What speaks for a link is the log of the Bayes factor for its presence, negative where it is absent; with tests,
    −ln p. `largest` is the largest change of it, positive where the client speaks for `link`; `total` adds up the sizes
    of all changes; `n_changed` counts links and mechanisms that are found otherwise without the client. A client with
    more rows has more influence: `share` is its share of the rows.
    """

    client: str
    share: float
    largest: float
    link: tuple[str, str] | None  # None where nothing was weighed
    total: float
    n_changed: int


@dataclass(frozen=True)
class Stability:
    """How much of a result other clients, or other rows of theirs, leave as it is.

    Pairs that are never adjacent are not listed.
    """

    kind: StabilityKind
    seed: int | None  # of the draws
    edges: tuple[EdgeStability, ...]  # of the result first, the firmest first
    changing: tuple[ChangeStability, ...]
    runs: tuple[StabilityRun, ...]
    notes: tuple[str, ...]
    influence: tuple[Influence, ...] = ()  # of every client that was left out, the largest first

    @cached_property
    def changes_without(self) -> dict[str, tuple[str, ...]]:
        """For every client that matters: what is otherwise without it, in words."""
        found: dict[str, list[str]] = {}
        for edge in self.edges:
            shown = f"{edge.source} {edge.mark or '—'} {edge.target}"
            for client in edge.gone_without:
                found.setdefault(client, []).append(f"{shown} {'gone' if edge.mark else 'appears'}")
            for client in edge.turned_without:
                found.setdefault(client, []).append(f"{shown} points otherwise")
        for change in self.changing:
            for client in change.differs_without:
                how = "does not change" if change.changing else "changes"
                found.setdefault(client, []).append(f"mechanism of {change.variable} {how}")
        return {client: tuple(found[client]) for client in sorted(found)}


def assess_stability(
    known: Cohort | Aggregate,
    settings: Settings,
    search_result: SearchResult,
    *,
    runs: int | None = None,
    replicates: Iterable[Replicate] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Stability:
    """The search of these findings, repeated without one client after the other, or with clients drawn at random.

    With `replicates`, on the bootstrap copies of the clients' summaries instead: one set of them a run, looked at one
    after the other, so that they may be read from files when their turn comes.
    """
    if replicates is not None:
        if runs is not None:
            raise SettingsError("runs= draws clients, copies= are rows drawn anew; ask for one of them at a time")
        if isinstance(
            replicates, Sequence
        ):  # they are there: what is wrong with the last is told before the first search
            replicates = list(_check_replicates(known, replicates))
        repetitions = ((copy.summaries[0].copy, known.clients, copy) for copy in _check_replicates(known, replicates))
        return _repeat_search(
            "row-bootstrap", None, known, settings, search_result, repetitions, length_hint(replicates), progress
        )
    if isinstance(known, Aggregate):
        raise SettingsError(
            "stability needs the summary of every client, but only their sum is known: no client can be taken out of "
            "it; ask for the single summaries"
        )
    if len(known.clients) < 2:
        raise SettingsError("there is only one client: nothing is left without it; stability needs two or more")
    if runs is not None and (not isinstance(runs, int) or runs < 1):
        raise SettingsError(f"runs is {runs!r}; expected 1, 2, 3, ... draws, or None to leave each client out once")
    kind: StabilityKind = "leave-one-out" if runs is None else "bootstrap"
    draws = _leave_one_out(known.clients) if runs is None else _draw_clients(known.clients, runs, seed)
    repetitions = ((number, clients, known.drawn(clients)) for number, clients in enumerate(draws))
    study = known, settings, search_result
    return _repeat_search(kind, None if runs is None else seed, *study, repetitions, len(draws), progress)


def _repeat_search(
    kind: StabilityKind,
    seed: int | None,
    known: Cohort | Aggregate,
    settings: Settings,
    findings: SearchResult,
    repetitions: Iterator[tuple[int, tuple[str, ...], Cohort | Aggregate]],
    total: int,
    progress: Progress | None,
) -> Stability:
    """The same search on other data: its number, who takes part, and what is known of them, made when its turn comes.

    All of it together may be far more than memory holds.
    """
    if settings.rounds != "one":
        raise SettingsError(
            "this result rests on further rounds of questions, which nobody is there to answer again; look at the "
            "stability of the same discovery without rounds='adaptive'"
        )
    search = get_method(settings.method, noisy=known.plan.noise is not None).search
    numbered: dict[int, StabilityRun] = {}
    with single_blas_thread():
        for number, clients, data in repetitions:
            numbered[number] = _to_run(known.clients, clients, search(data, settings, None))
            if progress:
                progress(len(numbered), max(len(numbered), total))
    done = [numbered[number] for number in sorted(numbered)]
    whole = _to_run(known.clients, known.clients, findings)
    edges, changes = tuple(_edge_stability_table(whole, done)), tuple(_change_stability(whole, done))
    shares = {client: rows / known.total.rows for client, rows in zip(known.clients, known.client_rows, strict=True)}
    influence = sorted(
        _client_influence(whole, done, edges, changes, shares), key=lambda one: (-abs(one.largest), one.client)
    )
    return Stability(kind, seed, edges, changes, tuple(done), tuple(_notes(done)), tuple(influence))


def _check_replicates(known: Cohort | Aggregate, copies: Iterable[Replicate]) -> Iterator[Cohort | Aggregate]:
    """Every copy once, known as the summaries are: one by one, or as their sum, of the same clients."""
    found: set[int] = set()
    for copy in copies:
        drawn = copy if isinstance(copy, Aggregate) else _add_up_replicate(copy, known.plan)
        if type(drawn) is not type(known) or drawn.plan.fingerprint != known.plan.fingerprint:
            raise SettingsError(
                "copies should follow the plan of the result, and be single summaries or sums as it has"
            )
        if drawn.clients != known.clients:
            raise SettingsError(
                f"found copies of {abbreviate_list(drawn.clients)}; expected those of the clients of the result, "
                f"{abbreviate_list(known.clients)}, and of nobody else"
            )
        number = drawn.summaries[0].copy
        if not number or number in found:
            named = f"copy {number} twice" if number else "summaries of the rows themselves"
            raise SettingsError(f"found {named}; expected bootstrap copies, each number of them once for all clients")
        _check_origin(known, drawn)
        found.add(number)
        yield drawn
    if not found:
        raise SettingsError("there are no copies; expected one or more, each with one summary of every client")


def _check_origin(known: Cohort | Aggregate, drawn: Cohort | Aggregate) -> None:
    """Copies name the summary they belong to; sums of several clients' copies, or of parts of one, cannot."""
    for whole, copy in zip(known.summaries, drawn.summaries, strict=True):
        if copy.of and copy.of != whole.digest:
            raise SettingsError(
                f"copy {copy.copy} of {', '.join(copy.clients)} was not drawn from the rows of the result: it belongs "
                f"to summary {copy.of[:12]}, expected {whole.digest[:12]}; pass copies of the same table"
            )


def _add_up_replicate(copy: Iterable[Summary] | Cohort, plan: StudyPlan) -> Cohort:
    """Whoever is in it: who should be is for the caller to say."""
    return add_up(copy.summaries if isinstance(copy, Cohort) else copy, plan, without=plan.clients)


def _leave_one_out(clients: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(other for other in clients if other != client) for client in clients]


def _draw_clients(clients: tuple[str, ...], runs: int, seed: int) -> list[tuple[str, ...]]:
    """Keyed by seed and number of the run: more runs leave the earlier ones as they were."""
    found = []
    for run in range(runs):
        generator = Random(f"{seed} {run}")  # random() is the one method whose numbers Python keeps
        found.append(tuple(sorted(clients[int(generator.random() * len(clients))] for _ in clients)))
    return found


def _to_run(everybody: tuple[str, ...], clients: tuple[str, ...], findings: SearchResult) -> StabilityRun:
    graph = findings.orientation.graph
    asked = DOMAIN in graph.nodes
    variables = graph.drop(DOMAIN) if asked else graph
    there = frozenset(clients)
    left_out = tuple(client for client in everybody if client not in there)
    changing = graph.children(DOMAIN) if asked and len(there) > 1 else None
    return StabilityRun(clients, left_out, variables.arrows, variables.lines, changing, _weights(findings, variables))


def _weights(findings: SearchResult, graph: PartialGraph) -> dict[Pair, float]:
    """What speaks for a link between two variables: by evidence where it was weighed, else by the p-value believed."""
    pairs, best = list(combinations(graph.nodes, 2)), findings.best
    if best is not None:
        supports = {pair: findings.supports.get(frozenset(pair)) for pair in pairs}
        return {
            frozenset(pair): support.presence if best.is_adjacent(*pair) else -support.presence
            for pair, support in supports.items()
            if support is not None and math.isfinite(support.presence)
        }
    strongest, separators = findings.skeleton.strongest, findings.skeleton.separators
    answers = [(strongest if graph.is_adjacent(a, b) else separators).get(frozenset((a, b))) for a, b in pairs]
    return {
        frozenset(pair): -math.log(max(answer.p_value, sys.float_info.min))
        for pair, answer in zip(pairs, answers, strict=True)
        if answer is not None
    }


def _edge_stability_table(whole: StabilityRun, runs: Sequence[StabilityRun]) -> list[EdgeStability]:
    pairs = {pair for run in (whole, *runs) for pair in run.lines | {frozenset(arrow) for arrow in run.arrows}}
    found = [_edge_stability(whole, runs, *sort_pair(pair)) for pair in pairs]
    return sorted(found, key=lambda e: (not e.mark, -e.adjacent, -e.same, e.source, e.target))


def _edge_stability(whole: StabilityRun, runs: Sequence[StabilityRun], source: str, target: str) -> EdgeStability:
    if (target, source) in whole.arrows:
        source, target = target, source
    mark, marks = whole.mark(source, target), [run.mark(source, target) for run in runs]
    alone = [(run.left_out, there) for run, there in zip(runs, marks, strict=True) if _leaves_one_out(run)]
    return EdgeStability(
        source,
        target,
        mark,
        adjacent=_share([bool(there) for there in marks]),
        same=_share([there == mark for there in marks]),
        forward=_share([there == "→" for there in marks]),
        backward=_share([there == "←" for there in marks]),
        gone_without=tuple(client for (client,), there in alone if bool(there) != bool(mark)),
        turned_without=tuple(client for (client,), there in alone if there and mark and there != mark),
    )


def _change_stability(whole: StabilityRun, runs: Sequence[StabilityRun]) -> Iterator[ChangeStability]:
    asked = [(run, run.changing) for run in runs if run.changing is not None]
    here = whole.changing or frozenset()
    for variable in sorted(here.union(*(changing for _, changing in asked))):
        yield ChangeStability(
            variable,
            variable in here,
            _share([variable in changing for _, changing in asked]) if asked else None,
            tuple(
                run.left_out[0]
                for run, changing in asked
                if _leaves_one_out(run) and (variable in changing) != (variable in here)
            ),
        )


def _client_influence(
    whole: StabilityRun,
    runs: Sequence[StabilityRun],
    edges: Sequence[EdgeStability],
    changes: Sequence[ChangeStability],
    shares: Mapping[str, float],
) -> Iterator[Influence]:
    for run in runs:
        if not _leaves_one_out(run):
            continue
        (client,) = run.left_out
        moved = {
            sort_pair(pair): whole.weights[pair] - run.weights[pair] for pair in whole.weights.keys() & run.weights
        }
        link = max(sorted(moved), key=lambda pair: abs(moved[pair]), default=None)
        yield Influence(
            client,
            shares[client],
            largest=moved[link] if link else 0.0,
            link=link,
            total=math.fsum(map(abs, moved.values())),
            n_changed=sum(client in (*edge.gone_without, *edge.turned_without) for edge in edges)
            + sum(client in change.differs_without for change in changes),
        )


def _leaves_one_out(run: StabilityRun) -> bool:
    """Whether a run differs from the whole study by one client, and by nothing else."""
    return len(run.left_out) == 1 and len(set(run.clients)) == len(run.clients)


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def _notes(runs: Sequence[StabilityRun]) -> Iterator[str]:
    if alone := sum(run.changing is None and bool(run.left_out) for run in runs):
        yield (
            f"in {alone} of {len(runs)} runs only one client was left: which mechanisms differ between clients could "
            "not be asked there, nor what follows from it for directions"
        )
