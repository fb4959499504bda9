"""Effects as records, and back."""

from __future__ import annotations

import csv
import json

from hypothesis import given
from hypothesis import strategies as st
from noisy_studies import a_plan, noisy_chains
from studies import found, numbers

from fedcdh.discovery.api import discover_from
from fedcdh.discovery.effect import ClientEffect, Effect, PossibleEffect
from fedcdh.inference.effects.pooling import PooledEffect
from fedcdh.reporting.effect_records import effect_from_dict, effect_to_dict, list_effects, render_effects_csv
from fedcdh.reporting.html.schema import check_document
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import add_up

RESULT = found(numbers(0, sizes=(200, 150, 120, 100, 100)))
NUMBER = st.floats(-1e6, 1e6)
INTERVAL = st.tuples(NUMBER, NUMBER)


@given(NUMBER, INTERVAL, st.text(max_size=8), st.booleans(), st.lists(st.text(min_size=1, max_size=4), max_size=3))
def test_an_effect_survives_json(value, interval, reason, identifiable, names):
    effect = Effect(
        "a",
        "b",
        "total",
        value,
        interval,
        tuple(names),
        identifiable,
        reason,
        fixed=PooledEffect(value, interval, 1.0, 3.0),
        by_client={"north": ClientEffect(value, interval, 1.0, 30), "south": ClientEffect(None, None, None, 3, "few")},
        possible=(PossibleEffect(value, interval, None, 0.5),),
        levels=("no", "yes"),
    )
    assert effect_from_dict(json.loads(json.dumps(effect_to_dict(effect)))) == effect


def test_a_whole_effect_survives_json_with_its_curve():
    effect = RESULT.effect("v1", "v2")
    assert effect.curve is not None
    assert effect_from_dict(json.loads(json.dumps(effect_to_dict(effect)))) == effect


def test_only_chosen_effects_have_single_sites():
    chosen = RESULT.effect("v1", "v2")
    records = list_effects(RESULT, [chosen])
    assert records[0] == effect_to_dict(chosen)
    assert all("by_client" not in record and "curve" not in record for record in records[1:])
    assert len(records) == len(RESULT.effects())
    document = json.loads(render_result_json(RESULT, effects=[chosen]))
    check_document(document)
    assert json.loads(json.dumps(records)) == document["effects"]


def test_the_table_has_a_row_for_every_effect():
    rows = list(csv.DictReader(render_effects_csv(RESULT.effects()).splitlines()))
    assert [(row["cause"], row["outcome"]) for row in rows] == [(e.cause, e.outcome) for e in RESULT.effects()]


def test_noisy_studies_have_no_effects():
    plan = a_plan()
    result = discover_from(add_up(noisy_chains(plan, 300), plan), plan)
    assert list_effects(result) is None
    assert json.loads(render_result_json(result))["effects"] is None
    assert {edge.slope for edge in result.edges()} == {None}
