"""Sentences about results: true of their rows whatever these are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from small_experiments import CASE

from fedcdh.evaluation.experiments.definition import load_experiment
from fedcdh.evaluation.experiments.standings import ResultCell, Standing
from fedcdh.evaluation.experiments.statements import (
    describe_experiment,
    describe_order,
    describe_power,
    describe_scale,
    describe_standing,
    join_words,
    summarise_standing,
)


def cell(label="base", **scores):
    return ResultCell((), label, {name: dict(enumerate(map(float, found))) for name, found in scores.items()})


def test_highest_in_every_cell_is_said_only_where_it_is_true():
    above = cell(fedcdh=[0.9, 0.8], fedpc=[0.5, 0.4])
    below = cell(fedcdh=[0.3, 0.2], fedpc=[0.5, 0.4])
    assert "in all 2 cells" in describe_standing([above, above])
    assert "in 1 of 2 cells; in the others the highest is `fedpc` in 1" in describe_standing([above, below])
    assert "in every cell (highest: `fedpc` in 2)" in describe_standing([below, below])
    assert "no rival is higher in any cell" in summarise_standing(Standing([above]))
    assert "a rival is higher in 1 of 2 cells" in summarise_standing(Standing([above, below]))


def test_more_less_and_the_same():
    for theirs, words in ((0.9, "has more: 0.90"), (0.5, "has less: 0.50"), (0.7, "has the same")):
        assert words in describe_standing([cell(fedcdh=[0.7, 0.7], fedpc=[theirs, theirs])])


def test_significance_is_said_only_where_a_test_finds_it():
    rng = np.random.default_rng(3)
    worse = cell(fedcdh=rng.uniform(0, 0.3, 10), fedpc=rng.uniform(0.7, 1, 10))
    tied = cell(fedcdh=[0.5, 0.6] * 5, fedpc=[0.6, 0.5] * 5)
    few = cell(fedcdh=[0.1] * 3, fedpc=[0.9] * 3)
    assert "significantly better: `fedpc` in 1 of 2 cells" in describe_standing([worse, tied])
    assert "no rival is significantly better" in describe_standing([tied])
    assert "significant" not in describe_standing([few])
    assert "significantly: `fedpc` (in 1)" in summarise_standing(Standing([worse, tied]))
    assert "significant" not in summarise_standing(Standing([few]))


def test_a_design_that_is_not_complete_says_so():
    partly = [cell(fedcdh=[0.9], fedpc=[0.5]), cell(fedpc=[0.5])]
    assert "was not run on all" in describe_standing(partly)
    assert "was not run on all" in summarise_standing(Standing(partly))


def test_every_figure_of_a_sentence_is_a_figure_of_the_rows():
    """Random rows: means, extremes and counts in the sentence are those that the rows have."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        cells = [
            cell(**{name: rng.uniform(0, 1, 7) for name in ("fedcdh", "fedpc", "feddag")})
            for _ in range(rng.integers(2, 6))
        ]
        sentence = describe_standing(cells)
        means = {name: [float(np.mean([*one.scores[name].values()])) for one in cells] for name in cells[0].scores}
        highest = sum(own >= max(others) for own, *others in zip(*means.values(), strict=True))
        rival = max(("fedpc", "feddag"), key=lambda name: float(np.mean(means[name])))
        own = means["fedcdh"]
        expected = [f"{np.mean(own):.2f}", f"{min(own):.2f}", f"{max(own):.2f}"]
        found = re.search(r"it has (\S+), from (\S+) to (\S+) by cell", sentence)
        assert found is not None
        assert [*found.groups()] == expected, f"seed {seed}"
        assert f"`{rival}`, has" in sentence, f"seed {seed}"
        assert (f"in {highest} of {len(cells)} cells;" in sentence) == (0 < highest < len(cells)), f"seed {seed}"


def graph_rows(method, values, **changed):
    """Return rows of a simulated case, one per seed, with these direction F1 and graphs named after them."""
    base = {name: str(value) for name, value in {**CASE, **changed}.items()}
    return [
        {**base, "method": method, "seed": str(seed), "direction_f1": str(f1), "graph": f"{method} {f1}"}
        for seed, f1 in enumerate(values)
    ]


def test_scale_counts_equal_graphs_and_names_who_loses():
    experiment = load_experiment("figure-3")
    case = {"variables": 6, "clients": 10, "rows": 100, "changing": 2}
    rows = []
    for scale, sorted_f1 in (("raw", 0.9), ("standardised", 0.3)):
        rows += graph_rows("fedcdh", (0.8, 0.7 if scale == "raw" else 0.69), scale=scale, **case)
        rows += graph_rows("sort-by-variance", (sorted_f1, sorted_f1), scale=scale, **case)
    said = describe_scale(experiment, rows)
    assert "in 1 of 2 instances" in said
    assert "`sort-by-variance` from 0.90 to 0.30" in said
    assert "`fedcdh` from" not in said


def test_order_separates_methods_that_always_and_sometimes_find_the_same_graph():
    rows = graph_rows("fedcdh", (0.8, 0.7), order="given") + graph_rows("fedcdh", (0.8, 0.7), order="shuffled")
    rows += graph_rows("fedcdh-paper", (0.8, 0.7), order="given") + graph_rows(
        "fedcdh-paper", (0.8, 0.1), order="shuffled"
    )
    said = describe_order(load_experiment("order"), rows)
    assert "on all 2 instances, whatever the order: `fedcdh`." in said
    assert "on some instances only: `fedcdh-paper` in 1 of 2." in said


def test_rounds_say_what_they_change_in_each_model():
    experiment = load_experiment("rounds")
    case = {"variables": 6, "clients": 10, "rows": 100, "density": 1.34, "changing": 2, "scale": "standardised"}
    rows = []
    for model, after in (("general", 0.6), ("products", 0.9)):
        for method, f1 in (("fedcdh-constraint-one-message", 0.7), ("fedcdh-rounds", after)):
            found = graph_rows(method, (f1, f1), model=model, **case)
            rows += [{**one, "skeleton_f1": one["direction_f1"]} for one in found]
    said = describe_experiment(experiment, rows)
    assert "*general* adaptive rounds change the skeleton F1 of our tests from 0.70 to 0.60" in said
    assert "*products* adaptive rounds change the skeleton F1 of our tests from 0.70 to 0.90" in said
    assert "raise it in 0 of 1 cells" in said


@pytest.mark.parametrize(("errors", "words"), [(0.04, "No test rejects"), (0.3, "by `rcit` 0.30")])
def test_power_says_which_tests_break_their_level(errors, words):
    rows = [
        {"hypothesis": hypothesis, "rows": str(n), "method": "rcit", "seed": "0", "rejected": str(rate)}
        for n in (200, 1000)
        for hypothesis, rate in (("dependent", 0.6), ("independent", errors))
    ]
    said = describe_power(load_experiment("power"), rows)
    assert words in said
    assert said.startswith("Power at 1000 rows: `rcit` 0.60 (the paper reports more than 0.95).")


def test_nothing_is_said_without_rows():
    for name in ("figure-3", "order", "power", "stocks", "rounds", "communication", "principle"):
        assert describe_experiment(load_experiment(name), []) == ""


def test_words_are_joined():
    assert [join_words(words) for words in ([], ["a"], ["a", "b"])] == ["", "a", "a and b"]
