"""The default significance level."""

from __future__ import annotations

import pytest

from fedcdh.discovery.settings import default_alpha


def test_the_usual_level_lets_no_more_pairs_stay_by_chance():
    levels = [default_alpha("constraint", variables) for variables in range(2, 200)]
    pairs = [variables * (variables - 1) / 2 for variables in range(2, 200)]
    assert levels == sorted(levels, reverse=True)
    assert max(level * count for level, count in zip(levels, pairs, strict=True)) == pytest.approx(0.05 * 435)
    assert levels[:29] == [0.05] * 29
    assert default_alpha("paper", 1000) == 0.05
