"""Poisson bootstrap within a client."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.discovery.api import discover_from
from fedcdh.errors import FedCDHError, SettingsError, SummaryError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.bootstrap import admit_replicates, bootstrap_summaries, check_replicate_count, validate_replicate
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries
from fedcdh.summaries.variables import Continuous

TABLES = studies.mixed(0, (300, 200, 150))


PLAN = studies.plan_of(TABLES)


CLIENT = "clinic a"


def parts(table: studies.Table, cuts: list[int]) -> list[studies.Table]:
    edges = [0, *sorted(cuts), len(table["age"])]
    return [{name: column[a:b] for name, column in table.items()} for a, b in pairwise(edges) if b > a]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 299), max_size=6), st.integers(0, 10))
def test_batches_do_not_matter(cuts, seed):
    whole = bootstrap_summaries(TABLES[CLIENT], PLAN, CLIENT, 2, seed)
    assert bootstrap_summaries(parts(TABLES[CLIENT], cuts), PLAN, CLIENT, 2, seed) == whole


def test_blocks_do_not_matter(monkeypatch):
    whole = bootstrap_summaries(TABLES[CLIENT], PLAN, CLIENT, 3, 1)
    monkeypatch.setattr("fedcdh.summaries.bootstrap._BLOCK_ROWS", 7)
    assert bootstrap_summaries(TABLES[CLIENT], PLAN, CLIENT, 3, 1) == whole


def test_a_copy_is_the_summary_of_the_rows_it_repeats():
    """Found out by a table whose rows can be counted: one level each."""
    rows = 60
    tables = {"a": {"row": np.arange(rows).astype(str), "x": np.linspace(-1, 1, rows)}, "b": {"row": ["0"], "x": [0.0]}}
    plan = studies.plan_of(tables)
    (copy,) = bootstrap_summaries(tables["a"], plan, "a", 1, 5)
    levels = plan.variables[0].levels if hasattr(plan.variables[0], "levels") else plan.variables[1].levels
    counts = copy.moments[0, plan.layout.spans["row"]] // 2**36
    times = [int(counts[levels.index(str(row))]) for row in range(rows)]
    repeated = {name: np.repeat(column, times) for name, column in tables["a"].items()}
    assert copy == replace(
        summarize(repeated, plan, "a"), replicate=1, original=summarize(tables["a"], plan, "a").digest
    )
    assert copy.rows == sum(times)


def test_more_copies_leave_the_first_as_they_were_and_seeds_and_clients_differ():
    few, more = (bootstrap_summaries(TABLES[CLIENT], PLAN, CLIENT, copies, 3) for copies in (2, 5))
    assert more[:2] == few
    found = [*more, *bootstrap_summaries(TABLES[CLIENT], PLAN, CLIENT, 2, 4)]
    found += bootstrap_summaries(TABLES[CLIENT], PLAN, "clinic b", 2, 3)
    assert len({copy.moments.tobytes() for copy in found}) == len(found)


def test_copies_have_the_mean_and_the_spread_of_poisson_draws():
    """Σ over rows of (times − 1) φ: mean zero, variance Σ φ². Seed 1000."""
    table = TABLES[CLIENT]
    whole = summarize(table, PLAN, CLIENT)
    copies = bootstrap_summaries(table, PLAN, CLIENT, 400, 1000)
    sums = np.array([copy.moments[0] for copy in copies]) / 2.0**36
    spread = np.sqrt(whole.moments.diagonal() / 2.0**36)
    assert (np.abs(sums.mean(axis=0) - whole.moments[0] / 2.0**36) <= 4 * spread / 20 + 1e-9).all()
    assert sums[:, 0].std() == pytest.approx(spread[0], rel=0.15)
    assert sums[:, 1].std() == pytest.approx(spread[1], rel=0.15)


def test_incomplete_rows_count_as_often_as_they_are_drawn():
    table = {**TABLES[CLIENT], "age": np.where(np.arange(300) % 3, TABLES[CLIENT]["age"], np.nan)}
    for copy in bootstrap_summaries(table, PLAN, CLIENT, 5, 0):
        assert copy.rows_read - copy.rows == copy.missing["age"] > 0


def test_copies_are_summaries_like_any_other():
    drawn = [bootstrap_summaries(table, PLAN, client, 2, 7) for client, table in TABLES.items()]
    for copies in zip(*drawn, strict=True):
        assert all(isinstance(copy, Summary) for copy in copies)
        cohort = add_up(copies, PLAN)
        with pytest.raises(FedCDHError, match="expected summaries of the rows themselves"):
            discover_from(cohort, PLAN)
        assert studies.sound(discover_from([replace(copy, replicate=0) for copy in cohort.summaries], PLAN))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_a_copy_says_what_it_is_a_copy_of_and_anything_else_has_another_digest(data):
    whole = summarize(TABLES[CLIENT], PLAN, CLIENT)
    copies = bootstrap_summaries(TABLES[CLIENT], PLAN, CLIENT, 2, 7)
    assert [copy.original for copy in copies] == [whole.digest] * 2
    assert (copies[0] + replace(copies[0], original="other")).original == ""
    i, j = data.draw(st.tuples(*[st.integers(0, PLAN.layout.n_columns - 1)] * 2).filter(any))
    moments = whole.moments.copy()
    moments[i, j] = moments[j, i] = moments[i, j] - 1
    name = data.draw(st.sampled_from(PLAN.names))
    others = [
        replace(whole, moments=moments),
        replace(whole, rows_read=whole.rows_read + 1),
        replace(whole, missing={**whole.missing, name: whole.missing[name] + 1}),
        replace(whole, plan="0" * 64),
        *copies,
    ]
    assert len({whole.digest, *(other.digest for other in others)}) == len(others) + 1
    assert replace(whole, missing=dict(reversed(whole.missing.items()))).digest == whole.digest


def test_copies_that_no_memory_holds_are_refused_before_a_row_is_read():
    plan = StudyPlan(tuple(Continuous(f"v{k}") for k in range(100)), ("north",))
    most = 2**30 // (8 * plan.layout.n_columns**2)
    check_replicate_count(plan, most)
    with pytest.raises(SettingsError, match=f"2.9 GB of memory.* up to {most} replicates"):
        bootstrap_summaries(None, plan, "north", 1000, 0)
    with pytest.raises(SettingsError, match="ask for none"):
        check_replicate_count(replace(plan, variables=tuple(Continuous(f"v{k}") for k in range(2000))), 1)


@pytest.mark.parametrize(
    ("client", "copies", "seed", "match"),
    [
        ("nobody", 1, 0, "not in the plan"),
        (CLIENT, 0, 0, "replicates is 0"),
        (CLIENT, 2.0, 0, "replicates is"),
        (CLIENT, 1001, 0, "replicates is"),
        (CLIENT, 1, -1, "seed is"),
    ],
)
def test_what_makes_no_sense_is_refused(client, copies, seed, match):
    with pytest.raises(FedCDHError, match=match):
        bootstrap_summaries(TABLES[CLIENT], PLAN, client, copies, seed)


def test_copies_without_rows_are_refused():
    one = {name: column[:1] for name, column in TABLES[CLIENT].items()}
    with pytest.raises(FedCDHError, match="replicates are empty"):
        bootstrap_summaries(one, PLAN, CLIENT, 20, 0)


SMALL = studies.mixed(0, (120, 90, 60))
SMALL_PLAN = studies.plan_of(SMALL)
COHORT = add_up((summarize(table, SMALL_PLAN, client) for client, table in SMALL.items()), SMALL_PLAN)


def copies_of(tables: studies.Tables, plan: StudyPlan, number: int, seed: int = 1) -> list[tuple]:
    """All clients' first copies, all clients' second ones, ..."""
    drawn = [bootstrap_summaries(table, plan, client, number, seed) for client, table in tables.items()]
    return list(zip(*drawn, strict=True))


def test_no_honest_replicate_is_refused():
    for seed in range(3):
        tables = studies.mixed(seed, (60, 8, 150))
        first = tables["clinic a"]
        tables["clinic a"] = {**first, "age": np.where(np.arange(60) % 5, first["age"], np.nan)}
        plan = studies.plan_of(tables)
        cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
        replicates = [one for drawn in copies_of(tables, plan, 8, seed) for one in drawn]
        found = [drawn.summaries[0].replicate for drawn in admit_replicates(replicates, cohort)]
        assert found == list(range(1, 9)), f"seed {seed}"


def test_copies_and_summaries_are_kept_apart():
    ((one, *others),) = copies_of(SMALL, SMALL_PLAN, 1)
    for mixed in ([one, *COHORT.summaries[1:]], [*COHORT.summaries, one]):
        with pytest.raises(SummaryError, match="bootstrap replicate 1"):
            admit_summaries(mixed, SMALL_PLAN)
        with pytest.raises(SummaryError, match="came together"):
            add_up(mixed, SMALL_PLAN)
    with pytest.raises(SummaryError, match="expected the summary"):
        admit_summaries([one, *others], SMALL_PLAN)
    with pytest.raises(SummaryError, match="expected bootstrap replicate 2"):
        admit_summaries([one, *others], SMALL_PLAN, replicate=2)
    with pytest.raises(SummaryError, match="same replicate"):
        _ = one + COHORT.summaries[0]
    with pytest.raises(SummaryError, match="expected summaries of the rows themselves"):
        discover_from(Aggregate.of(add_up([one, *others], SMALL_PLAN)), SMALL_PLAN)


def test_copies_of_other_rows_or_of_no_draw_are_refused():
    first, second = copies_of(SMALL, SMALL_PLAN, 2)
    other = studies.mixed(0, (120, 90, 60))
    other["clinic a"] = {**other["clinic a"], "age": other["clinic a"]["age"] + 40}
    (foreign, *_), _ = copies_of(other, SMALL_PLAN, 2)
    foreign = replace(foreign, original=COHORT.summaries[0].digest)  # as one says who means harm
    with pytest.raises(SummaryError, match="not drawn from the rows of its summary"):
        admit_replicates([foreign, *first[1:]], COHORT)
    lacking = replace(
        first[0], rows_read=first[0].rows_read + 150, missing={**first[0].missing, SMALL_PLAN.names[0]: 150}
    )
    with pytest.raises(SummaryError, match="not drawn from the rows"):
        validate_replicate(lacking, COHORT.summaries[0], COHORT.plan)
    alike = {**SMALL, "clinic a": {name: column[::-1][:-1] for name, column in SMALL["clinic a"].items()}}
    (similar, *_), _ = copies_of(alike, SMALL_PLAN, 2)
    with pytest.raises(SummaryError, match="belongs to another summary"):
        admit_replicates([similar, *first[1:]], COHORT)
    with pytest.raises(SettingsError, match="replicate 1 of clinic a was not drawn from the rows of the result"):
        discover_from(COHORT, SMALL_PLAN).stability(replicates=[[similar, *first[1:]]])
    again = [replace(first[0], replicate=2), *second[1:]]
    with pytest.raises(
        SummaryError, match="bootstrap replicate 2 and bootstrap replicate 1 of client 'clinic a' have the same"
    ):
        admit_replicates([*first, *again], COHORT)
    with pytest.raises(SummaryError, match="bootstrap replicate 1 and its summary"):
        admit_replicates(
            [replace(whole := COHORT.summaries[0], replicate=1, original=whole.digest), *first[1:]], COHORT
        )


def test_a_study_without_a_client_has_copies_without_it():
    there = [client for client in SMALL if client != "clinic b"]
    tables = {client: SMALL[client] for client in there}
    cohort = add_up(
        (summarize(table, SMALL_PLAN, client) for client, table in tables.items()), SMALL_PLAN, without={"clinic b"}
    )
    all_of_them, of_two = copies_of(SMALL, SMALL_PLAN, 2), copies_of(tables, SMALL_PLAN, 2)
    admitted = admit_replicates([copy for drawn in all_of_them for copy in drawn], cohort)
    assert [drawn.summaries for drawn in admitted] == of_two
    result = discover_from(cohort, SMALL_PLAN)
    stability = result.stability(replicates=admitted)
    assert result.stability(replicates=of_two) == stability
    assert [run.clients for run in stability.runs] == [tuple(there)] * 2
    with pytest.raises(SettingsError, match="expected those of the clients of the result, clinic a, clinic c;"):
        result.stability(replicates=all_of_them)
    whole = discover_from(COHORT, SMALL_PLAN)
    for copies in (of_two, admitted):
        with pytest.raises(
            SettingsError, match=r"replicates of clinic a, clinic c; expected .*clinic b, clinic c; pass"
        ):
            whole.stability(replicates=copies)
