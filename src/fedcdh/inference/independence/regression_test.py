"""The default test: regressions from second moments, calibrated for additive mechanisms.

Questions about two variables go to `pairs`, those about the domain to `mechanism`, many of one shape at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.worker_pool import Crew, one_after_another
from fedcdh.inference.batched_regression import in_shapes
from fedcdh.inference.independence import mechanism_tests, partial_f_tests
from fedcdh.inference.independence.query_batch import SEPARATELY, Asked, Indices, Shape, Sheet, Together
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Answer, Question

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegressionTest:
    """Partial F tests for pairs of variables, Chow and Bartlett tests for the domain."""

    basis: Basis
    together: Together = SEPARATELY
    crew: Crew = one_after_another

    def __call__(self, questions: Sequence[Question], /) -> list[Answer]:
        """Answers in the order of the questions."""
        asked, rows = Asked.of(questions, self.basis.spans), int(self.basis.rows.sum())
        places, parts = zip(*self._parts(asked), strict=True) if len(asked) else ((), ())
        statistics, p_values = np.zeros(len(asked)), np.ones(len(asked))
        work = _OfOneShape(self.basis, self._sheet, self.together)
        for place, result in zip(places, self.crew(_OfOneShape.answer, work, parts), strict=True):
            statistics[place], p_values[place] = result
        found = zip(questions, statistics.tolist(), p_values.tolist(), strict=True)
        return [Answer(question, statistic, p_value, rows) for question, statistic, p_value in found]

    def _parts(self, asked: Asked) -> Iterator[tuple[Indices, tuple[Asked, Shape]]]:
        """Questions of one shape, with it, and where they stand in the batch."""
        about_domain = self._sheet.about_domain(asked)
        for kind, put in (
            (mechanism_tests, mechanism_tests.domain_first),
            (partial_f_tests, partial_f_tests.narrow_first),
        ):
            places = np.flatnonzero(about_domain == (kind is mechanism_tests))
            some = put(self._sheet, asked.part(places))
            places, some = places[some.near], some.part(some.near)
            shapes = kind.shapes(self.basis, self._sheet, some)
            for positions in in_shapes(shapes, partial(kind.elements, self.basis)):
                yield places[positions], (some.part(positions), shapes[positions[0]].tolist())

    @cached_property
    def _sheet(self) -> Sheet:
        return Sheet(self.basis, self.together)


@dataclass(frozen=True, eq=False)
class _OfOneShape:
    """What it takes to answer questions of one shape, wherever that is done."""

    basis: Basis
    sheet: Sheet
    together: Together

    def answer(self, part: tuple[Asked, Shape]) -> tuple[Array, Array]:
        """Statistics and p-values."""
        asked, shape = part
        about_domain = self.sheet.about_domain(asked)[0]
        answers = mechanism_tests.answer_mechanisms if about_domain else partial_f_tests.answer_pairs
        return answers(self.basis, self.sheet, self.together, asked, shape)

    def __sizeof__(self) -> int:
        """Nearly all of it is the scatter: too large to be sent along with every part of the work."""
        return self.basis.scatter.nbytes
