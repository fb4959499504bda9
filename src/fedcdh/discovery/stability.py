"""The stability of a graph: the same search without single clients, with resampled clients, or with resampled rows.

By default every client is left out once. Summaries add up, so this needs no further message, and it names the client
on which a finding depends.

With `runs`, clients are resampled with replacement. A client that is drawn twice counts as two clients: where nothing
differs between clients, each of them deviates from the common mean by one chance deviation, as a degree of freedom
between clients allows. One client of double weight would deviate by two, and would look as if its mechanism differed
(`benchmarks.bench_stability` counts how often). Rows occur more than once, so shares of runs measure the dependence on
the choice of clients; they are not p-values.

With `replicates`, which clients make on request (`fedcdh summarize --bootstrap`), rows are resampled within each
client. A row that is drawn twice counts as two rows, so dependences look more certain in a replicate than they are, and
false edges are found more often than in new rows. An edge of the result that many replicates lack is doubtful; an edge
that only replicates have is no finding.

What the clients answered about residuals is used again in every run, without the clients that are left out. Nobody is
asked a second time, so replicates of rows have the residuals of the rows themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import length_hint
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.discovery.algorithm import SearchResult
from fedcdh.discovery.degenerate_search import DegenerateSearch
from fedcdh.discovery.influence import Influence, measure_influence
from fedcdh.discovery.methods import Method, get_method
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.stability_run import StabilityRun, make_run
from fedcdh.discovery.stability_text import format_stability, render_stability_html
from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import sort_pair
from fedcdh.inference.evidence.recorded_answers import RecordedAnswers
from fedcdh.protocols import Progress
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.client_changes import belongs_to
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

StabilityKind = Literal["leave-one-out", "bootstrap", "row-bootstrap"]
Replicate: TypeAlias = Iterable[Summary] | Cohort | Aggregate
"""The bootstrap replicates of one number: one summary of every client, or their sum."""


@dataclass(frozen=True)
class EdgeStability:
    """The shares of runs in which a pair of variables is adjacent, and in which direction.

    Attributes
    ----------
    source : str
        The tail of the arrow, where the result has one.
    target : str
        Its head.
    mark : str
        The edge in the result: "→", "—", or an empty text if it has none.
    adjacent : float
        The share of runs in which the pair is adjacent.
    same : float
        The share of runs with the same mark as the result.
    forward : float
        The share of runs with source → target.
    backward : float
        The share of runs with source ← target.
    gone_without : tuple of str
        The clients without which the edge disappears, or appears where the result has none. Empty for a bootstrap.
    turned_without : tuple of str
        The clients without which the edge has another direction. Empty for a bootstrap.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> stability = discover(simulate(seed=1).columns("site"), domain="site").stability()
    >>> all(0 <= edge.same <= edge.adjacent <= 1 for edge in stability.edges if edge.mark)
    True
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
    """The share of runs in which the mechanism of a variable is found to differ between clients.

    Attributes
    ----------
    variable : str
        The variable.
    changing : bool
        Whether its mechanism differs in the result.
    share : float, optional
        The share of runs in which it differs; None if no run had two clients.
    differs_without : tuple of str
        The clients without which the opposite is found. Empty for a bootstrap.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> stability = discover(simulate(seed=1).columns("site"), domain="site").stability()
    >>> stability.changing[0].share > 0
    True
    """

    variable: str
    changing: bool
    share: float | None
    differs_without: tuple[str, ...]


@dataclass(frozen=True)
class Stability:
    """The parts of a result that remain with other clients, or with other rows of the same clients.

    Attributes
    ----------
    kind : {"leave-one-out", "bootstrap", "row-bootstrap"}
        What varies between the runs.
    seed : int, optional
        Seed with which clients were resampled; None for the other kinds.
    edges : tuple of EdgeStability
        Every pair that is adjacent in the result or in a run: first those of the result, the most stable first.
    changing : tuple of ChangeStability
        Every variable whose mechanism differs in the result or in a run.
    runs : tuple of StabilityRun
        The graphs of all runs.
    notes : tuple of str
        Sentences for the reader.
    influence : tuple of Influence
        The influence of every client that was left out, the largest first. Empty for a bootstrap.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> result = discover(simulate(seed=1).columns("site"), domain="site")
    >>> stability = result.stability()
    >>> stability.kind
    'leave-one-out'
    >>> len(stability.runs) == len(result.cohort.clients)
    True
    """

    kind: StabilityKind
    seed: int | None
    edges: tuple[EdgeStability, ...]
    changing: tuple[ChangeStability, ...]
    runs: tuple[StabilityRun, ...]
    notes: tuple[str, ...]
    influence: tuple[Influence, ...] = ()

    @cached_property
    def changes_without(self) -> dict[str, tuple[str, ...]]:
        """Return, in words, what is found differently without each client; clients without effect are left out."""
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

    def __str__(self) -> str:
        """Return the shares of runs as a table, and what hangs on one client."""
        return format_stability(self)

    def __repr__(self) -> str:
        return f"<Stability, {self.kind}: {len(self.runs)} runs; print it to see them>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return render_stability_html(self)


