"""The box that is read first: what to rely on, what hangs on one site, what nobody knows."""

from __future__ import annotations

import copy

import pytest
import reports
from reports import ParsedPage, document

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html import render_report
from fedcdh.reporting.html.read_first import render_exogenous_warning, render_read_first

FIVE = document([f"v{at}" for at in range(5)])


def first(made) -> str:
    return ParsedPage(render_read_first(made)).text.replace("\N{NO-BREAK SPACE}", " ")


def drawn(made):
    return [edge for edge in made["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]


@pytest.fixture
def arrows():
    """Two certain arrows that explain much, and nothing else that is likely."""
    made = copy.deepcopy(FIVE)
    for edge in made["edges"]:
        edge.update(mark="", probability=0.01, probability_forward=0.01)
    for edge in [edge for edge in made["edges"] if edge["source"] != DOMAIN][:2]:
        edge.update(mark="→", probability=1.0, probability_forward=0.98, strength=0.4)
    made["graph"] = {"arrows": [[edge["source"], edge["target"]] for edge in drawn(made)], "lines": []}
    return made


def test_likely_arrows_are_named_and_others_are_not(arrows):
    one, other = drawn(arrows)
    names = f"{one['source']} → {one['target']}", f"{other['source']} → {other['target']}"
    assert "2 arrows are very likely (probability 0.95 or more)" in first(arrows)
    assert all(name in first(arrows) for name in names)
    other.update(probability_forward=0.9)
    assert "1 arrow is very likely" in first(arrows)
    assert names[1] not in first(arrows)
    one.update(strength=0.01)  # weak
    assert "No arrow is very likely." in first(arrows)


def test_what_hangs_on_one_site_is_not_relied_on(arrows):
    edge = drawn(arrows)[0]
    ends = {"source": edge["source"], "target": edge["target"], "mark": "→", "adjacent": 0.5, "same": 0.5}
    found = {"kind": "leave-one-out", "edges": [{**ends, "gone_without": ["north"]}], "changing": [], "runs": [{}] * 2}
    assert "Nothing: every link and every difference is found again" in first(
        {**arrows, "stability": {**found, "edges": [ends]}}
    )
    text = first({**arrows, "stability": found})
    assert f"Without north, {edge['source']} → {edge['target']} is not found." in text
    assert "1 arrow is very likely" in text
    differs = [{"variable": "v3", "changing": True, "share": 0.5, "differs_without": ["north", "south"]}]
    text = first({**arrows, "stability": {**found, "edges": [], "changing": differs}})
    assert "Without any one of 2 sites, the difference of v3 is not found." in text


def test_it_says_where_nobody_looked(arrows):
    assert "This was not examined" in first(arrows)
    assert "has 50 % of the rows" in first(arrows)
    assert "This was not examined" in first({**arrows, "stability": {"kind": "bootstrap", "edges": [], "runs": []}})
    alone = {**arrows, "clients": arrows["clients"][:1]}
    assert "Everything: all rows come from one site" in first(alone)


def test_open_directions_possible_pairs_and_hidden_causes_are_unknown(arrows):
    assert "Whether a common cause that nobody measured stands behind an arrow; such causes were not" in first(arrows)
    edge, other = drawn(arrows)
    edge.update(mark="—")
    arrows["graph"] = {"arrows": [[other["source"], other["target"]]], "lines": [[edge["source"], edge["target"]]]}
    next(e for e in arrows["edges"] if not e["mark"] and e["source"] != DOMAIN).update(probability=0.3)
    text = first(arrows)
    assert f"The direction of 1 link, which is open ({edge['source']} — {edge['target']})" in text
    assert "whether 1 pair that is not drawn is linked after all" in text


def test_a_search_by_tests_claims_no_certainty():
    assert "gives no probabilities" in first(reports.by_tests(FIVE))
    nothing = {**FIVE, "edges": [{**edge, "mark": ""} for edge in FIVE["edges"]]}
    assert "No link was found." in first(nothing)


def test_assumptions_stand_at_the_top():
    text = render_report(FIVE)
    assert text.index("Read this first") < text.index("This rests on") < text.index('id="picture"')
    assert "The rows that were left out for missing values (10.0%)" in text


def test_causes_of_age_are_pointed_out_with_knowledge_to_copy():
    made = document(["age", "bmi", "crp"], graph={"arrows": [["bmi", "age"]], "lines": [["age", "crp"]]})
    text = ParsedPage(render_exogenous_warning(made)).text
    assert "age has a cause in the graph: bmi." in text
    assert "the direction between age and crp is open, although only age can be the cause." in text
    assert 'tiers = [["age"], ["bmi", "crp"]]' in text
    assert render_exogenous_warning(document(["v1", "v2", "v3"])) == ""


def test_an_arrow_into_age_is_not_relied_on(arrows):
    edge = drawn(arrows)[0]
    renamed = copy.deepcopy(arrows)
    for one in renamed["edges"]:
        one.update({end: "age" for end in ("source", "target") if one[end] == edge["target"]})
    renamed["variables"] = ["age" if name == edge["target"] else name for name in arrows["variables"]]
    renamed["graph"] = {"arrows": [[e["source"], e["target"]] for e in drawn(renamed)], "lines": []}
    assert "2 arrows are" in first(arrows)
    assert f"{edge['source']} → age" not in first(renamed)
