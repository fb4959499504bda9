"""One scan of the rows gives the same result for any partition of them."""

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
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries import summary as summary_module
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

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
def test_a_row_of_high_leverage_is_found_by_any_worker(monkeypatch, odd):
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
        with pytest.raises(SummaryError, match="sums are exact for at most"):
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
