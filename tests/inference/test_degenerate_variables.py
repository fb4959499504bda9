"""Copies, exact functions, few values and constants: found exactly where they are, and nowhere else."""

from __future__ import annotations

import noisy_studies
import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.discovery.api import discover
from fedcdh.inference.degenerate_variables import (
    _integer_rank,
    choose_redundant,
    find_copies,
    find_degenerate,
    find_few_valued,
    find_functions,
    find_mostly_constant,
)
from fedcdh.inference.evidence.gaussian import MIN_NOISE_SHARE
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.features import Fourier
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

ROWS = 400
SEEDS = st.integers(0, 10_000)
SHAPES = {
    "normal": lambda rng: rng.standard_normal(ROWS),
    "exponential": lambda rng: rng.exponential(size=ROWS),
    "Cauchy": lambda rng: rng.standard_cauchy(ROWS),
    "one huge outlier": lambda rng: np.append(rng.standard_normal(ROWS - 1), 1e6),
    "six values": lambda rng: rng.integers(0, 6, ROWS).astype(float),
}


def split(columns: dict[str, np.ndarray], clients: int = 3) -> studies.Tables:
    places = np.array_split(np.arange(len(next(iter(columns.values())))), clients)
    return {f"c{k}": {name: column[rows] for name, column in columns.items()} for k, rows in enumerate(places)}


def cohort_of(clients: int = 3, **columns: np.ndarray) -> Cohort:
    return studies.cohort_of(split(columns, clients))


def copies_in(cohort: Cohort | Aggregate) -> list[tuple[str, ...]]:
    return [(group.representative, *group.copies) for group in find_copies(cohort)]


def sets_in(cohort: Cohort | Aggregate) -> list[tuple[str, ...]]:
    return [one.variables for one in find_functions(cohort)]


