"""The encoder gives the features that anybody would write."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import to_table
from fedcdh.errors import DataError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import Encoder, _arcsinh
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import GRID
from fedcdh.summaries.variables import Categorical, Continuous


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


@pytest.mark.parametrize(("cell", "code"), [("3", 0), ("3.0", 0), ("3.", 0), ("-1.00", 1), ("03", None), ("3.5", None)])
def test_whole_numbers_are_labels_also_where_a_program_wrote_them_with_decimals(cell, code):
    plan = StudyPlan((Categorical("ward", ("3", "-1")),), ("north",))
    if code is None:
        with pytest.raises(DataError, match="not among the plan's levels"):
            summarize({"ward": [cell]}, plan, "north")
    else:
        assert summarize({"ward": [cell]}, plan, "north") == summarize({"ward": [[3, -1][code]]}, plan, "north")


@pytest.mark.parametrize("bulk", [(), (12.0, 3.0), (9.5, 0.25)])
@pytest.mark.parametrize("family", [Hermite(), Fourier()], ids=repr)
@given(value=st.floats(-1e6, 1e6), clip=st.floats(1, 100))
def test_a_number_leads_with_its_clipped_value_and_the_square(family, bulk, value, clip):
    plan = StudyPlan((Categorical("g", ("a", "b")), Continuous("x", 10.0, 4.0, *bulk)), ("c",), family, clip)
    sums = summarize({"g": ["b"], "x": [value]}, plan, "c").moments[0] / GRID  # of one row: its features on the grid
    z = np.clip((value - 10.0) / 4.0, -clip, clip)
    assert sums[0] == GRID
    assert sums[1:3].tolist() == [0, GRID]  # the labels' indicators
    span = plan.layout.spans["x"]
    assert sums[span.start] == np.rint(z / clip * GRID)
    assert sums[span.start + 1] == np.rint((z / clip) ** 2 * GRID)
    centre, spread = bulk or (10.0, 4.0)
    clipped = np.clip(value, 10.0 - clip * 4.0, 10.0 + clip * 4.0)
    inside = np.arcsinh((clipped - centre) / spread) if family == Hermite() else z
    assert np.array_equal(sums[span.start + 2 : span.stop], np.rint(family(np.array([inside]))[0] * GRID))


def steps(values: np.ndarray, plan: StudyPlan) -> np.ndarray:
    """The features of the plan's one variable in steps of the grid, one row per value."""
    return np.array([summarize({"x": [value]}, plan, "c").moments[0, 1:] // GRID for value in values.tolist()])


def drawn(shape: str, size: int = 400) -> np.ndarray:
    rng = np.random.default_rng(8)
    normal = rng.standard_normal(size)
    return {
        "normal": normal,
        "lognormal": np.exp(2 * normal),
        "t": rng.standard_t(2, size),
        "Cauchy": rng.standard_cauchy(size),
        "one absurd value": np.append(normal[1:], 1e9),
    }[shape]


HEAVY = ["t", "lognormal", "Cauchy", "one absurd value"]


@pytest.mark.parametrize("family", [Hermite(), Fourier()], ids=repr)
@pytest.mark.parametrize("shape", ["normal", *HEAVY])
@settings(deadline=None, max_examples=5)
@given(
    factor=st.floats(1e-6, 1e6),
    offset=st.floats(-100, 100).map(lambda scales: round(scales, 3)),
    doublings=st.integers(-60, 60),
)
def test_a_change_of_units_leaves_the_features_as_they_were(shape, family, factor, offset, doublings):
    x = drawn(shape, 60)
    before = steps(x, StudyPlan.from_tables({"c": {"x": x}}, family=family))
    moved = factor * (x + offset)
    after = steps(moved, StudyPlan.from_tables({"c": {"x": moved}}, family=family))
    assert np.abs(after - before).max() <= 1  # a value between two steps of the grid may go to the other one
    assert (after != before).mean() < 0.01
    scaled = x * 2.0**doublings  # exact, so the features are
    numbers = {"x": "continuous"}  # numbers of sixteen digits would be taken for identifiers
    assert np.array_equal(
        steps(scaled, StudyPlan.from_tables({"c": {"x": scaled}}, family=family, kinds=numbers)), before
    )


@pytest.mark.parametrize("shape", ["normal", *HEAVY])
def test_a_change_of_direction_turns_the_odd_features_around(shape):
    x = drawn(shape, 60)
    forth, back = (steps(values, StudyPlan.from_tables({"c": {"x": values}})) for values in (x, -x))
    assert np.abs(back - forth * np.array([-1, 1, 1, -1, 1, -1])).max() <= 1


def explained(features: np.ndarray, target: np.ndarray) -> float:
    design = np.column_stack([np.ones(len(target)), features])
    left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(1 - left.var() / target.var())


@pytest.mark.parametrize("shape", HEAVY)
def test_heavy_tails_do_not_hide_the_bulk(shape):
    """What happens within a few quartiles of the median is seen, however far out the largest values are."""
    x = drawn(shape)
    low, median, high = np.quantile(x, [0.25, 0.5, 0.75])
    u = (x - median) / (high - low)
    plan = StudyPlan.from_tables({"c": {"x": 1000 + 5 * x}})
    (variable,) = plan.variables
    features = steps(1000 + 5 * x, plan)
    by_scale = steps(1000 + 5 * x, replace(plan, variables=(Continuous("x", variable.location, variable.scale),)))
    for effect in (np.tanh(u), np.exp(-(u**2) / 2)):
        assert explained(features, effect) > 0.95
        assert explained(features, effect) > explained(by_scale, effect)
    assert np.abs(u).max() > 5  # the tails are heavy
    bulk = features[(low <= x) & (x <= high)]
    assert bulk[:, 0].std() > 200  # and yet the value itself keeps its digits


@pytest.mark.parametrize("outlier", [1e6, -1e9, 1e100])
def test_one_absurd_value_leaves_the_features_of_the_others(outlier):
    x = drawn("normal", 200)
    plain, robust = (StudyPlan.from_tables({"c": {"x": values}}) for values in (x, np.append(x, outlier)))
    assert np.abs(steps(x, robust) - steps(x, plain))[:, 2:].max() < 0.05 * GRID
