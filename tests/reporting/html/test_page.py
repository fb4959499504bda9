"""The report as a text: complete, escaped, the same every time, and refused where a document is none."""

from __future__ import annotations

import copy
import json
import re
import sys
from html.parser import HTMLParser
from itertools import combinations, pairwise

import pytest
import reports
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import HOSTILE, by_tests, document

import fedcdh
from fedcdh import discover, discover_from
from fedcdh.cli import main
from fedcdh.errors import DataError, FedCDHError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, compute_layout
from fedcdh.reporting.html import check_document, read_document, render_report, write_report
from fedcdh.reporting.html.graph_svg import draw_graph, edge_strength, fit_label
from fedcdh.reporting.html.heat_map import EQUAL_CONTRAST_LUMINANCE, INK, PAPER, cell_colour, relative_luminance
from fedcdh.reporting.phrases import ORIENTATION_REASONS, format_p_value, format_signed
from fedcdh.reporting.result_files import render_result_json, write_result
from fedcdh.summaries.aggregation import Aggregate

FIVE = document([f"v{at}" for at in range(5)])
EMPTY = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source"}


class Page(HTMLParser):
    """What a browser would make of it: the elements with their attributes, the text, and whether all tags close."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.text += data


@pytest.fixture(scope="module")
def found():
    return discover(hospital_study().columns(), domain="hospital")


def test_a_report_says_all_there_is(found):
    made = json.loads(render_result_json(found))
    page = Page(render_report(made))
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
    assert {next(iter(fact)) for edge in data["edges"] for fact in edge["facts"]} >= {"Evidence for the link"}


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_tests_are_told_as_p_values_with_separating_sets(method):
    result = discover(hospital_study().columns(), domain="hospital", method=method)
    page = Page(render_report(json.loads(render_result_json(result))))
    assert "Independent given" in page.text
    assert "p-value" in page.text
    assert "level 0.05" in page.text
    assert "Bayes factor)" not in page.text


def test_the_sum_of_summaries_is_enough(found):
    aggregate = Aggregate.of(found.cohort)
    made = json.loads(render_result_json(discover_from(aggregate, aggregate.plan)))
    page = Page(render_report(made))
    assert "Rows read" not in page.text
    assert "1,939 rows" in page.text


def test_what_is_optional_is_shown_where_it_is_there():
    plain = render_report(FIVE)
    assert 'class="heat"' not in plain
    assert "found again" not in plain
    full = render_report({**FIVE, "drift": reports.drift(FIVE), "stability": reports.stability(FIVE)})
    page = Page(full)
    assert 'class="heat"' in full
    assert "−7.5" in page.text
    assert "too few" in page.text
    assert "1 to 2" in page.text  # the interval of an estimate
    assert "75\N{NO-BREAK SPACE}%" in page.text
    assert any(fact[0] == "Stability" for edge in json.loads(page.scripts[0])["edges"] for fact in edge["facts"])
    assert render_report({**FIVE, "drift": None, "stability": []}) == plain


def test_of_very_many_sites_those_that_deviate_most_are_shown():
    record = reports.drift(FIVE)[0]
    drift = [{**record, "client": f"site {at:03d}", "deviation": (-1) ** at * at / 10} for at in range(300)]
    page = Page(render_report({**FIVE, "drift": drift}))
    assert "Shown are the 200 of 300 sites that deviate most" in page.text
    assert {f"site {at:03d}" for at in range(300) if f"site {at:03d}" in page.text} == {
        f"site {at:03d}" for at in range(100, 300)
    }
    few = Page(render_report({**FIVE, "drift": drift[:200]}))
    assert "site 000" in few.text
    assert "Shown are" not in few.text


def test_stability_may_come_with_its_runs(found):
    made = json.loads(render_result_json(found))
    edges = [
        {"source": "age", "target": "exercise", "mark": "—", "adjacent": 1.0, "same": 0.8, "gone_without": ["city"]},
    ]
    changing = [{"variable": "medication", "changing": True, "share": 0.6, "differs_without": ["north"]}]
    made["stability"] = {"kind": "leave-one-out", "edges": edges, "changing": changing, "runs": [{}] * 5, "notes": []}
    assert "hangs on each site" not in Page(render_report(made)).text
    whose = {"client": "north", "share": 0.25, "largest": 7.25, "total": 9.5, "n_changed": 3}
    made["stability"]["influence"] = [{**whose, "link": ["age", "exercise"]}, {**whose, "client": "city", "link": None}]
    text = Page(render_report(made)).text
    assert "hangs on each site" in text
    assert "+7.2" in text
    assert "age and exercise" in text
    assert "without one site after the other" in text
    assert "80\N{NO-BREAK SPACE}%" in text
    assert "60\N{NO-BREAK SPACE}%" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(name):
    made = document([name, "x", "y", "z"])
    made["clients"][0]["client"] = name
    made["notes"] = [name]
    made["software"] = made["plan"] = made["settings"]["method"] = name
    made["settings"]["knowledge"].update(required=[[name, "x"]], tiers=[[name], ["y"]])
    made["drift"], made["stability"] = reports.drift(made), reports.stability(made)
    hostile, tame = Page(render_report(made)), Page(render_report(_renamed(made, name, "w")))
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
    page = Page(render_report(document(names)))
    assert len(page.scripts) == 2


def test_the_policy_names_what_stands_in_the_file_and_nothing_else():
    text = render_report(FIVE)
    page = Page(text)
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


@pytest.mark.parametrize("size", [1, 2, 5, 30, 100])
def test_boxes_do_not_overlap(size):
    made = document([f"variable {at}" for at in range(size)], seed=size)
    drawing = draw_graph(made)
    for a, b in combinations(drawing.nodes, 2):
        apart = (
            abs(a["x"] - b["x"]) >= (a["width"] + b["width"]) / 2
            or abs(a["y"] - b["y"]) > (a["height"] + b["height"]) / 2
        )
        assert apart, (a, b)


@given(st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))))
@settings(max_examples=60, deadline=None)
def test_any_graph_has_a_layout_with_causes_on_the_left(drawn):
    size, pairs = drawn
    edges = [(f"n{a}", f"n{b}") for a, b in sorted(pairs) if a < b]
    layout = compute_layout({f"n{at}": BoxSize(60, 30) for at in range(size)}, edges)
    assert set(layout.centres) == {f"n{at}" for at in range(size)}
    for tail, head in edges:
        assert layout.centres[tail][0] < layout.centres[head][0]
        points = layout.waypoints[tail, head]
        assert all(x0 <= x1 for (x0, _), (x1, _) in pairwise(points))
    circle = [(f"n{at}", f"n{(at + 1) % size}") for at in range(size)] if size > 2 else []
    assert len(compute_layout({f"n{at}": BoxSize(60, 30) for at in range(size)}, circle).centres) == size


def test_a_graph_without_a_dag_is_drawn_all_the_same():
    made = {**FIVE, "dag": None}
    assert draw_graph(made).svg.count('class="curve"') == draw_graph(FIVE).svg.count('class="curve"')


def test_numbers_are_told_as_people_write_them():
    assert format_p_value(0.0) == "< 10⁻³⁰⁰"
    assert format_p_value(0.0314) == "0.031"
    assert format_p_value(2.93e-14) == "2.9 × 10⁻¹⁴"
    assert format_p_value(1.0) == "1.000"
    assert format_signed(-0.02) == "0.0"
    assert format_signed(-12.34) == "−12.3"
    assert edge_strength({"p_value": 0.0}) == 320
    assert edge_strength({"p_value": None}) is None
    assert fit_label("x" * 500) == "x" * 21 + "…"


def test_every_reason_is_explained():
    from fedcdh.graphs.meek_rules import MEEK_RULES

    assert set(ORIENTATION_REASONS) == {
        "domain",
        "knowledge",
        "collider",
        "evidence",
        "independent-change",
        *MEEK_RULES,
    }


@given(st.floats(-50, 50))
def test_cells_of_the_map_can_be_read(deviation):
    fill = relative_luminance(cell_colour(deviation))
    ink = relative_luminance(
        [int((INK if fill > EQUAL_CONTRAST_LUMINANCE else PAPER)[at : at + 2], 16) for at in (1, 3, 5)]
    )
    light, dark = max(fill, ink), min(fill, ink)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_paragraph_follows_the_settings():
    paragraph = Page(render_report(by_tests(FIVE))).text
    assert "at level 0.05" in paragraph
    assert "at most 2 variables" in paragraph
    assert "No background knowledge was used." in paragraph
    known = copy.deepcopy(FIVE)
    known["settings"]["knowledge"].update(required=[["v0", "v1"]], tiers=[["v0"], ["v1", "v2"]])
    assert "1 required arrow, an order in time (v0; then v1, v2)" in Page(render_report(known)).text
    one = {**FIVE, "clients": FIVE["clients"][:1], "changing": []}
    assert "1 site" in Page(render_report(one)).text


# Files, and what is refused


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


def test_nothing_else_is_overwritten(found, tmp_path, capsys):
    write_result(found, tmp_path)
    (tmp_path / "mine.html").write_text("my page", encoding="utf-8")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "mine.html")]) == 2
    assert main(["report", str(tmp_path / "result.json"), "-o", str(tmp_path / "result.json")]) == 2
    assert (tmp_path / "mine.html").read_text(encoding="utf-8") == "my page"


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": "fedcdh-result-1"}', "{", '{"a":1,"a":2}'])
def test_what_is_no_result_is_refused(text, tmp_path, capsys):
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == 3
    assert "Error" not in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
    with pytest.raises(DataError):
        read_document(tmp_path / "result.json")


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(FedCDHError, match=r"pip install 'fedcdh\[report\]'"):
        render_report(FIVE)


def _places(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(entry, (*path, key))


WHOLE = json.loads(json.dumps({**FIVE, "drift": reports.drift(FIVE), "stability": reports.stability(FIVE)}))
PLACES = sorted(_places(WHOLE), key=str)
ODD = st.sampled_from([None, -1, 0, 1e300, 2.5, True, "", "v0", "→", "x", [], {}, [["v0", "v0"]], [None], {"a": []}])


@given(st.sampled_from(PLACES), ODD, st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_damaged_document_is_refused_or_shown_but_never_breaks(path, value, remove):
    """One value replaced or left out, anywhere: a report or a DataError."""
    made = copy.deepcopy(WHOLE)
    place = made
    for key in path[:-1]:
        place = place[key]
    if not path:
        made = value
    elif remove:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    try:
        check_document(made)
    except DataError:
        with pytest.raises(DataError):
            render_report(made)
    else:
        Page(render_report(made))


def test_a_result_reports_and_shows_itself(tmp_path):
    result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    path = result.report(tmp_path / "study.html")
    assert "systolic_pressure" in path.read_text(encoding="utf-8")
    assert (result._repr_svg_() or "").startswith("<svg")


def test_what_a_notebook_shows():
    study = fedcdh.simulate("linear", variables=4, clients=3, rows=200, seed=3, names=["<b>", "a & b", "c'\"", "d"])
    for method in ("evidence", "constraint"):
        result = fedcdh.discover(dict(study.tables), names=study.names, method=method)
        shown = result._repr_html_()
        page = Page(shown)  # every tag is closed
        assert "<b>" not in shown
        for edge in result.edges():
            if edge.mark and edge.source != fedcdh.DOMAIN:
                assert "".join((edge.source, edge.mark, edge.target)) in page.text.replace("\n", "")