class TestCopies:
    @pytest.mark.parametrize("shape", SHAPES)
    @settings(max_examples=10)
    @given(seed=SEEDS, slope=st.sampled_from([1.0, -1.0, 2.54, 1e-6, -1e9]), shift=st.sampled_from([0.0, 32.0, -1e5]))
    def test_other_units_are_copies(self, shape, seed, slope, shift):
        rng = np.random.default_rng(seed)
        x = SHAPES[shape](rng)
        cohort = cohort_of(x=x, other=rng.standard_normal(ROWS), y=slope * x + shift * abs(slope))
        assert copies_in(cohort) == [("x", "y")]
        assert sets_in(cohort) == []

    @given(seed=SEEDS, factor=st.floats(30.0, 1e6))
    def test_noise_beyond_the_limit_makes_no_copy(self, seed, factor):
        rng = np.random.default_rng(seed)
        x, noise = rng.standard_normal((2, ROWS))
        assert copies_in(cohort_of(x=x, y=x + np.sqrt(factor * MIN_NOISE_SHARE) * noise)) == []

    @given(seed=SEEDS, factor=st.floats(0.0, 0.3))
    def test_noise_below_the_limit_counts_as_rounding(self, seed, factor):
        rng = np.random.default_rng(seed)
        x, noise = rng.standard_normal((2, ROWS))
        assert copies_in(cohort_of(x=x, y=x + np.sqrt(factor * MIN_NOISE_SHARE) * noise)) == [("x", "y")]

    @pytest.mark.parametrize("rows", [60, 400, 20_000])
    def test_a_correlation_of_0999_is_no_copy(self, rows):
        x, noise = np.random.default_rng(rows).standard_normal((2, rows))
        assert copies_in(cohort_of(x=x, y=0.999 * x + np.sqrt(1 - 0.999**2) * noise)) == []

    def test_plans_with_other_scales_round_otherwise(self):
        """Copies are found where the grid rounds both variables differently, and coarsely."""
        x = np.random.default_rng(1).standard_normal(ROWS)
        tables = split({"x": x, "y": 7 * x})
        plan = StudyPlan((Continuous("x", 0.3, 40.0), Continuous("y", -2.0, 9.0)), tuple(tables))
        cohort = add_up([summarize(table, plan, client) for client, table in tables.items()], plan)
        assert copies_in(cohort) == [("x", "y")]

    def test_a_shared_outlier_makes_no_copy(self):
        rng = np.random.default_rng(3)
        x = np.append(rng.standard_normal(ROWS - 1), 1e6)
        assert copies_in(cohort_of(x=x, y=x + rng.standard_normal(ROWS))) == []

    @given(seed=SEEDS, levels=st.integers(2, 6))
    def test_recoded_labels_are_copies(self, seed, levels):
        rng = np.random.default_rng(seed)
        codes = np.append(np.arange(levels), rng.integers(0, levels, ROWS - levels))
        names = np.array(list("uvwxyz"))[rng.permutation(6)]
        columns = {"label": np.array(list("abcdef"))[codes], "z": rng.standard_normal(ROWS), "code": names[codes]}
        assert copies_in(cohort_of(**columns)) == [("label", "code")]

    @given(seed=SEEDS, levels=st.integers(2, 6))
    def test_numbers_that_code_a_label_follow_from_it(self, seed, levels):
        """They are copies up to four levels; of more, features do not always distinguish all values."""
        rng = np.random.default_rng(seed)
        codes = np.append(np.arange(levels), rng.integers(0, levels, ROWS - levels))
        cohort = cohort_of(label=np.array(list("abcdef"))[codes], number=codes**2.0, z=rng.standard_normal(ROWS))
        copies, sets = copies_in(cohort), sets_in(cohort)
        assert [*copies, *sets] == [("label", "number")]
        assert copies or levels > 4

    @given(seed=SEEDS, levels=st.integers(2, 6))
    def test_one_deviating_row_makes_no_copy(self, seed, levels):
        rng = np.random.default_rng(seed)
        codes = np.append(np.arange(levels), rng.integers(0, levels, ROWS - levels))
        other = codes.copy()
        other[-1] = (other[-1] + 1) % levels
        assert copies_in(cohort_of(a=np.array(list("abcdef"))[codes], b=np.array(list("uvwxyz"))[other])) == []

    def test_offsets_that_differ_between_clients_make_no_copy(self):
        tables = studies.numbers(sizes=(100, 100))
        for k, table in enumerate(tables.values()):
            table["shifted"] = table["v1"] + k
        assert copies_in(studies.cohort_of(tables)) == []

    def test_two_properties_of_sites_are_no_copies(self):
        tables = studies.numbers(sizes=(100, 100))
        for k, table in enumerate(tables.values()):
            table |= {"altitude": np.full(100, 100.0 * k), "beds": np.full(100, 30.0 - k)}
        cohort = studies.cohort_of(tables)
        assert find_degenerate(cohort) == ((), ())
        assert [one.name for one in find_mostly_constant(cohort)] == ["altitude", "beds"]

    def test_few_rows_prove_nothing(self):
        rng = np.random.default_rng(0)
        assert find_degenerate(cohort_of(clients=1, **dict(zip("abc", rng.standard_normal((3, 6)), strict=True)))) == (
            (),
            (),
        )


