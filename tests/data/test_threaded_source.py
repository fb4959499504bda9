"""One source, read by several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fedcdh.data import threaded_source
from fedcdh.data.sources import TableSource, to_source
from fedcdh.data.threaded_source import ThreadedSource
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


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


def test_a_data_frame_with_a_column_called_map_reduce_is_a_table():
    pd = pytest.importorskip("pandas")
    plan = StudyPlan((Continuous("map_reduce", 1, 1),), ("north",))
    assert summarize(pd.DataFrame({"map_reduce": [1.0, 2.0]}), plan, "north").rows == 2


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_goes_wrong_first_is_what_is_said(workers, monkeypatch):
    monkeypatch.setattr(threaded_source, "_MAX_PIECE_ROWS", 10)
    data = {name: list(column[:1000]) for name, column in many_rows(1000).items()}
    data["sex"][400], data["sex"][700], data["age"][650] = "unknown", "later", float("inf")
    before = threading.active_count()
    with pytest.raises(DataError, match=r"'sex' at client 'north' holds \['unknown'\]"):
        summarize(data, STUDY, "north", workers=workers)
    with pytest.raises(DataError, match="would lose 10 of 10 rows"):
        summarize({name: [None] * 10 for name in data}, STUDY, "north", workers=workers)

    def broken():
        yield {name: column[:100] for name, column in data.items()}
        raise OSError(5, "the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        summarize(broken(), STUDY, "north", workers=workers)
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_ends_all_workers(workers):
    def work(source: TableSource) -> int:
        for count, _ in enumerate(source.batches(STUDY.kinds)):
            if count == 5 and threading.current_thread() is threading.main_thread():  # who is interrupted
                raise KeyboardInterrupt
        return 0

    rows, before = many_rows(100), threading.active_count()
    endless = iter(lambda: rows, None)
    with pytest.raises(KeyboardInterrupt):
        ThreadedSource(to_source(endless, "client 'north'"), workers).map_reduce(work, int.__add__)
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [0, -1, 1.5, 1000])
def test_workers_are_a_whole_number(workers):
    with pytest.raises(SettingsError, match="expected a whole number from 1 to 256"):
        summarize(many_rows(10), STUDY, "north", workers=workers)
