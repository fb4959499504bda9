"""The basis: orthonormal over all rows, without columns that add nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pooled
import pytest
import studies

from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import DEFAULT_CLIP
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares


@pytest.fixture(scope="module", params=[Hermite(), Fourier(7, 1.3, 2)], ids=["hermite", "fourier"])
def study(request):
    tables = studies.mixed(4)
    cohort = studies.cohort_of(tables, request.param)
    return Basis.of(cohort), pooled.Rows.of(tables, cohort.plan)


def test_every_variable_is_orthonormal_over_all_rows(study):
    basis, rows = study
    for name, span in basis.spans.items():
        assert basis.total[np.ix_(span, span)] / rows.count == pytest.approx(np.eye(len(span)), abs=1e-8), name
    assert basis.rows.sum() == rows.count


def test_the_basis_spans_what_the_rows_span(study):
    basis, rows = study
    for name, coordinates in rows.coordinates.items():
        span = basis.spans[name]
        assert len(span) == coordinates.shape[1]
        # orthonormal in the same order: equal up to the sign of each column
        own = np.stack([coordinates[place].mean(axis=0) for place in rows.clients])
        assert np.abs(basis.means[:, span]) == pytest.approx(np.abs(own), abs=1e-8)
        for scatter, place in zip(basis.scatter, rows.clients, strict=True):
            about = coordinates[place] - coordinates[place].mean(axis=0)
            assert np.abs(scatter[np.ix_(span, span)]) == pytest.approx(np.abs(about.T @ about), abs=1e-7)


def test_the_same_variables_bend(study):
    basis, rows = study
    assert {name: len(span) for name, span in basis.predictors.items()} == {
        name: columns.shape[1] for name, columns in rows.predictors.items()
    }


def test_what_says_nothing_new_drops_out():
    rng = np.random.default_rng(0)
    size = 80
    table = {
        "number": rng.standard_normal(size),
        "constant": np.full(size, 7.0),
        "binary": rng.integers(0, 2, size).astype(float),
        "three values": rng.integers(0, 3, size).astype(float),
        "one label": np.full(size, "a"),
        "two labels": np.array(["a", "b"])[rng.integers(0, 2, size)],
        "five labels": np.array(list("abcde"))[rng.integers(0, 5, size)],
    }
    basis = Basis.of(studies.cohort_of({"here": table}))
    assert {name: len(span) for name, span in basis.spans.items()} == {
        "number": 6,
        "constant": 0,
        "binary": 1,
        "three values": 2,
        "one label": 0,
        "two labels": 1,
        "five labels": 4,
    }
    assert {name for name, span in basis.targets.items() if len(span) != 1} == {"constant", "one label", "five labels"}


@pytest.mark.parametrize("clip", [10.0, DEFAULT_CLIP])
def test_squares_follow_from_the_first_two_columns(clip):
    tables = studies.numbers(3)
    plan = replace(studies.plan_of(tables), clip=clip)
    basis = Basis.of(add_up([summarize(table, plan, client) for client, table in tables.items()], plan))
    rows = pooled.Rows.of(tables, plan)
    for name, (on_first, on_second) in basis.squares.items():
        first, second = rows.coordinates[name][:, 0], rows.coordinates[name][:, 1]
        first, second = (
            first * np.sign(first @ rows.features[name][:, 0]),
            second * np.sign(second @ rows.features[name][:, 1]),
        )
        left = first**2 - on_first * first - on_second * second
        # the feature and its square are rounded to the grid, each by half a step at most, so not to the last digit
        linear = rows.features[name][:, 0]
        assert np.ptp(left) <= (1 + 2 * np.abs(linear).max()) / pooled.GRID / linear.var()


def test_a_share_of_the_rows_scales_what_is_within_clients_and_what_is_between(study):
    basis, _ = study
    some = basis.scaled(RowShares(0.4, 0.1))
    between = basis.total - basis.within
    assert some.total_rows == pytest.approx(0.4 * basis.total_rows)
    assert some.within == pytest.approx(0.4 * basis.within)
    assert some.total - some.within == pytest.approx(0.1 * between, abs=1e-9 * basis.total_rows)
    assert basis.scaled(ALL_ROWS) is basis