class TestFunctions:
    @given(seed=SEEDS, weight=st.sampled_from([1.0, -1.0, 0.2, 5.0]), order=st.permutations(["a", "b", "total", "c"]))
    def test_a_total_and_its_parts_are_a_smallest_set(self, seed, weight, order):
        a, b, c = np.random.default_rng(seed).standard_normal((3, ROWS))
        columns = {"a": a, "b": b, "c": c, "total": a + weight * b}
        (found,) = find_functions(cohort_of(**{name: columns[name] for name in order}))
        assert {*found.variables} == {*found.computable} == {"a", "b", "total"}

    @given(seed=SEEDS, share=st.floats(3e-6, 1.0))
    def test_a_noisy_total_is_no_function(self, seed, share):
        a, b, noise = np.random.default_rng(seed).standard_normal((3, ROWS))
        assert sets_in(cohort_of(a=a, b=b, total=a + b + np.sqrt(2 * share) * noise)) == []

    @given(seed=SEEDS)
    def test_numbers_and_labels_of_a_usual_study_have_none(self, seed):
        assert find_degenerate(studies.cohort_of(studies.mixed(seed))) == ((), ())

    def test_shares_that_add_up_to_one(self):
        parts = np.random.default_rng(2).dirichlet(np.ones(5), ROWS).T
        assert sets_in(cohort_of(**dict(zip("abcde", parts, strict=True)))) == [tuple("abcde")]

    def test_two_totals_give_two_sets(self):
        a, b, c = np.random.default_rng(5).standard_normal((3, ROWS))
        assert sets_in(cohort_of(a=a, b=b, c=c, t=a + b, u=b - c)) == [("a", "b", "t"), ("b", "c", "u")]

    def test_squares_and_coarser_codes_follow_from_one_other(self):
        rng = np.random.default_rng(4)
        x, city = rng.standard_normal(ROWS), rng.integers(0, 4, ROWS)
        found = find_functions(
            cohort_of(square=x**2, x=x, city=np.array(list("abcd"))[city], country=np.array(["p", "q"])[city // 2])
        )
        assert {one.variables: one.computable for one in found} == {
            ("square", "x"): ("square",),
            ("city", "country"): ("country",),
        }

    def test_rare_levels_that_never_meet_are_no_relation(self):
        """Either of two diseases is their sum, as long as nobody has both."""
        rng = np.random.default_rng(14)
        place = rng.permutation(ROWS)
        first, second = place < 12, (place >= 12) & (place < 40)
        columns = {"first": first, "second": second, "either": first | second}
        assert sets_in(cohort_of(**{name: np.where(there, "yes", "no") for name, there in columns.items()})) == []
        assert sets_in(cohort_of(**{name: there.astype(float) for name, there in columns.items()})) == [tuple(columns)]

    def test_a_copy_of_a_part_stays_out_of_the_set(self):
        a, b = np.random.default_rng(6).standard_normal((2, ROWS))
        cohort = cohort_of(a=a, b=b, total=a + b, again=3 * a)
        assert copies_in(cohort) == [("a", "again")]
        assert sets_in(cohort) == [("a", "b", "total")]

    def test_a_sum_of_summaries_says_the_same(self):
        rng = np.random.default_rng(7)
        a, b = rng.standard_normal((2, ROWS))
        cohort = cohort_of(a=a, b=b, total=a + b, again=3 * a, few=rng.integers(0, 3, ROWS).astype(float))
        for known in (Aggregate.of(cohort), Aggregate.from_total(cohort.total, cohort.plan)):
            assert find_degenerate(known) == find_degenerate(cohort)
            assert find_few_valued(known) == find_few_valued(cohort)
            assert find_mostly_constant(known) == ()

    def test_random_features_find_them_too(self):
        a, b = np.random.default_rng(8).standard_normal((2, ROWS))
        cohort = studies.cohort_of(split({"a": a, "b": b, "total": a + b, "again": 1 - a}), Fourier(5))
        assert (copies_in(cohort), sets_in(cohort)) == ([("a", "again")], [("a", "b", "total")])


class TestRedundant:
    @given(seed=SEEDS, order=st.permutations(["a", "b", "x", "total"]))
    def test_the_total_of_independent_parts_is_redundant(self, seed, order):
        """Without it, fewest pairs are linked: only b and x, here."""
        a, b, x = np.random.default_rng(seed).standard_normal((3, ROWS))
        columns = {"a": a, "b": b, "x": x + b, "total": a + b}
        cohort = cohort_of(**{name: columns[name] for name in order})
        assert [*choose_redundant(cohort, find_functions(cohort))] == ["total"]

    def test_variables_to_keep_are_kept(self):
        a, b = np.random.default_rng(11).standard_normal((2, ROWS))
        cohort = cohort_of(a=a, b=b, total=a + b)
        sets = find_functions(cohort)
        assert choose_redundant(cohort, sets, keep=["total"]) == {"b": ("a", "total")}
        assert choose_redundant(cohort, sets, keep=["a", "b", "total"]) == {}

    def test_one_is_left_out_for_each_relation(self):
        a, b, c = np.random.default_rng(12).standard_normal((3, ROWS))
        columns = {"a": a, "b": b, "c": c, "t": a + b, "u": a + b + c}
        cohort = cohort_of(**columns)
        outside = choose_redundant(cohort, find_functions(cohort))
        rest = {name for name in cohort.plan.names if name not in outside}
        assert len(outside) == 2
        assert sets_in(cohort_of(**{name: column for name, column in columns.items() if name in rest})) == []

    def test_a_coarser_code_stays(self):
        city = np.random.default_rng(13).integers(0, 4, ROWS)
        cohort = cohort_of(city=np.array(list("abcd"))[city], country=np.array(["p", "q"])[city // 2])
        assert choose_redundant(cohort, find_functions(cohort)) == {}


class TestFewValues:
    @given(seed=SEEDS, count=st.integers(2, 9))
    def test_up_to_six_values_are_counted(self, seed, count):
        rng = np.random.default_rng(seed)
        values = rng.standard_normal(count)[np.append(np.arange(count), rng.integers(0, count, ROWS - count))]
        found = find_few_valued(cohort_of(few=values, z=rng.standard_normal(ROWS)))
        assert [(one.name, one.values) for one in found] == ([("few", count)] if count <= 6 else [])

    @pytest.mark.parametrize("shape", ["normal", "exponential", "Cauchy", "one huge outlier"])
    def test_numbers_of_many_values_are_not_counted(self, shape):
        rng = np.random.default_rng(9)
        x = SHAPES[shape](rng)
        assert find_few_valued(cohort_of(x=x, many_zeros=np.where(rng.random(ROWS) < 0.6, 0.0, x))) == ()

    def test_a_constant_is_no_number_of_few_values(self):
        assert find_few_valued(cohort_of(one=np.ones(ROWS), z=np.arange(float(ROWS)) ** 2)) == ()

    def test_answers_about_ties_show_many_zeros(self):
        rng = np.random.default_rng(10)
        zeros = np.where(rng.random(ROWS) < 0.6, 0.0, rng.exponential(size=ROWS))
        result = discover(split({"x": rng.standard_normal(ROWS) + zeros, "costs": zeros}))
        (found,) = find_few_valued(result.cohort, result.search_result.residuals)
        assert (found.name, found.values) == ("costs", None)
        assert found.tied_share == pytest.approx(0.6, abs=0.1)

    @given(st.integers(0, 5), st.integers(1, 6), SEEDS)
    def test_ranks_of_integers_are_exact(self, rank, size, seed):
        rank = min(rank, size)
        rng = np.random.default_rng(seed)
        factors = rng.integers(-(2**18), 2**18, (size, rank))
        assert _integer_rank((factors @ factors.T).tolist()) == np.linalg.matrix_rank(factors.astype(float))


class TestMostlyConstant:
    @given(st.integers(0, 5))
    def test_more_than_half_of_the_clients(self, constant):
        tables = studies.numbers(sizes=(20,) * 5)
        for table in list(tables.values())[:constant]:
            table["v1"] = np.zeros(20)
        found = find_mostly_constant(studies.cohort_of(tables))
        assert [one.name for one in found] == (["v1"] if 3 <= constant < 5 else [])
        assert all(len(one.constant_at) == constant and len(one.varies_at) == 5 - constant for one in found)

    def test_one_client_is_not_most_clients(self):
        assert find_mostly_constant(cohort_of(clients=1, x=np.ones(ROWS), y=np.arange(float(ROWS)) ** 2)) == ()


def test_noise_hides_all_of_it():
    plan = noisy_studies.a_plan()
    cohort = add_up(noisy_studies.noisy_chains(plan, 200), plan)
    assert find_degenerate(cohort) == ((), ())
    assert find_copies(cohort) == find_functions(cohort) == find_few_valued(cohort) == ()
    assert find_mostly_constant(cohort) == ()
