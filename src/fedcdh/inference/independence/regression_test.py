"""The default test: regressions from second moments, calibrated for additive mechanisms.

Questions about two variables go to `pairs`, those about the domain to `mechanism`, many of one shape at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh._runtime.worker_pool import WorkerPool, run_serially
from fedcdh.inference.batched_regression import group_by_shape
from fedcdh.inference.independence import mechanism_tests, partial_f_tests
from fedcdh.inference.independence.query_batch import NO_JOINT_COLUMNS, ColumnIndex, JointColumns, QueryBatch, Shape
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Answer, Query


@dataclass(frozen=True, eq=False)
class RegressionTest:
    """Partial F tests for pairs of variables, Chow and Bartlett tests for the domain."""

    basis: Basis
    together: JointColumns = NO_JOINT_COLUMNS
    pool: WorkerPool = run_serially

    def __call__(self, questions: Sequence[Query], /) -> list[Answer]:
        """Answers in the order of the questions."""
        asked, rows = QueryBatch.of(questions, self.basis.spans), int(self.basis.rows.sum())
        places, parts = zip(*self._parts(asked), strict=True) if len(asked) else ((), ())
        statistics, p_values = np.zeros(len(asked)), np.ones(len(asked))
        work = _ShapeTask(self.basis, self._sheet, self.together)
        for place, result in zip(places, self.pool(_ShapeTask.answer, work, parts), strict=True):
            statistics[place], p_values[place] = result
        found = zip(questions, statistics.tolist(), p_values.tolist(), strict=True)
        return [Answer(question, statistic, p_value, rows) for question, statistic, p_value in found]

    def _parts(self, asked: QueryBatch) -> Iterator[tuple[Indices, tuple[QueryBatch, Shape]]]:
        """Questions of one shape, with it, and where they stand in the batch."""
        about_domain = self._sheet.is_about_domain(asked)
        for kind, put in (
            (mechanism_tests, mechanism_tests.put_domain_first),
            (partial_f_tests, partial_f_tests.put_narrow_first),
        ):
            places = np.flatnonzero(about_domain == (kind is mechanism_tests))
            some = put(self._sheet, asked.part(places))
            places, some = places[some.locality_order], some.part(some.locality_order)
            shapes = kind.shapes(self.basis, self._sheet, some)
            for positions in group_by_shape(shapes, partial(kind.elements, self.basis)):
                yield places[positions], (some.part(positions), shapes[positions[0]].tolist())

    @cached_property
    def _sheet(self) -> ColumnIndex:
        return ColumnIndex(self.basis, self.together)


@dataclass(frozen=True, eq=False)
class _ShapeTask:
    """What it takes to answer questions of one shape, wherever that is done."""

    basis: Basis
    sheet: ColumnIndex
    together: JointColumns

    def answer(self, part: tuple[QueryBatch, Shape]) -> tuple[Array, Array]:
        """Statistics and p-values."""
        asked, shape = part
        about_domain = self.sheet.is_about_domain(asked)[0]
        answers = mechanism_tests.answer_mechanisms if about_domain else partial_f_tests.answer_pairs
        return answers(self.basis, self.sheet, self.together, asked, shape)

    def __sizeof__(self) -> int:
        """Nearly all of it is the scatter: too large to be sent along with every part of the work."""
        return self.basis.scatter.nbytes
