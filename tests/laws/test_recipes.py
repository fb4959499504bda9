"""Recipes at a site do what the same changes do to the table by hand: same bytes, wherever the rows live."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcdh
from fedcdh.data import Recipes
from fedcdh.data.recipe_file import NO_RECIPES
from fedcdh.federation.planning import Declaration, plan_study
from fedcdh.messages.profile_file import ProfileMessage, profile_from_json, profile_to_json
from fedcdh.messages.study_file import Study
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.plan import StudyPlan

RECIPES = Recipes.from_toml(
    """
    [recipes.crp]
    clip = [0.5, 40]
    log = true
    [recipes.age]
    round = 5
    [recipes.weight]
    clients.south = { from_units = "lb", factor = 0.4536 }
    [recipes.nyha]
    groups = { "III/IV" = ["III", "IV"] }
    [recipes.ward]
    keep = ["a", "b"]
    other = true
    [recipes.ef]
    binary = { above = 40 }
    [recipes.postcode]
    exclude = true
    """
)


def site(client, rows=120, seed=0):
    rng = np.random.default_rng([seed, *client.encode()])
    table = {
        "crp": rng.lognormal(1, 1, rows),
        "age": rng.normal(60, 12, rows),
        "weight": rng.normal(70, 9, rows) / (0.4536 if client == "south" else 1),
        "nyha": rng.choice(["I", "II", "III", "IV"], rows).tolist(),
        "ward": rng.choice(["a", "b", "c", "d"], rows).tolist(),
        "ef": rng.normal(45, 9, rows),
        "postcode": rng.normal(size=rows),
    }
    table["ef"][3] = np.nan
    table["nyha"][5] = None
    return table


def by_hand(client, table):
    labels = {"III": "III/IV", "IV": "III/IV"}
    return {
        "crp": np.log(np.clip(table["crp"], 0.5, 40)),
        "age": np.rint(table["age"] / 5) * 5,
        "weight": table["weight"] * 0.4536 if client == "south" else table["weight"],
        "nyha": [labels.get(label, label) for label in table["nyha"]],
        "ward": [label if label in ("a", "b") else "other" for label in table["ward"]],
        "ef": [None if np.isnan(value) else "yes" if value > 40 else "no" for value in table["ef"]],
    }


TABLES = {client: site(client) for client in ("north", "south")}
PLAN = StudyPlan.from_tables(TABLES, recipes=RECIPES)
PLAIN = StudyPlan.from_tables({client: by_hand(client, table) for client, table in TABLES.items()})


def test_the_profile_is_that_of_the_table_changed_by_hand():
    for client, table in TABLES.items():
        found = fedcdh.profile(table, client, recipes=RECIPES).columns
        for name, column in fedcdh.profile(by_hand(client, table), client).columns.items():
            assert (found[name].kind, found[name].count, found[name].levels) == (
                column.kind,
                column.count,
                column.levels,
            )
            assert (found[name].mean, found[name].quantiles) == (column.mean, column.quantiles)
        assert "postcode" not in found


def test_the_summary_is_that_of_the_table_changed_by_hand():
    for client, table in TABLES.items():
        ours, theirs = fedcdh.summarize(table, PLAN, client), fedcdh.summarize(by_hand(client, table), PLAIN, client)
        assert ours.moments.tobytes() == theirs.moments.tobytes()
        assert (ours.rows_read, dict(ours.missing)) == (theirs.rows_read, dict(theirs.missing))


def test_replicates_are_those_of_the_table_changed_by_hand():
    for ours, theirs in zip(
        bootstrap_summaries(TABLES["south"], PLAN, "south", 2, 7),
        bootstrap_summaries(by_hand("south", TABLES["south"]), PLAIN, "south", 2, 7),
        strict=True,
    ):
        assert ours.moments.tobytes() == theirs.moments.tobytes()


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.integers(1, 60), st.integers(1, 3))
def test_order_batches_and_threads_make_no_difference(random, size, workers):
    table = TABLES["north"]
    order = list(range(len(table["age"])))
    random.shuffle(order)
    batches = [
        {name: [column[i] for i in order[start : start + size]] for name, column in table.items()}
        for start in range(0, len(order), size)
    ]
    expected = fedcdh.summarize(table, PLAN, "north")
    assert fedcdh.summarize(batches, PLAN, "north", workers=workers) == expected


def test_the_graph_is_that_of_the_tables_changed_by_hand_and_of_a_federation():
    pooled = {client: by_hand(client, table) for client, table in TABLES.items()}
    by_recipe = fedcdh.discover(TABLES, recipes=RECIPES)
    assert by_recipe.graph == fedcdh.discover(pooled).graph
    federated = fedcdh.simulate_federation(TABLES, recipes=RECIPES, accept_differences=["crp"])
    assert federated.result.graph == by_recipe.graph
    assert federated.study.plan.recipes == by_recipe.cohort.plan.recipes
    assert federated.study.plan.excluded == ("postcode",)


def test_recipes_are_part_of_the_plan_and_of_its_fingerprint():
    other = StudyPlan.from_tables(TABLES, recipes=Recipes({**RECIPES.by_variable, "age": RECIPES.by_variable["crp"]}))
    assert StudyPlan.from_json(PLAN.to_json()) == PLAN
    assert Study.from_json(Study(PLAN).to_json()).plan == PLAN
    assert other.fingerprint != PLAN.fingerprint
    assert PLAN.excluded == ("postcode",)


def messages(recipes=NO_RECIPES):
    found = [ProfileMessage(fedcdh.profile(table, client, recipes=recipes)) for client, table in TABLES.items()]
    return [("a file", profile_from_json(profile_to_json(one))) for one in found]


def test_a_plan_from_profiles_with_recipes_needs_no_declaration():
    assert plan_study(messages(RECIPES)).plan.recipes == PLAN.recipes


def test_recipes_that_come_after_the_profiles_give_nearly_the_same_plan():
    columns = [name for name in TABLES["north"] if name != "postcode"]
    late = plan_study(messages(), Declaration(recipes=RECIPES)).plan
    assert (late.names, late.recipes, late.excluded) == (tuple(columns), PLAN.recipes, ("postcode",))
    for ours, theirs in zip(late.variables, PLAN.variables, strict=True):
        if hasattr(theirs, "levels"):
            assert ours.levels == theirs.levels
        else:
            assert abs(ours.location - theirs.location) < 0.2 * theirs.scale
            assert ours.scale == pytest.approx(theirs.scale, rel=0.25)
    assert late.variables[columns.index("weight")].scale == pytest.approx(PLAN.variables[2].scale, rel=1e-9)
