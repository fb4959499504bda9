"""The findings of a study, and how they show themselves: of a search just made, or read back from its files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcdh.discovery.result_text import format_changes, format_graph, format_possible
from fedcdh.discovery.settings import Settings
from fedcdh.errors import MissingDependencyError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN

if TYPE_CHECKING:
    from fedcdh.discovery.drift import DriftTable
    from fedcdh.discovery.result import Edge
    from fedcdh.discovery.stability import Stability

_DIFFERENCES = "mechanisms that differ between clients: "
ClientGroups = tuple[tuple[str, tuple[str, ...]], ...]
"""Name and members of each client or group of clients whose rows are compared."""


class Findings(ABC):
    """The graph of a study and the evidence for it, whether or not the summaries are at hand.

    `Discovery` has the summaries and can ask them further questions. `SavedDiscovery` has what `write_result` wrote.
    Both print and draw themselves in the same way.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> isinstance(result, Findings)
    True
    """

    settings: Settings

    @property
    @abstractmethod
    def augmented(self) -> PartialGraph:
        """The graph with the domain ℧ as a further node; its arrows point to the `changing` variables."""

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the plan."""

    @property
    @abstractmethod
    def client_groups(self) -> ClientGroups:
        """The name and the members of each client, or of each group of which only the sum is known."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows of all clients together."""

    @property
    @abstractmethod
    def has_mixtures(self) -> bool:
        """True if clients were compared by mixtures of their means, as secure sums give them."""

    @property
    @abstractmethod
    def has_probabilities(self) -> bool:
        """True if the search gives probabilities; searches by tests give none."""

    @property
    @abstractmethod
    def probability_of_change(self) -> dict[str, float]:
        """The probability that the mechanism of each variable differs between clients."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the graph should know: rows left out, constants, contradictions."""

    @property
    @abstractmethod
    def warnings(self) -> tuple[str, ...]:
        """The first notes: on clients to ask before the graph is believed; they are printed before it."""

    @abstractmethod
    def edges(self) -> tuple[Edge, ...]:
        """Return every pair of nodes with its evidence, adjacent pairs first."""

    @abstractmethod
    def to_dag(self) -> PartialGraph:
        """Return a DAG over the variables that extends the graph."""

    @abstractmethod
    def drift(self) -> DriftTable:
        """Return how the `changing` mechanisms differ: level, effects and noise at every client."""

    @cached_property
    def graph(self) -> PartialGraph:
        """The causal graph over the variables: arrows, and lines whose direction is open."""
        return self.augmented.drop(DOMAIN) if DOMAIN in self.augmented.nodes else self.augmented

    @property
    def changing(self) -> frozenset[str]:
        """The variables whose mechanism differs between clients."""
        return self.augmented.children(DOMAIN) if DOMAIN in self.augmented.nodes else frozenset()

    @property
    def no_change_reason(self) -> str:
        """The phrase for results without `changing` variables: none was found, or there is only one client."""
        return "none found" if self.compares_clients else f"unknown, because there is only one {self.client_noun}"

    @property
    def compares_clients(self) -> bool:
        """True if the search could find differences between clients."""
        return len(self.client_groups) > 1 or DOMAIN in self.augmented.nodes

    @property
    def client_noun(self) -> str:
        """The word for what is compared: clients, or groups of clients of which only sums are known."""
        return "client" if len(self.client_groups) == self._n_members else "group"

    @property
    def client_count(self) -> str:
        """How many clients, or groups of clients, are compared, in words."""
        if self.has_mixtures:
            return _count_noun(self._n_members, "client")
        return _count_noun(len(self.client_groups), self.client_noun)

    @property
    def _n_members(self) -> int:
        return sum(len(members) for _, members in self.client_groups)

    # The methods below import what they need when they are called: it belongs to `reporting`, a layer above this one.

    def report(
        self,
        path: Path | str,
        *,
        effects: Iterable[tuple[str, str]] = (),
        stability: Stability | None = None,
        site: str | None = None,
    ) -> Path:
        """Write the HTML report: one file with the graph, its evidence and tables, which works offline.

        Parameters
        ----------
        path : path or str
            The file to write.
        effects : iterable of pairs of str, default ()
            Cause and outcome of each effect to show as a forest plot, with the estimate of every site. By default the
            strongest effect.
        stability : Stability, optional
            What `stability` returned. By default every site is left out once if that takes a few seconds at most.
        site : str, optional
            Write the letter to this site instead: the graph and what concerns the site, without numbers of others.

        Returns
        -------
        path
            The file that was written.

        Raises
        ------
        SettingsError
            If the study has no such site, or an effect cannot be shown.
        """
        from fedcdh.reporting.html import write_report, write_site_letter
        from fedcdh.reporting.report_documents import describe_for_report
        from fedcdh.reporting.result_files import describe_result

        if site is not None:
            return write_site_letter(describe_result(self, stability), site, path)
        pairs = [(cause, outcome) for cause, outcome in effects]
        return write_report(describe_for_report(self, pairs, stability), path, pairs)

    def plot(self, ax: Any = None, *, legend: bool = True) -> Any:
        """Draw the graph with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The axes to draw into. Default new ones.
        legend : bool, default True
            Whether to explain the marks and colours.

        Returns
        -------
        matplotlib axes
            The axes with the graph.

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        from fedcdh.reporting.plots import plot

        return plot(self, ax, legend=legend)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: picture, edges and notes."""
        from fedcdh.reporting.notebook import render_html

        return render_html(self)

    def _repr_svg_(self) -> str | None:
        """Return the picture, unless the library for layouts is not installed."""
        from fedcdh.reporting.graph_drawing.svg import render_svg

        try:
            return render_svg(self)
        except MissingDependencyError:
            return None

    def __repr__(self) -> str:
        arrows, lines = len(self.graph.arrows), len(self.graph.lines)
        found = f"{_count_noun(arrows, 'arrow')} and {_count_noun(lines, 'line')}"
        return f"<{type(self).__name__} of {found}; print it to see them>"

    def __str__(self) -> str:
        numbers = (
            "; probabilities, standardised slopes" if self.has_probabilities else f", alpha {self.settings.alpha:g}"
        )
        method = f"method {self.settings.method}{numbers}"
        counts = (_count_noun(len(self.variables), "variable"), self.client_count, _count_noun(self.n_rows, "row"))
        found = self._found_with_probabilities() if self.has_probabilities else self._found()
        before, after = self.warnings, self.notes[len(self.warnings) :]
        warnings, notes = ([f"note: {note}" for note in some] for some in (before, after))
        return "\n".join([f"{', '.join(counts)} ({method})", *warnings, *found, *notes])

    def _found(self) -> Iterator[str]:
        """Yield the rows of a search by tests: the graph, and what differs between clients."""
        yield str(self.graph)
        yield _DIFFERENCES + (", ".join(sorted(self.changing)) or self.no_change_reason)

    def _found_with_probabilities(self) -> Iterator[str]:
        """Yield the same rows with probabilities, and what is possible but not drawn."""
        edges = self.edges()
        yield format_graph(self.graph, edges)
        yield _DIFFERENCES + (format_changes(self.changing, self.probability_of_change) or self.no_change_reason)
        yield from format_possible(edges)


def _count_noun(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
