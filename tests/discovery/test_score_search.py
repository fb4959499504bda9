"""The search by score: limits on parents, and what it finds where the truth is plain."""

from __future__ import annotations

import numpy as np
import pytest
import studies

TABLES = studies.mixed(0, sizes=(80, 60, 40))


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_causes_are_limited(limit):
    batches = []
    result = studies.found(
        TABLES, method="evidence", max_conditioning_size=limit, progress=lambda done, new: batches.append((done, new))
    )
    dag = result.to_dag()
    assert max(len(dag.parents(name)) for name in dag.nodes) <= limit
    assert [done for done, _ in batches] == [sum(new for _, new in batches[:i]) for i in range(len(batches))]


def test_the_truth_is_found_where_it_is_plain():
    """v2 → v1 ← v3, all strong, with clients that differ in the mean of v2 and the spread of v3."""
    right = 0
    for seed in range(5):
        tables = {}
        for k in range(6):
            rng = np.random.default_rng([seed, k])
            v2, v3 = 1.5 * k + rng.standard_normal(200), (1 + k) / 3 * rng.standard_normal(200)
            tables[f"c{k}"] = {"v1": v2 + 2 * np.tanh(v3) + rng.standard_normal(200), "v2": v2, "v3": v3}
        result = studies.found(tables)
        arrows = result.graph.arrows == {("v2", "v1"), ("v3", "v1")} and not result.graph.lines
        right += arrows and result.changing == {"v2", "v3"}
    assert right >= 4
