"""The page of a report: complete, escaped, closed to any network, and the same every time."""

from __future__ import annotations

import copy
import json
import re
import sys

import noisy_studies
import pytest
import reports
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import HOSTILE, ParsedPage, document

import fedcdh
from fedcdh import discover, discover_from
from fedcdh.cli import main
from fedcdh.errors import FedCDHError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html import render_report, write_report
from fedcdh.reporting.result_files import render_result_json, write_result
from fedcdh.summaries.aggregation import Aggregate

FIVE = document([f"v{at}" for at in range(5)])


@pytest.fixture(scope="module")
def found():
    return discover(hospital_study().columns(), domain="hospital")


def test_a_report_shows_everything(found):
    made = json.loads(render_result_json(found))
    page = ParsedPage(render_report(made))
    for name in made["variables"]:
        assert page.text.count(name) >= 3
    for part in ("Links", "Differences between sites", "Sites", "Methods, for an article", "Settings and versions"):
        assert part in page.text
    for note in made["notes"]:
        assert note in page.text
    assert made["plan"] in page.text
    assert made["software"] in page.text
    assert "39" in page.text  # rows left out at one hospital
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    data = json.loads(page.scripts[0])
    assert len(data["edges"]) == len(found.graph.arrows) + len(found.graph.lines)
    facts = {next(iter(fact)) for edge in data["edges"] for fact in edge["facts"]}
    assert facts >= {"Evidence for the link", "Probability of a link", "Strength"}
    assert "Links are drawn from a probability of 0.5, arrows from 0.8." in page.text
    assert "A common cause that nobody measured can make a false arrow look almost certain." in page.text
    assert "Searches by tests" not in page.text


def test_the_lead_counts_links_that_are_almost_certain():
    for probability, said in ((0.95, "none of them are"), (0.995, "1 of them is")):
        made = copy.deepcopy(FIVE)
        drawn = [edge for edge in made["edges"] if edge["mark"] and edge["source"] != DOMAIN]
        for edge in drawn:
            edge.update(probability=0.9, probability_forward=0.9)
        drawn[0].update(probability=probability, probability_forward=probability)
        assert f"; {said} almost certain." in ParsedPage(render_report(made)).text
    assert "almost certain." not in ParsedPage(render_report(reports.by_tests(FIVE))).text


def test_it_says_that_nothing_else_is_possible():
    made = copy.deepcopy(FIVE)
    for edge in made["edges"]:
        if not edge["mark"]:
            edge.update(probability=0.05, probability_forward=0.05)
    assert "No other link has a probability of 0.1 or more." in ParsedPage(render_report(made)).text
    (pair, *_) = (edge for edge in made["edges"] if not edge["mark"] and edge["source"] != DOMAIN)
    pair.update(probability=0.3)
    text = ParsedPage(render_report(made)).text
    assert "Possible, not drawn" in text
    assert "No other link" not in text


def test_a_report_can_be_made_of_an_aggregate(found):
    aggregate = Aggregate.of(found.cohort)
    made = json.loads(render_result_json(discover_from(aggregate, aggregate.plan)))
    page = ParsedPage(render_report(made))
    assert "Rows read" not in page.text
    assert "1,939 rows" in page.text


def test_optional_parts_are_shown_where_they_exist():
    plain = render_report(FIVE)
    assert 'class="heat"' not in plain
    assert "Stability of links" not in plain
    full = render_report({**FIVE, "drift": reports.drift(FIVE), "stability": reports.stability(FIVE)})
    page = ParsedPage(full)
    assert 'class="heat"' in full
    assert "−7.5" in page.text
    assert "too few" in page.text
    assert "1 to 2" in page.text  # the interval of an estimate
    assert "75\N{NO-BREAK SPACE}%" in page.text
    assert any(fact[0] == "Stability" for edge in json.loads(page.scripts[0])["edges"] for fact in edge["facts"])
    assert render_report({**FIVE, "drift": None, "stability": []}) == plain


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(name):
    made = document([name, "x", "y", "z"])
    made["clients"][0]["client"] = name
    made["notes"] = [name]
    made["software"] = made["plan"] = made["settings"]["method"] = name
    made["settings"]["knowledge"].update(required=[[name, "x"]], tiers=[[name], ["y"]])
    made["drift"], made["stability"] = reports.drift(made), reports.stability(made)
    hostile, tame = ParsedPage(render_report(made)), ParsedPage(render_report(_renamed(made, name, "w")))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in tame.elements]
    assert [sorted(attributes) for _, attributes in hostile.elements] == [sorted(a) for _, a in tame.elements]
    assert len(hostile.scripts) == 2
    json.loads(hostile.scripts[0])


