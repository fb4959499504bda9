"""A result that was read back from its folder: all that `write_result` wrote, with the manners of a `Discovery`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NoReturn

from fedcdh.discovery.drift import Drift, DriftTable
from fedcdh.discovery.effect import Effect, EffectKind, EffectTable
from fedcdh.discovery.findings import ClientGroups, Findings
from fedcdh.discovery.influence import Influence
from fedcdh.discovery.result import Edge
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.stability import ChangeStability, EdgeStability, Stability
from fedcdh.discovery.stability_run import StabilityRun
from fedcdh.errors import FedCDHError, KnowledgeError, SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.effect_records import effect_from_dict

_NEEDS_SUMMARIES = (
    "cohort",
    "orientation",
    "posterior",
    "sample_dags",
    "search_result",
    "skeleton",
)
"""The attributes of a `Discovery` that are not written."""
_AGAIN = "keep plan and summaries, and run fedcdh.discover_from(summaries, plan)"


class NotSavedError(FedCDHError, AttributeError):
    """Something was asked of a result that was read from its files, and the files do not have it."""


@dataclass(frozen=True, repr=False)
class SavedDiscovery(Findings):
    """A result that was written by `write_result` and read back by `read_result`.

    It prints, draws and reports itself like the `Discovery` that was written, and has its edges, notes, settings,
    drift and, where they were written, stability. The summaries are not in the files, so it cannot search again.

    Attributes
    ----------
    document : mapping
        The content of result.json.

    See Also
    --------
    read_result : Reads it.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> folder = tempfile.mkdtemp()
    >>> paths = fedcdh.write_result(result, folder)
    >>> fedcdh.read_result(folder).edges() == result.edges()
    True
    """

    document: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Name what to do about parts of a `Discovery` that are not in the files."""
        if name in _NEEDS_SUMMARIES:
            raise NotSavedError(
                f"found a result that was read from its files, which have no {name}; expected a result with its "
                f"summaries; {_AGAIN}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    __hash__ = None  # type: ignore[assignment]  # a mapping has no hash

    @cached_property
    def settings(self) -> Settings:  # type: ignore[override]
        """Method, significance level, knowledge and limits."""
        found = dict(self.document["settings"])
        known = {field.name for field in fields(Settings)} - {"knowledge", "workers"}
        given = {name: value for name, value in found.items() if name in known}
        return Settings(**given, knowledge=Knowledge(**found["knowledge"]))

    @cached_property
    def augmented(self) -> PartialGraph:
        """The graph with the domain ℧ as a further node; its arrows point to the `changing` variables."""
        pairs = [(edge["source"], edge["target"], edge["mark"]) for edge in self.document["edges"]]
        compared = any(source == DOMAIN for source, *_ in pairs)
        return PartialGraph(
            (*((DOMAIN,) if compared else ()), *self.variables),
            frozenset((source, target) for source, target, mark in pairs if mark == "→"),
            frozenset(frozenset((source, target)) for source, target, mark in pairs if mark == "—"),
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the plan."""
        return tuple(self.document["variables"])

    @property
    def client_groups(self) -> ClientGroups:
        """The name and the members of each client, or of each group of which only the sum is known."""
        return tuple(
            (client["client"], tuple(client.get("members", (client["client"],)))) for client in self.document["clients"]
        )

    @property
    def n_rows(self) -> int:
        """The number of rows of all clients together."""
        return sum(int(client["rows"]) for client in self.document["clients"])

    @property
    def has_mixtures(self) -> bool:
        """True if clients were compared by mixtures of their means, as secure sums give them."""
        return bool(self.document.get("mixtures", False))

    @property
    def has_probabilities(self) -> bool:
        """True if the search gives probabilities; searches by tests give none."""
        return self.settings.method == "evidence"

    @property
    def probability_of_change(self) -> dict[str, float]:
        """The probability that the mechanism of each variable differs between clients."""
        found = self.document["probability_of_change"] or {}
        return {name: found[name] for name in self.variables if name in found}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the graph should know: rows left out, constants, contradictions."""
        return tuple(self.document["notes"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """The first notes: on clients to ask before the graph is believed; they are printed before it."""
        return self.notes[: self.document.get("warnings", 0)]

    @property
    def without_disclosure_control(self) -> tuple[str, ...]:
        """The clients whose summaries were made without disclosure control."""
        return tuple(self.document.get("without_disclosure_control", ()))

    def edges(self) -> tuple[Edge, ...]:
        """Return every pair of nodes with its evidence, adjacent pairs first.

        Returns
        -------
        tuple of Edge
            As `Discovery.edges` returned them. Infinite numbers, which no file holds, are None.
        """
        return tuple(_read_record(Edge, edge) for edge in self.document["edges"])

    def to_dag(self) -> PartialGraph:
        """Return a DAG over the variables that extends the graph.

        Returns
        -------
        PartialGraph
            The DAG that `Discovery.to_dag` gave.

        Raises
        ------
        KnowledgeError
            If there is none: every DAG with these edges has an arrow that the knowledge forbids.
        """
        if self.document["dag"] is None:
            raise KnowledgeError(
                "the directions that the knowledge leaves to the edges found run in a circle, so every DAG has a "
                "forbidden arrow; forbid one of these edges both ways, or allow a direction, and search again",
                parameter="knowledge",
            )
        return PartialGraph(self.variables, frozenset((tail, head) for tail, head in self.document["dag"]))

    def drift(self, variables: Iterable[str] | None = None) -> DriftTable:
        """Return how the `changing` mechanisms differ: level, effects and noise at every client.

        Parameters
        ----------
        variables : iterable of str, optional
            Some of the `changing` variables. Default all of them.

        Returns
        -------
        DriftTable
            One record for each variable, quantity and client.

        Raises
        ------
        SettingsError
            If the drift could not be estimated, or that of another variable is asked for.
        """
        if self.document["drift"] is None:
            raise SettingsError(
                "this result has no drift, since it was found from sums of clients, from sums with noise, or has no "
                "DAG; expected exact summaries of every client; `changing` says which mechanisms differ"
            )
        records = [_read_record(Drift, one) for one in self.document["drift"]]
        wanted = self.changing if variables is None else frozenset(variables)
        if unknown := sorted(wanted - self.changing):
            raise SettingsError(
                f"the drift of {unknown[0]!r} is not in the files, which have that of {sorted(self.changing)}; for "
                f"other variables {_AGAIN}, and ask its result",
                parameter="variables",
            )
        return DriftTable(record for record in records if record.variable in wanted)

    def effects(self, kind: EffectKind = "total") -> EffectTable:
        """Return the effects that were written, those that were chosen for single sites first.

        Parameters
        ----------
        kind : {"total", "direct"}, default "total"
            The kind of effect. All total effects are written, and direct ones that were chosen.

        Returns
        -------
        EffectTable
            Effects that were not chosen have no values of single clients and no curve.

        Raises
        ------
        SettingsError
            If the summaries have noise, so that no effects were written.
        """
        if self.document["effects"] is None:
            raise SettingsError(
                "this result has no effects, since its summaries have noise; expected exact sums; ask sites for "
                "summaries without noise"
            )
        return EffectTable(effect for effect in map(effect_from_dict, self.document["effects"]) if effect.kind == kind)

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        kind: EffectKind = "total",
        contrast: tuple[str, str] | None = None,
        outcome_level: str | None = None,
        at: tuple[float, float] | None = None,
    ) -> Effect:
        """Return one of the effects that were written.

        Parameters
        ----------
        cause, outcome : str
            Two variables.
        kind : {"total", "direct"}, default "total"
            The kind of effect.
        contrast : tuple of str, optional
            Two levels of a categorical cause. Default: those that were written.
        outcome_level : str, optional
            The level of a categorical outcome. Default: the one that was written.
        at : tuple of float, optional
            Two values of a continuous cause.

        Returns
        -------
        Effect
            As `Discovery.effect` gave it; without single clients where it was not chosen.

        Raises
        ------
        SettingsError
            If it was not written. The effect of a variable on one that it cannot reach in the graph is 0, and not
            written.
        """
        for found in self.effects(kind):
            asked = (cause, outcome, contrast or found.levels, outcome_level or found.outcome_level, at)
            if asked == (found.cause, found.outcome, found.levels, found.outcome_level, found.at):
                return found
        raise SettingsError(
            f"this effect of {cause!r} on {outcome!r} is not in the files, which have all total effects that the "
            f"graph lets be other than 0, and those that write_result was given as effects; for others {_AGAIN}, and "
            "ask its result",
            parameter="outcome",
        )

    def stability(
        self, runs: int | None = None, *, replicates: Iterable[object] | None = None, seed: int = 0
    ) -> Stability:
        """Return the stability with other clients that was written beside the result.

        Parameters
        ----------
        runs : int, optional
            Number of runs with resampled clients. Default: the written stability of any kind.
        replicates : iterable, optional
            Bootstrap replicates cannot be searched without the summaries; see `row_stability`.
        seed : int, default 0
            Seed with which clients were resampled; it counts where `runs` is given.

        Returns
        -------
        Stability
            The shares of runs that agree with the result, and the clients on which single findings depend.

        Raises
        ------
        SettingsError
            If it was not written, or another one was.
        """
        if replicates is not None:
            _refuse_runs("found bootstrap replicates, which cannot be searched without the summaries", "replicates")
        if "stability" not in self.document:
            _refuse_runs("no stability was written beside this result", None)
        found = _read_stability(self.document["stability"])
        if runs is not None and (found.kind != "bootstrap" or (len(found.runs), found.seed) != (runs, seed)):
            _refuse_runs(f"the files have the stability of another kind ({found.kind}, {len(found.runs)} runs)", "runs")
        return found

    def row_stability(self) -> Stability:
        """Return the stability with resampled rows that was written beside the result.

        Returns
        -------
        Stability
            The shares of bootstrap replicates that agree with the result.

        Raises
        ------
        SettingsError
            If it was not written.
        """
        if "row_stability" not in self.document:
            _refuse_runs("no stability with resampled rows was written beside this result", None)
        return _read_stability(self.document["row_stability"])


def find_damage(result: SavedDiscovery) -> Iterator[str]:
    """Yield what in the files contradicts itself, or cannot be what a search found.

    Parameters
    ----------
    result : SavedDiscovery
        A result whose document has the right shape.

    Yields
    ------
    str
        Part of a sentence.
    """
    graph = result.document["graph"]
    arrows = frozenset((tail, head) for tail, head in graph["arrows"])
    lines = frozenset(frozenset(line) for line in graph["lines"])
    try:
        if result.graph.arrows != arrows or result.graph.lines != lines:
            yield "the graph and the marks of the edges differ"
        if result.changing != frozenset(result.document["changing"]):
            yield "the changing variables and the marks of the edges differ"
        _ = result.settings, result.edges()
        _ = None if result.document["dag"] is None else result.to_dag()
        _ = () if result.document["drift"] is None else result.drift()
        _ = () if result.document["effects"] is None else result.effects()
        _ = [_read_stability(result.document[key]) for key in ("stability", "row_stability") if key in result.document]
    except FedCDHError as problem:
        yield problem.message
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        yield f"a part of it cannot be read ({type(problem).__name__}: {problem})"


def _refuse_runs(found: str, parameter: str | None) -> NoReturn:
    raise SettingsError(
        f"{found}; expected what write_result was given; {_AGAIN}.stability(), or write the result with it "
        "(fedcdh discover --stability)",
        parameter=parameter,
    )


def _read_record(kind: type, record: Mapping[str, Any]) -> Any:
    """Return a record of a dataclass; lists of names are tuples in it."""
    known = {field.name for field in fields(kind)}
    given = {name: _to_tuple(value) for name, value in record.items() if name in known}
    return kind(**given)


def _to_tuple(value: Any) -> Any:
    return tuple(map(_to_tuple, value)) if isinstance(value, list) else value


def _read_stability(found: Mapping[str, Any]) -> Stability:
    return Stability(
        found["kind"],
        found["seed"],
        edges=tuple(_read_record(EdgeStability, edge) for edge in found["edges"]),
        changing=tuple(_read_record(ChangeStability, change) for change in found["changing"]),
        runs=tuple(map(_read_run, found["runs"])),
        notes=tuple(found["notes"]),
        influence=tuple(_read_record(Influence, one) for one in found["influence"]),
    )


def _read_run(run: Mapping[str, Any]) -> StabilityRun:
    return StabilityRun(
        tuple(run["clients"]),
        tuple(run["left_out"]),
        arrows=frozenset((tail, head) for tail, head in run["arrows"]),
        lines=frozenset(map(_to_pair, run["lines"])),
        changing=None if run["changing"] is None else frozenset(run["changing"]),
    )


def _to_pair(line: Sequence[str]) -> frozenset[str]:
    a, b = line
    return frozenset((a, b))
