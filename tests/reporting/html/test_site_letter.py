"""The letter to a site: its own numbers and nobody else's, whole, closed, escaped, and plain where nothing is known."""

from __future__ import annotations

import copy
import json
import re

import pytest
import reports
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import ParsedPage

import fedcdh
from fedcdh.errors import DataError, SettingsError
from fedcdh.reporting.html import render_site_letter
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import Aggregate


def document_of(result, stability=True):
    effects = [] if isinstance(result.cohort, Aggregate) else result.effects()[:3]
    return json.loads(render_result_json(result, result.stability() if stability else None, effects=effects))


FIVE = document_of(fedcdh.discover(studies.mixed(0, (300, 200, 150, 100, 60))))
TWO = document_of(fedcdh.discover(studies.mixed(3, (150, 130))))


def disturbed(document, site, random, *, pooled):
    """The document with every number and name of other sites changed; common values only where they are one's own."""
    made = copy.deepcopy(document)
    others = [client["client"] for client in made["clients"] if client["client"] != site]
    names = {name: f"other {random.randrange(10**9)}" for name in others}
    for edge in made["edges"] if pooled else ():
        if edge.get("slope") is not None:
            low, high = sorted((random.uniform(-2, 2), random.uniform(-2, 2)))
            edge.update(slope=random.uniform(low, high), slope_low=low, slope_high=high)
    for client in made["clients"]:
        if client["client"] in names:
            client.update(rows=random.randrange(10**6), rows_read=10**6, missing={"age": random.randrange(10**5)})
            client["values"] = {"age": {"mean": random.random(), "deviation": random.random()}}
            client["coarsened"] = [f"secret {random.random()}"]
            client["client"] = names[client["client"]]
    for one in made["drift"]:
        if one["client"] in names:
            one.update(estimate=random.random(), low=random.random(), high=random.random(), p_value=random.random())
            one.update(deviation=random.uniform(-9, 9), client=names[one["client"]], note=f"note {random.random()}")
        elif pooled:
            one.update(pooled=random.random(), p_value=random.random())
    for effect in made["effects"]:
        for name in others:
            if name in (effect.get("by_client") or {}):
                effect["by_client"][names[name]] = {**effect["by_client"].pop(name), "value": random.random()}
        effect["curve"] = None
    for one in made["stability"]["influence"]:
        if one["client"] in names:
            one.update(client=names[one["client"]], largest=random.uniform(-9, 9), total=random.random(), n_changed=77)
        one["share"] = random.random()
    for one in (*made["stability"]["edges"], *made["stability"]["changing"]):
        for key in ("gone_without", "turned_without", "differs_without"):
            if key in one:
                one[key] = [names.get(name, name) for name in one[key]]
    made["stability"].update(runs=[], changes_without={}, notes=[f"client {n}: {random.random()}" for n in others])
    made["notes"] = [f"client {name}: {random.random()} of the rows" for name in others]
    made["without_disclosure_control"] = list(names.values())
    return made


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.sampled_from([0, 1, 4]))
def test_nothing_of_other_sites_reaches_a_letter(random, number):
    site = FIVE["clients"][number]["client"]
    assert render_site_letter(FIVE, site) == render_site_letter(disturbed(FIVE, site, random, pooled=False), site)


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.sampled_from([0, 1]))
def test_with_two_sites_a_common_value_is_that_of_the_other(random, number):
    site = TWO["clients"][number]["client"]
    letter = render_site_letter(TWO, site)
    assert letter == render_site_letter(disturbed(TWO, site, random, pooled=True), site)
    assert "common value is" not in ParsedPage(letter).text.replace("The common value is that", "")


def test_signs_of_common_slopes_are_explained_and_left_out_with_two_sites():
    five, two = (render_site_letter(made, made["clients"][0]["client"]) for made in (FIVE, TWO))
    assert any(edge["mark"] and edge["slope"] for edge in TWO["edges"])
    assert ('class="sign"' in five, "A + on an arrow" in five) == (True, True)
    assert ('class="sign"' in two, "A + on an arrow" in two) == (False, False)


