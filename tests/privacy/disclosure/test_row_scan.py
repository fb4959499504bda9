"""One look at rows: however they are cut, ordered and shared out, the same sums, the same figures, the same verdict."""

from __future__ import annotations

import pickle
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from fedcdh import open_tables, release
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.data import threaded_source
from fedcdh.data.sources import InMemorySource, PartitionedSource, TableSource
from fedcdh.data.table import to_table
from fedcdh.errors import SettingsError, SummaryError
from fedcdh.privacy.disclosure.leverage import compute_leverages
from fedcdh.privacy.disclosure.row_scan import RowScan, ScanOptions, scan_rows
from fedcdh.privacy.disclosure.small_cells import CellCounter, _format_value
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries import summary as summary_module
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import Encoder, _arcsinh
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan

PLAN = StudyPlan(
    (Continuous("x", 1.0, 2.0), Continuous("n", 1.0, 1.5), Continuous("c", 0.5, 3.0), Categorical("g", ("a", "b"))),
    ("north", "south"),
)
ALL = ScanOptions(max_discrete_values=3, max_leverage=0.6, secret=b"of the site")


class InParts:
    """What a cluster is: parts that lie anywhere, results that come in any order and through bytes."""

    def __init__(self, parts, order=()) -> None:
        self.parts, self.order = parts, order

    def map_reduce(self, work, add):
        work = pickle.loads(pickle.dumps(work))
        found = [pickle.loads(pickle.dumps(work(InMemorySource([part], "client 'north'")))) for part in self.parts]
        for place in self.order:  # any two of them first
            if len(found) > 1:
                one, other = found.pop(place % len(found)), found.pop(place % len(found))
                found.insert(place % (len(found) + 1), add(one, other))
        return reduce(add, found)


cells = st.one_of(st.integers(-2, 2).map(float), st.floats(-50, 50))
rows = st.lists(
    st.tuples(
        st.one_of(st.none(), cells),
        st.sampled_from([0.0, -0.0, 1.0, 2.0, None]),
        st.one_of(st.just(0.0), st.floats(-9, 9)),
        st.sampled_from(["a", "b", None]),
    ),
    min_size=1,
    max_size=20,
).map(lambda found: [(1.5, 1.0, 0.0, "a"), *found])


def table(cut) -> dict[str, list]:
    return {name: [row[place] for row in cut] for place, name in enumerate(PLAN.names)}


def verdict(found: RowScan) -> dict:
    summary = found.summary(1.0)
    return {
        "summary": summary.digest,
        "cells": {cell: people for cell, people in found.cells.cells.items() if people},
        "outermost": {name: values.tolist() for name, values in found.extremes.values.items()},
        "alone": {n: round(h, 6) for n, h in compute_leverages(summary, PLAN, found.extremes.values).items()},
        "sketches": (
            found.sketcher.rows.to_document(),
            {n: s.to_document() for n, s in found.sketcher.columns.items()},
        ),
    }


@settings(deadline=None, max_examples=60)
@given(rows, st.lists(st.integers(0, 20), max_size=4), st.lists(st.integers(0, 5), max_size=5), st.randoms())
def test_any_cut_in_any_order_gives_what_one_look_gives(found, places, order, chance):
    whole = scan_rows(table(found), PLAN, "north", ALL)
    shuffled = list(found)
    chance.shuffle(shuffled)
    edges = sorted({0, len(found), *(min(place, len(found)) for place in places)})
    parts = [table(shuffled[a:b]) for a, b in pairwise(edges)]
    split = scan_rows(InParts(parts, order), PLAN, "north", ALL)
    assert verdict(split) == verdict(whole)
    summary = whole.summary(1.0)
    assert split.high_leverage.largest(summary) == pytest.approx(whole.high_leverage.largest(summary), rel=1e-6)


def many_rows(count: int = 6000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1000)
    age = np.round(rng.normal(60, 12, count))
    cost = np.where(rng.random(count) < 0.6, 0.0, np.minimum(rng.exponential(30, count), 150))
    columns = {"age": age, "cost": cost, "bmi": rng.normal(27, 4, count) + age / 20, "dose": rng.integers(0, 4, count)}
    return {**columns, "sex": np.where(rng.random(count) < 0.4, "f", "m")}


