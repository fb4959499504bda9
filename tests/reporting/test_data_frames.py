"""Data frames of results: one row per record, and a type for every column."""

from __future__ import annotations

import dataclasses
import sys

import pytest
from studies import mixed

import fedcdh
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.reporting.data_frames import to_pandas, to_polars

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


@pytest.fixture(scope="module")
def result():
    return fedcdh.discover(mixed(0, (300, 200, 150, 100, 60)))


FRAMES = {"pandas": to_pandas, "polars": to_polars}


@pytest.mark.parametrize("library", FRAMES)
def test_edges_as_a_frame(result, library):
    pytest.importorskip(library)
    frame = FRAMES[library](result.edges())
    assert list(frame.columns) == [field.name for field in dataclasses.fields(fedcdh.Edge)]
    assert len(frame) == 21  # of six variables and the domain
    rows = zip(frame["source"], frame["target"], frame["mark"], strict=True)
    assert {(source, target) for source, target, mark in rows if mark == "→"} == result.augmented.arrows
    sets = [None if names is None else tuple(names) for names in frame["separating_set"]]
    assert sets == [edge.separating_set for edge in result.edges()]


@pytest.mark.parametrize("library", FRAMES)
def test_frames_have_their_types_even_where_all_is_empty(library):
    pytest.importorskip(library)
    edge = fedcdh.Edge("a", "b", "—", None, None, None, None, None)
    full = dataclasses.replace(edge, p_value=0.1, separating_set=("c",), change_forward=1.0)
    frames = [FRAMES[library](records, fedcdh.Edge) for records in ([edge], [full], [])]
    assert len({tuple(map(str, frame.dtypes)) for frame in frames}) == 1
    assert [len(frame) for frame in frames] == [1, 1, 0]


def test_no_records_and_no_kind():
    pytest.importorskip("pandas")
    with pytest.raises(SettingsError, match="Pass the kind"):
        to_pandas([])


def test_records_that_polars_has_no_type_for(result):
    pytest.importorskip("polars")
    with pytest.raises(SettingsError, match=r"arrows, lines, changing, weights cannot be columns of polars"):
        to_polars(result.stability().runs)


@pytest.mark.parametrize("library", FRAMES)
def test_drift_and_stability_as_frames(result, library):
    pytest.importorskip(library)
    drift, stability = result.drift(), result.stability()
    assert len(FRAMES[library](drift, fedcdh.Drift)) == len(drift) > 0
    assert list(FRAMES[library](stability.edges)["adjacent"]) == [edge.adjacent for edge in stability.edges]
    assert len(FRAMES[library](stability.changing)) == len(stability.changing)


@pytest.mark.parametrize("library", FRAMES)
def test_without_the_library_the_error_names_the_extra(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[graphs\]'"):
        FRAMES[library]([])
