"""Tables of counts from the counts of their pairs of axes: maximum entropy, by accelerated proportional fitting.

Iterative proportional fitting multiplies a table by one factor for each pair of axes, in turn, so that the pair gets
its counts. A sweep over all pairs is a fixed-point step for the logs of these factors. Plain sweeps are slow where
variables nearly determine each other, so steps are extrapolated from the last few (Anderson acceleration). The
likelihood of the counts never falls in a plain sweep: an extrapolation after which it is lower is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array

Flags: TypeAlias = npt.NDArray[np.bool_]
_PairView: TypeAlias = tuple[tuple[int, ...], Array, Array]  # axes that a pair lacks, counts wanted, and wanted/found

MAX_SWEEPS = 30
FIT_TOLERANCE = 3e-6
"""Completion ends when a sweep finds no pair off by more than this share of the rows, or after `MAX_SWEEPS`."""
_PERIOD = 3  # sweeps from one extrapolation to the next, which costs as much as a sweep or two
_MEMORY = 5  # steps from which the next one is extrapolated
_MAX_JUMP = 5.0  # of the log of a factor, beyond a plain step: extrapolations from few steps can be wild
_RIDGE = 1e-10  # of the squares of the remembered steps, which may be collinear
_LIKELIHOOD_TOLERANCE = 1e-12  # in nats per row: smaller losses are rounding
_TINY_COUNT = 1e-100  # avoids a division by zero
_MAX_KEPT_SHARE, _SMALL_SIZE = 0.8, 4_000  # tables that fit are left out of the others' sweeps if that saves time


def complete_tables(pairs: Mapping[tuple[int, int], Array]) -> Array:
    """Return the tables (*axes, tables) of maximum entropy with these counts (levels, levels, tables) of pairs of axes.

    A table stops when it fits. It has the same bits whatever other tables there are, and with levels that no row has.
    Fitting reaches a zero that the pairs imply only in the limit, so such cells are emptied first.
    """
    axes = range(1 + max(axis for pair in pairs for axis in pair))
    others = {pair: tuple(axis for axis in axes if axis not in pair) for pair in pairs}
    wide = {others[pair]: np.expand_dims(counts, others[pair]) for pair, counts in pairs.items()}
    if next(iter(pairs.values())).shape[-1] == 1:  # numpy would add up in another order
        return _fit_tables({axes: np.repeat(counts, 2, axis=-1) for axes, counts in wide.items()})[..., :1]
    return _fit_tables(wide)


def _fit_tables(wide: Mapping[tuple[int, ...], Array]) -> Array:
    """Return completed tables, two at least, given the counts of pairs by their other axes, which have length 1."""
    fit = _Fit(wide)
    result, active = np.empty_like(fit.tables), np.arange(fit.tables.shape[-1])
    waiting = np.ones(len(active), dtype=bool)
    for left in reversed(range(MAX_SWEEPS)):
        done = waiting & (fit.sweep() | (left == 0))
        if done.any():
            result[..., active[done]] = fit.tables[..., done]
            waiting &= ~done
            if not waiting.any():
                break
            if 1 < waiting.sum() <= _MAX_KEPT_SHARE * len(waiting) and fit.tables.size > _SMALL_SIZE:
                fit.keep(waiting)
                active, waiting = active[waiting], waiting[waiting]
        if left % _PERIOD == 0:  # the last sweeps are plain ones
            fit.extrapolate()
    return result


class _Fit:
    """Tables that are being fitted: zeros and ones, times a factor for every pair of axes. Factors are logs."""

    def __init__(self, wide: Mapping[tuple[int, ...], Array]) -> None:
        self._start = np.where(_cell_upper_bounds(wide) > 0.5, 1.0, 0.0)
        self.tables = self._start.copy()
        self._axes, self._shapes = tuple(wide), [(*counts.shape[:-1], -1) for counts in wide.values()]
        self._parts = [slice(*cut) for cut in pairwise(accumulate((-prod(shape) for shape in self._shapes), initial=0))]
        counts, room = self._flat(wide.values()), self._flat(self._start.sum(axis=axes) for axes in self._axes)
        # The factor of a pair of levels without cells stays one: found and wanted are both tiny.
        self._counts, self._wanted = np.where(room > 0, counts, 0.0), np.where(room > 0, counts, _TINY_COUNT)
        self._rows = counts[self._parts[0]].sum(axis=0)
        self._factors, self._step, self._reached, self._good = np.zeros((4, *counts.shape))
        self._best = np.full(len(self._rows), -np.inf)
        self._changes, self._moves = np.zeros((2, _MEMORY, *counts.shape))  # of steps, and of where they led
        self._sweeps = 0
        self._places = _group_pairs(self._axes, self._start.ndim - 1)
        self._ratios = np.empty_like(counts)
        self._look_at_pairs()

    def _flat(self, parts: Iterable[Array]) -> Array:
        return np.concatenate([part.reshape(-1, self._start.shape[-1]) for part in parts])

    def _look_at_pairs(self) -> None:
        """Make the views of what each pair has and is to have: to make them in every sweep would take longer."""
        views = [
            (axes, self._wanted[part].reshape(shape), self._ratios[part].reshape(shape))
            for axes, shape, part in zip(self._axes, self._shapes, self._parts, strict=True)
        ]
        self._groups = [(axes, [views[place] for place in places]) for axes, places in self._places]

    def sweep(self) -> Flags:
        """Fit the pairs in turn, and return which tables fitted already, or nearly.

        Pairs of three axes are fitted in the sums over all others, and the tables are multiplied once for all of them.
        """
        for others, views in self._groups:
            sums = np.add.reduce(self.tables, axis=others, keepdims=True) if len(views) > 1 else self.tables
            self.tables *= _fit_pairs(sums, views)
        self._take_step(np.log(self._ratios))
        return np.asarray((self._counts * np.abs(self._step)).max(axis=0) <= FIT_TOLERANCE * self._rows)

    def _take_step(self, step: Array) -> None:
        """Go on to where the step leads, and remember how it and this place differ from the last."""
        self._factors = self._factors + step
        if self._sweeps:
            place = self._sweeps % _MEMORY
            np.subtract(step, self._step, out=self._changes[place])
            np.subtract(self._factors, self._reached, out=self._moves[place])
        self._step, self._reached, self._sweeps = step, self._factors, self._sweeps + 1

    def keep(self, kept: Flags) -> None:
        """Forget the tables that are not kept."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, np.compress(kept, value, axis=-1))
        self._look_at_pairs()

    def extrapolate(self) -> None:
        """Go on from where the last steps lead, or from the last good place if the likelihood has fallen."""
        likelihood = (self._counts * self._factors).sum(axis=0)
        worse = ~(likelihood >= self._best - _LIKELIHOOD_TOLERANCE * self._rows)
        self._factors = self._factors - self._correction()
        if worse.any():
            self._factors[:, worse] = self._good[:, worse]
            self._changes[..., worse] = self._moves[..., worse] = 0.0
        self._best, self._good = np.where(worse, self._best, likelihood), np.where(worse, self._good, self._reached)
        self._rebuild()

    def _rebuild(self) -> None:
        self.tables, factors = self._start.copy(), np.exp(self._factors)
        several = [factors[part].reshape(shape) for shape, part in zip(self._shapes, self._parts, strict=True)]
        for _, places in self._places:
            self.tables *= reduce(np.multiply, (several[place] for place in places))

    def _correction(self) -> Array:
        """Return what the least-squares combination of the remembered steps takes from a plain step."""
        square = np.einsum("mpt,npt->tmn", self._changes, self._changes)
        diagonal = np.einsum("tmm->tm", square)
        diagonal += _RIDGE * diagonal.sum(axis=1, keepdims=True) + _TINY_COUNT
        right = np.einsum("mpt,pt->tm", self._changes, self._step)
        weights = np.linalg.solve(square, right[..., None])[..., 0]
        return np.asarray(np.einsum("tm,mpt->pt", weights, self._moves).clip(-_MAX_JUMP, _MAX_JUMP))


