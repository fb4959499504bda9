"""Rows on a Dask cluster: the same bytes as from one core, whatever the partitions, and clear refusals."""

from __future__ import annotations

import operator
import os
import sys
from functools import partial, reduce

import clustered
import numpy as np
import pages
import pandas as pd
import pytest
from clustered import PLAN, packed, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.clusters import DaskRows, RayRows, partitions
from fedcdh.data.sources import InMemorySource, PartitionedSource, TableSource
from fedcdh.errors import DataError, MissingDependencyError
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.releases import release
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.profiles import profile

dask = pytest.importorskip("dask", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")

TABLE = rows(400)
ONE_CORE = packed(summarize(TABLE, PLAN, "north"))


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes that only this machine can reach."""
    quiet = {"silence_logs": "CRITICAL", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", **quiet) as started,
        distributed.Client(started) as client,
    ):
        yield client


def frame_of(tables) -> dd.DataFrame:
    """Partitions exactly as they are, also where they are not all alike."""
    whole = [dask.delayed(table) for table in tables]
    return dd.from_delayed(whole, meta=tables[0].iloc[:0], verify_meta=False)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(0, 400), max_size=10).map(sorted))
def test_any_partitions_give_the_bytes_of_one_core(places):
    frame = frame_of(clustered.cut(TABLE, *places))
    assert packed(summarize(DaskRows(frame), PLAN, "north")) == ONE_CORE


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("strings", [True, False])
def test_partitions_may_look_different_by_themselves(scheduler, strings):
    awkward = clustered.awkward_parts(TABLE)
    with dask.config.set({"scheduler": scheduler, "dataframe.convert-string": strings}):
        source = DaskRows(frame_of(awkward))
        expected = summarize(awkward, PLAN, "north")
        assert packed(summarize(source, PLAN, "north")) == packed(expected)
        assert profile(source, "north", variables=PLAN.names) == profile(awkward, "north", variables=PLAN.names)


def test_dask_cuts_and_converts_as_it_likes():
    frame = dd.from_pandas(TABLE, npartitions=7)
    assert str(frame.dtypes["group"]) != str(TABLE.dtypes["group"])
    assert packed(summarize(DaskRows(frame), PLAN, "north")) == ONE_CORE
    unknown = frame.assign(side=frame["side"].cat.as_unknown())
    assert packed(summarize(DaskRows(unknown), PLAN, "north")) == ONE_CORE
    assert packed(summarize(DaskRows(frame[frame["x"] < 99].drop_duplicates()), PLAN, "north")) != ONE_CORE


def test_a_column_is_what_it_is_in_all_partitions():
    tables = [
        {"number": [1, 2], "mixed": [1, 2], "nothing": [None, None], "yes": [True, False], 7: ["a", None]},
        {"number": [1.5, None], "mixed": [None, "x"], "nothing": [None, None], "yes": [True, True], 7: ["b", "c"]},
    ]
    frames = [pd.DataFrame(table).astype({"mixed": object, "nothing": object}) for table in tables]
    source = DaskRows(frame_of(frames))
    assert isinstance(source, TableSource)
    assert isinstance(source, PartitionedSource)
    assert source.kinds() == InMemorySource(frames, "north").kinds()
    assert list(source.kinds()) == ["number", "mixed", "nothing", "yes", "7"]
    assert profile(source, "north") == profile(frames, "north")


def test_what_is_neither_number_nor_label_is_refused_when_it_is_asked_for():
    source = DaskRows(dd.from_pandas(TABLE, npartitions=2))
    assert source.kinds()["day"] == "categorical"
    with pytest.raises(DataError, match=r"'day' holds .*, which is neither a number nor a text"):
        profile(source, "north")
    with pytest.raises(DataError, match=r"the Dask table: there is no column 'age' \(there are 'day', 'x'"):
        list(source.batches({"age": "continuous"}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": "tall"}, "column 'x' at client 'north' holds text, but the plan says continuous"),
        ({"group": "d"}, r"column 'group' at client 'north' holds \['d'\], not among the plan's levels"),
        ({"x": np.inf}, "column 'x' at client 'north' .*inf"),
    ],
)
def test_what_one_partition_holds_is_refused_as_on_one_core(change, said):
    odd = TABLE.astype({"x": object}) if change == {"x": "tall"} else TABLE.copy()
    for name, value in {"group": "a", "side": "left", **change}.items():
        odd.loc[333, name] = value
    for table in (odd, DaskRows(frame_of(clustered.cut(odd, 100, 200, 300)))):
        with pytest.raises(DataError, match=said):
            summarize(table, PLAN, "north")


def test_after_a_refusal_the_rest_is_not_waited_for():
    asked = []

    def work(source):
        asked.append(source)
        raise DataError("this will not do")

    with pytest.raises(DataError, match="this will not do"):
        DaskRows(frame_of(clustered.cut(TABLE, *range(10, 400, 10)))).map_reduce(work, operator.add)
    assert len(asked) == partitions.FAN_IN


def test_rows_that_are_not_enough_are_refused_as_on_one_core():
    source = DaskRows(dd.from_pandas(TABLE, npartitions=3))
    with pytest.raises(DataError, match=r"would lose .* of 400 rows to missing values") as refused:
        summarize(source, PLAN, "north", max_missing_share=0.01)
    with pytest.raises(DataError) as expected:
        summarize(TABLE, PLAN, "north", max_missing_share=0.01)
    assert str(refused.value) == str(expected.value)
    with pytest.raises(DataError, match="client 'north' has no rows"):
        summarize(DaskRows(dd.from_pandas(TABLE.iloc[:0], npartitions=1)), PLAN, "north")


def test_other_tables_and_missing_libraries_say_what_to_do(monkeypatch):
    with pytest.raises(
        DataError, match=r"found DataFrame, but DaskRows expects a dask.dataframe.DataFrame; pass other"
    ):
        DaskRows(TABLE)
    monkeypatch.setitem(sys.modules, "ray.data", None)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[ray\]'"):
        RayRows(TABLE)
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[dask\]'"):
        DaskRows(TABLE)


class StandIn:
    """As much of a Spark data frame as the page uses."""

    def __init__(self, tables):
        self.tables, self.columns, self.rdd = tables, list(tables[0].columns), self

    def mapPartitions(self, on_part):  # noqa: N802
        self.results = [result for table in self.tables for result in on_part(table.itertuples(index=False))]
        return self

    def treeReduce(self, add):  # noqa: N802
        return reduce(add, self.results)


def test_another_engine_takes_what_the_page_says():
    (block,) = (text for _, text in pages.blocks(pages.DOCS / "clusters.md") if "class SparkRows" in text)
    names = {}
    exec(compile(block, "clusters.md", "exec"), names)
    source = names["SparkRows"](StandIn(clustered.cut(TABLE, 0, 150)))
    assert packed(summarize(source, PLAN, "north")) == ONE_CORE


def test_two_workers_give_the_bytes_of_one_core(cluster):
    source = DaskRows(dd.from_pandas(TABLE, npartitions=10))
    with dask.config.set(scheduler=cluster):
        assert packed(summarize(source, PLAN, "north")) == ONE_CORE
        assert os.getpid() not in source.map_reduce(clustered.where, operator.or_)
        assert source.map_reduce(clustered.threads, max) == 1


def test_a_release_is_the_same_and_is_noted_the_same(cluster, tmp_path):
    table = rows(3000, seed=1).assign(smokes=True).dropna()
    source = DaskRows(dd.from_pandas(table, npartitions=4))
    here, there = (tmp_path / name / "releases.jsonl" for name in ("here", "there"))
    message = release(table, PLAN, "north", ledger=here)
    with dask.config.set(scheduler=cluster):
        assert release(source, PLAN, "north", ledger=there) == message
    assert release(table, PLAN, "north", ledger=there) == message  # known already: the same rows
    assert len(ReleaseLedger(there).entries()) == 1


def test_a_refusal_on_a_worker_leaves_no_rows_in_its_log(cluster):
    odd = TABLE.assign(x=TABLE["x"].astype(object))
    odd.loc[7, "x"] = "a secret of a patient"
    with dask.config.set(scheduler=cluster), pytest.raises(DataError, match="holds text"):
        summarize(DaskRows(frame_of(clustered.cut(odd, 200))), PLAN, "north")
    logs = str(cluster.get_worker_logs())
    assert "holds text" in logs
    assert "secret" not in logs


def test_a_killed_worker_changes_nothing(cluster, tmp_path):
    made = partial(clustered.with_a_death, tmp_path / "died")
    frame = dd.from_map(made, clustered.cut(TABLE, 100, 200, 300), meta=TABLE.iloc[:0])
    with dask.config.set(scheduler=cluster):
        assert packed(summarize(DaskRows(frame), PLAN, "north")) == ONE_CORE
    assert (tmp_path / "died").exists()
