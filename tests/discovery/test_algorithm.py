"""Algorithm 1: its steps with a perfect test, its significance level and its limits on conditioning."""

from __future__ import annotations

from dataclasses import replace

import pytest
import studies

from fedcdh.discovery.algorithm import algorithm_1, with_domain
from fedcdh.discovery.methods import METHODS
from fedcdh.discovery.settings import Settings
from fedcdh.graphs.d_separation import make_d_separation_test
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, ModuleDependence

TABLES = studies.mixed(0, sizes=(80, 60, 40))


def test_alpha_decides():
    tables = studies.mixed(0)
    found = [studies.found(tables, method="constraint", alpha=alpha) for alpha in (1e-12, 0.05, 0.9)]
    edges = [len(result.augmented.skeleton) for result in found]
    assert edges[0] < edges[1] < edges[2]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_conditioning_is_limited(limit):
    asked = []
    result = studies.found(
        TABLES,
        method="constraint",
        max_conditioning_size=limit,
        progress=lambda level, count: asked.append((level, count)),
    )
    assert [level for level, _ in asked] == list(range(len(asked)))
    per_level = result.skeleton.queries_per_level
    assert len(per_level) <= limit + 1
    assert per_level == tuple(count for _, count in asked[: len(per_level)])
    assert len(asked) == len(per_level) + (limit > 0)  # and which triples collide, where there is more to ask
    for edge in result.edges():
        assert edge.separating_set is None or len({*edge.separating_set} - {DOMAIN}) <= limit


def test_with_a_perfect_test_the_steps_find_the_changing_modules_and_the_directions():
    """℧ → age → dose → group, ℧ → dose: the collider-free chain is directed by ℧ (step 4) and by Δ (step 5)."""
    cohort = studies.cohort_of(studies.mixed(0, (40, 30)))
    truth = PartialGraph.from_dag(
        with_domain(cohort), [(DOMAIN, "age"), (DOMAIN, "dose"), ("age", "dose"), ("dose", "group")]
    )

    def change(pairs):
        return [ModuleDependence(a, b, *((0.1, 0.6) if a == "age" else (0.6, 0.1))) for a, b in pairs]

    for measure in (change, None):
        choice = replace(
            METHODS["constraint"].search,
            statistics=lambda known, settings, m=measure: (make_d_separation_test(truth), m),
        )
        result = algorithm_1(cohort, choice, Settings("constraint"))
        found = result.orientation.graph
        assert found.skeleton == truth.skeleton
        assert found.children(DOMAIN) == {"age", "dose"}
        assert ("dose", "group") in found.arrows  # ℧ → dose — group without ℧ — group: one changing module
        assert (("age", "dose") in found.arrows) == (measure is not None)  # two changing modules: step 5
        assert result.notes == ()
        assert result.spent is None


def test_one_client_has_no_domain():
    one = studies.cohort_of({"here": TABLES["clinic a"]})
    assert with_domain(one) == one.plan.names
    assert with_domain(studies.cohort_of(TABLES)) == (DOMAIN, *one.plan.names)
