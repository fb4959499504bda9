"""Noisy moments: in their coordinates the noise is the same in all directions."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import SettingsError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO, DPParameters
from fedcdh.summaries.noisy_moments import NoisyMoments, _isotropic_transform, _orthonormal_contrasts
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("a"), Categorical("b", ("x", "y", "z"))), ("north",), clip=6, noise=DPParameters(1, 1e-6))


def test_directions_are_orthonormal_but_for_the_constant():
    transform, spans = _isotropic_transform(PLAN)
    sizes = transform @ transform.T
    expected = np.eye(len(transform))
    expected[0, 0] = 1 / CONSTANT_VARIANCE_RATIO
    assert sizes == pytest.approx(expected, abs=1e-12)
    assert len(spans["b"]) == 2  # three indicators add up to one


@pytest.mark.parametrize("levels", [2, 3, 7])
def test_contrasts_are_orthonormal_and_add_up_to_zero(levels):
    contrasts = _orthonormal_contrasts(levels)
    assert contrasts @ contrasts.T == pytest.approx(np.eye(levels - 1), abs=1e-12)
    assert contrasts.sum(axis=1) == pytest.approx(np.zeros(levels - 1), abs=1e-12)


def test_exact_summaries_are_refused():
    plan = StudyPlan((Continuous("a"),), ("north",))
    with pytest.raises(SettingsError, match="these summaries have no noise"):
        NoisyMoments.of(add_up([summarize({"a": [1.0, 2.0]}, plan, "north")], plan))
