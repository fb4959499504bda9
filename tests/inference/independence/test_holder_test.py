from __future__ import annotations

import numpy as np

from fedcdh.inference import Basis, RegressionTest
from fedcdh.inference.independence.holder_test import HolderTest
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries import add_up, summarize
from fedcdh.summaries.plan import StudyPlan


def make_test(absent):
    tables = {}
    for place, client in enumerate(("east", "north", "south")):
        rng = np.random.default_rng([5, place])
        a = rng.normal(size=80)
        values = {"a": a, "b": a + rng.normal(size=80), "c": rng.normal(size=80) + place}
        tables[client] = {name: value for name, value in values.items() if name not in absent.get(client, ())}
    plan = StudyPlan.from_tables(tables, absent="allow")
    cohort = add_up([summarize(table, plan, client) for client, table in tables.items()], plan)
    return cohort, HolderTest(cohort, lambda part: RegressionTest(Basis.of(part)))


def test_a_query_is_asked_of_the_clients_that_have_all_of_it():
    cohort, test = make_test({"east": ["b"], "north": ["c"]})
    queries = [Query("a", "b"), Query("a", "c"), Query("a", "b", frozenset("c")), Query("a", DOMAIN)]
    answers = test(queries)
    assert [answer.rows for answer in answers] == [160, 160, 80, 240]
    assert [answer.query for answer in answers] == queries
    alone = RegressionTest(Basis.of(cohort.only(["north", "south"])))([Query("a", "b")])
    assert answers[0] == alone[0]


def test_what_nobody_measured_separates_nothing():
    _, test = make_test({"east": ["b"], "north": ["c"], "south": ["b"]})
    (pair, domain) = test([Query("b", "c"), Query("b", DOMAIN)])
    assert (pair.p_value, pair.rows) == (0.0, 0)
    assert (domain.p_value, domain.rows) == (0.0, 0)
