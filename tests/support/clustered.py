"""A table with all that partitions of real tables have, and work for workers; both for Dask and for Ray."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

from fedcdh.data.sources import TableSource
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan(
    (
        Continuous("x", 0.1, 1.2),
        Continuous("count", 5.0, 3.0),
        Categorical("group", ("a", "b", "c")),
        Categorical("side", ("left", "right")),
        Categorical("grade", ("1", "2", "3")),
        Categorical("smokes", ("False", "True")),
    ),
    ("north", "south"),
)


def rows(number: int, seed: int = 0) -> pd.DataFrame:
    """Numbers and labels of every type, a few of them missing, and a column that no study asks for."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(number), unit="h"),
            "x": random.normal(size=number),
            "count": random.integers(0, 10, number),
            "group": random.choice(["a", "b", "c"], number),
            "side": pd.Categorical(random.choice(["left", "right"], number)),
            "grade": random.integers(1, 4, number),
            "smokes": random.random(number) < 0.3,
        }
    )
    for name in ("x", "group", "side"):
        frame.loc[random.random(number) < 0.1, name] = None
    return frame


def cut(frame: pd.DataFrame, *places: int) -> list[pd.DataFrame]:
    edges = [0, *places, len(frame)]
    return [frame.iloc[a:b] for a, b in pairwise(edges)]


def awkward_parts(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Parts that look different by themselves: one without rows, columns with nothing in them, types that differ."""
    first, empty, second, third, fourth = cut(frame.copy(), 30, 30, 31, 200)
    second = second.assign(x=np.nan, group=None, side=None)
    third = third.assign(count=third["count"].astype("Int64"), side=third["side"].astype(object))
    fourth = fourth.assign(count=fourth["count"].astype(float), grade=fourth["grade"].astype(float))
    fourth = fourth.assign(side=fourth["side"].cat.add_categories(["up"]).cat.remove_unused_categories())
    return [first, empty, second, third, fourth]


def packed(summary: Summary) -> bytes:
    return pack_summary(SummaryMessage(summary, False), PLAN)


def where(source: TableSource) -> frozenset[int]:
    """The process in which a part is worked on."""
    return frozenset([os.getpid()])


def threads(source: TableSource) -> int:
    return max((library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1)


def with_a_death(marker: Path, table: Any) -> Any:
    """The table; but the first process that is asked for it dies of it, as one without memory would."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return table
    os._exit(1)
