"""Degenerate variables, found from the summaries alone: copies, exact functions, few values, constants at most clients.

A variable is an exact function of others if their features leave no more of its variance than rounding to the grid
does. A feature is rounded by at most half a step, so the largest share that rounding can leave is known for every
regression. A share below `MIN_NOISE_SHARE` counts as none in any case, since marginal likelihoods cannot see it either.

Variables that are constant at every client are left out here: with few clients, any two of them determine each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.evidence.gaussian import MIN_NOISE_SHARE
from fedcdh.inference.evidence.residual_record import ResidualRecord, add_clients
from fedcdh.inference.evidence.residual_score import MAX_TIED_SHARE
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.residuals import TIES
from fedcdh.summaries.summary import MAX_CONSTANT_VARIANCE
from fedcdh.summaries.variables import Continuous

MAX_ROUNDING_SHARE = 1e-5
"""Share of a variable's variance above which it is never an exact function: a correlation of 0.999 leaves 2e-3. Where
the bulk of the values spreads less than outliers do, the share is one of the spread of the bulk."""
MIN_ROWS_PER_COLUMN = 2
"""Rows for each column of a regression: with fewer, anything may be explained exactly."""
MAX_SCREENED_COLUMNS = 1000
"""Columns up to which functions of several variables are looked for: their matrix is inverted."""
MAX_TAIL_SPREADS = 1e4
"""Spreads at which values may be clipped for a count of values: further out, features round to zero."""
MIN_LINK_STRENGTH = 9.0
"""Squared partial correlation times rows from which two columns count as linked: three standard errors."""
MAX_COMPARED = 20
"""Variables of a set, the last ones, among which the redundant one is chosen."""
_JITTER = 1e-9  # added to a diagonal of ones: exact dependences make matrices singular
_MAX_SCREENED_SHARE = 1e-4  # unexplained variance up to which a closer look is taken
_MIN_CONTRIBUTION = 1e-6  # squared coefficient below which a variable contributes nothing
_MIN_COMPUTED_SHARE = 1e-9  # share of a variance that arithmetic and jitter may leave


@dataclass(frozen=True)
class CopyGroup:
    """Variables that determine each other one to one.

    Attributes
    ----------
    representative : str
        The first of them in the order of the plan.
    copies : tuple of str
        The others.

    Examples
    --------
    >>> CopyGroup("height_cm", ("height_in",)).copies
    ('height_in',)
    """

    representative: str
    copies: tuple[str, ...]


@dataclass(frozen=True)
class DeterministicSet:
    """A smallest set of variables in which one follows exactly from the others.

    Attributes
    ----------
    variables : tuple of str
        The variables, in the order of the plan.
    computable : tuple of str
        Those that follow exactly from the others. If these are several, sums cannot say which one was computed.

    Examples
    --------
    >>> DeterministicSet(("city", "country"), ("country",)).computable
    ('country',)
    """

    variables: tuple[str, ...]
    computable: tuple[str, ...]


@dataclass(frozen=True)
class FewValued:
    """A number of which many rows share one value.

    Attributes
    ----------
    name : str
        The variable.
    values : int, optional
        The number of its values; None if there are more than the summaries can count.
    tied_share : float, optional
        The mean share of a client's most frequent value; None if nobody was asked.

    Examples
    --------
    >>> FewValued("visits", values=3).tied_share is None
    True
    """

    name: str
    values: int | None = None
    tied_share: float | None = None


@dataclass(frozen=True)
class MostlyConstant:
    """A variable that is constant at most clients.

    Attributes
    ----------
    name : str
        The variable.
    constant_at : tuple of str
        The clients at which it is constant.
    varies_at : tuple of str
        The other clients.

    Examples
    --------
    >>> MostlyConstant("smoker", ("north", "south"), ("city",)).varies_at
    ('city',)
    """

    name: str
    constant_at: tuple[str, ...]
    varies_at: tuple[str, ...]


def find_copies(known: Cohort | Aggregate) -> tuple[CopyGroup, ...]:
    """Find the variables that determine each other one to one: other units, or other codes.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.

    Returns
    -------
    tuple of CopyGroup
        The groups, in the order of the plan; none if the summaries have noise.

    Examples
    --------
    >>> import fedcdh
    >>> height = [160.0 + i * i % 37 for i in range(60)]
    >>> table = {"cm": height, "inches": [x / 2.54 for x in height], "weight": [60.0 + i * i % 23 for i in range(60)]}
    >>> plan = fedcdh.StudyPlan.from_tables({"north": table})
    >>> find_copies(fedcdh.add_up([fedcdh.summarize(table, plan, "north")], plan))
    (CopyGroup(representative='cm', copies=('inches',)),)
    """
    return () if known.total.noise else _ExactFits.of(known).copies


def find_functions(known: Cohort | Aggregate) -> tuple[DeterministicSet, ...]:
    """Find the smallest sets of variables in which one follows exactly from the others.

    Functions are linear, or sums of functions of single variables as far as features span them. Copies are left out:
    only the first variable of a `CopyGroup` is looked at. A label may follow from one other variable, not from several:
    there, it is usually chance that makes sums exact, such as two rare levels that never meet.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.

    Returns
    -------
    tuple of DeterministicSet
        The sets; none if the summaries have noise, or too few rows.

    Examples
    --------
    >>> import fedcdh
    >>> a, b = [float(i * i % 37) for i in range(99)], [float(i * i % 23) for i in range(99)]
    >>> table = {"a": a, "b": b, "total": [x + y for x, y in zip(a, b)]}
    >>> plan = fedcdh.StudyPlan.from_tables({"north": table})
    >>> find_functions(fedcdh.add_up([fedcdh.summarize(table, plan, "north")], plan))[0].variables
    ('a', 'b', 'total')
    """
    return () if known.total.noise else _ExactFits.of(known).functions


def find_degenerate(known: Cohort | Aggregate) -> tuple[tuple[CopyGroup, ...], tuple[DeterministicSet, ...]]:
    """Return both `find_copies` and `find_functions`, with one basis.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.

    Returns
    -------
    copies : tuple of CopyGroup
        The copies.
    functions : tuple of DeterministicSet
        The sets in which one variable follows exactly from the others.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> find_degenerate(fedcdh.discover(study.columns("site"), domain="site").cohort)
    ((), ())
    """
    if known.total.noise:
        return (), ()
    fits = _ExactFits.of(known)
    return fits.copies, fits.functions


def choose_redundant(
    known: Cohort | Aggregate, functions: Sequence[DeterministicSet], keep: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Choose one variable of each set that adds nothing to the others, with these others.

    Any of them would do as far as exact relations go. The one is chosen without which the fewest other pairs are
    partially correlated: a total beside its parts has their links as well as its own. Of equals, it is the last one.
    Where only one variable follows from the others, such as a country from the city, all stay: the others may act
    through it.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.
    functions : sequence of DeterministicSet
        Sets of variables that determine each other.
    keep : collection of str, default ()
        Variables that have to stay.

    Returns
    -------
    dict from str to tuple of str
        The variables that can be left out, and those from which each of them follows.

    Examples
    --------
    >>> import fedcdh
    >>> a, b = [float(i * i % 37) for i in range(99)], [float(i * i % 23) for i in range(99)]
    >>> table = {"total": [x + y for x, y in zip(a, b)], "a": a, "b": b}
    >>> plan = fedcdh.StudyPlan.from_tables({"north": table})
    >>> cohort = fedcdh.add_up([fedcdh.summarize(table, plan, "north")], plan)
    >>> choose_redundant(cohort, find_functions(cohort))
    {'total': ('a', 'b')}
    """
    chosen: dict[str, tuple[str, ...]] = {}
    fits = _ExactFits.of(known) if functions else None
    for one in functions:
        free = [name for name in one.computable if name not in keep and name not in chosen]
        if fits is not None and free and len(one.computable) > 1:
            least = min(reversed(free[-MAX_COMPARED:]), key=lambda name: fits.count_links([*chosen, name]))
            chosen[least] = tuple(name for name in one.variables if name != least)
    return chosen


