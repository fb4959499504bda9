"""Requests say exactly one thing, refuse what cannot be, and answers add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from residual_studies import (
    DIFFERING,
    PRODUCT_QUERIES,
    PRODUCTS,
    QUERIES,
    SHAPE,
    SIZE,
    SIZED,
    TIES,
    WITH_PRODUCT,
    cohort_of,
    interacting_causes,
    plan_of,
    request_for,
    tables,
)

from fedcdh.errors import PlanMismatchError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums, add_answers
from fedcdh.summaries.residuals.functions import SHAPE_FUNCTIONS

DATA = tables((60, 50))
PLAN = plan_of(DATA)
COHORT = cohort_of(DATA, PLAN)
REQUEST = request_for(COHORT)

IMPOSSIBLE_COORDINATES = {
    "no coordinate": ((0.0,), ()),
    "a weight too many": ((0.0,), ((1.0, 2.0),)),
    "a score of another width": ((0.0,), ((1.0,),), (1.0, 2.0)),
    "an infinite centre": ((float("inf"),), ((1.0,),)),
    "a weight that is no number": ((0.0,), ((float("nan"),),)),
    "a score that is no number": ((0.0,), ((1.0,),), (float("nan"),)),
}


@pytest.mark.parametrize("fault", IMPOSSIBLE_COORDINATES)
def test_impossible_coordinates_are_refused(fault):
    with pytest.raises(SummaryError, match="empty, uneven or not finite"):
        Coordinates(*IMPOSSIBLE_COORDINATES[fault])


@given(st.lists(st.lists(st.floats(-9, 9), min_size=2, max_size=2), min_size=1, max_size=4))
def test_coordinates_are_linear_and_vanish_at_the_centre(matrix):
    score = (0.5, -2.0)
    one = Coordinates((1.0, -1.0), tuple(map(tuple, matrix)), score)
    assert one.width == len(matrix)
    centre = np.array([[1.0], [-1.0]])
    assert np.array_equal(one(centre), np.zeros((len(matrix) + 1, 1)))
    moves = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    found = one(centre + moves)
    assert found[:, 2] == pytest.approx(found[:, 0] + found[:, 1])
    assert found[-1] == pytest.approx(np.array(score) @ moves)


IMPOSSIBLE_QUERIES = {
    "about something else": {"about": "colour"},
    "parents out of order": {"parents": ("x", "a"), "weights": (0.1, 0.2), "widths": (1, 1)},
    "a parent twice": {"parents": ("x", "x"), "weights": (0.1, 0.2), "widths": (1, 1)},
    "its own parent": {"parents": ("y",)},
    "a weight too many": {"weights": (0.1, 0.2)},
    "a width too many": {"widths": (1, 1)},
    "no deviation": {"deviation": 0.0},
    "an infinite deviation": {"deviation": float("inf")},
    "a weight that is no number": {"weights": (float("nan"),)},
    "a size that is no number": {"size": (float("nan"), 0.0, 0.0)},
}


@pytest.mark.parametrize("fault", IMPOSSIBLE_QUERIES)
def test_impossible_queries_are_refused(fault):
    with pytest.raises(SummaryError, match="that cannot be"):
        replace(SHAPE, **IMPOSSIBLE_QUERIES[fault])


IMPOSSIBLE_PRODUCTS = {
    "three causes": {"product": ("a", "b", "c")},
    "one cause": {"product": ("a",)},
    "out of order": {"product": ("b", "a")},
    "no parent": {"product": ("a", "c")},
    "weights without a product": {"product": ()},
    "a weight too few": {"product_weights": (0.3, 0.0, 0.0)},
    "a weight that is no number": {"product_weights": (float("nan"), 0.0, 0.0, 0.0)},
    "a slope above the limit": {"product_weights": (0.3, 0.0, 4.01, 0.0)},
    "a mean above the limit": {"product_weights": (0.3, 16.01, 0.0, 0.0)},
    "about a size": {"about": "size"},
    "with a size of the noise": {"size": (0.1, 0.0, 0.0, 0.0, 0.0)},
}


@pytest.mark.parametrize("fault", IMPOSSIBLE_PRODUCTS)
def test_impossible_products_are_refused(fault):
    replace(WITH_PRODUCT, product_weights=(0.3, -16.0, 4.0, -4.0))  # at the limit
    with pytest.raises(SummaryError, match="that cannot be"):
        replace(WITH_PRODUCT, **IMPOSSIBLE_PRODUCTS[fault])


def test_a_product_is_another_question_and_its_weights_are_not():
    plain = replace(PRODUCTS, about="shape")
    assert len({query.question for query in PRODUCT_QUERIES}) == len({query.key for query in PRODUCT_QUERIES}) == 4
    other = replace(WITH_PRODUCT, product_weights=(0.2, 0.0, 0.0, 0.0))
    assert other.question == WITH_PRODUCT.question != plain.question
    assert other.key != WITH_PRODUCT.key
    wide = replace(WITH_PRODUCT, parents=("a", "b", "c"), weights=(0.1,) * 3, widths=(1,) * 3)
    assert wide.question != replace(wide, product=("a", "c")).question


def test_products_need_two_numbers_among_the_parents():
    data = {client: {**one, "c": np.where(one["a"] > 0, "x", "y")} for client, one in interacting_causes().items()}
    plan = plan_of(data)
    cohort = cohort_of(data, plan)
    mixed = replace(PRODUCTS, parents=("a", "b", "c"), weights=(0.1,) * 3, widths=(1,) * 3)
    assert mixed.pairs(plan) == (("a", "b"),)
    assert [query.count_entries(plan) for query in (mixed, WITH_PRODUCT, PRODUCTS)] == [1, 15, 1]
    faults = (
        replace(PRODUCTS, parents=("a", "c")),
        replace(WITH_PRODUCT, parents=("a", "c"), product=("a", "c")),
    )
    coordinates = dict.fromkeys("aby", REQUEST.coordinates["x"]) | {"c": Coordinates((0.0, 0.0), ((1.0, 0.0),))}
    ResidualRequest(plan.fingerprint, 1, coordinates, (mixed,)).check(cohort.plan)
    for query in faults:
        with pytest.raises(SummaryError, match="product"):
            ResidualRequest(plan.fingerprint, 1, coordinates, (query,)).check(plan)


OTHERS = [
    replace(SHAPE, node="z"),
    replace(SHAPE, parents=("w",)),
    replace(SHAPE, weights=(0.71,)),
    replace(SHAPE, deviation=0.71),
    replace(SHAPE, scored=True),
    replace(SHAPE, parents=(), weights=(), widths=()),
    replace(SHAPE, weights=(0.7, 0.0), widths=(2,)),
    SIZE,
    SIZED,
    DIFFERING,
    TIES,
]


def test_the_key_tells_every_difference_and_the_question_all_but_numbers():
    assert len({SHAPE.key, *(query.key for query in OTHERS)}) == 1 + len(OTHERS)
    for query in OTHERS:
        other_numbers = (query.node, query.parents, query.widths) == (SHAPE.node, SHAPE.parents, SHAPE.widths)
        other_numbers &= (query.about, query.differs, query.scored) == (SHAPE.about, SHAPE.differs, SHAPE.scored)
        assert (query.question == SHAPE.question) == (other_numbers and not query.size)
    assert replace(SIZED, size=(0.5, 0.1, 0.1)).question == SIZED.question


def test_every_query_has_as_many_sums_as_it_says():
    found = {query: query.count_entries(PLAN) for query in QUERIES}
    assert found[SHAPE] == found[DIFFERING] == SHAPE_FUNCTIONS == 14
    assert found == {SHAPE: 14, DIFFERING: 14, SIZED: 16, SIZE: 3, TIES: 1}


@pytest.mark.parametrize("queries", [(), REQUEST.queries[::-1], (SHAPE, SHAPE)], ids=["none", "unsorted", "twice"])
def test_requests_have_different_queries_in_order(queries):
    with pytest.raises(SummaryError, match="none, too many or out of order"):
        replace(REQUEST, queries=queries)


@pytest.mark.parametrize("number", [0, -1, 1.5])
def test_requests_are_numbered_from_one(number):
    with pytest.raises(SummaryError, match="whole number from 1"):
        replace(REQUEST, number=number)


def test_the_digest_depends_on_all_but_the_number_and_the_order_of_names():
    assert replace(REQUEST, number=8).digest == REQUEST.digest
    turned = dict(reversed(REQUEST.coordinates.items()))
    assert replace(REQUEST, coordinates=turned).digest == REQUEST.digest
    moved = {name: replace(one, centre=tuple(c + 1 for c in one.centre)) for name, one in REQUEST.coordinates.items()}
    scored = {name: replace(one, score=one.matrix[0]) for name, one in REQUEST.coordinates.items()}
    others = [
        replace(REQUEST, plan="1" * 64),
        replace(REQUEST, queries=REQUEST.queries[1:]),
        replace(REQUEST, coordinates=moved),
        replace(REQUEST, coordinates=scored),
    ]
    assert len({REQUEST.digest, *(other.digest for other in others)}) == 1 + len(others)


def test_a_request_is_checked_against_the_plan():
    REQUEST.check(PLAN)
    with pytest.raises(PlanMismatchError, match="follows plan 111111111111"):
        replace(REQUEST, plan="1" * 64).check(PLAN)
    narrow = {name: Coordinates((0.0,), ((1.0,),)) for name in REQUEST.coordinates}
    unknown = {**REQUEST.coordinates, "w": REQUEST.coordinates["x"]}
    faults = [
        (REQUEST.coordinates, replace(SHAPE, widths=(2,), weights=(0.1, 0.1))),  # wider than the coordinates
        (REQUEST.coordinates, replace(SHAPE, scored=True)),  # there is no score
        (REQUEST.coordinates, replace(SHAPE, size=(0.1, 0.2))),  # two coefficients for one parent
        (REQUEST.coordinates, replace(SHAPE, about="size", parents=(), weights=(), widths=())),
        ({"y": REQUEST.coordinates["y"]}, SHAPE),
        (unknown, replace(SHAPE, node="w")),
        (unknown, SHAPE),
        (narrow, SHAPE),
    ]
    for coordinates, query in faults:
        with pytest.raises(SummaryError, match="does not fit the plan"):
            ResidualRequest(PLAN.fingerprint, 1, coordinates, (query,)).check(PLAN)


sums = st.integers(1, 50).flatmap(
    lambda rows: st.lists(st.integers(-rows * GRID, rows * GRID), min_size=14, max_size=14).map(
        lambda found: ResidualSums(SHAPE, rows, np.array(found))
    )
)


@given(st.lists(sums, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_answers_add_up_in_any_order(answers, random):
    total = add_answers(answers)
    assert total.rows == sum(one.rows for one in answers)
    assert np.array_equal(total.sums, np.sum([one.sums for one in answers], axis=0))
    assert add_answers(random.sample(answers, len(answers))) == total


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 9)), min_size=1, max_size=4))
def test_mean_squares_are_weighed_by_rows(parts):
    total = add_answers([ResidualSums(SHAPE, rows, np.zeros(14, np.int64), square) for rows, square in parts])
    assert total.mean_square == pytest.approx(sum(rows * square for rows, square in parts) / total.rows)
    assert (total + ResidualSums(SHAPE, 1, np.zeros(14, np.int64))).mean_square is None


def test_answers_to_different_queries_do_not_add_up():
    one = ResidualSums(SHAPE, 1, np.ones(14, dtype=np.int64))
    with pytest.raises(SummaryError, match="different regressions"):
        one + replace(one, query=DIFFERING)
    assert one != replace(one, query=DIFFERING)
    assert one != "an answer"


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (1, np.array([GRID + 1])),
        (1, np.array([-GRID - 1])),
        (0, np.array([0])),
        (1, np.zeros(0, np.int64)),
        (1, np.array([0.5])),
        (1, np.zeros((1, 1), np.int64)),
    ],
)
def test_damaged_sums_are_refused(rows, found):
    with pytest.raises(SummaryError, match="is damaged"):
        ResidualSums(SHAPE, rows, found)


def test_answers_are_values():
    mine = np.ones(14, dtype=np.int64)
    one = ResidualSums(SHAPE, 1, mine)
    mine[0] = 0
    assert one.sums[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        one.sums[0] = 2


def test_a_query_without_parents_says_so():
    alone = ResidualQuery("y", (), "shape", (), (), 1.0)
    assert alone.continuous_parents(PLAN) == ()
    assert SHAPE.continuous_parents(PLAN) == ("x",)


@pytest.mark.parametrize("query", [PRODUCTS, WITH_PRODUCT], ids=lambda query: query.about)
def test_a_coarse_request_has_no_products(query):
    data = interacting_causes((60, 50))
    cohort = cohort_of(data, plan_of(data))
    request = request_for(cohort, query)
    request.check(cohort.plan)
    with pytest.raises(SummaryError, match="a product in the coarse query"):
        replace(request, coarse=True).check(cohort.plan)
