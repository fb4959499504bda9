"""Forest plots: every published site and what is pooled, to one scale, with the numbers beside them."""

from __future__ import annotations

import json
import re

import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st
from reports import HOSTILE, ParsedPage, document

import fedcdh
from fedcdh.cli import main
from fedcdh.errors import SettingsError
from fedcdh.reporting.html import render_report
from fedcdh.reporting.html.effects_section import render_effects, strongest_effect
from fedcdh.reporting.html.forest_plot import WIDTH, describe_heterogeneity, forest_rows, render_forest_plot

FIVE = document([f"v{at}" for at in range(5)])
SITE = {"value": 1.0, "interval": [0.5, 1.5], "standard_error": 0.25, "rows": 100, "note": ""}
POOLED = {"value": 1.2, "interval": [1.0, 1.4], "standard_error": 0.1, "degrees_of_freedom": 90}
EFFECT = {
    "cause": "v0",
    "outcome": "v1",
    "kind": "total",
    "value": 1.2,
    "interval": [1.0, 1.4],
    "adjusted_for": ["v2"],
    "identifiable": True,
    "reason": "",
    "pooling": "fixed",
    "units": "change of v1 per unit of v0",
    "fixed": POOLED,
    "random": {**POOLED, "value": 1.3, "interval": [0.9, 1.7]},
    "heterogeneity": {"q": 6.64, "degrees_of_freedom": 4, "p_value": 0.156, "i_squared": 0.4, "tau_squared": 0.01},
    "by_client": {"north": SITE, "south": {**SITE, "value": 1.5, "interval": [1.4, 1.6], "standard_error": 0.05}},
    "possible": [],
    "standardised": 0.5,
    "notes": [],
    "rows": 200,
}


@pytest.fixture(scope="module")
def found():
    return fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital", rounds="one")


def test_every_site_has_a_row_and_pooled_effects_a_diamond():
    text = render_forest_plot(EFFECT)
    page = ParsedPage(text)
    assert [row.name for row in forest_rows(EFFECT)] == ["north", "south", "common effect (used)", "mean over sites"]
    assert text.count('class="diamond"') == 2
    assert text.count("<rect") == 2
    for shown in ("1 (0.5 to 1.5)", "1.5 (1.4 to 1.6)", "1.2 (1 to 1.4)", "1.3 (0.9 to 1.7)"):
        assert shown in page.text
    sides = [float(side) for side in re.findall(r'<rect class="estimate"[^>]*width="([\d.]+)"', text)]
    assert sides[0] < sides[1]  # the more precise site has the larger square


def test_heterogeneity_is_a_sentence():
    assert "I² = 40" in describe_heterogeneity(EFFECT)
    assert "Q = 6.64 on 4 degrees of freedom (p = 0.156)" in describe_heterogeneity(EFFECT)
    assert describe_heterogeneity({**EFFECT, "heterogeneity": None}) == ""


NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(NUMBERS, st.floats(0, 1e7)), min_size=1, max_size=6))
def test_nothing_is_drawn_outside_the_picture(sites):
    made = {
        f"site {at}": {**SITE, "value": value, "interval": [value - half, value + half], "standard_error": half / 2}
        for at, (value, half) in enumerate(sites)
    }
    text = render_forest_plot({**EFFECT, "by_client": made})
    places = [float(x) for x in re.findall(r"[MLHx][= ]?\"?(-?[\d.]+)", text)]
    assert all(-1 <= place <= WIDTH + 1 for place in places)
    assert text.count("<rect") == len(sites)


def test_a_site_without_an_estimate_says_why():
    none = {**SITE, "value": None, "interval": None, "standard_error": None, "note": "too few <rows>"}
    text = ParsedPage(render_forest_plot({**EFFECT, "by_client": {"north": none}})).text
    assert "no estimate" in text
    assert "too few <rows>" in text


def test_effects_that_are_not_identifiable_say_so():
    effect = {**EFFECT, "value": None, "interval": None, "identifiable": False, "reason": "a direction is open"}
    effect |= {"fixed": None, "random": None, "by_client": {}, "heterogeneity": None, "adjusted_for": None}
    effect["possible"] = [
        {"value": 0.0, "interval": None, "adjusted_for": None, "probability": 0.25},
        {"value": 2.0, "interval": [1.0, 3.0], "adjusted_for": ["v3"], "probability": 0.75},
    ]
    text = ParsedPage(render_effects({**FIVE, "effects": [effect]}, [("v0", "v1")])).text
    assert "Not identifiable: a direction is open." in text
    assert "no path: the effect is 0" in text
    assert "2 (1 to 3)" in text