class _Repetition(NamedTuple):
    """The number of a run, the clients that take part in it, and their summaries."""

    number: int
    clients: tuple[str, ...]
    known: Cohort | Aggregate


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
    """Repeat a search without single clients, with resampled clients, or with resampled rows.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the result.
    settings : Settings
        The settings of the result.
    search_result : SearchResult
        The result to compare with.
    runs : int, optional
        How often clients are resampled with replacement. Default: every client is left out once.
    replicates : iterable of Replicate, optional
        Bootstrap replicates of the clients' summaries, the first of all clients first. They are read one after the
        other, so an iterator may read them from files.
    seed : int, default 0
        Seed with which clients are resampled.
    progress : callable, optional
        Called after each run with (runs done, runs).

    Returns
    -------
    Stability
        The shares of runs that agree with the result, and the clients on which single findings depend.

    Raises
    ------
    SettingsError
        If the summaries do not allow these runs, or both `runs` and `replicates` are given.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> result = discover(simulate(seed=1).columns("site"), domain="site")
    >>> assess_stability(result.cohort, result.settings, result.search_result, runs=2).kind
    'bootstrap'
    """
    if settings.rounds == "adaptive":
        raise SettingsError(
            "this result used adaptive rounds, which the clients cannot answer again for every run; repeat the "
            "discovery with rounds 'residuals' or 'one', and assess its stability",
            parameter="rounds",
        )
    kind: StabilityKind
    if replicates is not None:
        if runs is not None:
            raise SettingsError(
                "found both runs, which resamples clients, and replicates, whose rows were resampled; pass one of them",
                parameter="runs",
            )
        kind, total = "row-bootstrap", length_hint(replicates)
        if isinstance(replicates, Sequence):  # all are in memory: refuse the last before searching with the first
            replicates = list(_check_replicates(known, replicates))
        repetitions = (
            _Repetition(replicate.summaries[0].replicate, known.clients, replicate)
            for replicate in _check_replicates(known, replicates)
        )
    else:
        cohort = _check_cohort(known, runs)
        kind = "leave-one-out" if runs is None else "bootstrap"
        samples = _leave_one_out(cohort.clients) if runs is None else _draw_clients(cohort.clients, runs, seed)
        total = len(samples)
        repetitions = (
            _Repetition(number, clients, cohort.resample_clients(clients)) for number, clients in enumerate(samples)
        )
    done = _repeat_search(known, settings, search_result, repetitions, total, progress)
    whole = make_run(known.clients, known.clients, search_result)
    return _compare(kind, seed if kind == "bootstrap" else None, known, whole, done)


def _check_cohort(known: Cohort | Aggregate, runs: int | None) -> Cohort:
    """Return the cohort, or say why clients cannot be left out or resampled."""
    if isinstance(known, Aggregate):
        raise SettingsError(
            "only their sum is known, and no client can be taken out of it; expected the summary of every client; ask "
            "for the single summaries, or for bootstrap replicates of the sum"
        )
    if len(known.clients) < 2:
        raise SettingsError(
            "there is only one client, and nothing is left without it; expected two or more; pass bootstrap replicates "
            "of its rows instead",
            parameter="replicates",
        )
    if runs is not None and (not isinstance(runs, int) or runs < 1):
        raise SettingsError(
            f"runs is {runs!r}; expected 1, 2, 3, ..., or None to leave each client out once", parameter="runs"
        )
    return known


def _repeat_search(
    known: Cohort | Aggregate,
    settings: Settings,
    whole: SearchResult,
    repetitions: Iterator[_Repetition],
    total: int,
    progress: Progress | None,
) -> list[StabilityRun]:
    """Run the search on other summaries. Each is made when its turn comes: memory may not hold all of them."""
    method = get_method(settings.method, noisy=known.plan.noise is not None)
    numbered: dict[int, StabilityRun] = {}
    with single_blas_thread():
        for number, clients, data in repetitions:
            search = DegenerateSearch(_reuse_answers(method, settings, whole, clients).search)
            numbered[number] = make_run(known.clients, clients, search(data, settings, None))
            if progress:
                progress(len(numbered), max(len(numbered), total))
    return [numbered[number] for number in sorted(numbered)]


def _reuse_answers(method: Method, settings: Settings, whole: SearchResult, clients: tuple[str, ...]) -> Method:
    """Return the method with the answers about residuals that these clients gave in the whole study."""
    if whole.residuals is None:
        return method
    return method.with_rounds(RecordedAnswers(whole.residuals, clients), settings.rounds, whole.climbed)


def _compare(
    kind: StabilityKind, seed: int | None, known: Cohort | Aggregate, whole: StabilityRun, runs: list[StabilityRun]
) -> Stability:
    """Compare the runs with the whole study."""
    edges, changes = tuple(_compare_edges(whole, runs)), tuple(_compare_changes(whole, runs))
    shares = {client: rows / known.total.rows for client, rows in zip(known.clients, known.client_rows, strict=True)}
    n_changed = Counter(client for edge in edges for client in {*edge.gone_without, *edge.turned_without})
    n_changed.update(client for change in changes for client in change.differs_without)
    influence = measure_influence(whole, runs, shares, n_changed)
    return Stability(kind, seed, edges, changes, tuple(runs), tuple(_describe_runs(runs)), influence)