def find_few_valued(known: Cohort | Aggregate, record: ResidualRecord | None = None) -> tuple[FewValued, ...]:
    """Find the numbers of which many rows share one value: few values, counts, many zeros.

    A number with k values has k linearly independent features at most, so the rank of the moments counts up to six of
    them, exactly. More values are found from the answers about ties.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.
    record : ResidualRecord, optional
        What the clients answered about residuals and ties.

    Returns
    -------
    tuple of FewValued
        The numbers, in the order of the plan; none if the summaries have noise.

    Examples
    --------
    >>> import fedcdh
    >>> table = {"visits": [0.0, 1.0, 3.0] * 20, "weight": [60.0 + i * i % 23 for i in range(60)]}
    >>> plan = fedcdh.StudyPlan.from_tables({"north": table})
    >>> find_few_valued(fedcdh.add_up([fedcdh.summarize(table, plan, "north")], plan))
    (FewValued(name='visits', values=3, tied_share=None),)
    """
    if known.total.noise:
        return ()
    shares = {} if record is None else _tied_shares(record)
    found = (
        FewValued(variable.name, _count_values(known, variable), shares.get(variable.name))
        for variable in known.plan.variables
        if isinstance(variable, Continuous)
    )
    constant = known.total.constant_variables(known.plan)
    tied = (one for one in found if one.values is not None or (one.tied_share or 0.0) > MAX_TIED_SHARE)
    return tuple(one for one in tied if one.name not in constant)


