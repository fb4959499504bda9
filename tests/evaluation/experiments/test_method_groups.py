"""Groups of methods: styles that differ, and the methods that a figure shows."""

from __future__ import annotations

import pytest
from small_experiments import row

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.experiments.definition import experiment_names, load_experiment
from fedcdh.evaluation.experiments.method_groups import (
    MAX_CURVES,
    OWN_METHODS,
    PAPER_METHODS,
    choose_curves,
    curve_styles,
    is_rival,
)


@pytest.mark.parametrize("name", experiment_names())
def test_methods_of_a_figure_differ_in_colour_and_in_marker_or_line(name):
    methods = load_experiment(name).methods
    rows = [row(method, 1, number / 100) for number, method in enumerate(methods)]
    shown = methods if len(methods) <= MAX_CURVES else choose_curves(rows, methods, "f1")
    styles = curve_styles(shown)
    assert len({style.colour for style in styles.values()}) == len(shown) <= MAX_CURVES
    assert len({(style.marker, style.line) for style in styles.values()}) == len(shown)


def test_twenty_methods_still_differ():
    styles = curve_styles([*OWN_METHODS, *PAPER_METHODS, *(f"rival-{number}" for number in range(9))])
    assert len(styles) == 20 == len({style.colour for style in styles.values()})
    assert len({(style.marker, style.line) for style in styles.values()}) == 20


def test_ours_the_paper_s_and_the_strongest_are_drawn():
    first = ["oracle", *OWN_METHODS[:3], *PAPER_METHODS]
    others = [f"rival-{number}" for number in range(9)]
    rows = [row(method, seed, 0.2) for method in first for seed in range(4)]
    rows += [row(method, seed, number / 10) for number, method in enumerate(others) for seed in range(4)]
    rows += [row("few-seeds", 0, 1.0)]
    assert choose_curves(rows, [*others, *first, "few-seeds"], "f1") == ["rival-7", "rival-8", *first]
    errors = [{**one, "shd": one["f1"]} for one in rows]  # fewer errors are better
    assert choose_curves(errors, [*others, *first], "shd") == ["rival-0", "rival-1", *first]


def test_groups_are_of_the_registry():
    assert {*OWN_METHODS} <= {*BASELINES}
    assert not any(map(is_rival, ("oracle", *OWN_METHODS)))
    assert all(map(is_rival, PAPER_METHODS))
