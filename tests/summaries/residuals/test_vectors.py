"""Answers as vectors modulo 2⁶⁴: what is added as vectors is what is added as answers."""

from __future__ import annotations

import numpy as np
import pytest
import residual_studies

from fedcdh.errors import SummaryError
from fedcdh.summaries.residuals import (
    add_answers,
    answer_length,
    answer_residuals,
    decode_answers,
    encode_answers,
)
from fedcdh.summaries.summary import MAX_ROWS

DATA = residual_studies.tables((80, 70))
PLAN = residual_studies.plan_of(DATA)
COHORT = residual_studies.cohort_of(DATA, PLAN)
REQUEST = residual_studies.request_for(COHORT)
ANSWERS = [
    answer_residuals(DATA[client], PLAN, client, REQUEST, summary)
    for client, summary in zip(COHORT.clients, COHORT.summaries, strict=True)
]


def test_vectors_add_up_to_the_vector_of_the_sum():
    first, second = map(encode_answers, ANSWERS)
    assert len(first) == answer_length(REQUEST, PLAN)
    mask = np.random.default_rng(0).integers(0, 1 << 63, len(first), dtype=np.uint64) * np.uint64(2)
    total = decode_answers((first + mask) + (second - mask), REQUEST, PLAN)
    assert total == tuple(add_answers(pair) for pair in zip(*ANSWERS, strict=True))


def test_answers_about_products_add_up_under_masks():
    data = residual_studies.interacting_causes((80, 70))
    cohort = residual_studies.cohort_of(data, plan := residual_studies.plan_of(data))
    request = residual_studies.request_for(cohort, *residual_studies.PRODUCT_QUERIES)
    answers = [
        answer_residuals(data[client], plan, client, request, summary)
        for client, summary in zip(cohort.clients, cohort.summaries, strict=True)
    ]
    first, second = map(encode_answers, answers)
    mask = np.full(len(first), 1 << 63, dtype=np.uint64)
    expected = tuple(add_answers(pair) for pair in zip(*answers, strict=True))
    assert decode_answers((first + mask) + (second - mask), request, plan) == expected


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [(0, 0, "rows"), (0, MAX_ROWS + 1, "rows"), (0, 1, "damaged"), (1, 1 << 60, "damaged")],
)
def test_numbers_that_no_rows_can_give_are_refused(place, value, problem):
    words = encode_answers(ANSWERS[0]).copy()
    words[place] = value
    with pytest.raises(SummaryError, match=problem):
        decode_answers(words, REQUEST, PLAN)


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(SummaryError, match="numbers"):
        decode_answers(encode_answers(ANSWERS[0])[:-1], REQUEST, PLAN)