def find_mostly_constant(known: Cohort | Aggregate) -> tuple[MostlyConstant, ...]:
    """Find the variables that are constant at more than half of the clients.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients. A sum does not say at which clients a variable is constant.

    Returns
    -------
    tuple of MostlyConstant
        The variables, without those that are constant in the whole study.

    Examples
    --------
    >>> import fedcdh
    >>> tables = {"north": {"dose": [1.0, 1.0]}, "south": {"dose": [1.0, 1.0]}, "coast": {"dose": [1.0, 2.0]}}
    >>> plan = fedcdh.StudyPlan.from_tables(tables)
    >>> summaries = [fedcdh.summarize(table, plan, client) for client, table in tables.items()]
    >>> find_mostly_constant(fedcdh.add_up(summaries, plan))[0].varies_at
    ('coast',)
    """
    if isinstance(known, Aggregate) or known.total.noise or len(known.clients) == 1:
        return ()
    everywhere = known.total.constant_variables(known.plan)
    here = [frozenset(summary.constant_variables(known.plan)) for summary in known.summaries]
    found = []
    for name in known.plan.names:
        at = tuple(client for client, constants in zip(known.clients, here, strict=True) if name in constants)
        if name not in everywhere and 2 * len(at) > len(known.clients):
            rest = tuple(client for client in known.clients if client not in at)
            found.append(MostlyConstant(name, at, rest))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _ExactFits:
    """Regressions of one variable on others over all rows, and whether they leave more than rounding does."""

    known: Cohort | Aggregate
    basis: Basis

    @classmethod
    def of(cls, known: Cohort | Aggregate) -> _ExactFits:
        """Return the regressions of a study; single clients do not matter, so their sum is enough."""
        return cls(known, Basis.of(Aggregate.of(known) if isinstance(known, Cohort) else known))

    @cached_property
    def copies(self) -> tuple[CopyGroup, ...]:
        """Return the groups of variables that determine each other."""
        taken: set[str] = set()
        groups = []
        for first in self.names:
            if first not in taken:
                later = [name for name in self._candidates(first) if name not in taken]
                same = tuple(name for name in later if self._determine_each_other(first, name))
                groups += [CopyGroup(first, same)] if same else []
                taken.update(same)
        return tuple(groups)

    @cached_property
    def functions(self) -> tuple[DeterministicSet, ...]:
        """Return the smallest dependent sets among variables that are no copies, linear ones first."""
        copies = {name for group in self.copies for name in group.copies}
        names = [name for name in self.names if name not in copies]
        sets: list[frozenset[str]] = []
        for columns in (self.basis.targets, self.basis.spans):
            for name in self._screen(names, columns):
                parents = [] if any(name in one for one in sets) else self._smallest_set(name, names, columns)
                if parents and (len(parents) == 1 or name not in self.basis.levels):
                    sets.append(frozenset((name, *parents)))
        smallest = [one for one in sets if not any(other < one for other in sets)]
        return tuple(self._to_deterministic_set(one) for one in smallest)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the variables that vary within clients."""
        total = self.known.total
        weights = np.array(self.known.client_rows, dtype=np.float64) / total.rows
        between = weights @ (self.known.means - total.means) ** 2
        squares = total.moments.diagonal() / total.moments[0, 0]
        varying = squares - total.means**2 - between > MAX_CONSTANT_VARIANCE
        return tuple(name for name, span in self.known.plan.layout.spans.items() if varying[span].any())

    def count_links(self, without: Collection[str]) -> int:
        """Return how many pairs of columns are partially correlated within clients, without some variables."""
        copies = {name for group in self.copies for name in group.copies}
        names = [name for name in self.names if name not in copies and name not in without]
        chosen, _ = self._gather(names, self.basis.targets)
        within = self.basis.within[np.ix_(chosen, chosen)]
        precision = np.linalg.inv(within / self.basis.total_rows + _JITTER * np.eye(len(chosen)))
        scale = np.sqrt(precision.diagonal())
        strength = self.basis.total_rows * (precision / np.multiply.outer(scale, scale)) ** 2
        return int((strength > MIN_LINK_STRENGTH).sum())

    def _candidates(self, first: str) -> list[str]:
        """Return the later variables that may be functions of this one."""
        later = self.names[self.names.index(first) + 1 :]
        if not later or not self._has_rows_for(self.basis.spans[first]):
            return []
        columns, starts = self._gather(later, self.basis.targets)
        left = 1 - (self._products(self.basis.spans[first], columns) ** 2).sum(axis=0)
        worst = np.maximum.reduceat(left, starts)
        return [name for name, share in zip(later, worst, strict=True) if share < _MAX_SCREENED_SHARE]

    def _determine_each_other(self, one: str, other: str) -> bool:
        spans = self.basis.spans
        enough = self._has_rows_for(spans[one]) and self._has_rows_for(spans[other])
        return enough and self._is_exact(one, [other], spans) and self._is_exact(other, [one], spans)

    def _screen(self, names: Sequence[str], columns: Mapping[str, Indices]) -> list[str]:
        """Return the variables of which the columns of all others leave hardly anything."""
        chosen, starts = self._gather(names, columns)
        if len(names) < 2 or len(chosen) > MAX_SCREENED_COLUMNS or not self._has_rows_for(chosen):
            return []
        inverse = np.linalg.inv(self._regularized(chosen))
        found = []
        for name, start in zip(names, starts, strict=True):
            own = slice(start, start + len(columns[name]))
            left = np.linalg.inv(inverse[own, own]).diagonal()[: len(self.basis.targets[name])]
            found += [name] if left.max() < _MAX_SCREENED_SHARE else []
        return found

    def _smallest_set(self, name: str, names: Sequence[str], columns: Mapping[str, Indices]) -> list[str]:
        """Return variables of which this one is an exact function, none of them dispensable; none if it is not."""
        kept = [other for other in names if other != name]
        if not self._is_exact(name, kept, columns):
            return []
        contributing = self._find_contributors(name, kept, columns)
        kept = contributing if self._is_exact(name, contributing, columns) else kept
        for other in reversed(kept):
            rest = [one for one in kept if one != other]
            kept = rest if self._is_exact(name, rest, columns) else kept
        return kept

    def _find_contributors(self, name: str, parents: Sequence[str], columns: Mapping[str, Indices]) -> list[str]:
        chosen, starts = self._gather(parents, columns)
        size = np.add.reduceat((self._weights(name, chosen) ** 2).sum(axis=1), starts)
        return [parent for parent, one in zip(parents, size, strict=True) if one > _MIN_CONTRIBUTION]

    def _to_deterministic_set(self, members: frozenset[str]) -> DeterministicSet:
        ordered = tuple(name for name in self.names if name in members)
        computable = tuple(
            name for name in ordered if self._is_exact(name, [one for one in ordered if one != name], self.basis.spans)
        )
        return DeterministicSet(ordered, computable)

    def _is_exact(self, name: str, parents: Sequence[str], columns: Mapping[str, Indices]) -> bool:
        """Return whether rounding explains all that these parents leave of a variable."""
        if not parents:
            return False
        chosen, targets = self._gather(parents, columns)[0], self.basis.targets[name]
        weights, cross = self._weights(name, chosen), self._products(chosen, targets)
        inner = self._products(chosen, chosen)
        left = 1 - 2 * (weights * cross).sum(axis=0) + (weights * (inner @ weights)).sum(axis=0)
        return bool((left <= self._max_shares(name, chosen, weights)).all())

    def _weights(self, name: str, chosen: Indices) -> Array:
        cross = self._products(chosen, self.basis.targets[name])
        return np.asarray(np.linalg.solve(self._regularized(chosen), cross))

    def _max_shares(self, name: str, chosen: Indices, weights: Array) -> Array:
        """Return the largest share of each target's variance that rounding can leave."""
        targets = self.basis.targets[name]
        if name in self.basis.levels:  # indicators are not rounded, and one deviating row leaves more than 1/rows
            share = max(_MIN_COMPUTED_SHARE, min(MIN_NOISE_SHARE, 0.5 / self.basis.total_rows))
            return np.full(len(targets), share)
        sizes = self._rounding_sizes[targets] + np.abs(weights).T @ self._rounding_sizes[chosen]
        return np.minimum(np.maximum(sizes**2, MIN_NOISE_SHARE), MAX_ROUNDING_SHARE * self._bulk_share(name))

    @cached_property
    def _rounding_sizes(self) -> Array:
        """Return the largest error of each column, if every feature of a number is wrong by half a step."""
        found = np.zeros(len(self.basis.total))
        for name, block in self.basis.transforms.items():
            if name not in self.basis.levels:
                found[block.columns] = np.abs(block.weights).sum(axis=1) / (2 * GRID)
        return found

    def _bulk_share(self, name: str) -> float:
        """Return the variance of the bulk of a number's values as a share of its variance, 1 at most."""
        (variable,) = (one for one in self.known.plan.variables if one.name == name)
        assert isinstance(variable, Continuous)
        deviation = variable.scale * self.known.plan.layout.unit / self.basis.transforms[name].weights[0, 0]
        return float(min(1.0, (variable.centre_and_spread[1] / deviation) ** 2))

    def _products(self, rows: Indices, columns: Indices) -> Array:
        """Return the mean products of some columns over all rows; those of one variable are the identity."""
        return np.asarray(self.basis.total[np.ix_(rows, columns)] / self.basis.total_rows)

    def _regularized(self, chosen: Indices) -> Array:
        return self._products(chosen, chosen) + _JITTER * np.eye(len(chosen))

    def _has_rows_for(self, columns: Indices) -> bool:
        return self.basis.total_rows >= MIN_ROWS_PER_COLUMN * (1 + len(columns))

    def _gather(self, names: Sequence[str], columns: Mapping[str, Indices]) -> tuple[Indices, Indices]:
        """Return the columns of these variables, and where those of each variable start."""
        sizes = [len(columns[name]) for name in names]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        return np.concatenate([np.zeros(0, dtype=np.intp), *(columns[name] for name in names)]), starts


