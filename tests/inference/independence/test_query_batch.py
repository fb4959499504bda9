"""Queries as arrays: parts, swaps and column lookups mean the same as the queries with names."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.inference.independence.query_batch import NO_JOINT_COLUMNS, ColumnIndex, QueryBatch
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query

NAMES = ("age", "dose", "group", "sex", "score", "flag")
NODES = (*NAMES, DOMAIN)


def to_queries(batch: QueryBatch) -> list[Query]:
    """The way back; the number after the last name stands for the domain, or fills up a set."""
    return [
        Query(
            NODES[x],
            NODES[y],
            frozenset(NAMES[member] for member in given_ if member < len(NAMES))
            | ({DOMAIN} if batch.has_domain[which] else frozenset()),
        )
        for x, y, given_, which in zip(batch.x, batch.y, batch.given, batch.set_index, strict=True)
    ]


@st.composite
def queries(draw) -> list[Query]:
    found = []
    for _ in range(draw(st.integers(0, 12))):
        x, y, *others = draw(st.permutations(NODES))
        found.append(Query(x, y, frozenset(others[: draw(st.integers(0, 4))])))
    return found


@settings(deadline=None, max_examples=40)
@given(queries(), st.randoms(use_true_random=False))
def test_parts_and_swaps_are_those_of_the_queries(asked, rng):
    batch = QueryBatch.of(asked, NAMES)
    assert to_queries(batch) == asked
    positions = rng.sample(range(len(asked)), rng.randint(0, len(asked)))
    part = batch.subset(np.array(positions, dtype=np.intp))
    assert to_queries(part) == [asked[position] for position in positions]
    over = np.array([rng.random() < 0.5 for _ in asked], dtype=np.bool_)
    swapped = [Query(q.y, q.x, q.given) if turn else q for q, turn in zip(asked, over, strict=True)]
    assert to_queries(batch.swap(over)) == swapped
    assert sorted(batch.locality_order.tolist()) == list(range(len(asked)))


@pytest.fixture(scope="module")
def basis() -> Basis:
    return Basis.of(studies.cohort_of(studies.mixed(0, (60, 40))))


@settings(deadline=None, max_examples=20)
@given(asked=queries())
def test_columns_are_those_of_the_names(basis, asked):
    index, batch = ColumnIndex(basis, NO_JOINT_COLUMNS), QueryBatch.of(asked, NAMES)
    counts = index.count_conditions(batch).tolist() if asked else []
    assert counts == [sum(len(basis.predictors[name]) for name in q.given - {DOMAIN}) for q in asked]
    assert index.is_about_domain(batch).tolist() == [DOMAIN in q.pair for q in asked]
    for number, name in enumerate(NAMES):
        assert index.spans.of(np.array([[number]])).tolist() == [basis.spans[name].tolist()]
