"""Python refuses what the commands refuse: other units, other spellings, no label in common."""

from __future__ import annotations

import numpy as np
import pytest

import fedcdh
from fedcdh.errors import PlanError
from fedcdh.federation.planning import plan_study
from fedcdh.messages.profile_file import ProfileMessage
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.site_consistency import check_consistency


def tables_of(kind: str) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(5)
    found = {}
    for number, client in enumerate(("north", "south")):
        height = rng.normal(170, 8, 200) / (100 if kind == "units" and number else 1)
        sex = rng.choice(["F", "M"], 200)
        if kind == "spelling" and number:
            sex = np.char.lower(sex)
        if kind == "labels" and number:
            sex = np.where(sex == "F", "woman", "man")
        found[client] = {"height": height, "sex": sex, "weight": rng.normal(70, 9, 200)}
    return found


def by_function(tables, **settings):
    return fedcdh.discover(tables, rounds="one", **settings)


def by_estimator(tables, **settings):
    return fedcdh.FedCDH(**settings).fit(tables)


def by_tables(tables, **settings):
    return fedcdh.StudyPlan.from_tables(tables, **settings)


def by_profiles(tables, **settings):
    return fedcdh.StudyPlan.from_profiles([profile(table, client) for client, table in tables.items()], **settings)


def by_messages(tables, **settings):
    return plan_study([(c, ProfileMessage(profile(table, c))) for c, table in tables.items()], **settings)


def by_federation(tables, **settings):
    return fedcdh.simulate_federation(tables, rounds="one", **settings)


WAYS = (by_function, by_estimator, by_tables, by_profiles, by_messages, by_federation)
DOUBTS = {"units": ("height", "m and cm"), "spelling": ("sex", "only in their spelling"), "labels": ("sex", "no label")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", DOUBTS)
def test_every_way_refuses_the_same_with_the_same_words(way, kind):
    name, said = DOUBTS[kind]
    tables = tables_of(kind)
    with pytest.raises(PlanError) as refused:
        way(tables)
    with pytest.raises(PlanError) as first:
        by_profiles(tables)
    assert refused.value.message == first.value.message
    for part in (name, said, "'north'", "'south'", "accept_differences"):
        assert part in str(refused.value)
    way(tables, accept_differences=[name])


def test_all_doubts_are_named_at_once():
    tables = tables_of("units")
    tables["south"]["sex"] = np.char.lower(tables["south"]["sex"])
    with pytest.raises(PlanError, match=r"(?s)'height'.*'sex'"):
        by_tables(tables)


@pytest.mark.parametrize("way", WAYS)
def test_an_accepted_variable_has_to_be_there(way):
    with pytest.raises(PlanError, match="did you mean 'height'"):
        way(tables_of("same"), accept_differences=["heights"])


def test_metres_against_centimetres_give_no_links_because_there_is_no_result():
    rng = np.random.default_rng(0)
    tables = {c: {"height": rng.normal(170, 8, 300), "age": rng.normal(50, 9, 300)} for c in ("a", "b")}
    assert fedcdh.discover(tables, rounds="one").changing == frozenset()
    tables["b"]["height"] = tables["b"]["height"] / 100
    with pytest.raises(PlanError, match="m and cm"):
        fedcdh.discover(tables, rounds="one")


def test_columns_that_agree_are_accepted_in_silence():
    check_consistency({"x": {"a": profile({"x": [1.0, 2.0]}, "a").columns["x"]}})