def test_without_a_choice_published_sites_come_first_and_then_the_strongest():
    pooled = {key: value for key, value in EFFECT.items() if key != "by_client"}
    outcome = next(name for name in FIVE["variables"] if name not in {tail for tail, _ in FIVE["graph"]["arrows"]})
    strong = {**pooled, "cause": "v0" if outcome != "v0" else "v1", "outcome": outcome, "standardised": 0.1}
    unclear = {**strong, "interval": [-1.0, 1.0], "standardised": 5.0}
    assert strongest_effect({**FIVE, "effects": [pooled, strong, unclear]}) == strong
    assert strongest_effect({**FIVE, "effects": [unclear]}) is None
    assert "Estimates of single sites are not part of this result." in render_effects({**FIVE, "effects": [strong]})
    text = ParsedPage(render_effects({**FIVE, "effects": [strong, EFFECT]})).text
    assert "Total effect of v0 on v1" in text
    assert text.count("Total effect of") == 1
    assert render_effects(FIVE) == render_effects({**FIVE, "effects": None}) == ""


def test_unknown_names_and_missing_effects_are_refused_or_said():
    with pytest.raises(SettingsError, match="not a variable of the result"):
        render_effects({**FIVE, "effects": [EFFECT]}, [("v0", "nix")])
    with pytest.raises(SettingsError, match="has no effects"):
        render_effects(FIVE, [("v0", "v1")])
    assert "no directed path leads from v4 to v3" in render_effects({**FIVE, "effects": [EFFECT]}, [("v4", "v3")])


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_effects_stay_names(name):
    made = document([name, "x", "y", "z"])
    effect = {**EFFECT, "cause": name, "outcome": "x", "adjusted_for": [name], "units": name, "notes": [name]}
    effect |= {
        "by_client": {name: {**SITE, "note": name}},
        "reason": name,
        "outcome_level": name,
        "levels": [name, "x"],
    }
    made["effects"] = [effect]
    tame = json.loads(json.dumps(made, ensure_ascii=False).replace(json.dumps(name, ensure_ascii=False), '"w"'))
    hostile = ParsedPage(render_report(made, [(name, "x")]))
    other = ParsedPage(render_report(tame, [("w", "x")]))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in other.elements]
    assert len(hostile.scripts) == 2


def test_a_result_shows_the_sites_of_a_chosen_effect(found, tmp_path):
    stability = found.stability()
    path = found.report(tmp_path / "a.html", effects=[("smoker", "cholesterol")], stability=stability)
    page = ParsedPage(path.read_text(encoding="utf-8"))
    effect = found.effect("smoker", "cholesterol")
    assert "Total effect of smoker (no to yes) on cholesterol" in page.text
    section = page.text[page.text.index("How large is the effect?") :].split("Which sites deviate")[0]
    for client, one in effect.by_client.items():
        assert client in section
        assert f"{one.value:.3g}" in section
    assert "I² =" in section
    assert "This was not examined" not in page.text


def test_the_command_shows_what_the_folder_has(found, tmp_path, capsys):
    folder = tmp_path / "result"
    fedcdh.write_result(found, folder, effects=[found.effect("bmi", "risk_score")])
    assert main(["report", str(folder), "-o", str(tmp_path / "a.html")]) == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count('class="diamond"') == 2
    assert page.count("<h3>Total effect of") == 1
    pair = ["--effect", "smoker:cholesterol", "--effect", "bmi:risk_score"]
    assert main(["report", str(folder), "-o", str(tmp_path / "b.html"), *pair]) == 0
    page = (tmp_path / "b.html").read_text(encoding="utf-8")
    assert page.count("<h3>Total effect of") == 2
    assert "Estimates of single sites are not part of this result." in page
    capsys.readouterr()
    assert main(["report", str(folder), "-o", str(tmp_path / "c.html"), "--effect", "smoker:nix"]) == 2
    assert "Expected CAUSE:OUTCOME" in capsys.readouterr().err
    assert not (tmp_path / "c.html").exists()


def test_every_cell_of_a_report_has_a_word(found):
    made = json.loads(fedcdh.reporting.render_result_json(found, found.stability()))
    made["drift"] = [*(made["drift"] or ()), *reports.drift(made)]
    for one in (
        made,
        reports.by_tests(FIVE),
        {**FIVE, "drift": reports.drift(FIVE), "stability": reports.stability(FIVE)},
    ):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", render_report(one), flags=re.DOTALL)
        assert cells
        assert all(cell.strip() for cell in cells)
