"""What a discovery returns: the graph, and for every pair of variables the evidence behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.algorithm import SearchResult
from fedcdh.discovery.drift import Drift, estimate_drift
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.stability import Replicate, Stability, assess_stability
from fedcdh.errors import KnowledgeError, MissingDependencyError, NoConsistentExtensionError
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Progress
from fedcdh.search.edge_support import orient_like
from fedcdh.search.orientation import Orientation
from fedcdh.search.skeleton import Skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort

MIN_INFORMATIVE_ROWS = 7
"""With fewer, a client cannot even have a mean and a slope of its own."""


@dataclass(frozen=True)
class Edge:
    """One pair of nodes, adjacent or not, and why.

    `mark` is "→" (source causes target), "—" (adjacent, direction open) or "" (not adjacent). `p_value` is the largest
    one believed: what keeps the pair apart, or the strongest argument against the edge (see the notes of a result for
    answers that were not believed, because they contradict others). The forward and backward values
    belong to the independent change principle, where it was asked; the smaller one points the way
    (without them, "independent-change" was decided by evidence).

    The logs of Bayes factors are there where evidence was weighed: for this edge (or its absence) against the
    opposite, and for source → target against the reverse, all else in the best graph being equal. Above 3 is strong (20
    to 1), around 0 is a toss of a coin; a negative direction says that something else outweighed it.
    """

    source: str
    target: str
    mark: str
    p_value: float | None
    separating_set: tuple[str, ...] | None
    oriented_by: str | None
    change_forward: float | None
    change_backward: float | None
    log_bayes_presence: float | None = None
    log_bayes_direction: float | None = None


@dataclass(frozen=True, eq=False)
class Discovery:
    """The causal graph of a study and how it was found.

    `graph` is over the variables; `augmented` also has the domain, whose arrows point to the changing variables.
    """

    cohort: Cohort | Aggregate
    settings: Settings
    search_result: SearchResult

    @property
    def skeleton(self) -> Skeleton:
        return self.search_result.skeleton

    @property
    def orientation(self) -> Orientation:
        return self.search_result.orientation

    @property
    def augmented(self) -> PartialGraph:
        return self.orientation.graph

    @cached_property
    def graph(self) -> PartialGraph:
        return self.augmented.drop(DOMAIN) if DOMAIN in self.augmented.nodes else self.augmented

    @property
    def changing(self) -> frozenset[str]:
        """The variables whose mechanism differs between clients."""
        return self.augmented.children(DOMAIN) if DOMAIN in self.augmented.nodes else frozenset()

    @property
    def no_change_reason(self) -> str:
        """What to say where no variable is `changing`: that it was asked in vain is not that it could not be asked."""
        return "none found" if len(self.cohort.clients) > 1 else f"could not be asked: only one {self._whom}"

    def to_dag(self) -> PartialGraph:
        """A DAG over the variables: Dor and Tarsi's consistent extension, or the nearest thing where none exists.

        Where evidence was weighed, what the graph leaves open is directed as in the graph with the highest evidence.
        """
        best, knowledge = self.search_result.best, self.settings.knowledge
        dag = extend_to_dag(self.augmented if best is None else orient_like(self.augmented, best, knowledge))
        if wrong := sorted(arrow for arrow in dag.arrows if self.settings.knowledge.forbids(*arrow)):
            shown = ", ".join(f"{tail} → {head}" for tail, head in wrong)
            raise KnowledgeError(
                "the edges found leave, by what is forbidden, only directions that run in a circle, so that every DAG "
                f"has a forbidden arrow (such as {shown}); forbid one of these edges both ways, or allow a direction"
            )
        return dag.drop(DOMAIN) if DOMAIN in dag.nodes else dag

    def edges(self) -> tuple[Edge, ...]:
        """Every pair of nodes, adjacent ones first; `fedcdh.reporting.data_frames.to_pandas(result.edges())`."""
        pairs = sorted(combinations(self.augmented.nodes, 2), key=lambda pair: sort_pair(frozenset(pair)))
        found = [self._edge(frozenset(pair)) for pair in pairs]
        return tuple(sorted(found, key=lambda edge: not edge.mark))

    def _edge(self, pair: Pair) -> Edge:
        source, target = sort_pair(pair)
        if (target, source) in self.augmented.arrows:
            source, target = target, source
        arrow: Arrow = (source, target)
        adjacent = self.augmented.is_adjacent(source, target)
        answer = (self.skeleton.strongest if adjacent else self.skeleton.separators).get(pair)
        change = self.orientation.dependences.get(pair)
        values = (change.forward, change.backward) if change else (None, None)
        if change and change.tail != source:
            values = values[::-1]
        support = self.search_result.supports.get(pair)
        return Edge(
            source,
            target,
            mark="→" if arrow in self.augmented.arrows else "—" if adjacent else "",
            p_value=answer.p_value if answer else None,
            separating_set=tuple(sorted(answer.query.given)) if answer and not adjacent else None,
            oriented_by=self.orientation.reasons.get(arrow),
            change_forward=values[0],
            change_backward=values[1],
            log_bayes_presence=support.presence if support else None,
            log_bayes_direction=self._direction(arrow),
        )

    def _direction(self, arrow: Arrow) -> float | None:
        """The log Bayes factor of an arrow against its reverse, whichever of them the best graph has."""
        support, best = self.search_result.supports.get(frozenset(arrow)), self.search_result.best
        if support is None or best is None or support.direction is None:
            return None
        return support.direction if arrow in best.arrows else -support.direction

    def drift(self, variables: Iterable[str] | None = None) -> tuple[Drift, ...]:
        """What differs where: level, effects and noise of every mechanism that changes, at every client.

        As a frame: `fedcdh.reporting.data_frames.to_pandas(result.drift())`. Causes are the parents in `to_dag()`.
        Pass `variables` to look at other mechanisms than those found to change.
        """
        dag = self.to_dag()
        parents = {name: dag.parents(name) for name in dag.nodes}
        return estimate_drift(self.cohort, parents, self.changing if variables is None else variables)

    def stability(
        self,
        runs: int | None = None,
        *,
        replicates: Iterable[Replicate] | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Stability:
        """How much of this result the same search finds without one client after the other; needs no new message.

        With `runs`, in so many draws of as many clients with replacement instead; with `replicates`, in rows drawn anew
        within every client, from summaries that clients made for that (`resampling.bootstrap_summaries`), all clients'
        first copies first. `progress` is called with (searches done, searches).
        """
        study = self.cohort, self.settings, self.search_result
        return assess_stability(*study, runs=runs, replicates=replicates, seed=seed, progress=progress)

    # Looked at by people: what is needed for that is imported when it is asked for

    def report(self, path: Path | str) -> Path:
        """Writes the HTML report: one file with the graph, its evidence and tables, that works offline."""
        from fedcdh.reporting.html import write_report
        from fedcdh.reporting.result_files import render_result_json

        return write_report(render_result_json(self), path)

    def plot(self, ax: Any = None, *, legend: bool = True) -> Any:
        """Draws the graph with matplotlib, into the axes given or new ones, and returns them."""
        from fedcdh.reporting.plots import plot

        return plot(self, ax, legend=legend)

    def _repr_html_(self) -> str:
        """What a notebook shows: picture, edges, notes."""
        from fedcdh.reporting.notebook import render_html

        return render_html(self)

    def _repr_svg_(self) -> str | None:
        """What shows pictures only gets one, unless the library for layouts is not installed."""
        from fedcdh.reporting.graph_drawing.svg import render_svg

        try:
            return render_svg(self)
        except MissingDependencyError:
            return None

    @property
    def _whom(self) -> str:
        """What is compared: clients, or groups of which only sums are known."""
        return "client" if len(self.cohort.clients) == len(self.cohort.total.clients) else "group"

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the graph should know: rows left out, constants, contradictions met on the way."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        clients, small = (
            len(self.cohort.clients),
            [rows for rows in self.cohort.client_rows if rows < MIN_INFORMATIVE_ROWS],
        )
        if clients == 1:
            yield f"only one {self._whom}: which mechanisms differ between clients cannot be asked"
        elif 2 * len(small) > clients:
            found = f"{len(small)} of {clients} {self._whom}s have fewer than {MIN_INFORMATIVE_ROWS} rows"
            yield f"{found}: is the domain the right column?"
        there = frozenset(self.cohort.total.clients)
        gone = [client for client in self.cohort.plan.clients if client not in there]
        if len(gone) > 20:
            yield f"clients {abbreviate_list(gone)} are named in the plan, but dropped out: nothing here is about their rows"
        else:
            for client in gone:
                yield f"client {client} is named in the plan, but dropped out: nothing here is about its rows"
        for summary in self.cohort.summaries:
            if dropped := summary.rows_read - summary.rows:
                named = ", ".join(f"{name} {count}" for name, count in summary.missing.items() if count)
                whose = f"client {summary.clients[0]}" if len(summary.clients) == 1 else "all clients"
                yield f"{whose}: {dropped} of {summary.rows_read} rows left out (missing: {named})"
        yield from self.search_result.notes
        for name in self.cohort.total.constant(self.cohort.plan):
            yield f"variable {name} is constant: it has no edges but required ones"
        for answer in self.skeleton.refused:
            asked, p_value = _display(str(answer.query)), f"{answer.p_value:.2g}"
            yield f"an edge stays although {asked} has p = {p_value}, which cannot hold together with other answers"
        for conflict in self.orientation.conflicts:
            yield f"contradiction: {_display(str(conflict))}"
        try:
            find_consistent_extension(self.augmented)
        except NoConsistentExtensionError:
            yield "no DAG has just these arrows and edges without further colliders; to_dag() adds as few as it can"

    def __repr__(self) -> str:
        return f"<Discovery of {len(self.graph.arrows)} arrows and {len(self.graph.lines)} lines; print it to see them>"

    def __str__(self) -> str:
        total = self.cohort.total
        level = f", alpha {self.settings.alpha:g}" if self.search_result.best is None else ""  # evidence has no level
        lines = [
            f"{_count_noun(len(self.cohort.plan.names), 'variable')}, {_count_noun(len(self.cohort.clients), self._whom)}, "
            f"{_count_noun(total.rows, 'row')} "
            f"(method {self.settings.method}{level})",
            str(self.graph),
            "mechanisms that differ between clients: " + (", ".join(sorted(self.changing)) or self.no_change_reason),
        ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _count_noun(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _display(text: str) -> str:
    return text.replace(DOMAIN, "℧")