def test_no_name_and_no_count_of_another_site_is_in_a_letter():
    sites = [client["client"] for client in FIVE["clients"]]
    for client in FIVE["clients"]:
        text = ParsedPage(render_site_letter(FIVE, client["client"])).text.split("Letter to one site")[1]
        assert client["client"] in text
        assert f"{client['rows_read']:,} rows were read" in text
        others = [other for other in FIVE["clients"] if other is not client]
        assert not [site for site in sites if site in text and site != client["client"]]
        for other in others:
            assert not re.search(rf"(?<![\d.,]){other['rows']:,}(?![\d.,])", text)


def test_a_letter_says_what_differs_there_and_how_far():
    flagged = [one for one in FIVE["drift"] if one["flagged"]]
    assert flagged
    for one in flagged:
        page = ParsedPage(render_site_letter(FIVE, one["client"]))
        word = "higher" if one["deviation"] > 0 else "lower"
        assert re.search(
            rf"{re.escape(one['variable'])}, {re.escape(one['quantity'])}: .*{word} than elsewhere", page.text
        )
        assert "Your site clearly deviates in:" in page.text


def test_a_letter_loads_nothing_and_runs_nothing():
    page = ParsedPage(render_site_letter(FIVE, FIVE["clients"][0]["client"]))
    assert page.scripts == []
    for tag, attributes in page.elements:
        assert tag not in ("img", "link", "iframe", "object", "form", "input", "button")
        assert not {"src", "href", "onclick", "onload"} & attributes.keys()
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


@pytest.mark.parametrize("tests", [False, True])
def test_hostile_names_are_text(tests):
    made = reports.document(reports.HOSTILE, seed=3)
    made["clients"] = [{**made["clients"][0], "client": name} for name in reports.HOSTILE]
    made["clients"][0]["coarsened"] = [f"levels of {reports.HOSTILE[0]}"]
    made["clients"][0]["values"] = {
        reports.HOSTILE[0]: {"shares": {reports.HOSTILE[1]: 0.5}},
        reports.HOSTILE[1]: {"mean": 1.0, "deviation": 2.0},
    }
    made["drift"] = reports.drift(made)
    made = reports.by_tests(made) if tests else made
    for site in reports.HOSTILE:
        page = ParsedPage(render_site_letter(made, site))
        assert page.scripts == []
        assert not any(tag == "img" for tag, _ in page.elements)


def test_where_only_sums_are_known_the_letter_says_so():
    cohort = studies.cohort_of(studies.numbers(0, (60, 50, 40, 40)))
    groups = {f"site{k}": "ab"[k // 2] for k in range(4)}
    made = document_of(fedcdh.discover_from(Aggregate.of(cohort, groups), cohort.plan), stability=False)
    text = ParsedPage(render_site_letter(made, "site2")).text
    assert "the coordinator has sums of several sites" in text
    assert "rows were" not in text.replace("rows were not", "")
    alone = document_of(fedcdh.discover_from(Aggregate.of(cohort), cohort.plan), stability=False)
    text = ParsedPage(render_site_letter(alone, "site2")).text
    assert "40 rows were used." in text
    assert "how they are at your site is not known" in text or "No mechanism was found to differ" in text
    assert "fedcdh discover --stability" in text


def test_one_site_gets_a_letter_too():
    made = document_of(fedcdh.discover(studies.numbers(0, (80,))), stability=False)
    text = ParsedPage(render_site_letter(made, "site0")).text
    assert "differences between sites cannot be assessed" in text
    assert "1 site looked at" in text


def test_unknown_sites_and_other_documents_are_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"no site 'nowhere'; expected one of clinic a, clinic b"):
        render_site_letter(FIVE, "nowhere")
    with pytest.raises(DataError):
        render_site_letter({}, "north")
    result = fedcdh.discover(studies.numbers(0, (60, 50, 40)), rounds="one")
    written = result.report(tmp_path / "letter.html", site="site1")
    assert written.read_text(encoding="utf-8") == render_site_letter(json.loads(render_result_json(result)), "site1")
    with pytest.raises(SettingsError, match="no site"):
        result.report(tmp_path / "none.html", site="site9")
    assert not (tmp_path / "none.html").exists()
