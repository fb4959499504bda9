"""Tables of counts from the counts of their pairs of axes: maximum entropy, by accelerated proportional fitting.

Iterative proportional fitting multiplies a table by one factor for each pair of axes, in turn, so that the pair gets
its counts. A sweep over all pairs is a fixed-point step for the logs of these factors. Plain sweeps are slow where
variables nearly determine each other, so steps are extrapolated from the last few (Anderson acceleration). The
likelihood of the counts never falls in a plain sweep: an extrapolation after which it is lower is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import accumulate, pairwise
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array

Flags: TypeAlias = npt.NDArray[np.bool_]

MAX_SWEEPS = 30
FIT_TOLERANCE = 3e-6
"""Completion ends when a sweep finds no pair off by more than this share of the rows, or after `MAX_SWEEPS`."""
_PERIOD = 3  # sweeps from one extrapolation to the next, which costs as much as a sweep or two
_MEMORY = 5  # steps from which the next one is extrapolated
_MAX_JUMP = 5.0  # of the log of a factor, beyond a plain step: extrapolations from few steps can be wild
_RIDGE = 1e-10  # of the squares of the remembered steps, which may be collinear
_LIKELIHOOD_TOLERANCE = 1e-12  # in nats per row: smaller losses are rounding
_TINY_COUNT = 1e-100  # avoids a division by zero


def complete_tables(pairs: Mapping[tuple[int, int], Array]) -> Array:
    """Return the tables (*axes, tables) of maximum entropy with these counts (levels, levels, tables) of pairs of axes.

    A table stops when it fits, independently of the others. Fitting reaches a zero that the pairs imply only in the
    limit, so such cells are emptied first.
    """
    axes = range(1 + max(axis for pair in pairs for axis in pair))
    others = {pair: tuple(axis for axis in axes if axis not in pair) for pair in pairs}
    wide = {others[pair]: np.expand_dims(counts, others[pair]) for pair, counts in pairs.items()}
    fit = _Fit(wide)
    result, active = np.empty_like(fit.tables), np.arange(fit.tables.shape[-1])
    for left in reversed(range(MAX_SWEEPS)):
        done = fit.sweep() | (left == 0)
        if done.any():
            result[..., active[done]] = fit.tables[..., done]
            active = active[~done]
            if not len(active):
                break
            fit.keep(~done)
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
        # The factor of a pair of levels without cells stays one.
        self._counts, self._wanted = np.where(room > 0, counts, 0.0), np.where(room > 0, counts, 1.0)
        self._floor = np.where(room > 0, _TINY_COUNT, 1.0)
        self._rows = counts[self._parts[0]].sum(axis=0)
        self._factors, self._step, self._reached, self._good = np.zeros((4, *counts.shape))
        self._best = np.full(len(self._rows), -np.inf)
        self._changes, self._moves = np.zeros((2, _MEMORY, *counts.shape))  # of steps, and of where they led
        self._sweeps = 0

    def _flat(self, parts: Iterable[Array]) -> Array:
        return np.concatenate([part.reshape(-1, self._start.shape[-1]) for part in parts])

    def sweep(self) -> Flags:
        """Fit the pairs in turn, and return which tables fitted already, or nearly."""
        tables, ratios = self.tables, np.empty_like(self._wanted)
        for axes, shape, part in zip(self._axes, self._shapes, self._parts, strict=True):
            ratio, found = ratios[part].reshape(shape), np.add.reduce(tables, axis=axes, keepdims=True)
            np.maximum(found, self._floor[part].reshape(shape), out=found)
            np.divide(self._wanted[part].reshape(shape), found, out=ratio)
            tables *= ratio
        self._take_step(np.log(ratios))
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
        for shape, part in zip(self._shapes, self._parts, strict=True):
            self.tables *= factors[part].reshape(shape)

    def _correction(self) -> Array:
        """Return what the least-squares combination of the remembered steps takes from a plain step."""
        square = np.einsum("mpt,npt->tmn", self._changes, self._changes)
        diagonal = np.einsum("tmm->tm", square)
        diagonal += _RIDGE * diagonal.sum(axis=1, keepdims=True) + _TINY_COUNT
        right = np.einsum("mpt,pt->tm", self._changes, self._step)
        weights = np.linalg.solve(square, right[..., None])[..., 0]
        return np.asarray(np.einsum("tm,mpt->pt", weights, self._moves).clip(-_MAX_JUMP, _MAX_JUMP))


def _cell_upper_bounds(wide: Mapping[tuple[int, ...], Array]) -> Array:
    """Return upper bounds of the cells.

    A cell has at most what a pair's count leaves to it, and at least what the other cells cannot hold. A few rounds of
    both find what simple logic finds, such as all the zeros of a or b.
    """
    upper = np.asarray(reduce(np.minimum, wide.values()))
    lower = np.zeros_like(upper)
    for _ in range(3):
        for axes, counts in wide.items():
            lower = np.maximum(lower, counts - (upper.sum(axis=axes, keepdims=True) - upper))
        for axes, counts in wide.items():
            upper = np.minimum(upper, counts - (lower.sum(axis=axes, keepdims=True) - lower))
    return upper
