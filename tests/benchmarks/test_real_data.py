"""Arrows on real data, counted by what directed them."""

from __future__ import annotations

from collections import Counter

from benchmarks.bench_real_data import judge_arrows
from fedcdh.evaluation.experiments.real_data import RealStudy

STUDY = RealStudy("pair", "pair", {}, {}, frozenset({("a", "b"), ("b", "c"), ("c", "b")}), None)


def test_arrows_are_right_reversed_or_no_edge():
    reasons = [(("a", "b"), "noise"), (("b", "a"), "collider"), (("a", "c"), "noise")]
    expected = {("noise", "right"): 1, ("collider", "reversed"): 1, ("noise", "no edge"): 1}
    assert judge_arrows(STUDY, reasons) == Counter(expected)


def test_between_mutual_causes_both_directions_are_right():
    assert judge_arrows(STUDY, [(("b", "c"), "noise"), (("c", "b"), "noise")]) == {("noise", "right"): 2}
