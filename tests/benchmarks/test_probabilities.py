"""Calibration: statements have their truth, and the error is what its definition says."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import combinations
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import bench_probabilities
from benchmarks.bench_probabilities import METHODS, Outcome, ask, first_of_sources, main
from benchmarks.probabilities.cells import (
    CONFORMING,
    MISSPECIFIED,
    PAPER,
    Case,
    Study,
    all_cases,
    choose_cases,
    known_changes,
    real_study,
)
from benchmarks.probabilities.diagram import PANELS, draw_diagram
from benchmarks.probabilities.heart import COMMON, LABELS, likeliest_arrow
from benchmarks.probabilities.reliability import (
    LIMITS,
    TENTHS,
    TWENTIETHS,
    calibration_error,
    chance_errors,
    interval,
    make_bins,
    score,
)
from benchmarks.probabilities.report import Record, by_family, goals, line
from benchmarks.probabilities.statements import (
    KINDS,
    Statement,
    Statements,
    add_up,
    arrow_statements,
    count_drawn,
    direction_statements,
    presence_statements,
    read_result,
    share_right,
)
from fedcdh import DOMAIN, PartialGraph
from fedcdh.errors import DataError
from fedcdh.evaluation.experiments.noise_shape_data import SPECIAL_CASES, Cell, draw
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, RealStudy

TRUTH = frozenset({("a", "b"), ("c", "b")})
STUDY = Study({}, ("a", "b", "c"), TRUTH, {"a": True, "b": False})
some_statements = st.lists(st.builds(Statement, st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def edge(source, target, probability, forward):
    return SimpleNamespace(source=source, target=target, probability=probability, probability_forward=forward)


def stub_result(edges, graph=None, change=None):
    graph = graph or PartialGraph(STUDY.names)
    return SimpleNamespace(edges=lambda: edges, graph=graph, probability_of_change=change or {})


# Statements


def test_presence_is_judged_for_every_pair_whatever_its_direction():
    edges = [edge("a", "b", 0.9, 0.1), edge("b", "c", 0.8, 0.8), edge("a", "c", 0.3, 0.2)]
    assert presence_statements(edges, TRUTH) == [(0.9, True), (0.8, True), (0.3, False)]


def test_direction_is_the_likelier_one_given_the_edge():
    edges = [edge("a", "b", 0.8, 0.6), edge("b", "c", 0.5, 0.4)]
    (first, second) = direction_statements(edges, TRUTH)
    assert first == (pytest.approx(0.75), True)
    assert second == (pytest.approx(0.8), False)


def test_direction_does_not_depend_on_which_variable_is_the_source():
    forward = direction_statements([edge("a", "b", 0.8, 0.6)], TRUTH)
    (backward,) = direction_statements([edge("b", "a", 0.8, 0.2)], TRUTH)
    assert forward == [(pytest.approx(backward.said), backward.true)]


def test_direction_is_not_judged_for_pairs_without_edge_or_below_one_half():
    assert direction_statements([edge("a", "c", 0.9, 0.9), edge("a", "b", 0.49, 0.4)], TRUTH) == []


def test_both_arrows_of_a_pair_are_judged():
    assert arrow_statements([edge("b", "c", 0.7, 0.2)], TRUTH) == [(0.2, False), (pytest.approx(0.5), True)]


def test_arrows_come_in_the_order_of_pairs():
    edges = [edge("a", "b", 0.9, 0.1), edge("b", "c", 0.8, 0.8), edge("a", "c", 0.3, 0.2)]
    presence, arrows = presence_statements(edges, TRUTH), arrow_statements(edges, TRUTH)
    for number, one in enumerate(presence):
        forward, backward = arrows[2 * number : 2 * number + 2]
        assert forward.said + backward.said == pytest.approx(one.said)
        assert (forward.true or backward.true) == one.true


def test_pairs_without_probability_make_no_statement():
    edges = [edge("a", "b", None, None), edge("b", "c", 0.7, None)]
    assert direction_statements(edges, TRUTH) == arrow_statements(edges, TRUTH) == []
    assert presence_statements(edges, TRUTH) == [(0.7, True)]


def test_the_domain_is_no_variable_and_unknown_changes_are_left_out():
    edges = [edge(DOMAIN, "a", 0.9, 0.9), edge("a", "b", 0.6, 0.6)]
    found = read_result(stub_result(edges, change={"a": 0.7, "b": 0.2, "c": 0.5}), STUDY)
    assert found.presence == [(0.6, True)]
    assert len(found.arrow) == 2
    assert found.change == [(0.7, True), (0.2, False)]


def test_a_drawn_arrow_is_right_only_if_it_is_that_arrow():
    truth = frozenset({("a", "b"), ("c", "b"), ("c", "d"), ("d", "e")})
    lines = frozenset({frozenset("cd"), frozenset("ae")})
    counts = count_drawn(PartialGraph(tuple("abcde"), frozenset({("a", "b"), ("b", "c"), ("a", "c")}), lines), truth)
    expected = {"right": 1, "reversed": 1, "no edge": 1, "lines": 2, "false lines": 1, "missed": 1}
    assert counts == expected
    assert share_right(counts) == pytest.approx(1 / 3)
    assert np.isnan(share_right(Counter()))


def test_between_mutual_causes_both_directions_are_right():
    truth = frozenset({("a", "b"), ("b", "a")})
    for arrow in truth:
        assert count_drawn(PartialGraph(("a", "b"), frozenset({arrow})), truth)["right"] == 1
    assert count_drawn(PartialGraph(("a", "b")), truth)["missed"] == 1


def test_adding_up_keeps_every_statement():
    one = read_result(stub_result([edge("a", "b", 0.6, 0.6)], change={"a": 0.7}), STUDY)
    total = add_up([one, one, Statements()])
    assert all(total.of(kind) == 2 * one.of(kind) for kind in KINDS)
    assert total.drawn["missed"] == 4


# Reliability


@given(some_statements)
def test_every_statement_is_in_one_bin_and_the_error_is_that_of_the_bins(statements):
    bins = make_bins(statements, TENTHS)
    assert sum(one.count for one in bins) == len(statements)
    assert all(one.low <= one.said <= one.high for one in bins if one.count)
    expected = sum(one.count * abs(one.said - one.found) for one in bins if one.count) / len(statements)
    assert calibration_error(statements, TENTHS) == pytest.approx(expected)


@given(some_statements, st.randoms(use_true_random=False))
def test_the_order_of_statements_does_not_matter(statements, random):
    mixed = random.sample(statements, len(statements))
    assert calibration_error(mixed, TENTHS) == pytest.approx(calibration_error(statements, TENTHS))


@given(st.floats(0, 1), st.integers(0, 30), st.integers(1, 30))
def test_the_error_of_a_constant_forecast_is_its_gap(said, true, false):
    statements = [Statement(said, True)] * true + [Statement(said, False)] * false
    assert calibration_error(statements, TENTHS) == pytest.approx(abs(said - true / (true + false)))


def test_limits_of_bins_belong_to_the_bin_above_and_one_to_the_last():
    for limits in (TENTHS, TWENTIETHS):
        bins = make_bins([Statement(float(limit), True) for limit in limits], limits)
        assert [one.count for one in bins] == [1] * (len(bins) - 1) + [2]


def test_the_error_of_a_calibrated_forecaster_tends_to_its_chance_level():
    rng = np.random.default_rng(1)
    for count in (100, 3000):
        ours, expected = [], []
        for _ in range(40):
            said = rng.uniform(size=count)
            statements = [Statement(p, u < p) for p, u in zip(said, rng.uniform(size=count), strict=True)]
            ours.append(calibration_error(statements, TENTHS))
            expected.append(chance_errors(statements, TENTHS).mean())
        assert np.mean(ours) == pytest.approx(np.mean(expected), rel=0.1), count
    assert np.mean(expected) < 0.03  # and both tend to 0


def test_a_calibrated_forecaster_seldom_exceeds_the_quantile_and_an_overconfident_one_does():
    rng = np.random.default_rng(2)
    above = 0
    for _ in range(100):
        said = rng.uniform(0.5, 1, 80)
        fair = score([Statement(p, u < p) for p, u in zip(said, rng.uniform(size=80), strict=True)], TWENTIETHS)
        above += fair.ece > fair.rarely
        bold = score([Statement(0.97, u < 0.7) for u in rng.uniform(size=80)], TWENTIETHS)
        assert bold.ece > bold.rarely
    assert above <= 12


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_the_interval_of_a_bin_mostly_contains_the_share(share):
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        (one,) = make_bins([Statement(0.5, u < share) for u in rng.uniform(size=40)], np.array([0.0, 1.0]))
        low, high = interval(one)
        assert 0 <= low <= one.found <= high <= 1
        inside += low <= share <= high
    assert 0.9 < inside / 400 <= 1


def test_certain_statements_have_no_error_by_chance():
    found = score([Statement(1.0, True), Statement(0.0, False)], TENTHS)
    assert found == (2, 0, 0, 0, 0, 0)


def test_log_and_brier_score_follow_their_formulas_and_are_finite():
    found = score([Statement(0.8, True), Statement(0.4, False), Statement(1.0, False)], TENTHS)
    assert found.log_score == pytest.approx(-(np.log(0.8) + np.log(0.6) + np.log(1e-6)) / 3)
    assert found.brier == pytest.approx((0.04 + 0.16 + 1) / 3)


def test_without_statements_there_is_no_figure():
    found = score([], TENTHS)
    assert found.count == 0
    assert np.isnan(found[1:]).all()


# Cells


def test_titles_are_unique_and_the_grid_covers_what_it_should():
    cases = all_cases()
    titles = [str(case) for case in cases]
    assert len(set(titles)) == len(titles)
    for part in (*SPECIAL_CASES, "three levels", "more labels", "missing 10 %", "2 x 500", "30 x 50", "paper's"):
        assert any(part in title for title in titles), part


@pytest.mark.parametrize(
    ("cell", "group", "family"),
    [
        (Cell("laplace", "size"), CONFORMING, "laplace"),
        (Cell("exponential", special="labels"), CONFORMING, "exponential"),
        (Cell("gaussian", size="30 x 50"), CONFORMING, "gaussian"),
        (Cell("uniform", "interaction"), MISSPECIFIED, "interaction"),
        (Cell("gaussian", special="hidden cause"), MISSPECIFIED, "hidden cause"),
        (Cell("gaussian", special="three levels"), MISSPECIFIED, "three levels"),
    ],
)
def test_a_cell_belongs_to_its_group(cell, group, family):
    assert (Case(cell).group, Case(cell).family) == (group, family)


def test_the_papers_generator_is_a_group_of_its_own():
    assert {case.group for case in choose_cases("paper's")} == {PAPER}


def test_cells_are_chosen_by_parts_of_their_titles():
    assert {case.family for case in choose_cases("counts; outliers")} == {"counts", "outliers"}
    assert len(choose_cases("")) == len(all_cases())
    with pytest.raises(SystemExit, match="found no cell"):
        choose_cases("no such thing")


def test_a_change_that_standardising_takes_away_is_not_judged():
    """Columns of a special case have the same mean and spread at every client; changed roots do not differ."""
    for seed in range(20):
        cell = Cell(special="everything changes")
        study = draw(cell, seed)
        heads = {head for _, head in study.arrows}
        assert known_changes(cell, study) == dict.fromkeys(sorted(heads), True)
        usual = draw(Cell(), seed)
        assert {name for name, changed in known_changes(Cell(), usual).items() if changed} == usual.changing
        still = Cell(special="nothing changes")
        assert known_changes(still, draw(still, seed)) == dict.fromkeys(study.names, False)


def test_a_mechanism_below_a_changed_one_is_not_judged_in_special_cases():
    for seed in range(20):
        cell = Cell(special="outliers")
        study = draw(cell, seed)
        known = known_changes(cell, study)
        for tail, head in study.arrows:
            assert not (tail in study.changing and known.get(head) is False)


@pytest.mark.parametrize("part", ["missing 10 %", "paper's general model", "more labels"])
def test_studies_of_all_generators_have_names_arrows_and_changes(part):
    study = choose_cases(part)[0].draw(3)
    assert len(study.names) == len(study.arrows) == 6
    assert {name for arrow in study.arrows for name in arrow} <= {*study.names}
    assert sum(study.changes.values()) == 2


def test_a_real_study_without_known_changes_has_none():
    columns = {DOMAIN_COLUMN: np.zeros(2), "a": np.zeros(2), "b": np.zeros(2)}
    for changing, expected in ((None, {}), (frozenset("a"), {"a": True, "b": False})):
        study = real_study(RealStudy("x", "x", columns, {}, TRUTH, changing))
        assert study.changes == expected
        assert study.options["domain"] == DOMAIN_COLUMN


# What is printed and written


def record(title, group, family, kinds, drawn):
    return Record(title, group, family, Statements(**kinds, drawn=Counter(drawn)))


def test_goals_name_the_worst_cell_and_the_worst_family():
    good = {"presence": [Statement(1.0, True)] * 9, "direction": [Statement(1.0, True)] * 9}
    bad = {"presence": [Statement(0.95, False)], "direction": [Statement(0.5, True), Statement(0.5, False)]}
    records = [
        record("good", CONFORMING, "gaussian", good, {"right": 19, "reversed": 1}),
        record("bad", MISSPECIFIED, "counts", bad, {"right": 8, "no edge": 2}),
    ]
    overall, direction, cell, cell_direction, conforming, misspecified = goals(records)
    assert overall.value == pytest.approx(0.095)
    assert not overall.met
    assert direction.met
    assert (cell.value, cell.met) == (pytest.approx(0.95), False)
    assert "bad" in cell.where
    assert cell_direction.met
    assert (conforming.value, conforming.met) == (pytest.approx(0.95), True)
    assert (misspecified.value, misspecified.met, misspecified.where) == (pytest.approx(0.8), False, "counts")
    assert "NOT met" in str(misspecified)


def test_goals_without_figures_are_not_met():
    assert not any(goal.met for goal in goals([record("none", CONFORMING, "t5", {}, {})]))


def test_families_are_counted_apart():
    records = [record(str(k), CONFORMING, family, {}, {"right": 1}) for k, family in enumerate(["t5", "t5", "laplace"])]
    assert {one.family: one.statements.drawn["right"] for one in by_family(records)} == {"t5": 2, "laplace": 1}


def test_a_line_holds_without_any_statement():
    assert "–" in line(record("nothing", CONFORMING, "t5", {}, {}))


def test_the_diagram_is_xml_with_a_point_for_every_bin_that_has_statements():
    statements = [Statement(0.05, False), Statement(0.95, True), Statement(0.96, False)]
    rows = {"a < b": {kind: make_bins(statements, TENTHS) for kind in KINDS}}
    root = ElementTree.fromstring(draw_diagram(rows))
    points = root.findall("{*}circle")
    assert len(points) == 2 * len(PANELS)
    small, large = (float(point.attrib["r"]) for point in points[:2])
    assert large**2 == pytest.approx(2 * small**2, rel=0.02)
    assert any(text.text == "a < b" for text in root.findall("{*}text"))


def test_an_empty_diagram_is_xml():
    rows = {"none": {kind: make_bins([], LIMITS[kind]) for kind in KINDS}}
    assert not ElementTree.fromstring(draw_diagram(rows)).findall("{*}circle")


# The command, with a forecaster that says the base rate


class InProcess:
    """An executor without further processes: the stub stays in place."""

    def __init__(self, workers):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def say_base_rates(data, **settings):
    """6 of 15 pairs are adjacent and 2 of 6 mechanisms change; directions are open."""
    names = sorted(next(iter(data.values())))
    edges = [edge(a, b, 0.4, 0.2) for a, b in combinations(names, 2)]
    return stub_result(edges, PartialGraph(names), dict.fromkeys(names, 1 / 3))


@pytest.fixture
def stubbed(monkeypatch):
    monkeypatch.setattr(bench_probabilities, "discover", say_base_rates)
    monkeypatch.setattr(bench_probabilities, "ProcessPoolExecutor", InProcess)


def test_the_command_prints_tables_and_writes_figures_diagram_and_statements(stubbed, tmp_path, capsys):
    files = {what: str(tmp_path / f"out.{what}") for what in ("diagram", "json", "raw")}
    wanted = ["--seeds", "3:5", "--cells", "curved, t5, 5 x 400;interaction, t5, 5 x 400"]
    main([*wanted, "--methods", *METHODS, *[part for what, path in files.items() for part in (f"--{what}", path)]])
    printed = capsys.readouterr().out
    for part in ("curved, t5, 5 x 400", CONFORMING, MISSPECIFIED, "all cells", "presence: the two", "goal 0.05: met"):
        assert part in printed
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert set(document["methods"]) == set(METHODS)
    everything = document["methods"]["evidence"]["all"]
    assert everything["scores"]["presence"]["count"] == 2 * 2 * 15
    for kind in ("presence", "change", "arrow"):  # a forecaster that says the base rate is calibrated
        assert everything["scores"][kind]["ece"] == pytest.approx(0, abs=1e-9)
    assert everything["drawn"]["missed"] == 2 * 2 * 6
    with gzip.open(files["raw"], "rt", encoding="utf-8") as file:
        studies = json.load(file)
    assert len(studies) == 2 * 2 * len(METHODS)
    assert sum(true for _, true in studies[0]["presence"]) == 6
    ElementTree.parse(files["diagram"])


def test_a_refusal_misses_all_edges_and_is_reported(monkeypatch):
    def refuse(data, **settings):
        raise DataError("found no rows; expected rows; bring some")

    monkeypatch.setattr(bench_probabilities, "discover", refuse)
    found = ask(STUDY, "cell", "evidence")
    assert found.statements.drawn["missed"] == 2
    assert "found no rows" in found.failure


def test_of_several_studies_of_one_source_the_first_counts():
    names = ("sachs", "sachs_18", "airfoil")
    outcomes = [Outcome(name, "evidence", 0, Statements(), 0.0) for name in names]
    assert [one.title for one in first_of_sources(outcomes, "evidence")] == ["sachs", "airfoil"]


def test_real_studies_are_judged_without_goals(stubbed, monkeypatch, capsys):
    columns = {DOMAIN_COLUMN: np.zeros(2), "a": np.zeros(2), "b": np.zeros(2), "c": np.zeros(2)}
    study = RealStudy("sachs", "sachs", columns, {}, TRUTH, None)
    edges = [edge("a", "b", 0.9, 0.9)]
    monkeypatch.setattr(bench_probabilities, "available_studies", lambda names: names)
    monkeypatch.setattr(bench_probabilities, "load_study", lambda name: study)
    graph = PartialGraph(study.names, frozenset({("a", "b")}))
    monkeypatch.setattr(bench_probabilities, "discover", lambda data, **settings: stub_result(edges, graph))
    main(["--real", "--studies", "sachs"])
    printed = capsys.readouterr().out
    assert "first study of 1 sources" in printed
    assert "100.0 %" in printed
    assert "goal" not in printed


# The heart study


def test_the_likeliest_arrow_points_to_one_of_the_heads():
    arrows = {("a", "age"): 0.2, ("b", "sex"): 0.5, ("age", "a"): 0.9, ("sex", "age"): 0.4, ("c", "age"): 0.5}
    assert likeliest_arrow(arrows, ("age", "sex")) == ("b", "sex", 0.5)
    assert likeliest_arrow(arrows, ("age",)) == ("c", "age", 0.5)


def write_hospitals(folder, rows=150):
    """Write a study with the columns of the heart study; thalach is caused by age, and age by nothing."""
    rng = np.random.default_rng(0)
    lines = []
    for hospital in ("cleveland", "hungary", "switzerland", "va_longbeach"):
        for _ in range(rows):
            age = rng.normal(55, 9)
            values = {name: f"{rng.normal():.3f}" for name in (*COMMON, "chol")}
            values |= {name: str(rng.integers(2)) for name in LABELS}
            values |= {"age": f"{age:.2f}", "thalach": f"{200 - age + rng.normal(0, 6):.2f}"}
            if hospital == "switzerland":
                values |= {"chol": "", "fbs": values["fbs"] if rng.random() < 0.5 else ""}
            lines.append([*values.values(), hospital])
    path = folder / "data" / "heart_4hospitals"
    path.mkdir(parents=True)
    header = [*values, "domain"]
    path.joinpath("data.csv").write_text("\n".join(map(",".join, [header, *lines])), encoding="utf-8")


def test_arrows_into_age_and_sex_are_printed_for_every_study(tmp_path, monkeypatch, capsys):
    write_hospitals(tmp_path)
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))
    main(["--heart", "--methods", "evidence, one message"])
    first, *lines = capsys.readouterr().out.splitlines()
    assert "age or sex" in first
    assert [one[:20].strip() for one in lines] == ["nine variables", "with blood sugar", "three hospitals"]
    for one in lines:
        said = float(one.split("→")[1].split()[1])
        assert one.split("→")[1].split()[0] in ("age", "sex")
        assert 0 <= said <= 1
        assert ("above the goal" in one) == (said > 0.6)
    assert all("thalach → age" in one for one in lines)


def test_without_the_data_the_heart_study_is_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))
    main(["--heart"])
    assert "not found, skipped" in capsys.readouterr().out
