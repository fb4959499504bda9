"""Clients whose columns look mixed up, or whose tails are far longer than elsewhere, beside all other clients.

Sites are meant to differ, so a difference alone says nothing. Two patterns do, and a site that errs or deceives makes
them: two columns that fit the other clients much better if they are swapped, and a variable of which one client has a
few values far out. Both compare one client with the predictive distribution of the others, a Student t with K − 2
degrees of freedom for K clients, so that few clients, or clients that differ among each other, give little evidence.
Columns are described by their mean, the logarithm of their standard deviation and Fisher's z of their correlations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from fedcdh._runtime.array_types import Array
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.variables import Continuous

MIN_LOG_RATIO = 10.0
"""Least logarithm of the likelihood ratio for a swap. Chosen with `benchmarks.attacks.poisoning` on seeds 0 to 39."""
MAX_TAIL_LEVEL = 0.01
"""Level of the test for long tails, over all clients and variables (Bonferroni). Chosen on seeds 0 to 59."""
MIN_CLIENTS = 3
MAX_WORK = 200_000_000
"""Clients times the third power of the number of variables; beyond, swaps are not looked for."""
_SMALLEST_SPREAD = 0.05
"""A spread that is always assumed between clients, so that no two of them have to be exactly alike."""
_MIN_DEVIATION = 0.1
"""Standard deviation, in scales, below which the grid's rounding of squares decides the kurtosis of a column."""
_MIN_DEVIATION_OF_PAIRS = 0.001
"""The same for correlations, which need no squares."""


@dataclass(frozen=True)
class SwappedColumns:
    """Two columns of a client that fit the other clients better the other way round.

    Parameters
    ----------
    client : str
        Name of the client.
    columns : tuple of str
        The two variables.
    log_ratio : float
        Logarithm of the likelihood ratio, swapped against as sent.
    """

    client: str
    columns: tuple[str, str]
    log_ratio: float


@dataclass(frozen=True)
class LongTails:
    """A variable of which one client has far longer tails than the others.

    Parameters
    ----------
    client : str
        Name of the client.
    variable : str
        The variable.
    kurtosis : float
        Its kurtosis at this client; 3 for a normal distribution.
    largest_elsewhere : float
        The largest kurtosis at another client.
    """

    client: str
    variable: str
    kurtosis: float
    largest_elsewhere: float


def find_swapped_columns(cohort: Cohort) -> tuple[SwappedColumns, ...]:
    """Find, for each client, the two columns that fit the other clients much better if they are swapped.

    Parameters
    ----------
    cohort : Cohort
        Summaries of all clients.

    Returns
    -------
    tuple of SwappedColumns
        At most one pair for each client. Of two columns that look alike at the other clients, a swap cannot be seen.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> rng = np.random.default_rng(1)
    >>> plan = StudyPlan(tuple(Continuous(name) for name in "abc"), ("e", "n", "s", "w"))
    >>> tables = {}
    >>> for client in plan.clients:
    ...     a, b, c = rng.standard_normal((3, 200))
    ...     tables[client] = {"a": a, "b": a + 0.3 * b, "c": c}
    >>> tables["w"] = {"a": tables["w"]["a"], "b": tables["w"]["c"], "c": tables["w"]["b"]}
    >>> found = find_swapped_columns(add_up((summarize(t, plan, c) for c, t in tables.items()), plan))
    >>> [(one.client, one.columns) for one in found]
    [('w', ('b', 'c'))]
    """
    names = _numbers(cohort)
    clients, count = len(cohort.clients), len(names)
    if clients < MIN_CLIENTS or count < 2 or cohort.total.noise or clients * count**3 > MAX_WORK:
        return ()
    marginals, dependences = _describe_columns(cohort, names)
    found = []
    for place, client in enumerate(cohort.clients):
        rows = cohort.client_rows[place]
        ratios = np.triu(_swap_ratios(marginals, dependences, place, rows), 1)
        one, other = np.unravel_index(int(ratios.argmax()), ratios.shape)
        if ratios[one, other] > MIN_LOG_RATIO:
            found.append(SwappedColumns(client, (names[one], names[other]), float(ratios[one, other])))
    return tuple(found)


