"""Small groups that the columns of several plans separate from all other rows."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.privacy.disclosure.separated_groups import UnionLimits, find_separated_group


@pytest.mark.parametrize(("share", "people"), [(0.98, 0), (0.9801, 3)])
def test_three_people_with_equal_weights_are_found_above_the_limit(share, people):
    white = np.sqrt(share / 3) * np.array([[1.0, -1.0, 1.0]])
    assert find_separated_group(white, UnionLimits(max_people=11)) == people


@pytest.mark.parametrize(("share", "people"), [(0.99899, 0), (0.9991, 2)])
def test_two_people_with_free_weights_are_found_above_the_limit(share, people):
    white = np.sqrt(share) * np.array([[0.99, np.sqrt(1 - 0.99**2)]])
    assert find_separated_group(white, UnionLimits(max_people=2)) == people


def test_replicates_lower_all_limits():
    alone, more = UnionLimits(max_people=4), UnionLimits(max_people=4, replicates=20)
    assert more.of_rows < alone.of_rows == pytest.approx(0.99)
    assert (more.of_groups() < alone.of_groups()).all()
    assert (more.of_weighted_groups() < alone.of_weighted_groups()).all()


@pytest.mark.parametrize(("limit", "people"), [(0.9, 3), (0.95, 3), (0.97, 0)])
def test_a_stricter_policy_holds_for_plans_side_by_side_too(limit, people):
    white = np.sqrt(0.96 / 3) * np.array([[1.0, 1.0, 1.0]])
    assert find_separated_group(white, UnionLimits(max_people=11, max_group_leverage=limit)) == people
