"""Evidence within a class: each kind speaks where its cause is, and is silent elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from residual_studies import linear_pair, score_of, split_rows, varying_size_pair

from fedcdh.discovery.direction_evidence import (
    MIN_RESIDUAL_LOG_BAYES,
    change_evidence,
    residual_evidence,
)
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN

LINE = frozenset({frozenset("xy")})
PAIR = PartialGraph("xy", lines=LINE)
BOTH_CHANGE = PartialGraph((DOMAIN, "x", "y"), frozenset({(DOMAIN, "x"), (DOMAIN, "y")}), LINE)
FORWARD = ("x", "y")


def curved(seed: int):
    x, noise = np.random.default_rng(seed).standard_normal((2, 600))
    return {"x": x, "y": np.tanh(2 * x) + 0.3 * noise}


@pytest.mark.parametrize("table", [linear_pair("exponential", 0), varying_size_pair(0)], ids=["shape", "size"])
def test_noise_is_named_where_it_tells_the_direction(table):
    noise, curvature = residual_evidence(PAIR, score_of(split_rows(table, 2)), NO_KNOWLEDGE)
    ((arrow, factor),) = noise.factors.items()
    assert (arrow, noise.reason) == (FORWARD, "noise")
    assert factor > MIN_RESIDUAL_LOG_BAYES
    assert not curvature.factors


def test_curvature_is_named_where_it_does():
    score = score_of(split_rows(curved(0), 2))
    noise, curvature = residual_evidence(PAIR, score, NO_KNOWLEDGE)
    assert curvature.factors.keys() == {FORWARD}
    assert not noise.factors
    assert curvature.reason == "evidence"


def test_knowledge_and_ties_leave_nothing_to_say():
    table = linear_pair("exponential", 0)
    rounded = {**table, "y": np.round(table["y"])}
    cases = [(table, Knowledge(forbidden=[FORWARD])), (table, Knowledge(required=[FORWARD])), (rounded, NO_KNOWLEDGE)]
    for rows, knowledge in cases:
        for kind in residual_evidence(PAIR, score_of(split_rows(rows, 2)), knowledge):
            assert not kind.factors


def test_change_speaks_about_pairs_that_both_change():
    tables = split_rows(linear_pair("normal", 0), 4)
    for number, table in enumerate(tables.values()):
        table["y"] = table["y"] + (number - 1.5) * table["x"]
        table["x"] = table["x"] + number
    linear = score_of(tables).score.linear
    assert change_evidence(BOTH_CHANGE, linear, NO_KNOWLEDGE).factors.keys() <= {FORWARD, FORWARD[::-1]}
    assert change_evidence(BOTH_CHANGE, linear, NO_KNOWLEDGE).factors
    assert not change_evidence(PAIR, linear, NO_KNOWLEDGE).factors
