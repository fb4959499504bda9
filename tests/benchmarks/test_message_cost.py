"""The cost of further messages: it is counted, and smaller with two rounds only in rounds."""

from __future__ import annotations

import pytest

from benchmarks.bench_message_cost import average, measure
from fedcdh.evaluation.experiments.noise_shape_data import Cell, draw

STUDY = draw(Cell("exponential"), 1)


@pytest.mark.parametrize("max_rounds", [2, 20])
def test_sums_rounds_and_edges_are_counted(max_rounds):
    cost = measure(STUDY, max_rounds)
    assert cost.summary == 696
    assert 0 < cost.rounds <= max_rounds
    assert 14 * cost.families < cost.sums < 2 * cost.summary
    assert cost.right + cost.reversed + cost.open + cost.missed == len(STUDY.arrows)
    assert min(cost.seconds, cost.seconds_one) > 0
    assert average([cost, cost]) == cost


@pytest.mark.parametrize("variables", [4, 12])
def test_studies_have_as_many_edges_as_variables(variables):
    study = draw(Cell("laplace", variables=variables), 0)
    assert len(study.names) == len(study.arrows) == variables
    assert {table.keys() == set(study.names) for table in study.tables.values()} == {True}
