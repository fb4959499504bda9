"""The result of a discovery: the graph, and for every pair of nodes the evidence behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.algorithm import SearchResult
from fedcdh.discovery.dependent_changes import describe_dependent_changes, find_dependent_changes
from fedcdh.discovery.drift import DriftTable, estimate_drift
from fedcdh.discovery.effect import Effect, EffectKind, EffectTable
from fedcdh.discovery.effect_choices import Adjust
from fedcdh.discovery.effect_estimation import EffectStudy, find_slopes
from fedcdh.discovery.effect_questions import Question
from fedcdh.discovery.findings import ClientGroups, Findings
from fedcdh.discovery.graph_probabilities import direct_lines
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.stability import Replicate, Stability, assess_stability
from fedcdh.discovery.unlike_clients_text import describe_unlike_clients
from fedcdh.errors import KnowledgeError, NoConsistentExtensionError, SettingsError
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, sort_pair
from fedcdh.inference.counted_rows import describe_dependence
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN, Progress
from fedcdh.search.edge_support import orient_like
from fedcdh.search.orientation import Orientation
from fedcdh.search.skeleton import Skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.client_changes import find_left_clients
from fedcdh.summaries.summary import Summary, describe_coarsened

MIN_INFORMATIVE_ROWS = 7
"""A client with fewer rows has no reliable mean and slope of its own."""
_MAX_NAMED_DROPOUTS = 20  # clients that dropped out are noted one by one up to this number


@dataclass(frozen=True)
class Edge:
    """A pair of nodes, adjacent or not, and the evidence for that.

    Attributes
    ----------
    source : str
        The tail of the arrow, if there is one; `fedcdh.DOMAIN` if the mechanism of `target` differs between clients.
    target : str
        Its head.
    mark : str
        "→" (source causes target), "—" (adjacent, direction open), or an empty text (not adjacent).
    p_value : float, optional
        The largest p-value that was accepted: the answer that separates the pair, or the strongest argument against
        the edge. The notes list answers that contradict others and were not accepted. None for "evidence".
    separating_set : tuple of str, optional
        The variables given which the pair is independent; None if it is adjacent, and for "evidence".
    oriented_by : str, optional
        Why the arrow points as it does: "domain", "knowledge", "collider", "evidence", "independent-change", or one of
        Meek's rules.
    change_forward : float, optional
        Δ of the independent change principle for source → target, between 0 and 1. The smaller Δ gives the direction.
    change_backward : float, optional
        Δ for target → source. An arrow by "independent-change" without these values was directed by Bayes factors.
    log_bayes_presence : float, optional
        Log Bayes factor for this edge, or for its absence, against the opposite; all else in the best graph is equal.
        Above 3 is strong (20 to 1). None for searches by tests.
    log_bayes_direction : float, optional
        Log Bayes factor for source → target against the reverse; negative if other evidence outweighed it.
    probability : float, optional
        Probability that the two are adjacent. None for searches by tests, which have no probabilities.
    probability_forward : float, optional
        Probability of source → target. `probability` less this is the probability of the reverse.
    strength : float, optional
        The share of the variance left by the other causes of the target that the source explains; for edges that are
        drawn, and for those that are left out because it is too small.
    slope : float, optional
        For edges that are drawn, the direct effect of source on target in the units of the study: the coefficient of
        the source in a regression of the target on it and on the other parents of the target in `to_dag`. It is a
        difference between two levels for labels, and None for labels of more than two levels. For a line it says what
        the effect is if the line points from source to target.
    slope_low : float, optional
        Lower end of its 95 % confidence interval.
    slope_high : float, optional
        Upper end of that interval.
    standardised_slope : float, optional
        The slope in standard deviations of the target, per standard deviation of a continuous source.
    slope_units : str, optional
        What the slope counts, in words.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> edges = fedcdh.discover(study.columns("site"), domain="site").edges()
    >>> {edge.target for edge in edges if edge.source == fedcdh.DOMAIN and edge.mark} == study.changing
    True
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
    probability: float | None = None
    probability_forward: float | None = None
    strength: float | None = None
    slope: float | None = None
    slope_low: float | None = None
    slope_high: float | None = None
    standardised_slope: float | None = None
    slope_units: str | None = None

    @property
    def slope_interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the slope."""
        return None if self.slope_low is None or self.slope_high is None else (self.slope_low, self.slope_high)

    @property
    def probability_undirected(self) -> float | None:
        """The part of the probability that directs nothing: twice that of the less likely direction."""
        if self.probability is None or self.probability_forward is None:
            return None
        return 2 * min(self.probability_forward, self.probability - self.probability_forward)


@dataclass(frozen=True, eq=False, repr=False)
class Discovery(Findings):
    """The causal graph of a study, and how it was found.

    `discover` and `discover_from` return it. Printing it shows the graph; a notebook shows a picture. `graph` is the
    causal graph and `changing` the variables whose mechanism differs between clients. `edges` gives the evidence for
    every pair, and `notes` what a reader should know. `drift`, `stability`, `report` and `plot` say more.

    Attributes
    ----------
    cohort : Cohort or Aggregate
        The summaries from which the graph was found.
    settings : Settings
        Method, significance level, knowledge and limits.
    search_result : SearchResult
        All that the search found, as it found it.

    See Also
    --------
    discover : Find a graph from tables.
    write_result : Write the result to files.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> ("smoker", "cholesterol") in result.graph.arrows
    True
    >>> sorted(result.changing)
    ['medication', 'systolic_pressure']
    >>> result.settings.method
    'evidence'
    """

    cohort: Cohort | Aggregate
    settings: Settings
    search_result: SearchResult

    @property
    def augmented(self) -> PartialGraph:
        """The graph with the domain ℧ as a further node; its arrows point to the `changing` variables."""
        return self.orientation.graph

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the plan."""
        return self.cohort.plan.names

    @property
    def client_groups(self) -> ClientGroups:
        """The name and the members of each client, or of each group of which only the sum is known."""
        if isinstance(self.cohort, Aggregate):
            return self.cohort.groups
        return tuple((client, (client,)) for client in self.cohort.clients)

    @property
    def has_mixtures(self) -> bool:
        """True if clients were compared by mixtures of their means, as secure sums give them."""
        return isinstance(self.cohort, Aggregate) and self.cohort.mixtures is not None

    @property
    def n_rows(self) -> int:
        """The number of rows of all clients together."""
        return self.cohort.total.rows

    @property
    def has_probabilities(self) -> bool:
        """True if the search gives probabilities; searches by tests give none."""
        return self.posterior is not None

    @property
    def posterior(self) -> GraphPosterior | None:
        """The posterior distribution over graphs; None for searches by tests, which have none."""
        return self.search_result.posterior

    @cached_property
    def probability_of_change(self) -> dict[str, float]:
        """The probability that the mechanism of each variable differs between clients.

        It is empty for searches by tests, and where there is only one client.
        """
        posterior = self.posterior
        if posterior is None or DOMAIN not in posterior.nodes:
            return {}
        return {name: posterior.arrows.get((DOMAIN, name), 0.0) for name in self.graph.nodes}

    @property
    def skeleton(self) -> Skeleton:
        """The adjacent pairs, and the answers that decided about each pair."""
        return self.search_result.skeleton

    @property
    def orientation(self) -> Orientation:
        """The arrows, the reason for each of them, and the contradictions met on the way."""
        return self.search_result.orientation

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the graph should know: rows left out, constants, contradictions.

        The first ones name clients whose columns look swapped, or that have far longer tails than others.
        """
        return (*self.warnings, *self._notes())

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The notes on clients to ask before the graph is believed; they are printed before it."""
        return describe_unlike_clients(self.cohort)

    def to_dag(self) -> PartialGraph:
        """Return a DAG over the variables that extends the graph.

        The method "evidence" directs open edges as in the DAG with the highest score. Other methods use the algorithm
        of Dor and Tarsi. If no DAG has exactly the arrows and colliders of the graph, one with few further colliders
        is returned, and the notes say so.

        Returns
        -------
        PartialGraph
            A graph with arrows only.

        Raises
        ------
        KnowledgeError
            If every DAG with these edges has an arrow that the knowledge forbids.

        References
        ----------
        Dor and Tarsi, "A simple algorithm to construct a consistent extension of a partially oriented graph", 1992.
        """
        best, knowledge = self.search_result.best, self.settings.knowledge
        graph = self.augmented.orient_all(self.search_result.assumed)
        if best is not None and self.posterior is not None:
            dag = direct_lines(graph, best, knowledge, self.posterior.arrows)
        else:
            dag = extend_to_dag(graph if best is None else orient_like(graph, best, knowledge))
        if wrong := sorted(arrow for arrow in dag.arrows if knowledge.forbids(*arrow)):
            shown = ", ".join(f"{tail} → {head}" for tail, head in wrong)
            raise KnowledgeError(
                "the directions that the knowledge leaves to the edges found run in a circle, so every DAG has a "
                f"forbidden arrow (such as {shown}); forbid one of these edges both ways, or allow a direction",
                parameter="knowledge",
            )
        return dag.drop(DOMAIN) if DOMAIN in dag.nodes else dag

    def sample_dags(self, n: int, seed: int = 0) -> list[PartialGraph]:
        """Draw DAGs over the variables from the posterior distribution.

        Parameters
        ----------
        n : int
            Number of DAGs.
        seed : int, default 0
            Seed of the sample.

        Returns
        -------
        list of PartialGraph
            Graphs with arrows only. The share of those with an arrow is about its probability.

        Raises
        ------
        SettingsError
            If the method has no posterior, or n is not a natural number.
        """
        if self.posterior is None:
            raise SettingsError(
                f"method {self.settings.method!r} has no probabilities, so no graphs can be drawn from them; choose "
                "method 'evidence'",
                parameter="method",
            )
        joined = [
            arrow for arrow in self.search_result.assumed if not self.posterior.start.is_adjacent(*arrow)
        ]  # edges of copies and totals, which took no part in the search
        found = [replace(dag, arrows=dag.arrows.union(joined)) for dag in self.posterior.sample(n, seed)]
        return [dag.drop(DOMAIN) if DOMAIN in dag.nodes else dag for dag in found]

    def edges(self) -> tuple[Edge, ...]:
        """Return every pair of nodes with its evidence, adjacent pairs first.

        Returns
        -------
        tuple of Edge
            Also the pairs that are not adjacent. `fedcdh.reporting.to_pandas` makes a data frame of them.
        """
        pairs = sorted(combinations(self.augmented.nodes, 2), key=lambda pair: sort_pair(frozenset(pair)))
        found = [self._edge(frozenset(pair)) for pair in pairs]
        return tuple(sorted(found, key=lambda edge: not edge.mark))

    def drift(self, variables: Iterable[str] | None = None) -> DriftTable:
        """Estimate how mechanisms differ: level, effects and noise at every client.

        The causes of a variable are its parents in `to_dag`.

        Parameters
        ----------
        variables : iterable of str, optional
            The variables whose mechanisms are described. Default `changing`.

        Returns
        -------
        DriftTable
            One record for each variable, quantity and client. `fedcdh.reporting.to_pandas` makes a data frame of them.

        Raises
        ------
        SettingsError
            If only the sum of the summaries is known, if they have noise, or if a variable does not exist.
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
        """Repeat the search with other clients or other rows, and count what stays the same.

        By default every client is left out once, which needs no further message.

        Parameters
        ----------
        runs : int, optional
            How often clients are resampled with replacement. Default: every client is left out once.
        replicates : iterable of Replicate, optional
            Bootstrap replicates of the clients' summaries (`fedcdh.summaries.bootstrap_summaries`), the first
            replicate of all clients first. They are read one after the other.
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
        """
        study = self.cohort, self.settings, self.search_result
        return assess_stability(*study, runs=runs, replicates=replicates, seed=seed, progress=progress)

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        kind: EffectKind = "total",
        adjust: Adjust = "auto",
        contrast: tuple[str, str] | None = None,
        outcome_level: str | None = None,
        at: tuple[float, float] | None = None,
        samples: int = 0,
    ) -> Effect:
        """Estimate the effect of one variable on another: how much, with an interval, at every client and over all.

        The graph says what to adjust for, and the summaries have the sums that the regression needs. The effect holds
        if the graph is right and no common cause of two variables is missing from the study.

        Parameters
        ----------
        cause, outcome : str
            Two variables.
        kind : {"total", "direct"}, default "total"
            The effect along all directed paths, or along the arrow alone, with the other parents of the outcome fixed.
        adjust : {"auto", "parents", "optimal"} or iterable of str, default "auto"
            The adjustment set: the parents of the cause, the set with the smallest asymptotic variance ("optimal",
            which "auto" takes), or variables of your choice. An invalid choice is named in `reason`.
        contrast : tuple of str, optional
            Two levels of a categorical cause, from and to. Default: both levels; of more, the two most common.
        outcome_level : str, optional
            The level of a categorical outcome whose probability is compared. Default: the second of two; of more, the
            most common.
        at : tuple of float, optional
            Two values of a continuous cause, from and to. The effect is then the difference along the curved response.
        samples : int, default 0
            Number of DAGs from the posterior over which `possible` is averaged, with `probability_of_effect` and
            `probability_positive`; a few hundred take seconds. With 0, `possible` is the class of the graph.

        Returns
        -------
        Effect
            Value and interval, or why the graph does not determine one.

        Raises
        ------
        SettingsError
            If there is no such variable or level, or if the summaries have noise.

        Examples
        --------
        >>> import fedcdh
        >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
        >>> effect = result.effect("age", "systolic_pressure")
        >>> effect.interval[0] < effect.value < effect.interval[1]
        True
        """
        question = Question(cause, outcome, kind, contrast, outcome_level, at)
        return self._effects.estimate(question, adjust, samples=samples)

    def effects(self, kind: EffectKind = "total") -> EffectTable:
        """Estimate the effects of all pairs of variables that the graph may connect.

        Parameters
        ----------
        kind : {"total", "direct"}, default "total"
            The kind of effect.

        Returns
        -------
        EffectTable
            One record for each cause and outcome. All other effects are 0 by the graph. It prints as a table, and
            `fedcdh.reporting.to_pandas` makes a data frame of it.

        Raises
        ------
        SettingsError
            If the summaries have noise.
        """
        return self._effects.estimate_all(kind)

    @cached_property
    def _effects(self) -> EffectStudy:
        return EffectStudy.of(self)

    @cached_property
    def _edge_slopes(self) -> Mapping[Arrow, Mapping[str, Any]]:
        return find_slopes(self._effects, self.to_dag)

    def _edge(self, pair: Pair) -> Edge:
        source, target = sort_pair(pair)
        if self._points_back(source, target):
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
            **self._probabilities(arrow),
            **self._slopes(arrow),
        )

    def _slopes(self, arrow: Arrow) -> Mapping[str, Any]:
        """Return the slope of an edge that is drawn."""
        return self._edge_slopes.get(arrow, {}) if self.augmented.is_adjacent(*arrow) else {}

    def _probabilities(self, arrow: Arrow) -> dict[str, Any]:
        """Return the probabilities and the strength of an edge."""
        strengths, posterior = self.search_result.strengths, self.posterior
        strength = strengths.get(arrow, strengths.get(arrow[::-1]))
        if posterior is None:
            return {"strength": strength}
        return {
            "probability": posterior.probability_of_edge(*arrow),
            "probability_forward": posterior.arrows.get(arrow, 0.0),
            "strength": strength,
        }

    def _points_back(self, source: str, target: str) -> bool:
        """Return whether the arrow, or else the likelier direction, leads from the second node to the first."""
        if self.augmented.is_adjacent(source, target) or self.posterior is None:
            return (target, source) in self.augmented.arrows
        arrows = self.posterior.arrows
        return arrows.get((target, source), 0.0) > arrows.get((source, target), 0.0)

    def _direction(self, arrow: Arrow) -> float | None:
        """Return the log Bayes factor of an arrow against its reverse, whichever of them the best graph has."""
        support = self.search_result.supports.get(frozenset(arrow))
        best = self.search_result.climbed or self.search_result.best
        if support is None or best is None or support.direction is None:
            return None
        return support.direction if arrow in best.arrows else -support.direction

    def _notes(self) -> Iterator[str]:
        yield from self._client_notes()
        if self.settings.method != "paper":  # its tests are as printed, for independent rows
            yield from describe_dependence(self.cohort.plan)
        yield from self.search_result.notes
        yield from describe_dependent_changes(self._dependent_changes)
        for name in self.cohort.total.constant_variables(self.cohort.plan):
            yield f"variable {name} is constant: it has no edges but required ones"
        for answer in self.skeleton.refused:
            query, p_value = _show_domain(str(answer.query)), f"{answer.p_value:.2g}"
            yield f"an edge stays although {query} has p = {p_value}, which cannot hold together with other answers"
        for conflict in self.orientation.conflicts:
            yield f"contradiction: {_show_domain(str(conflict))}"
        if self.posterior is not None:
            return  # lines are edges whose direction is not certain; they need not form a class
        try:
            find_consistent_extension(self.augmented.orient_all(self.search_result.assumed))
        except NoConsistentExtensionError:
            yield "no DAG has just these arrows and edges without further colliders; to_dag() adds as few as it can"

    @cached_property
    def _dependent_changes(self) -> tuple[Arrow, ...]:
        """Return the arrows that rest on changes which are not independent; noise and knowledge are other grounds."""
        return find_dependent_changes(self.cohort, self.augmented, self.orientation.reasons)

    def _client_notes(self) -> Iterator[str]:
        clients = len(self.cohort.clients)
        small = sum(rows < MIN_INFORMATIVE_ROWS for rows in self.cohort.client_rows)
        if not self.compares_clients:
            yield f"there is only one {self.client_noun}: the result cannot say which mechanisms differ between clients"
        elif 2 * small > clients:
            found = f"{small} of {clients} {self.client_noun}s have fewer than {MIN_INFORMATIVE_ROWS} rows"
            yield f"{found}: is the domain the right column?"
        present = frozenset(self.cohort.total.clients)
        for client in find_left_clients(self.cohort.plan):
            yield f"client {client} left the study: nothing here is about its rows, only the scales of variables may be"
        gone = [client for client in self.cohort.plan.clients if client not in present]
        if len(gone) > _MAX_NAMED_DROPOUTS:
            named = abbreviate_list(gone)
            yield f"clients {named} are named in the plan, but dropped out: nothing here is about their rows"
        else:
            for client in gone:
                yield f"client {client} is named in the plan, but dropped out: nothing here is about its rows"
        for summary in self.cohort.summaries:
            if self.cohort.plan.missing == "impute" and any(summary.missing.values()):
                yield _describe_gaps(summary)
            elif dropped := summary.rows_read - summary.rows:
                named = ", ".join(f"{name} {count}" for name, count in summary.missing.items() if count)
                whose = f"client {summary.clients[0]}" if len(summary.clients) == 1 else "all clients"
                yield f"{whose}: {dropped} of {summary.rows_read} rows left out (missing: {named})"
            if summary.coarsened:
                whose = f"client {summary.clients[0]}" if len(summary.clients) == 1 else "all clients"
                yield f"{whose}: {abbreviate_list(describe_coarsened(summary.coarsened))}"


def _show_domain(text: str) -> str:
    return text.replace(DOMAIN, "℧")


def _describe_gaps(summary: Summary) -> str:
    """Say in words which values were imputed."""
    whose = f"client {summary.clients[0]}" if len(summary.clients) == 1 else "all clients"
    named = ", ".join(f"{name} {count}" for name, count in summary.missing.items() if count)
    dropped = summary.rows_read - summary.rows
    left_out = f"; {dropped} row{'s' * (dropped > 1)} without any value left out" if dropped else ""
    return f"{whose}: missing values of {summary.rows_read} rows were imputed ({named}){left_out}"