def _fit_pairs(tables: Array, views: Sequence[_PairView]) -> Array:
    """Fit some pairs in turn, and return the product of their factors; the tables stay as they are."""
    for place, (axes, wanted, ratio) in enumerate(views):
        if place:
            tables = tables * views[place - 1][2]
        np.add.reduce(tables, axis=axes, out=ratio, keepdims=True, initial=_TINY_COUNT)
        np.divide(wanted, ratio, out=ratio)
    return reduce(np.multiply, (ratio for _, _, ratio in views))


def _group_pairs(others: Sequence[tuple[int, ...]], axes: int) -> list[tuple[tuple[int, ...], list[int]]]:
    """Return the places of successive pairs with three axes together, and the axes that none of them has.

    Pairs are given by the axes that they do not have.
    """
    groups: list[tuple[tuple[int, ...], list[int]]] = []
    for place, missing in enumerate(others):
        if groups:
            common = tuple(axis for axis in groups[-1][0] if axis in missing)
            if len(common) >= max(1, axes - 3):
                groups[-1] = common, [*groups[-1][1], place]
                continue
        groups.append((missing, [place]))
    return groups


def _cell_upper_bounds(wide: Mapping[tuple[int, ...], Array]) -> Array:
    """Return upper bounds of the cells.

    A cell has at most what a pair's count leaves to it, and at least what the other cells cannot hold. A few rounds of
    both find what simple logic finds, such as all the zeros of a or b.
    """
    upper = np.asarray(reduce(np.minimum, wide.values()))
    lower, bound = np.zeros_like(upper), np.empty_like(upper)
    for _ in range(3):
        for axes, counts in wide.items():
            np.subtract(upper, upper.sum(axis=axes, keepdims=True) - counts, out=bound)
            np.maximum(lower, bound, out=lower)
        for axes, counts in wide.items():
            np.subtract(lower, lower.sum(axis=axes, keepdims=True) - counts, out=bound)
            np.minimum(upper, bound, out=upper)
    return upper
