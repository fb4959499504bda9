"""Studies with all their queries, and the comparison of p-values with those of the pooled rows."""

from __future__ import annotations

from itertools import combinations

import pooled
import studies

from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.features import Fourier, Hermite

TOLERANCE = 1e-9


def every_query(names: tuple[str, ...], largest: int = 2) -> list[Query]:
    return [
        Query(x, y, frozenset(chosen))
        for x, y in combinations(names, 2)
        for size in range(largest + 1)
        for chosen in combinations([name for name in names if name not in (x, y)], size)
    ]


def assert_p_values(test, queries, direct, tolerance: float = TOLERANCE) -> None:
    answers = test(queries)
    assert [answer.query for answer in answers] == queries
    different = [
        (str(answer.query), answer.p_value, expected)
        for answer in answers
        if abs(answer.p_value - (expected := direct(answer.query))) > tolerance
    ]
    assert not different, f"{len(different)} of {len(queries)} differ, such as {different[:3]}"


class QueryStudy:
    """A study of numbers and labels at five clients, the last too small for regressions of its own."""

    def __init__(self, seed: int = 0, family: Hermite | Fourier = Hermite(), sizes=(60, 50, 40, 30, 5)) -> None:  # noqa: B008
        self.tables = studies.mixed(seed, sizes)
        self.cohort = studies.cohort_of(self.tables, family)
        self.rows = pooled.Rows.of(self.tables, self.cohort.plan)
        self.nodes = (DOMAIN, *self.cohort.plan.names)
        self.queries = every_query(self.nodes)