STUDY = StudyPlan(
    (
        Continuous("age", 60, 12),
        Continuous("cost", 20, 40, 5, 20),
        Continuous("bmi", 30, 4),
        Continuous("dose", 1.5, 1.2),
        Categorical("sex", ("f", "m")),
    ),
    ("north", "south"),
)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers_gives_the_same_bytes_and_figures(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(threaded_source, "_MAX_PIECE_CELLS", 2500)
    data = many_rows()
    alone = scan_rows(data, STUDY, "north", ScanOptions(20, 0.5, b"s"))
    found = scan_rows(data, STUDY, "north", ScanOptions(20, 0.5, b"s"), workers=workers)
    assert found.cells.cells == alone.cells.cells
    assert any("that few people share" in cell for cell in found.cells.cells)
    assert found.sketcher.rows == alone.sketcher.rows
    assert found.high_leverage.largest(found.summary(0)) == pytest.approx(alone.high_leverage.largest(alone.summary(0)))
    assert summarize(data, STUDY, "north", workers=workers) == alone.summary(0)
    messages = {release(data, STUDY, "north", ledger=tmp_path / str(n), workers=n) for n in (1, workers)}
    assert len(messages) == 1


@pytest.mark.parametrize("odd", [0, 5999])
def test_who_stands_out_is_found_whoever_sees_the_row(monkeypatch, odd):
    monkeypatch.setattr(threaded_source, "_MAX_PIECE_CELLS", 2500)
    data = many_rows()
    data["age"][odd], data["bmi"][odd], data["dose"][odd] = 500.0, 300.0, 3
    found = [scan_rows(data, STUDY, "north", ScanOptions(20, 0.9), workers=workers) for workers in (1, 2, 3)]
    features = Encoder(STUDY, "north")(to_table(data)).T
    orthonormal, sizes, _ = np.linalg.svd(features / np.linalg.norm(features, axis=0), full_matrices=False)
    truth = (orthonormal[:, sizes > 1e-6 * sizes[0]] ** 2).sum(axis=1).max()
    assert truth > 0.9
    for look in found:
        assert look.high_leverage.largest(look.summary(0)) == pytest.approx(truth, rel=1e-4)


def test_no_row_above_the_limit_is_missed_by_looking_at_blocks_as_a_whole():
    rng = np.random.default_rng(7)
    plan = StudyPlan((Continuous("a"), Continuous("b"), Categorical("g", ("u", "v", "w"))), ("north",))
    for seed in range(5):
        count = 20_000
        data = {"a": rng.standard_normal(count), "b": rng.standard_t(3, count), "g": rng.choice(["u", "v"], count)}
        place = int(rng.integers(count))
        data["g"][place] = "w"  # nobody else has it: leverage 1, wherever the row is
        data["a"][(place + 5000) % count] = 20 + seed
        features = Encoder(plan, "north")(to_table(data)).T
        orthonormal, sizes, _ = np.linalg.svd(features / np.linalg.norm(features, axis=0), full_matrices=False)
        leverage = (orthonormal[:, sizes > 1e-6 * sizes[0]] ** 2).sum(axis=1)
        found = scan_rows(data, plan, "north", ScanOptions(max_leverage=0.05)).high_leverage
        kept = {tuple(column) for column in found._kept.T.tolist()}
        above = features[leverage > 0.05].astype(int)
        assert len(above) >= 2
        assert {tuple(row) for row in above.tolist()} <= kept


def test_a_policy_and_a_ledger_decide_on_parts_as_on_the_whole(tmp_path):
    data = many_rows()
    cuts = np.array_split(np.random.default_rng(3).permutation(6000), 5)
    parts = InParts([{name: column[cut] for name, column in data.items()} for cut in cuts], (3, 1))
    assert isinstance(parts, PartitionedSource)
    assert not isinstance(parts, TableSource)
    whole = release(data, STUDY, "north", ledger=tmp_path / "whole")
    assert release(parts, STUDY, "north", ledger=tmp_path / "parts") == whole
    assert summarize(parts, STUDY, "north") == summarize(data, STUDY, "north")
    with pytest.raises(SettingsError, match=r"InParts, which gives them in no order.*bootstrap replicate needs"):
        release_summary(parts, STUDY, ReleaseContext("north"), replicates=2)


def test_linear_algebra_has_its_threads_back_however_summaries_overlap():
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before, one, other = threads(), single_blas_thread(), single_blas_thread()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert set(threads()) == {1}
        other.__exit__(None, None, None)
        assert threads() == before


def test_the_secret_is_in_no_log():
    assert "site" not in repr(ALL)


def test_more_rows_than_sums_can_hold_are_refused_also_in_parts(monkeypatch):
    monkeypatch.setattr(summary_module, "MAX_ROWS", 250)
    data = many_rows(300)
    for source in (data, InParts([{n: c[:150] for n, c in data.items()}, {n: c[150:] for n, c in data.items()}])):
        with pytest.raises(SummaryError, match="whose sums are exact"):
            summarize(source, STUDY, "north")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_shared_out_among_workers(tmp_path, ending):
    import pandas as pd

    frame = pd.DataFrame(many_rows(3000))
    path = tmp_path / f"data.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    read: list[int] = []
    source = open_tables(path, progress=lambda count, share: read.append(count), batch_rows=500)
    assert summarize(source, STUDY, "north", workers=2) == summarize(frame, STUDY, "north")
    assert sum(read) == 3000


# The quick way to features


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.sampled_from([Hermite(), Hermite(8, 0.5)]))
def test_the_quick_arcsinh_gives_the_same_whole_numbers(values, family):
    plan = StudyPlan((Continuous("x", 0.3, 1.7, 0.1, 0.9),), ("north",), family)
    data = to_table({"x": values})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcdh.summaries.encoder._MIN_SMOOTH_BANDWIDTH", np.inf)
        exact = Encoder(plan, "north")
    assert not exact._smooth
    assert np.array_equal(Encoder(plan, "north")(data), exact(data))


