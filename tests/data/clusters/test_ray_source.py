"""Rows on a Ray cluster of two processes: the same bytes as from one core, whatever the blocks, and clear refusals.

And a search whose tests are answered there.

`make test-clusters` runs this, in an environment of its own.
"""

from __future__ import annotations

import operator
import os
import sys
from functools import partial
from itertools import combinations

import clustered
import pages
import pyarrow as pa
import pytest
import studies
from clustered import PLAN, packed, rows

from fedcdh._runtime.worker_pool import make_worker_pool
from fedcdh.data.clusters import RayRows
from fedcdh.data.sources import InMemorySource, PartitionedSource, TableSource
from fedcdh.errors import DataError
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.privacy.releases import release
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.profiles import profile

ray = pytest.importorskip("ray", reason="ray is not installed")
data = pytest.importorskip("ray.data", reason="ray.data is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(r"ignore:::ray\..*")]  # what Ray says about itself
TABLE = rows(400)
ONE_CORE = packed(summarize(TABLE, PLAN, "north"))


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Two worker processes that only this machine can reach."""
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    data.DataContext.get_current().enable_progress_bars = False
    for module in (clustered, sys.modules[__name__]):  # the workers do not have the folders of tests in their path
        ray.cloudpickle.register_pickle_by_value(module)
    ray.init(num_cpus=2, _node_ip_address="127.0.0.1", object_store_memory=1 << 28, **quiet)
    yield
    ray.shutdown()


def arrow(frame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("made", [data.from_pandas, lambda parts: data.from_arrow([*map(arrow, parts)])])
def test_two_workers_give_the_bytes_of_one_core(made):
    source = RayRows(made(clustered.cut(TABLE, *range(20, 400, 20))))
    assert isinstance(source, TableSource)
    assert isinstance(source, PartitionedSource)
    assert packed(summarize(source, PLAN, "north")) == ONE_CORE
    assert profile(source, "north", variables=PLAN.names) == profile(TABLE, "north", variables=PLAN.names)


def test_work_is_done_elsewhere_and_leaves_out_what_was_left_out():
    source = RayRows(data.from_pandas(clustered.cut(TABLE, 100, 200)).limit(150))
    assert os.getpid() not in source.map_reduce(clustered.where, operator.or_)
    assert source.map_reduce(clustered.threads, max) == 1
    assert packed(summarize(source, PLAN, "north")) == packed(summarize(TABLE.iloc[:150], PLAN, "north"))


def test_files_are_read_where_they_are_summarised(tmp_path):
    for number, part in enumerate(clustered.cut(TABLE, 150)):
        part.drop(columns="day").to_parquet(tmp_path / f"{number}.parquet", index=False)
    source = RayRows(data.read_parquet(str(tmp_path)))
    assert packed(summarize(source, PLAN, "north")) == ONE_CORE


def test_blocks_may_look_different_by_themselves():
    awkward = clustered.awkward_parts(TABLE)
    assert packed(summarize(RayRows(data.from_pandas(awkward)), PLAN, "north")) == packed(
        summarize(awkward, PLAN, "north")
    )


def test_a_column_is_what_it_is_in_all_blocks():
    tables = [
        pa.table({"number": [1, 2], "label": [None, "a"], "nothing": pa.nulls(2), "yes": [True, False]}),
        pa.table({"number": [1.5, None], "label": ["b", "c"], "nothing": pa.nulls(2), "yes": [True, True]}),
    ]
    source = RayRows(data.from_arrow(tables))
    assert source.kinds() == InMemorySource(tables, "north").kinds()
    assert profile(source, "north") == profile(tables, "north")
    with pytest.raises(DataError, match="blocks of the Ray dataset do not fit together"):
        RayRows(data.from_arrow([tables[0], tables[0].set_column(0, "number", [["a", "b"]])])).kinds()


@pytest.mark.parametrize("places", [[], [100, 200, 300]])
def test_what_one_block_holds_is_refused_as_on_one_core(places):
    odd = TABLE.astype({"x": object})
    odd.loc[333, "x"] = "tall"
    with pytest.raises(DataError, match=r"^column 'x' at client 'north' holds text, but the plan says continuous"):
        summarize(RayRows(data.from_pandas(clustered.cut(odd, *places))), PLAN, "north")
    odd = TABLE.assign(group="d")
    with pytest.raises(DataError, match="not among the plan's levels"):
        summarize(RayRows(data.from_pandas(clustered.cut(odd, *places))), PLAN, "north")


def test_no_rows_are_refused_as_on_one_core():
    nothing = data.from_pandas(TABLE.iloc[:0])
    with pytest.raises(DataError, match="client 'north' has no rows"):
        summarize(RayRows(nothing), PLAN, "north")
    with pytest.raises(DataError, match=r"found DataFrame, but RayRows expects a ray\.data\.Dataset"):
        RayRows(TABLE)
    with pytest.raises(DataError, match=r"the Ray dataset: there is no column 'age' \(there are 'day', 'x'"):
        list(RayRows(nothing).batches({"age": "continuous"}))


def test_a_release_is_the_same(tmp_path):
    table = rows(3000, seed=1).assign(smokes=True).dropna()
    source = RayRows(data.from_pandas(clustered.cut(table, 1000)))
    message = release(table, PLAN, "north", ledger=tmp_path / "here" / "releases.jsonl")
    assert release(source, PLAN, "north", ledger=tmp_path / "there" / "releases.jsonl") == message


def test_a_killed_worker_changes_nothing(tmp_path):
    made = partial(clustered.with_a_death, tmp_path / "died")
    dataset = data.from_pandas(clustered.cut(TABLE, 100, 200, 300)).map_batches(made, batch_format="pandas")
    assert packed(summarize(RayRows(dataset), PLAN, "north")) == ONE_CORE
    assert (tmp_path / "died").exists()


@pytest.fixture
def by_ray():
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("ray.util.joblib").register_ray()
    with joblib.parallel_config(backend="ray"):
        yield make_worker_pool(2)


def test_tests_are_answered_by_ray_and_the_answers_are_the_same(by_ray, monkeypatch):
    monkeypatch.setattr(
        "fedcdh.inference.batched_regression._MAX_ELEMENTS", 2_000
    )  # so few numbers at a time that there are many parts
    basis = Basis.of(studies.cohort_of(studies.mixed(4)))
    conditions = [frozenset[str](), frozenset({DOMAIN}), frozenset({"flag"})]
    queries = [
        Query(x, y, given) for x, y in combinations(sorted(set(basis.spans) - {"flag"}), 2) for given in conditions
    ]
    queries += [Query(DOMAIN, "age", frozenset({"dose"})), Query(DOMAIN, "group")]
    assert RegressionTest(basis, pool=by_ray)(queries) == RegressionTest(basis)(queries)


def test_what_all_parts_share_does_not_go_along_with_each(by_ray):
    class Shared:
        sent = 0

        def __sizeof__(self):
            return 1 << 20

        def __getstate__(self):
            Shared.sent += 1
            return {}

    found = by_ray(lambda shared, part: (part, os.getpid(), clustered.threads(shared)), Shared(), range(160))
    assert [part for part, _, _ in found] == [*range(160)]
    assert os.getpid() not in {process for _, process, _ in found}
    assert {threads for _, _, threads in found} == {1}
    assert Shared.sent <= 8  # four times for each worker


def test_the_page_says_what_works():
    (block,) = (text for language, text in pages.blocks(pages.DOCS / "clusters.md") if language == "py")
    names = {}
    exec(compile(block, "clusters.md", "exec"), names)
    table = {name: [row[name] for row in names["rows"]] for name in ("age", "ward")}
    assert names["summary"] == summarize(table, names["plan"], "north")
