"""Labels that were assigned by design, and labels that arose by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import fedcdh
from fedcdh.inference.balanced_variables import find_balanced


def _cohort(arms: dict[str, list]):
    tables = {client: {"arm": arm, "y": [float(i * i % 11) for i in range(len(arm))]} for client, arm in arms.items()}
    plan = fedcdh.StudyPlan.from_tables(tables)
    return fedcdh.add_up([fedcdh.summarize(table, plan, client) for client, table in tables.items()], plan)


@pytest.mark.parametrize("levels", [["a", "b"], [0.0, 1.0]])
def test_block_randomised_levels_are_found(levels):
    sizes = np.random.default_rng(1).integers(6, 21, size=100)
    arms = {f"p{k}": [levels[i % 2] for i in range(size)] for k, size in enumerate(sizes)}
    assert find_balanced(_cohort(arms)) == ("arm",)


def test_levels_by_chance_are_hardly_ever_found():
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found += bool(find_balanced(_cohort({f"p{k}": rng.choice(["a", "b"], 15).tolist() for k in range(20)})))
    assert found == 0


def test_levels_that_differ_between_clients_are_not_found():
    rng = np.random.default_rng(3)
    arms = {f"p{k}": np.where(rng.random(30) < 0.2 + 0.06 * k, "a", "b").tolist() for k in range(10)}
    assert find_balanced(_cohort(arms)) == ()


def test_a_balanced_label_has_no_causes_unless_knowledge_requires_one():
    rng = np.random.default_rng(5)
    columns = {"site": [], "arm": [], "outcome": []}
    for k in range(60):
        arm, level = np.arange(12) % 2, rng.normal()
        good = level + 2.0 * arm + rng.logistic(size=12) > 0
        columns["site"] += [f"s{k}"] * 12
        columns["arm"] += ["treated" if one else "control" for one in arm]
        columns["outcome"] += ["good" if one else "bad" for one in good]
    result = fedcdh.discover(columns, domain="site")
    assert ("arm", "outcome") in result.graph.arrows
    assert "arm" not in result.changing
    assert any("assigned by design" in note for note in result.notes)
    required = fedcdh.Knowledge(required=[("outcome", "arm")])
    assert ("outcome", "arm") in fedcdh.discover(columns, domain="site", knowledge=required).graph.arrows