def test_the_quick_arcsinh_is_near_numpys_and_ties_are_left_to_that():
    values = np.concatenate([np.linspace(-40, 40, 20_001), 10.0 ** np.arange(-300, 150, 7.0)])
    assert np.abs(_arcsinh(values) - np.arcsinh(values)).max() < 1e-12
    near = np.abs(values) < 100
    assert np.abs(_arcsinh(values) - np.arcsinh(values))[near].max() < 4e-15
    plan, calls = StudyPlan((Continuous("x"),), ("north",)), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcdh.summaries.encoder._TIE_TOLERANCE", 0.5)  # everything is one
        patch.setattr(np, "arcsinh", lambda found, exact=np.arcsinh: calls.append(1) or exact(found))
        Encoder(plan, "north")(to_table({"x": values}))
    assert calls


@pytest.mark.parametrize("family", [Hermite(), Fourier()])
def test_features_are_those_that_anybody_would_write(family):
    values = np.random.default_rng(5).standard_t(3, 5000)
    plan = StudyPlan((Continuous("x", 0.2, 1.5, 0.1, 0.8),), ("north",), family)
    standardised = np.clip((values - 0.2) / 1.5, -30, 30)
    inside = np.arcsinh((standardised * 1.5 + 0.2 - 0.1) / 0.8) if family.compresses_tails else standardised
    linear = standardised / 30
    plain = np.stack([np.ones(5000), linear, linear**2, *family.iter_columns(inside)])
    assert np.abs(Encoder(plan, "north")(to_table({"x": values})) / 2**18 - plain).max() <= 2.0**-19 + 1e-12


# Few values, in parts


def test_values_that_are_many_in_one_part_or_in_all_together_are_many():
    plan = StudyPlan((Continuous("v"), Continuous("w"), Categorical("g", ("a", "b"))), ("north",))

    def counted(v, w, g="a") -> CellCounter:
        few = CellCounter(plan, 3)
        few(to_table({"v": v, "w": w, "g": [g] * len(v)}))
        return few

    here, there = counted([1, 2], [5, 5]), counted([1, 3], [5, 6], "b")
    assert (here + there).cells == (there + here).cells
    assert (here + there).cells["value 1 of 'v' with 5 of 'w'"] == 2
    many = counted([1, 2, 3, 4], [5, 5, 5, 5])
    assert not any(cell.startswith("value") and "of 'v'" in cell for cell in (here + many).cells)
    assert (here + many).cells["value 5 of 'w' with 'a' of 'g'"] == 6
    together = here + there + counted([7], [5])
    assert not any(cell.startswith("value 1 of 'v'") for cell in together.cells)


