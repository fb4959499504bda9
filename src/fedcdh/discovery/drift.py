"""What differs where: the mechanisms that change, client by client, beside what the clients have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from fedcdh.errors import SettingsError
from fedcdh.inference.heterogeneity.client_regressions import ClientRegressions
from fedcdh.inference.heterogeneity.deviations import ClientComparison, Estimates, compare_clients
from fedcdh.summaries.aggregation import Aggregate, Cohort


@dataclass(frozen=True)
class Drift:
    """One quantity of one mechanism at one client, in the units of the study, and how it compares with the others.

    Quantities of a number: "level", its mean where all its causes have their means over the study; "effect of ...", the
    change per unit of a continuous cause, or between a level of a categorical one and the first; and "noise", the
    standard deviation of what the causes leave. Of a label, for every level: its "share", likewise at the means of the
    causes, and effects on it, all by linear regression of the indicator.

    `low` and `high` hold the value with 95 % (Student's t; chi-square for noise). `pooled` is what the clients have in
    common that do not stand out, `deviation` how far this client is from the others among them in standard errors,
    on the scale of a normal variable; `p_value` is two-sided. `flagged` says that it is significant at 5 % after Holm's
    correction for all clients and quantities of the mechanism. None: `note` says why.
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


def estimate_drift(
    cohort: Cohort | Aggregate, parents: Mapping[str, Iterable[str]], variables: Iterable[str] | None = None
) -> tuple[Drift, ...]:
    """Every quantity of the mechanisms of these variables (of all that `parents` names causes of) at every client."""
    if isinstance(cohort, Aggregate):
        raise SettingsError(
            "what differs where needs the summary of every client, but only their sum is known: it does not tell one "
            "client's effects from another's; ask for the single summaries"
        )
    if cohort.total.noise:
        raise SettingsError(
            "what differs where is computed from exact sums, and these have noise: it would be taken for differences "
            "between clients; result.changing says which mechanisms differ"
        )
    wanted = sorted({*parents} if variables is None else {*variables})
    if unknown := [name for name in wanted if name not in parents]:
        raise SettingsError(f"there is no variable {unknown[0]!r}; choose among {', '.join(map(repr, parents))}")
    fits = ClientRegressions.of(cohort)
    return tuple(record for name in wanted for record in _mechanism_drift(fits, cohort.clients, name, parents[name]))


def tabulate_drift(drifts: Iterable[Drift]) -> dict[str, dict[str, Drift | None]]:
    """Variables × clients: what deviates most there, None where nothing can be compared; rows of a heat map."""
    found: dict[str, dict[str, Drift | None]] = {}
    for drift in drifts:
        row = found.setdefault(drift.variable, {})
        most = row.setdefault(drift.client, None)
        if drift.deviation is not None and (most is None or abs(drift.deviation) > abs(most.deviation or 0.0)):
            row[drift.client] = drift
    return found


def _mechanism_drift(
    fits: ClientRegressions, clients: tuple[str, ...], name: str, parents: Iterable[str]
) -> Iterator[Drift]:
    quantities = list(fits.estimates(name, parents))
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
