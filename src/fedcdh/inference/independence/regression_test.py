"""The default test: regressions from second moments, calibrated for additive mechanisms.

Queries about two variables go to `partial_f_tests`, those about the domain to `mechanism_tests`, many of one shape at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh._runtime.worker_pool import WorkerPool, run_serially
from fedcdh.inference.batched_regression import group_by_shape
from fedcdh.inference.counted_rows import query_shares
from fedcdh.inference.independence import mechanism_tests, partial_f_tests
from fedcdh.inference.independence.query_batch import NO_JOINT_COLUMNS, ColumnIndex, JointColumns, QueryBatch, Shape
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Answer, Query
from fedcdh.summaries.row_dependence import RowShares


@dataclass(frozen=True, eq=False)
class RegressionTest:
    """Partial F tests for pairs of variables; Chow and Bartlett tests for the domain.

    Attributes
    ----------
    basis : Basis
        The moments in orthonormal coordinates.
    joint : JointColumns
        Columns that describe how conditioning variables act jointly. Default none.
    pool : WorkerPool, optional
        Answers the parts of a batch. Default: one after the other.
    shares : mapping from str to RowShares
        Shares of the rows that count, for variables whose rows depend on each other. Default none.
    observed : mapping from str to float
        Shares of the rows that count, for variables with imputed values. Default none.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import Basis
    >>> from fedcdh.protocols import Query
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> (answer,) = RegressionTest(Basis.of(result.cohort))([Query("smoker", "cholesterol")])
    >>> answer.p_value < 0.01
    True
    """

    basis: Basis
    joint: JointColumns = NO_JOINT_COLUMNS
    pool: WorkerPool | None = None
    shares: Mapping[str, RowShares] = field(default_factory=dict)
    observed: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Answer the queries, in their order."""
        if not self.shares and not self.observed:
            return self._answer(queries)
        counted = [query_shares(query, self.shares, self.observed) for query in queries]
        found: dict[int, Answer] = {}
        for shares in dict.fromkeys(counted):
            places = [place for place, one in enumerate(counted) if one == shares]
            answers = self._with_shares(shares)._answer([queries[place] for place in places])
            found.update(zip(places, answers, strict=True))
        rows = int(self.basis.rows.sum())
        return [replace(found[place], rows=rows) for place in range(len(queries))]

    def _with_shares(self, shares: RowShares) -> RegressionTest:
        """Return the test in which this share of the rows counts."""
        if shares not in self._scaled:
            self._scaled[shares] = RegressionTest(self.basis.scaled(shares), self.joint, self.pool)
        return self._scaled[shares]

    @cached_property
    def _scaled(self) -> dict[RowShares, RegressionTest]:
        """Return the cache of `_with_shares`."""
        return {}

    def _answer(self, queries: Sequence[Query]) -> list[Answer]:
        """Answer queries in which all rows count."""
        batch, rows = QueryBatch.of(queries, self.basis.spans), int(self.basis.rows.sum())
        places, parts = zip(*self._parts(batch), strict=True) if len(batch) else ((), ())
        statistics, p_values = np.zeros(len(batch)), np.ones(len(batch))
        run = self.pool or run_serially
        work = _ShapeTask(self.basis, self._index, self.joint)
        for place, result in zip(places, run(_ShapeTask.answer, work, parts), strict=True):
            statistics[place], p_values[place] = result
        found = zip(queries, statistics.tolist(), p_values.tolist(), strict=True)
        return [Answer(query, statistic, p_value, rows) for query, statistic, p_value in found]

    def _parts(self, batch: QueryBatch) -> Iterator[tuple[Indices, tuple[QueryBatch, Shape]]]:
        """Yield queries of one shape, with that shape, and their places in the batch."""
        about_domain = self._index.is_about_domain(batch)
        for kind, put in (
            (mechanism_tests, mechanism_tests.put_domain_first),
            (partial_f_tests, partial_f_tests.put_narrow_first),
        ):
            places = np.flatnonzero(about_domain == (kind is mechanism_tests))
            some = put(self._index, batch.subset(places))
            places, some = places[some.locality_order], some.subset(some.locality_order)
            shapes = kind.query_shapes(self.basis, self._index, some)
            for positions in group_by_shape(shapes, partial(kind.count_elements, self.basis)):
                yield places[positions], (some.subset(positions), shapes[positions[0]].tolist())

    @cached_property
    def _index(self) -> ColumnIndex:
        return ColumnIndex(self.basis, self.joint)


@dataclass(frozen=True, eq=False)
class _ShapeTask:
    """The task of answering queries of one shape, for a worker."""

    basis: Basis
    index: ColumnIndex
    joint: JointColumns

    def answer(self, part: tuple[QueryBatch, Shape]) -> tuple[Array, Array]:
        """Return statistics and p-values."""
        batch, shape = part
        about_domain = self.index.is_about_domain(batch)[0]
        answers = mechanism_tests.answer_mechanisms if about_domain else partial_f_tests.answer_pairs
        return answers(self.basis, self.index, self.joint, batch, shape)

    def __sizeof__(self) -> int:
        """Return the size of the scatter, which is nearly all: too large to be sent with every part of the work."""
        return self.basis.scatter.nbytes