def test_a_label_in_two_spellings_is_one():
    """As pandas writes whole numbers where one file has gaps and another has none."""
    plan = StudyPlan((Continuous("v"), Categorical("ward", ("1", "2.0"))), ("north",))
    few = CellCounter(plan, 3)
    few(to_table({"v": [0, 0, 0, 1, 1], "ward": ["1", "1.0", "2.0", "1.0", "1.0"]}))
    assert few.cells["value 0 of 'v' with '1' of 'ward'"] == 2
    assert few.cells["value 0 of 'v' with '2.0' of 'ward'"] == 1
    assert few.cells["value 1 of 'v' with '1' of 'ward'"] == 2
    assert not any("'1.0'" in cell for cell in few.cells)


@pytest.mark.parametrize("threads", [(0, 0), (0, 1), (1, 0)])
def test_a_value_that_many_have_is_one_wherever_they_stand(threads):
    plan, rng = StudyPlan((Continuous("cost"), Categorical("g", ("a", "b"))), ("north",)), np.random.default_rng(8)
    cost, g = np.where(rng.random(4000) < 0.6, 0.0, rng.random(4000)), np.repeat("b", 4000)
    cost[:600], cost[2000:2600] = 0.0, rng.random(600)  # the first rows of one block all have it, of the other none
    g[[*range(1000, 1020), *range(3000, 3020)]], cost[1000:1020], cost[3000:3020] = "a", 0.0, 0.0
    cost[3005] = 0.5
    found = [CellCounter(plan, 20), CellCounter(plan, 20)]
    for start, thread in zip((0, 2000), threads, strict=True):
        found[thread](to_table({"cost": cost, "g": g}).slice_rows(start, 2000))
    assert (found[0] + found[1]).cells["a value of 'cost' that few people share, with 'a' of 'g'"] == 1


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, 4.0]),
            st.sampled_from([0.0, 1.0, 7.5, 8.5, 9.5]),
            st.sampled_from(["a", "b", "c"]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.integers(0, 3), min_size=40, max_size=40),
)
def test_cells_are_those_of_the_rows_whoever_counts_which(found, whose):
    plan = StudyPlan((Continuous("v"), Continuous("w"), Categorical("g", ("a", "b", "c"))), ("north",))
    parts = [CellCounter(plan, 3) for _ in range(4)]
    for row, part in zip(found, whose, strict=False):
        parts[part](to_table({name: [cell] for name, cell in zip(plan.names, row, strict=True)}))
    v, w, g = (np.array(column) for column in zip(*found, strict=True))
    v, plain = v + 0.0, {}  # -0.0 is 0.0
    few = {name: column for name, column in (("v", v), ("w", w)) if len(set(column)) <= 3}
    for name, column in few.items():
        plain |= {f"value {_format_value(x)} of {name!r}": (column == x).sum() for x in set(column.tolist())}
        for other, labels in {**few, "g": g}.items():
            if other > name or other == "g":
                plain |= {
                    f"value {_format_value(x)} of {name!r} with {_format_value(y)} of {other!r}": both
                    for x in set(column.tolist())
                    for y in set(labels.tolist())
                    if (both := ((column == x) & (labels == y)).sum())
                }
    for name, column in (("v", v), ("w", w)):
        values, counts = np.unique(column, return_counts=True)
        often = values[counts >= max(2, 0.15 * len(column))]
        for other, labels in {**few, "g": g}.items() if name not in few and len(often) else ():
            plain |= {
                f"a value of {name!r} that few people share, with {_format_value(y)} of {other!r}": (
                    (labels == y) & ~np.isin(column, often)
                ).sum()
                for y in set(labels.tolist())
            }
    assert reduce(CellCounter.__add__, parts).cells == plain


def test_values_from_very_many_parts_take_bounded_memory():
    plan, rng = StudyPlan((Continuous("v"), Categorical("g", ("a", "b"))), ("north",)), np.random.default_rng(2)
    total = CellCounter(plan, 3)
    for _ in range(50):
        part = CellCounter(plan, 3)
        part(to_table({"v": np.append(rng.random(10), np.zeros(5)), "g": rng.choice(["a", "b"], 15)}))
        total += part
        assert len(pickle.dumps(total)) < 100_000
    assert 495 <= sum(total.cells.values()) <= 50 * 10  # who has another value than 0, but for those in its bucket
