"""The result of a search for hidden common causes: a partial ancestral graph, and the evidence behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import combinations
from typing import NoReturn

from fedcdh.discovery.algorithm import SearchResult
from fedcdh.discovery.findings import ClientGroups
from fedcdh.discovery.hidden_causes import HiddenCauseFindings
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.settings import Settings
from fedcdh.errors import SettingsError
from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark, show_marks
from fedcdh.graphs.partial_graph import PartialGraph, node_sort_key, sort_pair
from fedcdh.protocols import DOMAIN
from fedcdh.search.orientation import Orientation
from fedcdh.search.skeleton import Skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort

_UNIDENTIFIED = "effects are not identified where something unmeasured may be behind cause and outcome"
_NOT_DRAWN = "pictures cannot show circles and ↔ yet"
_REFUSED: Mapping[str, str] = {
    "to_dag": "a DAG over the variables leaves out what is unmeasured",
    "sample_dags": "tests give no probabilities of graphs",
    "probability_of_change": "tests give no probabilities",
    "drift": "a variable may have causes that are unmeasured, and differences of these look like its own",
    "effect": _UNIDENTIFIED,
    "effects": _UNIDENTIFIED,
    "stability": "runs without single clients are compared by arrows and lines, and not yet by circles and ↔",
    "report": _NOT_DRAWN,
    "plot": _NOT_DRAWN,
}
"""Methods of a `Discovery` that this result refuses, with the reason."""


@dataclass(frozen=True)
class AncestralEdge:
    """A pair of nodes, adjacent or not, and the answer that decided about it.

    Attributes
    ----------
    source : str
        The first node: of an arrow its tail, and `fedcdh.DOMAIN` if the mechanism of `target` differs between clients.
    target : str
        The second node.
    mark : str
        The edge from source to target: "→", "○→", "↔", "○–○" or "–"; an empty text if the two are not adjacent.
    mark_at_source : str, optional
        The mark at the source: "tail" if it causes the target, "arrow" if it does not, "circle" if that is open.
    mark_at_target : str, optional
        The mark at the target, in the same way.
    visible : bool, optional
        For "→", whether nothing unmeasured can be behind the two. None for other marks.
    p_value : float, optional
        The largest p-value of the queries about the pair: of the answer that separates it, or of the strongest argument
        against the edge.
    separating_set : tuple of str, optional
        The variables given which the pair is independent; None if it is adjacent.

    Examples
    --------
    >>> import fedcdh
    >>> columns = fedcdh.demo.hospital_study().columns()
    >>> edges = fedcdh.discover(columns, domain="hospital", hidden=True).edges()
    >>> [edge.target for edge in edges if edge.source == fedcdh.DOMAIN and edge.mark]
    ['medication', 'systolic_pressure']
    """

    source: str
    target: str
    mark: str
    mark_at_source: Mark | None
    mark_at_target: Mark | None
    visible: bool | None
    p_value: float | None
    separating_set: tuple[str, ...] | None


@dataclass(frozen=True, eq=False, repr=False)
class AncestralDiscovery:
    """The partial ancestral graph of a study, and how it was found.

    `discover` and `discover_from` return it with ``hidden=True``. `graph` has a mark at either end of every edge:
    ``graph.marks(a, b)``. What needs a DAG, such as effects, is refused with a `SettingsError`.

    Attributes
    ----------
    cohort : Cohort or Aggregate
        The summaries from which the graph was found.
    settings : Settings
        Method, significance level, knowledge and limits.
    findings : HiddenCauseFindings
        All that the search found, as it found it.

    See Also
    --------
    discover : Find a graph from tables.
    write_result : Write the result to files.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital", hidden=True)
    >>> result.graph.marks("smoker", "cholesterol")
    ('circle', 'arrow')
    >>> sorted(result.changing)
    ['medication', 'systolic_pressure']
    """

    cohort: Cohort | Aggregate
    settings: Settings
    findings: HiddenCauseFindings

    @property
    def augmented(self) -> AncestralGraph:
        """The graph with the domain ℧ as a further node; its arrows point to the `changing` variables."""
        return self.findings.found.graph

    @cached_property
    def graph(self) -> AncestralGraph:
        """The partial ancestral graph over the variables."""
        return self.augmented.drop(DOMAIN) if DOMAIN in self.augmented.nodes else self.augmented

    @property
    def changing(self) -> frozenset[str]:
        """The variables whose mechanism differs between clients."""
        return self.augmented.children(DOMAIN) if DOMAIN in self.augmented.nodes else frozenset()

    @property
    def skeleton(self) -> Skeleton:
        """The adjacent pairs, and the answers that decided about each pair."""
        return self.findings.found.skeleton

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the plan."""
        return self.cohort.plan.names

    @property
    def client_groups(self) -> ClientGroups:
        """The name and the members of each client, or of each group of which only the sum is known."""
        return self._study.client_groups

    @property
    def n_rows(self) -> int:
        """The number of rows of all clients together."""
        return self._study.n_rows

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes on clients to ask before the graph is believed; they are printed before it."""
        return self._study.warnings

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the graph should know: rows left out, constants, contradictions."""
        return (*self._study.notes, *self._contradictions())

    def edges(self) -> tuple[AncestralEdge, ...]:
        """Return every pair of nodes with its evidence, adjacent pairs first.

        Returns
        -------
        tuple of AncestralEdge
            Also the pairs that are not adjacent. `fedcdh.reporting.to_pandas` makes a data frame of them.
        """
        drawn = [self._edge(a, b) for a, b, _, _ in self.augmented.edges]
        ordered = sorted(combinations(sorted(self.augmented.nodes, key=node_sort_key), 2))
        absent = [self._edge(*sort_pair(frozenset(pair))) for pair in ordered if not self.augmented.is_adjacent(*pair)]
        return (*drawn, *absent)

    def _edge(self, source: str, target: str) -> AncestralEdge:
        marks, pair = self.augmented.marks(source, target), frozenset((source, target))
        answer = (self.skeleton.strongest if marks else self.skeleton.separators).get(pair)
        at_source, at_target = marks or (None, None)
        return AncestralEdge(
            source,
            target,
            show_marks(*marks) if marks else "",
            at_source,
            at_target,
            visible=self._is_visible(source, target) if marks == ("tail", "arrow") else None,
            p_value=answer.p_value if answer else None,
            separating_set=tuple(sorted(answer.query.given)) if answer and not marks else None,
        )

    def _is_visible(self, tail: str, head: str) -> bool:
        return tail == DOMAIN or self.augmented.is_visible(tail, head)

    @cached_property
    def _study(self) -> Discovery:
        """The same study with a graph without edges: it knows the clients, their rows, and what to note about them."""
        isolated = Orientation(PartialGraph(self.augmented.nodes))
        found = SearchResult(self.skeleton, isolated, notes=self.findings.notes, spent=self.findings.spent)
        return Discovery(self.cohort, self.settings, found)

    def _contradictions(self) -> Iterator[str]:
        for triple in self.findings.found.refused:
            a, b = ("℧" if node == DOMAIN else node for node in triple.ends)
            yield f"contradiction: {a} ○→ {triple.middle} ←○ {b} (collider) refused: knowledge or the domain has a tail"

    # What a reader sees

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.graph.skeleton)} edges; print it to see them>"

    def __str__(self) -> str:
        study = self._study
        counts = f"{_count(len(self.variables), 'variable')}, {study.client_count}, {_count(self.n_rows, 'row')}"
        method = f"(method {self.settings.method}, hidden causes allowed, alpha {self.settings.alpha:g})"
        changing = ", ".join(sorted(self.changing)) or study.no_change_reason
        before, after = self.warnings, self.notes[len(self.warnings) :]
        warnings, notes = ([f"note: {note}" for note in some] for some in (before, after))
        found = [str(self.graph), f"mechanisms that differ between clients: {changing}"]
        return "\n".join([f"{counts} {method}", *warnings, *found, *notes])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text, whose marks no picture can get wrong."""
        return f"<pre>{escape(str(self))}</pre>"

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what a `Discovery` has and this result cannot have, and say why."""
        if name in _REFUSED:
            raise SettingsError(
                f"{name} is not there with hidden causes: {_REFUSED[name]}. These work: print(result), "
                "result.graph.marks(a, b), result.edges(), and fedcdh.write_result(result, folder), whose graph.dot "
                "Graphviz draws. For the rest, search without hidden causes",
                parameter="hidden",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
