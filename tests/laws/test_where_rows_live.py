"""Where rows live does not matter: files, formats, batches and memory give the same values."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import (
    KINDS,
    as_csv,
    as_typed,
    labels,
    numbers,
    read,
    rows,
    save,
    values,
    write,
)

from fedcdh.data.readers import open_tables
from fedcdh.data.table import to_table
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile


@settings(deadline=None, max_examples=150)
@given(st.data(), rows)
def test_files_formats_and_batches_change_nothing(data, content):
    draw = data.draw
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=3)))
    with TemporaryDirectory() as folder:
        paths = []
        for k, (start, stop) in enumerate(pairwise([0, *cuts, len(content)])):
            ending = draw(st.sampled_from([".csv", ".csv.gz", ".parquet", ".arrow", ".feather"]))
            path, part = Path(folder) / f"{k}{ending}", content[start:stop]
            if not ending.startswith(".csv"):
                as_typed(path, part, draw(st.integers(1, 9)), draw(st.booleans()))
            else:
                write(path, as_csv(part))
            paths.append(path)
        calls: list[tuple[int, float]] = []
        source = open_tables(paths, batch_rows=draw(st.integers(1, 12)), progress=lambda *news: calls.append(news))
        wanted = {"x": [x for x, _ in content], "g": [g for _, g in content]} if content else {}
        assert values(source.batches(KINDS)) == wanted
        assert sum(count for count, _ in calls) == len(content)
        shares = [share for _, share in calls]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        assert values(source.batches(KINDS)) == wanted, "a source can be read again"


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(numbers, labels), max_size=20), st.integers(0, 20))
def test_what_a_column_is_does_not_depend_on_the_cut(content, cut):
    with TemporaryDirectory() as folder:
        whole = write(Path(folder) / "whole.csv", as_csv(content))
        parts = [
            write(Path(folder) / f"{k}.csv", as_csv(part)) for k, part in enumerate((content[:cut], content[cut:]))
        ]
        assert open_tables(whole).kinds() == open_tables(parts).kinds() == open_tables(parts[::-1]).kinds()


def test_files_give_the_profile_and_the_summary_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(500).tolist(), rng.choice(list("abc"), 500).tolist()
    x[7], g[9] = None, None
    paths = [
        write(tmp_path / "a.csv", as_csv(list(zip(x[:200], g[:200], strict=True)))),
        save(tmp_path / "b.parquet", {"x": x[200:], "g": g[200:]}, row_group_size=70),
    ]
    source, table = open_tables(paths, batch_rows=64), {"x": x, "g": g}
    assert profile(source, "north") == profile(table, "north")
    plan = StudyPlan.from_profiles([profile(source, "north"), profile(table, "south")])
    assert summarize(source, plan, "north") == summarize(table, plan, "north")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(numbers, labels, st.one_of(st.none(), st.booleans())), min_size=1))
def test_a_file_reads_like_the_table_in_memory(content):
    types = {"x": pa.float64(), "g": pa.string(), "b": pa.bool_()}
    table = pa.table({name: pa.array([row[j] for row in content], types[name]) for j, name in enumerate(types)})
    kept = to_table(table)
    with TemporaryDirectory() as folder:
        assert read(save(Path(folder) / "a.parquet", table), dict.fromkeys(types, "categorical")) == values([kept])
