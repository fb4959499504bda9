"""How many sums of residuals may leave: all against all values, those about one column against its rows, none twice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.residual_counts import (
    check_repetitions,
    count_sums_by_column,
    may_answer,
    needs_coarse_sums,
    select_answering_clients,
)
from fedcdh.privacy.disclosure.thresholds import count_numbers_about, count_released_numbers
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import AskedQuery
from fedcdh.summaries.variables import Categorical, Continuous

SIX = StudyPlan(tuple(map(Continuous, "abcdef")), ("north",))


def budget_of(*queries: tuple[str, ...], entries: int = 14, coarse: bool = False) -> RoundBudget:
    asked = (
        AskedQuery(f"{number:064d}", names, entries, f"question {number}", names, coarse)
        for number, names in enumerate(queries)
    )
    return RoundBudget(queries=frozenset(asked))


@given(st.integers(1, 8), st.integers(0, 3))
def test_pairs_are_about_both_of_their_variables(numbers, labels):
    """All numbers count once; numbers about two continuous variables count for both."""
    names = [f"v{i}" for i in range(numbers)]
    levels = tuple(Categorical(f"g{i}", ("a", "b", "c")) for i in range(labels))
    plan = StudyPlan((*map(Continuous, names), *levels), ("north",))
    pairs = numbers * (numbers - 1) // 2 * plan.layout.width("v0") ** 2
    assert sum(count_numbers_about(plan, name) for name in names) == count_released_numbers(plan) + pairs


@pytest.mark.parametrize(("rows", "about_one", "in_all"), [(232, 0, 0), (300, 0, 0), (500, 8, 24), (1000, 31, 93)])
def test_how_many_questions_about_shapes_a_site_answers(rows, about_one, in_all):
    """The figures of docs/rounds.md: six variables, 206 numbers of the summary about each of them."""
    assert count_sums_by_column(SIX, RoundBudget()) == dict.fromkeys("abcdef", 206)
    spread = [("a", "b"), ("c", "d"), ("e", "f")] * 50
    for queries, most in (([("a", "b")] * 150, about_one), (spread, in_all)):
        assert may_answer(SIX, rows, budget_of(*queries[:most])) or not most
        assert not may_answer(SIX, rows, budget_of(*queries[: most + 1]))


def test_sites_that_may_answer_one_question_are_asked():
    assert select_answering_clients(SIX, {"one": 232, "two": 341, "three": 342, "four": 1000}) == ("three", "four")


@pytest.mark.parametrize(("rows", "about_one", "in_all"), [(232, 0, 0), (240, 34, 34), (300, 44, 132), (778, 44, 132)])
def test_how_many_questions_a_site_answers_with_coarse_sums(rows, about_one, in_all):
    """The figures of docs/rounds.md: 3 · 206 = 618 sums about a variable, and a twentieth of each about all values."""
    spread = [("a", "b"), ("c", "d"), ("e", "f")] * 50
    for queries, most in (([("a", "b")] * 150, about_one), (spread, in_all)):
        assert may_answer(SIX, rows, budget_of(*queries[:most], coarse=True)) or not most
        assert not may_answer(SIX, rows, budget_of(*queries[: most + 1], coarse=True))


def test_the_policy_limits_coarse_sums_about_a_column():
    budget = budget_of(*[("a",)] * 45, coarse=True)
    with pytest.raises(DisclosureError, match="630 coarse sums would be about 'a', expected at most 618"):
        Policy().check_residuals(SIX, 400, budget, ())
    Policy(max_coarse_sums_per_number=3.1).check_residuals(SIX, 400, budget, ())


def test_coarse_and_exact_sums_together_count_as_exact_ones():
    coarse, exact = budget_of(("a", "b"), coarse=True), budget_of(("a", "b"), ("a",))
    both = RoundBudget(queries=frozenset({*coarse.queries, *(one for one in exact.queries if one.variables == ("a",))}))
    assert may_answer(SIX, 300, coarse)
    assert not may_answer(SIX, 300, both)
    assert may_answer(SIX, 360, both)
    same = RoundBudget(queries=frozenset({*coarse.queries, *exact.queries}))
    assert any("2 sets of weights" in one for one in check_repetitions(same))


def test_sites_are_asked_for_coarse_sums_where_exact_ones_would_end_the_search():
    assert needs_coarse_sums(SIX, [5000, 300])
    assert needs_coarse_sums(SIX, [778])
    assert not needs_coarse_sums(SIX, [779, 5000])
    assert not needs_coarse_sums(SIX, [232])  # it may not answer at all
    assert select_answering_clients(SIX, {"one": 232, "two": 233, "three": 779}, coarse=True) == ("two", "three")


@given(st.integers(1, 40), st.integers(100, 2000))
def test_more_rows_never_answer_less(queries, rows):
    budget = budget_of(*[("a", "b")] * queries)
    assert may_answer(SIX, rows, budget) <= may_answer(SIX, rows + 1, budget)
    assert may_answer(SIX, rows, budget) <= may_answer(SIX, rows, budget_of(*[("a", "b")] * (queries - 1)))


def test_the_policy_refuses_what_goes_beyond_and_says_how_much_would_do():
    budget = budget_of(*[("a",)] * 10)
    Policy().check_residuals(SIX, 533, budget, ())
    with pytest.raises(DisclosureError, match="346 sums would be about 'a', expected at most 345 for 532 rows"):
        Policy().check_residuals(SIX, 532, budget, ())
    Policy(max_sums_per_row_and_column=2.0).check_residuals(SIX, 345, budget, ())
    needed = math.ceil(2 * (696 + 140) / 6)
    with pytest.raises(DisclosureError, match=f"expected at least {needed} rows"):
        Policy(max_sums_per_row_and_column=2.0).check_residuals(SIX, needed - 1, budget, ())
    Policy(disclosure_control=False).check_residuals(SIX, 10, budget, ("a finding",))
    with pytest.raises(DisclosureError, match="a finding"):
        Policy().check_residuals(SIX, 10**6, budget, ("a finding",))


def test_a_question_has_one_set_of_weights_and_a_variable_one_set_of_coordinates():
    one = AskedQuery("0" * 64, ("a", "b"), 14, "about a given b", ("here", "there"))
    alike = AskedQuery("1" * 64, ("b",), 14, "about b", ("there",))
    assert not list(check_repetitions(RoundBudget(queries=frozenset({one, alike}))))
    again = one._replace(digest="2" * 64)
    moved = alike._replace(places=("elsewhere",))
    for more, words in (
        (again, "a question about 'a' given 'b' would be answered with 2 sets of weights"),
        (moved, "the coordinates of 'b' are not those of an earlier request"),
    ):
        budget = RoundBudget(queries=frozenset({one, more}))
        (said,) = check_repetitions(budget)
        assert words in said
        assert not may_answer(SIX, 10**6, budget)
        with pytest.raises(DisclosureError, match=words):
            Policy().check_residuals(SIX, 10**6, budget, ())
