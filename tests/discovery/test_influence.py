"""The influence of single clients: the change of the evidence for each edge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.summaries.aggregation import Cohort


def poisoned(seed: int = 0, clients: int = 5, rows: int = 120) -> studies.Tables:
    """a → b everywhere; c has to do with a at the client "north" only, and strongly."""
    tables = {}
    for k, name in enumerate(["east", "mid", "north", "south", "west"][:clients]):
        rng = np.random.default_rng([seed, k, 5])
        a, b, c = rng.standard_normal((3, rows))
        tables[name] = {"a": a, "b": a + b, "c": 3 * a + 0.2 * c if name == "north" else c}
    return tables


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_the_client_that_forges_an_edge_has_the_largest_influence(method):
    result = discover(poisoned(0), method=method)
    stability = result.stability()
    first = stability.influence[0]
    assert (first.client, first.share) == ("north", 0.2)
    assert "c" in first.link
    assert first.largest > 0  # it speaks for the link
    assert first.n_changed == len(stability.changes_without["north"])
    assert {one.client for one in stability.influence} == set(result.cohort.clients)
    sizes = [abs(one.largest) for one in stability.influence]
    assert sizes == sorted(sizes, reverse=True)


def test_influence_is_the_change_of_what_speaks_for_a_link():
    result = discover(studies.numbers(0, (60, 50, 40)), rounds="one")
    factors = {frozenset((e.source, e.target)): e.log_bayes_presence * (1 if e.mark else -1) for e in result.edges()}
    for one in result.stability().influence:
        alone = left_alone(result.cohort, one.client)
        without = {frozenset((e.source, e.target)): e.log_bayes_presence * (1 if e.mark else -1) for e in alone.edges()}
        moved = {pair: factors[pair] - without[pair] for pair in factors if "__domain__" not in pair}
        assert one.largest == pytest.approx(moved[frozenset(one.link)])
        assert abs(one.largest) == pytest.approx(max(map(abs, moved.values())))
        assert one.total == pytest.approx(sum(map(abs, moved.values())))
    assert not result.stability(3).influence  # draws do not leave clients out one by one


def left_alone(cohort: Cohort, out: str, **settings):
    """The same study as if the client had never been part of it."""
    plan = replace(cohort.plan, clients=tuple(client for client in cohort.plan.clients if client != out))
    summaries = [replace(summary, plan=plan.fingerprint) for summary in cohort.summaries if summary.clients != (out,)]
    return discover_from(summaries, plan, **settings)
