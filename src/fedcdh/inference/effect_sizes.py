"""The strength of an edge: the share of variance that a cause explains, given the other causes of its effect.

Where effects take time or go both ways, no DAG over values of one time is quite right, and the best DAG has edges that
no effect has. Their strength given the parents of that DAG may be large. Given some other set of neighbours, it is
next to nothing, which `smallest_strengths` finds.

A weak edge may be a true one, or come from a model that does not quite hold. Where every client has many rows, a true
edge shows at nearly all of them, with the weights that the others find. `shows_at_clients` asks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, combinations

import numpy as np
from scipy import stats

from fedcdh._runtime.array_types import Array
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN

MAX_SET_SIZE = 4
"""Largest number of neighbours given which the smallest strength of an edge is looked for."""
SHOWN_SHARE = 0.25
"""An edge that shows at nearly all clients may have this share of the strength that others need."""
SHOWN_PROBABILITY = 0.9
"""Probability with which a further client would show such an edge. With 0.9, and ten clients of 1600 or 6400 rows, five
of seven true edges between 0.5 % and 2 % pass, and one of three false ones; of six false ones on brain scans and on
airfoil, none does (general and linear model, seeds 300 to 315; a trial; no command prints it)."""
_RIDGE = 1e-6  # of the rows: keeps collinear columns solvable
_MIN_VARIANCE = 1e-9  # of the variance of all rows: less is left by rounding


def measure_strengths(dag: PartialGraph, basis: Basis, arrows: Iterable[Arrow] | None = None) -> dict[Arrow, float]:
    """Return the share of the variance left by the other causes that each arrow of a DAG explains.

    Effects may be nonlinear, as far as the summaries show. Where the mechanism of the effect differs between clients,
    each client has effects of its own, and only variation within clients counts. The share is corrected for the number
    of columns, as an adjusted R² is.

    Parameters
    ----------
    dag : PartialGraph
        A DAG on the variables, or with the domain.
    basis : Basis
        The moments in orthonormal coordinates.
    arrows : iterable of (str, str), optional
        The arrows to measure, which need not be in the DAG. Default all arrows between its variables.

    Returns
    -------
    dict from (str, str) to float
        Shares between 0 and 1.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> strengths = measure_strengths(result.to_dag(), Basis.of(result.cohort))
    >>> 0 < strengths["smoker", "cholesterol"] < 1
    True
    """
    wanted = sorted(dag.arrows if arrows is None else arrows)
    return {(tail, head): _measure(dag, basis, tail, head) for tail, head in wanted if tail != DOMAIN}


def smallest_strengths(dag: PartialGraph, basis: Basis) -> dict[Arrow, float]:
    """Return the smallest share of variance that one end of an edge explains of the other, given any set of neighbours.

    Parameters
    ----------
    dag : PartialGraph
        A DAG on the variables, or with the domain.
    basis : Basis
        The moments in orthonormal coordinates.

    Returns
    -------
    dict from (str, str) to float
        Shares between 0 and 1, for every arrow between variables.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> dag, basis = result.to_dag(), Basis.of(result.cohort)
    >>> whole, smallest = measure_strengths(dag, basis), smallest_strengths(dag, basis)
    >>> all(smallest[arrow] <= whole[arrow] for arrow in whole)
    True
    """
    found = {}
    for tail, head in sorted(arrow for arrow in dag.arrows if arrow[0] != DOMAIN):
        near = sorted(
            name
            for name in basis.targets
            if name not in (tail, head) and (dag.is_adjacent(name, tail) or dag.is_adjacent(name, head))
        )
        sizes = range(min(len(near), MAX_SET_SIZE) + 1)
        sets = [dag.parents(head) - {tail, DOMAIN}, *chain.from_iterable(combinations(near, size) for size in sizes)]
        found[tail, head] = min(
            _measure_given(dag, basis, one, other, sorted(given))
            for given in sets
            for one, other in ((tail, head), (head, tail))
        )
    return found


def find_weak_arrows(
    dag: PartialGraph,
    min_strength: float,
    measure: Callable[[PartialGraph], Mapping[Arrow, float]],
    kept: Collection[Arrow] = (),
    shown: Callable[[PartialGraph, Arrow], bool] = lambda dag, arrow: False,
) -> dict[Arrow, float]:
    """Return the arrows that explain too little, found by backward elimination.

    Two causes that say the same explain nothing given each other. So of each effect only the weakest cause goes at a
    time, and the others are measured again without it.

    Parameters
    ----------
    dag : PartialGraph
        A DAG on the variables, or with the domain.
    min_strength : float
        Smallest strength of an arrow that stays.
    measure : callable
        Returns the strengths of the arrows of a DAG.
    kept : collection of (str, str), default ()
        Arrows that stay however weak they are.
    shown : callable, optional
        Returns whether an arrow of a DAG shows at nearly all clients. It then stays down to `SHOWN_SHARE` of the
        smallest strength. Default: none does.

    Returns
    -------
    dict from (str, str) to float
        The arrows to leave out, with their strengths when they were left out.

    Examples
    --------
    >>> copies = PartialGraph("xyz", frozenset({("x", "z"), ("y", "z")}))
    >>> def measure(dag):
    ...     return {(tail, head): 0.9 if len(dag.arrows) == 1 else 0.01 for tail, head in dag.arrows}
    >>> find_weak_arrows(copies, 0.02, measure)
    {('x', 'z'): 0.01}
    """
    found: dict[Arrow, float] = {}
    while True:
        weakest: dict[str, tuple[float, Arrow]] = {}
        for arrow, strength in measure(dag).items():
            if strength >= min_strength or arrow in kept:
                continue
            if strength < SHOWN_SHARE * min_strength or not shown(dag, arrow):
                weakest[arrow[1]] = min((strength, arrow), weakest.get(arrow[1], (strength, arrow)))
        if not weakest:
            return found
        found |= {arrow: strength for strength, arrow in weakest.values()}
        dag = dag.remove_edges(*(frozenset(arrow) for _, arrow in weakest.values()))


def shows_at_clients(dag: PartialGraph, basis: Basis, arrow: Arrow) -> bool:
    """Return whether a further client would probably show an arrow, as the clients of the study do.

    At each client, the regressions of all others predict the effect, with and without the cause. What the cause gains
    is compared over clients: the lower end of a prediction interval for one more client has to be above 0.

    Parameters
    ----------
    dag : PartialGraph
        A DAG on the variables, or with the domain.
    basis : Basis
        The moments in orthonormal coordinates.
    arrow : (str, str)
        An arrow of the DAG.

    Returns
    -------
    bool
        False for a single client, and where the scatter of single clients is not known.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.simulate(rows=1000, seed=1).columns("site"), domain="site")
    >>> dag, basis = result.to_dag(), Basis.of(result.cohort)
    >>> any(shows_at_clients(dag, basis, arrow) for arrow in dag.arrows)
    True
    """
    clients = len(basis.rows)
    if clients < 2 or not basis.has_client_scatter:
        return False
    tail, head = arrow
    targets = basis.targets[head].tolist()
    before = [column for name in sorted(dag.parents(head) - {DOMAIN, tail}) for column in basis.predictors[name]]
    more = [*before, *basis.predictors[tail]]
    without, with_tail = (_predicted_squares(basis, targets, columns) / basis.rows for columns in (before, more))
    gains = without - with_tail
    quantile = stats.t.ppf(SHOWN_PROBABILITY, clients - 1) * np.sqrt(1 + 1 / clients)
    return bool(gains.mean() > quantile * gains.std(ddof=1))


def _predicted_squares(basis: Basis, targets: list[int], columns: list[int]) -> Array:
    """Return the sum of squares that regressions on the rows of all other clients leave at each client."""
    found = np.zeros(len(basis.rows))
    used = [*columns, *targets]
    pooled, places = basis.within[np.ix_(used, used)], slice(len(columns), None)
    for client, scatter in enumerate(basis.scatter):
        here = scatter[np.ix_(used, used)]
        others = pooled - here
        inner = others[: len(columns), : len(columns)] + _RIDGE * basis.total_rows * np.eye(len(columns))
        weights = np.linalg.solve(inner, others[: len(columns), places])
        residual = np.vstack([-weights, np.eye(len(targets))])
        found[client] = (residual * (here @ residual)).sum()
    return found


def _measure(dag: PartialGraph, basis: Basis, tail: str, head: str) -> float:
    return _measure_given(dag, basis, tail, head, sorted(dag.parents(head) - {DOMAIN, tail}))


def _measure_given(dag: PartialGraph, basis: Basis, tail: str, head: str, others: list[str]) -> float:
    """Return the share of the variance of one variable left by others that another one explains."""
    differs = DOMAIN in dag.nodes and head in dag.children(DOMAIN)
    before = [column for name in others for column in basis.predictors[name]]
    more = [*before, *basis.predictors[tail]]
    scatters, clients = (basis.scatter, len(basis.rows)) if differs else (basis.total[None], 1)
    rows = basis.rows if differs and basis.has_client_scatter else np.array([basis.total_rows])
    targets = basis.targets[head].tolist()
    without, with_tail = (_residual(scatters, targets, columns, rows) for columns in (before, more))
    if without <= _MIN_VARIANCE * basis.total_rows:
        return 0.0  # there is nothing to explain
    free = [basis.total_rows - clients - len(rows) * len(columns) for columns in (before, more)]
    return float(np.clip(1 - with_tail / without * max(free[0], 1.0) / max(free[1], 1.0), 0.0, 1.0))


def _residual(scatters: Array, targets: list[int], columns: list[int], rows: Array) -> float:
    """Return the sum of squares of the targets that regressions on these columns leave, one for each scatter matrix."""
    left = scatters[:, targets, targets].sum(axis=1)
    if columns:
        inner = scatters[:, np.array(columns)[:, None], columns] + _RIDGE * rows[:, None, None] * np.eye(len(columns))
        cross = scatters[:, np.array(columns)[:, None], targets]
        left = left - (cross * np.linalg.solve(inner, cross)).sum(axis=(1, 2))
    return float(np.maximum(left, 0.0).sum())
