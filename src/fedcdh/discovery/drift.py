"""Differences between clients: every quantity of a changing mechanism at each client, compared with the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from fedcdh.discovery.drift_text import format_drift, render_drift_html
from fedcdh.errors import SettingsError
from fedcdh.inference.heterogeneity.client_regressions import ClientRegressions
from fedcdh.inference.heterogeneity.deviations import ClientComparison, Estimates, compare_clients
from fedcdh.summaries.aggregation import Aggregate, Cohort


@dataclass(frozen=True)
class Drift:
    """One quantity of one mechanism at one client, in the units of the study.

    Attributes
    ----------
    variable : str
        The variable whose mechanism is described.
    client : str
        The client.
    quantity : str
        For a continuous variable: "level", its mean where all causes have their means over the study;
        "effect of ...", the change per unit of a continuous cause, or between a level of a categorical cause and the
        first; and "noise", the standard deviation of the residuals. For a categorical variable, for each of its
        levels: its "share" at the means of the causes, and the effects on it, by linear regression of the indicator.
    estimate : float, optional
        The value at this client; None if its rows do not determine it.
    low : float, optional
        Lower end of the 95 % confidence interval (Student's t; chi-square for noise).
    high : float, optional
        Upper end of that interval.
    pooled : float, optional
        The common value of the clients that do not differ significantly.
    deviation : float, optional
        The difference between this client and those clients in standard errors, as a standard normal quantile.
    p_value : float, optional
        Two-sided p-value of that difference.
    flagged : bool
        Whether the difference is significant at 5 % after Holm's correction for all clients and quantities of the
        mechanism.
    note : str
        Why a value is missing; an empty text otherwise.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> sorted({drift.variable for drift in result.drift() if drift.flagged})
    ['medication', 'systolic_pressure']
    """

    variable: str
    client: str
    quantity: str
    estimate: float | None
    low: float | None
    high: float | None
    pooled: float | None
    deviation: float | None
    p_value: float | None
    flagged: bool
    note: str = ""


class DriftTable(tuple[Drift, ...]):
    """The records of `Discovery.drift`: a tuple that prints as a table, and shows itself in notebooks.

    Examples
    --------
    >>> print(DriftTable([Drift("age", "north", "level", 50.0, 48.0, 52.0, 55.0, -4.1, 4e-5, True)]))
    variable  quantity  client  estimate  low  high  pooled  deviation
    age       level     north         50   48    52      55       -4.1  *
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return one row per variable, quantity and client; a star marks significant differences."""
        return format_drift(self)

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        return render_drift_html(self)


def estimate_drift(
    cohort: Cohort | Aggregate, parents: Mapping[str, Iterable[str]], variables: Iterable[str] | None = None
) -> DriftTable:
    """Estimate every quantity of some mechanisms at every client.

    Parameters
    ----------
    cohort : Cohort
        The summaries of the clients; an `Aggregate` is refused.
    parents : mapping from str to iterable of str
        The causes of each variable.
    variables : iterable of str, optional
        The variables whose mechanisms are described. Default all keys of `parents`.

    Returns
    -------
    DriftTable
        One record for each variable, quantity and client.

    Raises
    ------
    SettingsError
        If only the sum of the summaries is known, if they have noise, or if a variable does not exist.

    Examples
    --------
    >>> import fedcdh
    >>> tables = {"north": {"age": [50.0, 61.0, 47.0]}, "south": {"age": [70.0, 58.0, 66.0]}}
    >>> plan = fedcdh.StudyPlan.from_tables(tables)
    >>> cohort = fedcdh.add_up([fedcdh.summarize(table, plan, client) for client, table in tables.items()], plan)
    >>> [drift.quantity for drift in estimate_drift(cohort, {"age": []}) if drift.client == "north"]
    ['level', 'noise']
    """
    if isinstance(cohort, Aggregate):
        raise SettingsError(
            "only the sum of the clients' summaries is known, which does not separate one client's effects from "
            "another's; expected the summary of every client; ask for the single summaries"
        )
    if cohort.total.noise:
        raise SettingsError(
            "these summaries have noise, which would be taken for differences between clients; expected exact sums; "
            "result.changing says which mechanisms differ"
        )
    wanted = sorted({*parents} if variables is None else {*variables})
    if unknown := [name for name in wanted if name not in parents]:
        raise SettingsError(
            f"there is no variable {unknown[0]!r}; choose among {', '.join(map(repr, parents))}", parameter="variables"
        )
    regressions = ClientRegressions.of(cohort)
    return DriftTable(
        record for name in wanted for record in _mechanism_drift(regressions, cohort.clients, name, parents[name])
    )


def tabulate_drift(drifts: Iterable[Drift]) -> dict[str, dict[str, Drift | None]]:
    """Return the largest deviation of each mechanism at each client, as rows of a heat map.

    Parameters
    ----------
    drifts : iterable of Drift
        The records of `Discovery.drift`.

    Returns
    -------
    dict from str to dict
        By variable and client, the record with the largest deviation; None if nothing can be compared there.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> sorted(tabulate_drift(result.drift()))
    ['medication', 'systolic_pressure']
    """
    found: dict[str, dict[str, Drift | None]] = {}
    for drift in drifts:
        row = found.setdefault(drift.variable, {})
        largest = row.setdefault(drift.client, None)
        if drift.deviation is not None and (largest is None or abs(drift.deviation) > abs(largest.deviation or 0.0)):
            row[drift.client] = drift
    return found


def _mechanism_drift(
    regressions: ClientRegressions, clients: tuple[str, ...], name: str, parents: Iterable[str]
) -> Iterator[Drift]:
    quantities = list(regressions.estimates(name, parents))
    for quantity, compared in zip(quantities, compare_clients(quantities), strict=True):
        yield from _records(name, clients, quantity, compared)


def _records(name: str, clients: tuple[str, ...], quantity: Estimates, compared: ClientComparison) -> Iterator[Drift]:
    low, high = quantity.interval()
    for k, client in enumerate(clients):
        yield Drift(
            name,
            client,
            quantity.quantity,
            estimate=_finite_or_none(quantity.values[k]),
            low=_finite_or_none(low[k]),
            high=_finite_or_none(high[k]),
            pooled=_finite_or_none(compared.pooled),
            deviation=_finite_or_none(compared.deviation[k]),
            p_value=_finite_or_none(compared.p_value[k]),
            flagged=bool(compared.flagged[k]),
            note=quantity.notes[k],
        )


def _finite_or_none(number: float) -> float | None:
    return float(number) if isfinite(number) else None
