"""Everything that `write_result` wrote is read back by `read_result`, for every method and kind of study."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given
from hypothesis import strategies as st
from noisy_studies import a_plan, noisy_chains
from strategies import mutated

import fedcdh
from fedcdh.errors import DataError, FedCDHError, KnowledgeError, SettingsError
from fedcdh.reporting import render_html, render_svg, write_report
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.domain_mixtures import DomainMixtures
from fedcdh.summaries.dp_parameters import DPParameters

NUMBERS = studies.numbers(1)
LABELS = studies.mixed(2, (90, 70, 60))
FILES = ("graph.txt", "graph.dot", "edges.csv", "effects.csv", "result.json")


def found_in_aggregate(groups=None, **options):
    cohort = studies.cohort_of(studies.numbers(0, (60, 50, 40, 40)))
    return fedcdh.discover_from(Aggregate.of(cohort, groups), cohort.plan, **options)


def found_in_mixtures():
    cohort = studies.cohort_of(NUMBERS, fedcdh.Fourier(5))
    mixtures = DomainMixtures.of(cohort.summaries, cohort.plan, 2)
    return fedcdh.discover_from(Aggregate.from_total(cohort.total, cohort.plan, mixtures), cohort.plan, method="paper")


def found_with_noise():
    plan = a_plan(DPParameters(2, 1e-6, expected_rows=24_000))
    return fedcdh.discover_from(noisy_chains(plan, 8000), plan)


def found_in_paper():
    cohort = studies.cohort_of(NUMBERS, fedcdh.Fourier(5))
    return fedcdh.discover_from(cohort, cohort.plan, method="paper")


def found_with_gaps_and_tails():
    """Missing values, long tails at one site and a constant: a warning before the graph, and notes after it."""
    rng = np.random.default_rng(0)
    tables = {f"s{k}": dict(zip("xyz", rng.standard_normal((3, 300)), strict=True)) for k in range(8)}
    tables["s4"]["x"][:3] = tables["s4"]["z"][:3] = 10.0
    for number, table in enumerate(tables.values()):
        table["y"][-number - 1 :] = float("nan")
        table["constant"] = np.full(300, 5.0)
    return fedcdh.discover(tables, rounds="one")


STUDIES = {
    "evidence": lambda: fedcdh.discover(NUMBERS),
    "one message": lambda: fedcdh.discover(NUMBERS, rounds="one", max_conditioning_size=2, seed=7),
    "mixed labels": lambda: fedcdh.discover(LABELS),
    "constraint": lambda: fedcdh.discover(LABELS, method="constraint", alpha=0.01),
    "paper": found_in_paper,
    "aggregate": found_in_aggregate,
    "groups": lambda: found_in_aggregate({f"site{k}": "ab"[k // 2] for k in range(4)}),
    "mixtures": found_in_mixtures,
    "noisy": found_with_noise,
    "one client": lambda: fedcdh.discover(studies.numbers(0, (80,))),
    "one variable": lambda: fedcdh.discover(studies.numbers(0, (30, 30), count=1)),
    "knowledge": lambda: fedcdh.discover(
        NUMBERS,
        knowledge=fedcdh.Knowledge([("v1", "v3")], [("v2", "v4")], [["v1", "v2"], ["v3", "v4"]], [0]),
    ),
    "warnings": found_with_gaps_and_tails,
}
"""The kinds of study, each with a search."""


@pytest.fixture(scope="module", params=STUDIES)
def result(request):
    return STUDIES[request.param]()


@pytest.fixture
def saved(result, tmp_path):
    fedcdh.write_result(result, tmp_path / "first")
    return fedcdh.read_result(tmp_path / "first")


def test_everything_written_equals_what_is_read(result, saved):
    assert str(saved) == str(result)
    assert repr(saved) == repr(result).replace("Discovery", "SavedDiscovery")
    assert (saved.graph, saved.graph.nodes) == (result.graph, result.graph.nodes)
    assert (saved.augmented, saved.augmented.nodes) == (result.augmented, result.augmented.nodes)
    for name in ("changing", "settings", "notes", "warnings", "probability_of_change", "variables", "n_rows"):
        assert getattr(saved, name) == getattr(result, name), name
    for name in ("client_groups", "client_count", "has_mixtures", "has_probabilities", "no_change_reason"):
        assert getattr(saved, name) == getattr(result, name), name
    assert saved.edges() == result.edges()
    assert attempt(saved.to_dag, KnowledgeError) == attempt(result.to_dag, KnowledgeError)
    assert attempt(saved.drift, SettingsError) == attempt(result.drift, SettingsError)
    assert attempt(saved.effects, SettingsError) == attempt(lambda: pooled_effects(result), SettingsError)


def test_the_kinds_of_study_have_what_they_are_named_after():
    assert STUDIES["warnings"]().warnings
    assert STUDIES["mixtures"]().has_mixtures
    assert STUDIES["groups"]().client_noun == "group"
    assert not STUDIES["noisy"]().has_probabilities


def pooled_effects(result):
    """The effects of a result without the values of single sites."""
    return tuple(replace(effect, by_client={}, curve=None) for effect in result.effects())


def attempt(call, refusal):
    """Return the value of a call, or the kind of its refusal."""
    try:
        return call()
    except refusal:
        return refusal


def test_written_again_it_has_the_same_bytes(result, saved, tmp_path):
    fedcdh.write_result(saved, tmp_path / "second")
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    assert fedcdh.read_result(tmp_path / "second" / "result.json") == saved


def test_it_shows_itself_alike(result, saved, tmp_path):
    assert render_html(saved) == render_html(result)
    assert render_svg(saved) == render_svg(result)
    write_report(render_result_json(result), tmp_path / "a.html")
    assert saved.report(tmp_path / "b.html").read_bytes() == (tmp_path / "a.html").read_bytes()


@pytest.mark.parametrize("runs", [None, 3])
def test_stability_is_read_back(runs, tmp_path):
    result = STUDIES["evidence"]()
    stability = result.stability(runs, seed=4)
    written = fedcdh.write_result(result, tmp_path / "a", stability, without_disclosure_control=["site1"])
    saved = fedcdh.read_result(tmp_path / "a")
    assert saved.without_disclosure_control == ("site1",)
    without_weights = replace(stability, runs=tuple(replace(run, weights={}) for run in stability.runs))
    assert saved.stability() == saved.stability(runs, seed=4) == without_weights
    assert str(saved.stability()) == str(stability)
    again = fedcdh.write_result(saved, tmp_path / "b")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    fedcdh.write_result(saved, tmp_path / "c", row_stability=saved.stability())
    assert fedcdh.read_result(tmp_path / "c").row_stability() == saved.stability()
    with pytest.raises(SettingsError, match="of another kind"):
        saved.stability(5)
    with pytest.raises(SettingsError, match="cannot be searched without the summaries"):
        saved.stability(replicates=[])
    with pytest.raises(SettingsError, match="no stability with resampled rows was written"):
        saved.row_stability()


def test_chosen_effects_are_read_back_with_their_sites(tmp_path):
    result = STUDIES["evidence"]()
    first, second = result.effects()[1], result.effect("v1", "v2", at=(-1.0, 1.0))
    written = fedcdh.write_result(result, tmp_path / "a", effects=[first, second])
    saved = fedcdh.read_result(tmp_path / "a")
    assert saved.effects()[:2] == (first, second)
    assert saved.effect(first.cause, first.outcome) == first
    assert saved.effect("v1", "v2", at=(-1.0, 1.0)) == second
    again = fedcdh.write_result(saved, tmp_path / "b")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    fedcdh.write_result(STUDIES["evidence"](), tmp_path / "c")
    fedcdh.write_result(fedcdh.read_result(tmp_path / "c"), tmp_path / "d", effects=[first, second])
    assert (tmp_path / "d" / "result.json").read_bytes() == written[-1].read_bytes()
    with pytest.raises(SettingsError, match="is not in the files, which have all total effects"):
        saved.effect("v4", "v1")


def test_what_is_not_in_the_folder_says_what_to_do(tmp_path):
    fedcdh.write_result(STUDIES["evidence"](), tmp_path)
    saved = fedcdh.read_result(tmp_path)
    with pytest.raises(SettingsError, match=r"no stability was written .*fedcdh discover --stability"):
        saved.stability()
    with pytest.raises(SettingsError, match=r"the drift of 'v1' is not in the files"):
        saved.drift(["v1"])
    for name in ("cohort", "posterior", "sample_dags", "search_result", "skeleton", "orientation"):
        with pytest.raises(FedCDHError, match=rf"which have no {name}; .* fedcdh.discover_from\(summaries, plan\)"):
            getattr(saved, name)
        assert not hasattr(saved, name)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = saved.nonsense


def test_damaged_and_newer_files_are_refused(tmp_path):
    text = render_result_json(STUDIES["constraint"]())
    path = tmp_path / "result.json"
    made = json.loads(text)
    newer = {**made, "format": "fedcdh-result-9", "software": "fedcdh 7.1"}
    path.write_text(json.dumps(newer), encoding="utf-8")
    with pytest.raises(DataError, match=r"made by a newer fedcdh \(fedcdh 7.1\).*Update fedcdh"):
        fedcdh.read_result(tmp_path)
    path.write_text(json.dumps({**made, "format": "fedcdh-result-3"}), encoding="utf-8")
    with pytest.raises(DataError, match="older version"):
        fedcdh.read_result(tmp_path)
    arrows = made["graph"]["arrows"]
    for damage in (
        {"graph": {**made["graph"], "arrows": [arrow[::-1] for arrow in arrows]}},
        {"changing": ["flag", "age"]},
        {"settings": {**made["settings"], "alpha": 3}},
        {"stability": []},
        {"warnings": 99},
    ):
        path.write_text(json.dumps({**made, **damage}), encoding="utf-8")
        with pytest.raises(DataError, match="damaged"):
            fedcdh.read_result(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"has no result.json; expected the folder of a result"):
        fedcdh.read_result(tmp_path)


SMALL = render_result_json(fedcdh.discover(studies.numbers(0, (30, 30), count=2), rounds="one")).encode()


@given(st.randoms(use_true_random=False))
def test_damaged_bytes_are_read_whole_or_refused(random):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "result.json").write_bytes(mutated(SMALL, random))
        try:
            found = fedcdh.read_result(folder)
        except FedCDHError:
            return
        assert str(found)
        assert found._repr_html_()
        render_result_json(found)