def _count_values(known: Cohort | Aggregate, variable: Continuous) -> int | None:
    """Return the number of values of a number; None if it has as many as features, or they cannot be counted."""
    plan, spread = known.plan, variable.centre_and_spread[1]
    if plan.family.compresses_tails and plan.clip * variable.scale > MAX_TAIL_SPREADS * spread:
        return None
    span = plan.layout.spans[variable.name]
    places = [0, *range(span.start, span.stop)]
    rank = _integer_rank([[int(known.total.moments[row, column]) for column in places] for row in places])
    return rank if rank < len(places) else None


def _integer_rank(matrix: list[list[int]]) -> int:
    """Return the rank of a matrix of integers, without rounding (Bareiss 1968)."""
    rows, rank = [row for row in matrix if any(row)], 0
    for column in range(len(matrix)):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        rank += 1
        rest = [row for row in rows if row is not pivot]
        rows = [_eliminate(row, pivot, column) for row in rest]
    return rank


def _eliminate(row: list[int], pivot: list[int], column: int) -> list[int]:
    """Return a multiple of a row, less a multiple of the pivot's, with zero in this column and small numbers."""
    left = [pivot[column] * one - row[column] * other for one, other in zip(row, pivot, strict=True)]
    divisor = gcd(*left) or 1
    return [one // divisor for one in left]


def _tied_shares(record: ResidualRecord) -> dict[str, float]:
    """Return the mean share of the clients' most frequent values, of the variables that were asked about."""
    totals = {query.node: add_clients(found) for query, found in record.answers.items() if query.about == TIES}
    return {name: float(total.sums[0] / (GRID * total.rows)) for name, total in totals.items()}
