"""Group leverage: how well a summary separates a few people from all others.

The columns φ of one variable (with the constant) have the moments M = Σ φφᵀ, and the rows of k people have the matrix H
= Φ M⁻¹ Φᵀ, of which the diagonal holds their leverages (`leverage`). For weights u with |u| = 1, the holder of the
summary obtains Σ uᵢ gᵢ over these people, of any other column g, up to √((1 − λ)/λ) standard deviations of g, where λ =
uᵀHu. There is one such sum for every column of every other variable: from m sums, up to m people can be solved for.

Two choices of u are examined:

- Equal weights: λ = 1ᵀH1/k is the leverage of the group as a whole. At 1, the summary holds the sums over exactly these
  people, as it does for the people with a level. This happens if people share an extreme value, such as a code for
  missing values, or if rounding to the grid leaves two values of a column.
- Any weights: λ is the largest eigenvalue of H. It is close to 1 in many honest tables, since a smooth function grows
  towards the outermost value: but then most of its weight is on one or two people, and the others blur their values.
  Therefore its limit is closer to 1, by a factor of 10 for each further person.

`HighLeverageRows` keeps all rows that can belong to such a group; features are those after clipping and rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import Table
from fedcdh.privacy.disclosure.leverage import inverse_root
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary
from fedcdh.summaries.variables import Continuous

MAX_GROUP_LEVERAGE = 0.98
"""Largest leverage of a group as a whole, by `python -m benchmarks.attacks.extreme_group limits` and `honest`."""
MAX_WEIGHTED_PEOPLE = 4
"""Any weights are examined for groups of at most this many people."""
ALL_VARIABLES = ""
"""Key of the leverages in all columns together; no variable has an empty name."""
_MAX_SEEDS = 256  # rows around which groups are looked for
_MAX_CHOSEN = 11  # people of a group who are chosen one by one
_MAX_OPERATIONS, _MAX_NUMBERS = 1 << 31, 1 << 21  # of one search, and in memory at a time
_FACTOR_PER_PERSON = 0.1  # of 1 − λ, for each person beyond the first

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class GroupLeverage:
    """Largest leverage of groups of 2, 3, ... people.

    Parameters
    ----------
    whole : array
        Largest leverage of a group as a whole, by its number of people, beginning with 2.
    weighted : array
        Largest eigenvalue of a group, by its number of people, beginning with 2.

    Examples
    --------
    >>> GroupLeverage(np.array([0.5, 0.99]), np.array([0.5, 0.995])).people_above(GroupLimits())
    3
    """

    whole: Array
    weighted: Array

    def people_above(self, limits: GroupLimits) -> int:
        """Return the number of people in the smallest group with a leverage above its limit; 0 if there is none.

        Parameters
        ----------
        limits : GroupLimits
            The limits. Larger groups than these concern are left out.

        Returns
        -------
        int
            Number of people.
        """
        whole, weighted = self.whole[: max(limits.max_people - 1, 0)], self.weighted[: max(limits.max_people - 1, 0)]
        above = [
            *np.flatnonzero(whole > limits.of_wholes(len(whole))),
            *np.flatnonzero(weighted > limits.with_any_weights(len(weighted))),
        ]
        return int(min(above)) + 2 if above else 0


@dataclass(frozen=True)
class GroupLimits:
    """Largest leverages that groups of 2, 3, ... people may have.

    Parameters
    ----------
    max_group_leverage : float, default 0.98
        Largest leverage of a group of 3 people or more as a whole.
    max_leverage : float, default 0.99
        Largest leverage of a single row, and of 2 people.
    max_people : int, default 11
        Number of people in the largest group that is examined: one fewer than the minimum cell count.
    replicates : int, default 0
        Number of bootstrap replicates that leave with the summary.

    Examples
    --------
    >>> GroupLimits().of_wholes(2).tolist()
    [0.99, 0.98]
    >>> GroupLimits(replicates=20).of_wholes(2).round(3).tolist()
    [0.904, 0.934]
    """

    max_group_leverage: float = MAX_GROUP_LEVERAGE
    max_leverage: float = 0.99
    max_people: int = 11
    replicates: int = 0

    def of_wholes(self, number: int) -> Array:
        """Return the limits of groups as a whole: for 2 people, that of a single row.

        Pairs have a high leverage in more honest tables than larger groups do, and disclose less than a single row.
        Replicates weight the people of a group differently, and so separate them from each other. Each of k people has
        a k-th of the group's leverage, of which the replicates multiply the odds. So the odds are at most k/(B + 1)
        times those of a single row.

        Parameters
        ----------
        number : int
            How many limits to return, beginning with that of 2 people.

        Returns
        -------
        array
            Leverages.
        """
        people = np.arange(2, number + 2)
        pair = max(self.max_group_leverage, self.max_leverage)
        single = self.max_leverage * people
        odds = single / (single + (self.replicates + 1) * (1 - self.max_leverage))
        return np.minimum(np.where(people == 2, pair, self.max_group_leverage), odds)

    def with_any_weights(self, number: int) -> Array:
        """Return the limits of largest eigenvalues: 1 − (1 − h)/10, 1 − (1 − h)/100, ... for a row's limit h.

        Parameters
        ----------
        number : int
            How many limits to return, beginning with that of 2 people.

        Returns
        -------
        array
            Leverages.
        """
        odds = (self.replicates + 1) * (1 - self.max_leverage)
        rest = odds / (self.max_leverage + odds)
        return np.asarray(1 - rest * _FACTOR_PER_PERSON ** np.arange(1, number + 1))


def measure_groups(
    rows: Array, summary: Summary, plan: StudyPlan, max_people: int, times: Array | None = None
) -> dict[str, GroupLeverage]:
    """Return the largest leverages of groups of rows, for each continuous variable and for all columns together.

    Parameters
    ----------
    rows : array
        Features of the rows that may belong to such a group, columns × rows, from `HighLeverageRows.rows`.
    summary : Summary
        A summary or a bootstrap replicate.
    plan : StudyPlan
        The plan that it follows.
    max_people : int
        Largest number of people in a group.
    times : array, optional
        How often each row counts, in a bootstrap replicate. Default: once.

    Returns
    -------
    dict from str to GroupLeverage
        By name of the variable, and for all columns by `ALL_VARIABLES`.

    Notes
    -----
    Looking at all groups would take too long. Groups are the rows that come first in some order: by each column of
    features, upwards and downwards, by the distance from the location, and, for each of the rows j with the highest
    leverage, by φᵢᵀ M⁻¹ φⱼ, and by what makes the leverage of the group highest, one row after the other. Every set of
    people that a column separates is the beginning of such an order.

    Examples
    --------
    >>> from fedcdh import summarize
    >>> from fedcdh.data.table import to_table
    >>> from fedcdh.summaries.encoder import Encoder
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> table = {"age": [*np.random.default_rng(0).normal(60, 15, 200), 999, 999, 999]}
    >>> rows = Encoder(plan, "north")(to_table(table))
    >>> groups = measure_groups(rows, summarize(table, plan, "north"), plan, max_people=3)
    >>> groups["age"].whole.round(3).tolist()
    [0.667, 1.0]
    """
    rows, times = _present(rows, times)
    spans = plan.layout.spans
    names = [variable.name for variable in plan.variables if isinstance(variable, Continuous)]
    found = {
        name: _measure(rows[np.r_[0, spans[name]]], _moments_of(summary, spans[name]), max_people, times)
        for name in names
    }
    if len(plan.variables) > 1:
        found[ALL_VARIABLES] = _measure(rows, summary.moments, max_people, times)
    return found


def check_groups(
    groups: Mapping[str, GroupLeverage], limits: GroupLimits, known: Collection[str] = ()
) -> Iterator[str]:
    """Find small groups of people that a summary separates from all others: one sentence for all variables.

    Parameters
    ----------
    groups : mapping from str to GroupLeverage
        From `measure_groups`.
    limits : GroupLimits
        The limits.
    known : collection of str, optional
        Variables that were found to have another fault, which need not be named again.

    Yields
    ------
    str
        One sentence, if there is such a group.
    """
    people = {name: count for name, group in groups.items() if (count := group.people_above(limits))}
    together = people.pop(ALL_VARIABLES, 0)
    named = ", ".join(f"{name!r} ({count} people)" for name, count in people.items() if name not in known)
    expected = (
        f"expected a leverage of at most {limits.max_group_leverage:g} for groups of up to {limits.max_people} "
        "people: from the sums over them, their other values could be computed"
    )
    if named:
        yield (
            f"a few people can be separated from all others by their values of {named}, {expected}; delete codes for "
            "missing values (such as 999), take logarithms, cut extreme values, or leave the variable out (or ask the "
            "coordinator why the plan rounds it so)"
        )
    elif together and not people and not known:
        yield (
            f"{together} people can be separated from all others by their values of all variables together, "
            f"{expected}; cut extreme values, or leave variables out"
        )


class ReplicateGroups:
    """Keeps the rows that may belong to a group of high leverage in a bootstrap replicate, and how often they count.

    A replicate leaves rows out, so that a group may be separated better there than in the summary. Call it with
    complete rows and how often each counts in each replicate.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    summary : Summary
        Summary of the rows.
    limits : GroupLimits
        Limits of a single message.
    """

    def __init__(self, plan: StudyPlan, summary: Summary, limits: GroupLimits) -> None:
        self._plan, self._encode = plan, Encoder(plan, summary.clients[0])
        self._max_people = limits.max_people
        # a replicate leaves out more than half of a row's neighbours too rarely to matter
        self._threshold = limits.max_group_leverage / max(limits.max_people, 1) / 2
        spans = [plan.layout.spans[v.name] for v in plan.variables if isinstance(v, Continuous)]
        self._roots = [(np.r_[0, span], inverse_root(_moments_of(summary, span))) for span in spans]
        self._rows: list[npt.NDArray[np.int32]] = []
        self._times: list[Array] = []

    def __call__(self, rows: Table, times: Array) -> None:
        """Add complete rows, and how often each counts in each replicate."""
        features = self._encode(rows)
        largest = np.zeros(rows.rows)
        for columns, root in self._roots:
            np.maximum(largest, ((root @ features[columns]) ** 2).sum(axis=0), out=largest)
        kept = largest > self._threshold
        self._rows.append(features[:, kept].astype(np.int32))
        self._times.append(np.asarray(times, dtype=np.float64)[:, kept])

    def measure(self, replicate: Summary) -> dict[str, GroupLeverage]:
        """Return the largest leverages of groups in a replicate.

        Parameters
        ----------
        replicate : Summary
            One of the replicates.

        Returns
        -------
        dict from str to GroupLeverage
            As from `measure_groups`.
        """
        if not self._rows or not self._max_people:
            return {}
        rows = np.concatenate(self._rows, axis=1).astype(np.float64)
        times = np.concatenate(self._times, axis=1)[replicate.replicate - 1]
        return measure_groups(rows, replicate, self._plan, self._max_people, times)


def _present(rows: Array, times: Array | None) -> tuple[Array, Array]:
    """Return the rows that count at least once, and how often they do."""
    if times is None:
        return rows, np.ones(rows.shape[1])
    return rows[:, times > 0], times[times > 0]


def _moments_of(summary: Summary, span: slice) -> Integers:
    columns = np.r_[0, span]
    return np.asarray(summary.moments[np.ix_(columns, columns)])


def _measure(features: Array, moments: Integers, max_people: int, times: Array) -> GroupLeverage:
    """Return the largest leverages of groups in these columns, the constant first."""
    whole, weighted = np.zeros(max(max_people - 1, 0)), np.zeros(max(min(max_people, MAX_WEIGHTED_PEOPLE) - 1, 0))
    if features.shape[1] < 2 or not len(whole):
        return GroupLeverage(whole, weighted)
    reduced = inverse_root(moments) @ features  # H = YᵀY of these rows Y
    for group in _orders(features, reduced, times, max_people):
        largest, eigenvalues = _leverages_of_beginnings(reduced, times, group)
        np.maximum(whole[: len(largest)], largest, out=whole[: len(largest)])
        np.maximum(weighted[: len(eigenvalues)], eigenvalues, out=weighted[: len(eigenvalues)])
    return GroupLeverage(np.minimum(whole, 1.0), np.minimum(weighted, 1.0))


def _leverages_of_beginnings(reduced: Array, times: Array, orders: Places) -> tuple[Array, Array]:
    """Return the largest leverage as a whole, and eigenvalue, of the first 2, 3, ... rows of any of these orders."""
    counted = times[orders]  # orders × people
    rows = reduced[:, orders]  # directions × orders × people
    sums = np.cumsum(rows * counted, axis=2)
    whole = (sums**2).sum(axis=0) / np.cumsum(counted, axis=1)
    scaled = rows[:, :, :MAX_WEIGHTED_PEOPLE] * np.sqrt(counted[:, :MAX_WEIGHTED_PEOPLE])
    products = np.einsum("doi,doj->oij", scaled, scaled)
    people = range(2, products.shape[1] + 1)
    eigenvalues = [np.linalg.eigvalsh(products[:, :k, :k])[:, -1].max() for k in people]
    return whole[:, 1:].max(axis=0), np.array(eigenvalues)


def _orders(features: Array, reduced: Array, times: Array, max_people: int) -> Iterator[Places]:
    """Yield orders of rows, orders × people: see the notes of `measure_groups`."""
    people = min(max_people, features.shape[1])
    columns = features[1:]
    distances = np.concatenate([columns, -columns, np.abs(columns[:1]), -np.abs(columns[:1])])
    yield np.argsort(distances, axis=1, kind="stable")[:, :people]
    leverage = times * (reduced**2).sum(axis=0)
    affordable = _MAX_OPERATIONS // (reduced.size * min(people, _MAX_CHOSEN))
    seeds = np.argsort(-leverage, kind="stable")[: min(_MAX_SEEDS, max(affordable, 1))]
    step = max(1, _MAX_NUMBERS // max(len(reduced) * people, reduced.shape[1]))
    for first in range(0, len(seeds), step):
        chosen = seeds[first : first + step]
        yield np.argsort(-(reduced[:, chosen].T @ reduced), axis=1, kind="stable")[:, :people]
        yield _choose_one_by_one(reduced, times, chosen, min(people, _MAX_CHOSEN))


def _choose_one_by_one(reduced: Array, times: Array, seeds: Places, people: int) -> Places:
    """Return orders that begin with the seeds, each going on with the row that makes the group's leverage highest."""
    own = times**2 * (reduced**2).sum(axis=0)
    orders = seeds[:, None]
    shared = np.zeros((len(seeds), reduced.shape[1]))  # of the sum over a group with every row
    squares, counts = np.zeros(len(seeds)), np.zeros(len(seeds))
    groups = np.arange(len(seeds))
    while True:
        last = orders[:, -1]
        squares += 2 * times[last] * shared[groups, last] + own[last]
        counts += times[last]
        if orders.shape[1] == people:
            return orders
        shared += (reduced[:, last] * times[last]).T @ reduced
        together = (squares[:, None] + 2 * times * shared + own) / (counts[:, None] + times)
        np.put_along_axis(together, orders, -1.0, axis=1)
        orders = np.concatenate([orders, together.argmax(axis=1)[:, None]], axis=1)