def _renamed(value, old, new):
    if isinstance(value, dict):
        return {key if key != old else new: _renamed(entry, old, new) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renamed(entry, old, new) for entry in value]
    return value.replace(old, new) if isinstance(value, str) else value


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), min_size=3, max_size=6, unique=True))
@settings(max_examples=40, deadline=None)
def test_any_names_make_a_page(names):
    page = ParsedPage(render_report(document(names)))
    assert len(page.scripts) == 2


def test_the_security_policy_admits_only_what_is_in_the_file():
    text = render_report(FIVE)
    page = ParsedPage(text)
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=[\"'](?!#)", text)
    assert not [a for _, a in page.elements if any(key == "style" or key.startswith("on") for key in a)]
    assert set(re.findall(r"https?://[^\"' <]*", text)) == {"http://www.w3.org/2000/svg"}


def test_the_same_document_gives_the_same_bytes():
    shuffled = json.loads(json.dumps(FIVE, sort_keys=True))
    assert render_report(FIVE) == render_report(shuffled)
    assert render_report(FIVE) == render_report(copy.deepcopy(FIVE))


def test_the_command_makes_the_same_page_from_a_folder_or_a_file(found, tmp_path, capsys):
    write_result(found, tmp_path / "result")
    assert main(["report", str(tmp_path / "result"), "-o", str(tmp_path / "a.html")]) == 0
    assert "a.html" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "result" / "result.json"), "-o", str(tmp_path / "b.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(tmp_path / "b.html")]
    assert main(["report", str(tmp_path / "result"), "-o", str(tmp_path / "a.html"), "-q"]) == 0
    assert capsys.readouterr().out == ""
    write_report(render_result_json(found), tmp_path / "c.html")
    pages = {(tmp_path / name).read_bytes() for name in ("a.html", "b.html", "c.html")}
    assert len(pages) == 1


def test_only_reports_are_overwritten(found, tmp_path, capsys):
    write_result(found, tmp_path)
    (tmp_path / "mine.html").write_text("my page", encoding="utf-8")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "mine.html")]) == 2
    assert main(["report", str(tmp_path / "result.json"), "-o", str(tmp_path / "result.json")]) == 2
    assert (tmp_path / "mine.html").read_text(encoding="utf-8") == "my page"


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(FedCDHError, match=r"pip install 'fedcdh\[report\]'"):
        render_report(FIVE)


def test_a_result_has_a_report_and_a_drawing(tmp_path):
    result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    path = result.report(tmp_path / "study.html")
    assert "systolic_pressure" in path.read_text(encoding="utf-8")
    assert (result._repr_svg_() or "").startswith("<svg")


def test_sites_without_disclosure_control_are_named():
    assert "No disclosure control" not in ParsedPage(render_report(FIVE)).text
    page = ParsedPage(render_report({**FIVE, "without_disclosure_control": ["north"]}))
    assert "No disclosure control. The limits that protect individuals were switched off at: north." in page.text


def test_a_report_of_a_noisy_study_has_no_effects_and_says_so_where_one_is_asked_for(tmp_path):
    plan = noisy_studies.a_plan()
    result = discover_from(noisy_studies.noisy_chains(plan, 3000), plan)
    page = ParsedPage(result.report(tmp_path / "noisy.html").read_text(encoding="utf-8"))
    assert "Read this first" in page.text
    assert "How large is the effect?" not in page.text
    with pytest.raises(FedCDHError):
        result.report(tmp_path / "other.html", effects=[("a", "b")])
    assert not (tmp_path / "other.html").exists()


def test_a_report_of_one_site_says_that_everything_hangs_on_it(tmp_path):
    tables = dict(list(hospital_study().tables.items())[:1])
    result = discover(tables, rounds="one")
    text = ParsedPage(result.report(tmp_path / "one.html").read_text(encoding="utf-8")).text
    assert "Everything: all rows come from one site" in text
    assert "With one site, differences between sites cannot be assessed." in text
