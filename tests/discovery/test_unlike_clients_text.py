"""Clients to ask before a graph is believed are named before it."""

from __future__ import annotations

import numpy as np

from benchmarks.attacks.poisoning import cohort_of, study_tables, swap_columns
from fedcdh.discovery.api import discover_from
from fedcdh.discovery.unlike_clients_text import describe_unlike_clients
from fedcdh.summaries.aggregation import Aggregate


def test_a_swap_is_named_before_the_graph_and_in_the_notes():
    tables, site, (one, other) = swap_columns(study_tables("linear", 1, 6, 300, 5), 1)
    cohort = cohort_of(tables)
    result = discover_from(cohort, cohort.plan)
    assert result.notes[0].startswith(f"client {site}: columns {one} and {other} fit the other clients better if")
    lines = str(result).splitlines()
    assert lines[1] == f"note: {result.notes[0]}"
    assert str(result).count(result.notes[0]) == 1
    assert describe_unlike_clients(Aggregate.of(cohort)) == ()  # sums over clients do not show it


def test_long_tails_are_named_with_all_their_variables():
    rng = np.random.default_rng(0)
    tables = {f"s{k}": dict(zip("xyz", rng.standard_normal((3, 300)), strict=True)) for k in range(8)}
    tables["s4"]["x"][:3] = tables["s4"]["z"][:3] = 10.0
    (note,) = describe_unlike_clients(cohort_of(tables))
    assert note.startswith("client s4 has far longer tails than the others (kurtosis of x ")
    assert ", z " in note