def find_long_tails(cohort: Cohort) -> tuple[LongTails, ...]:
    """Find variables of which one client has far longer tails than the others: there, a few rows weigh as much as many.

    Parameters
    ----------
    cohort : Cohort
        Summaries of all clients.

    Returns
    -------
    tuple of LongTails
        In the order of clients and variables.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> rng = np.random.default_rng(1)
    >>> plan = StudyPlan((Continuous("x"),), tuple("abcdefg"))
    >>> tables = {client: {"x": rng.standard_normal(300)} for client in plan.clients}
    >>> tables["b"]["x"][:3] = 10.0
    >>> found = find_long_tails(add_up((summarize(t, plan, c) for c, t in tables.items()), plan))
    >>> [(one.client, one.variable) for one in found]
    [('b', 'x')]
    """
    clients = len(cohort.clients)
    names = [] if cohort.total.noise else _numbers(cohort)
    columns = {name: [_kurtosis(one, cohort, name) for one in range(clients)] for name in names}
    names = [name for name, found in columns.items() if None not in found]
    if clients < MIN_CLIENTS or not names:
        return ()
    logs = np.log(np.array([columns[name] for name in names], dtype=float).T)
    limit = MAX_TAIL_LEVEL / logs.size
    found = []
    for place, client in enumerate(cohort.clients):
        others = np.delete(logs, place, axis=0)
        # 24/n is the variance of the kurtosis of n normal values, and 9 the square of their kurtosis
        spread = np.sqrt(others.var(axis=0, ddof=1) * (1 + 1 / len(others)) + 24 / 9 / cohort.client_rows[place])
        tail = student.sf((logs[place] - others.mean(axis=0)) / spread, clients - 2)
        for where in np.flatnonzero(tail < limit):
            there, elsewhere = float(np.exp(logs[place, where])), float(np.exp(others[:, where].max()))
            found.append(LongTails(client, names[where], there, elsewhere))
    return tuple(found)


def _numbers(cohort: Cohort) -> list[str]:
    return [variable.name for variable in cohort.plan.variables if isinstance(variable, Continuous)]


def _describe_columns(cohort: Cohort, names: list[str]) -> tuple[Array, Array]:
    """Return mean and log standard deviation of each column, and Fisher's z of each two, client by client."""
    places = [cohort.plan.layout.spans[name].start for name in names]
    marginals, dependences = [], []
    for summary in cohort.summaries:
        means, scatter = summary.means_and_scatter()
        within = scatter[np.ix_(places, places)] / summary.rows
        deviations = np.sqrt(np.maximum(within.diagonal(), np.finfo(float).tiny))
        correlations = np.clip(within / np.outer(deviations, deviations), -0.999, 0.999)
        np.fill_diagonal(correlations, 0.0)
        flat = cohort.plan.clip * deviations < _MIN_DEVIATION_OF_PAIRS
        correlations[flat] = correlations[:, flat] = 0.0
        sizes = np.log(np.maximum(cohort.plan.clip * deviations, _MIN_DEVIATION_OF_PAIRS))
        marginals.append(np.column_stack([cohort.plan.clip * means[places], sizes]))
        dependences.append(np.arctanh(correlations))
    return np.array(marginals), np.array(dependences)


def _swap_ratios(marginals: Array, dependences: Array, place: int, rows: int) -> Array:
    """Return the logarithm of the likelihood ratio of every swap of two columns at one client."""
    alone = _fit_to_others(marginals, place, rows).sum(axis=2)
    pairs = _fit_to_others(dependences, place, rows)
    count = len(alone)
    every = np.arange(count)
    # of a column as if it were another, correlations with these two are left out: they change places themselves
    swapped = pairs.sum(axis=2) - pairs[every[:, None], every, every[:, None]] - pairs[every[:, None], every, every]
    own = pairs[every, every]
    kept = own.sum(axis=1, keepdims=True) - own.diagonal()[:, None] - own
    as_swapped, as_sent = swapped + alone, kept + alone.diagonal()[:, None]
    return np.asarray(as_swapped + as_swapped.T - as_sent - as_sent.T)


def _fit_to_others(values: Array, place: int, rows: int) -> Array:
    """Return the log-likelihood of each entry of column i if it were column j: the t distribution of the others' j."""
    others = np.delete(values, place, axis=0)
    freedom = max(len(values) - 2, 1)
    centre = others.mean(axis=0)
    spread = np.sqrt(others.var(axis=0, ddof=1) * (1 + 1 / len(others)) + 1 / rows + _SMALLEST_SPREAD**2)
    distance = (values[place][:, None] - centre) / spread
    return np.asarray(-(freedom + 1) / 2 * np.log1p(distance**2 / freedom) - np.log(spread))


def _kurtosis(place: int, cohort: Cohort, name: str) -> float | None:
    """Return the kurtosis of a variable at a client, at least 1, from moments of its value and its square.

    None where the variable varies too little there for the grid.
    """
    moments = cohort.summaries[place].moments
    linear = cohort.plan.layout.spans[name].start
    rows = float(moments[0, 0])
    m1, m2 = moments[0, linear] / rows, moments[0, linear + 1] / rows
    m3, m4 = moments[linear, linear + 1] / rows, moments[linear + 1, linear + 1] / rows
    variance = m2 - m1**2
    if variance * cohort.plan.clip**2 < _MIN_DEVIATION**2:
        return None
    return max(float((m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / variance**2), 1.0)