def _check_replicates(known: Cohort | Aggregate, replicates: Iterable[Replicate]) -> Iterator[Cohort | Aggregate]:
    """Yield every replicate, in the form of the result's summaries: one by one or added up, of the same clients."""
    found: set[int] = set()
    for replicate in replicates:
        drawn = replicate if isinstance(replicate, Aggregate) else _add_up_replicate(replicate, known.plan)
        if type(drawn) is not type(known) or drawn.plan.fingerprint != known.plan.fingerprint:
            raise SettingsError(
                "found bootstrap replicates of another plan, or sums where the result has single summaries (or the "
                "reverse); expected them as the result has its summaries; make them again with its plan",
                parameter="replicates",
            )
        if drawn.clients != known.clients:
            raise SettingsError(
                f"found bootstrap replicates of {abbreviate_list(drawn.clients)}; expected those of the clients of the "
                f"result, {abbreviate_list(known.clients)}; pass these and no others",
                parameter="replicates",
            )
        number = drawn.summaries[0].replicate
        if not number or number in found:
            named = f"bootstrap replicate {number} twice" if number else "summaries of the rows themselves"
            raise SettingsError(
                f"found {named}; expected bootstrap replicates, each number once for all clients; pass each once",
                parameter="replicates",
            )
        _check_origin(known, drawn)
        found.add(number)
        yield drawn
    if not found:
        raise SettingsError(
            "there are no bootstrap replicates; expected one or more, each with one summary of every client; leave "
            "replicates out to leave out single clients instead",
            parameter="replicates",
        )


def _check_origin(known: Cohort | Aggregate, drawn: Cohort | Aggregate) -> None:
    """Check the digest with which a replicate names its summary; sums over clients or parts of one have none."""
    for whole, replicate in zip(known.summaries, drawn.summaries, strict=True):
        if replicate.original and not belongs_to(replicate.original, whole, known.plan):
            raise SettingsError(
                f"bootstrap replicate {replicate.replicate} of {', '.join(replicate.clients)} was not drawn from the "
                f"rows of the result: it belongs to summary {replicate.original[:12]}, expected {whole.digest[:12]}; "
                "pass replicates of the same table",
                parameter="replicates",
            )


def _add_up_replicate(replicate: Iterable[Summary] | Cohort, plan: StudyPlan) -> Cohort:
    """Add up the replicates that are there; the caller checks that no client is missing."""
    return add_up(replicate.summaries if isinstance(replicate, Cohort) else replicate, plan, without=plan.clients)


def _leave_one_out(clients: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(other for other in clients if other != client) for client in clients]


def _draw_clients(clients: tuple[str, ...], runs: int, seed: int) -> list[tuple[str, ...]]:
    """Resample clients; seed and number key each run, so more runs leave the earlier ones unchanged."""
    found = []
    for run in range(runs):
        generator = Random(f"{seed} {run}")  # random() is the one method whose numbers Python promises to keep
        found.append(tuple(sorted(clients[int(generator.random() * len(clients))] for _ in clients)))
    return found


def _compare_edges(whole: StabilityRun, runs: Sequence[StabilityRun]) -> list[EdgeStability]:
    pairs = {pair for run in (whole, *runs) for pair in run.lines | {frozenset(arrow) for arrow in run.arrows}}
    found = [_compare_edge(whole, runs, *sort_pair(pair)) for pair in pairs]
    return sorted(found, key=lambda e: (not e.mark, -e.adjacent, -e.same, e.source, e.target))


def _compare_edge(whole: StabilityRun, runs: Sequence[StabilityRun], source: str, target: str) -> EdgeStability:
    if (target, source) in whole.arrows:
        source, target = target, source
    mark, marks = whole.mark(source, target), [run.mark(source, target) for run in runs]
    alone = [(run.left_out, there) for run, there in zip(runs, marks, strict=True) if run.leaves_one_out]
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


def _compare_changes(whole: StabilityRun, runs: Sequence[StabilityRun]) -> Iterator[ChangeStability]:
    with_domain = [(run, run.changing) for run in runs if run.changing is not None]
    here = whole.changing or frozenset()
    for variable in sorted(here.union(*(changing for _, changing in with_domain))):
        yield ChangeStability(
            variable,
            variable in here,
            _share([variable in changing for _, changing in with_domain]) if with_domain else None,
            tuple(
                run.left_out[0]
                for run, changing in with_domain
                if run.leaves_one_out and (variable in changing) != (variable in here)
            ),
        )


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def _describe_runs(runs: Sequence[StabilityRun]) -> Iterator[str]:
    if alone := sum(run.changing is None and bool(run.left_out) for run in runs):
        yield (
            f"in {alone} of {len(runs)} runs only one client was left: they cannot say which mechanisms differ between "
            "clients, nor use such differences for directions"
        )
