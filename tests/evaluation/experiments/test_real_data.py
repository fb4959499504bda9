from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from benchmarks.bench_real_data import Figures, failure_record, mean_record, oracle_record, run_fedcdh, score
from fedcdh.evaluation.experiments import real_data
from fedcdh.evaluation.experiments.real_data import REAL_STUDIES, RealStudy
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.partial_graph import PartialGraph


def study(*arrows: tuple[str, str]) -> RealStudy:
    columns = {name: np.zeros(1) for name in ("domain", "a", "b", "c")}
    return RealStudy("s", "s", columns, {}, frozenset(arrows), None)


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A shared folder with one small data set in place of sachs."""
    folder = tmp_path / "data" / "sachs"
    folder.mkdir(parents=True)
    (folder / "truth.json").write_text(json.dumps({"nodes": ["b", "a"], "edges": [["a", "b"]], "domain_changes": []}))
    with gzip.open(folder / "data.csv.gz", "wt") as table:
        table.write("a,other,b,domain\n1.0,9,2.5,here\n2.0,9,3.5,there\n")
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))


def test_what_is_not_there_is_skipped_and_said(shared):
    said: list[str] = []
    assert list(real_data.available_studies(["sachs", "bn_asia"], said.append)) == ["sachs"]
    assert len(said) == 1
    assert said[0].startswith("bn_asia: ")
    assert "not found, skipped" in said[0]


def test_a_data_set_is_read_and_prepared(shared):
    found = real_data.load_study("sachs")
    assert found.names == ("b", "a")
    assert found.columns["domain"].tolist() == ["here", "there"]
    assert np.allclose(found.columns["b"], np.log([2.5, 3.5]))
    assert not found.columns["b"].flags.writeable
    assert (found.arrows, found.changing) == ({("a", "b")}, frozenset())


def test_rows_are_thinned_and_scaled_in_each_domain():
    columns = {"domain": np.repeat(["x", "y"], [6, 5]), "v": np.arange(11.0)}
    thinned = real_data.thin_rows(columns, 3)
    assert thinned["v"].tolist() == [0, 3, 6, 9]
    assert real_data.scale_within_domains(thinned)["v"].tolist() == [-1, 1, -1, 1]
    assert columns["v"].tolist() == list(range(11))


def test_of_two_arrows_between_a_pair_the_one_claimed_is_true():
    feedback = study(("a", "b"), ("b", "a"), ("b", "c"))
    assert not feedback.has_acyclic_truth
    for claimed in (("a", "b"), ("b", "a")):
        assert feedback.truth_given([claimed, ("c", "b")]) == {claimed, ("b", "c")}
    assert len(feedback.truth_given([])) == 2
    assert (
        score(feedback, PartialGraph(("a", "b", "c"), frozenset({("b", "a"), ("b", "c")})), [], None, 0.0).skeleton == 1
    )


def test_longer_cycles_are_seen():
    assert study(("a", "b"), ("b", "c")).has_acyclic_truth
    assert not study(("a", "b"), ("b", "c"), ("c", "a")).has_acyclic_truth


def test_a_method_that_fails_is_shown_and_scores_nothing():
    simulated = RealStudy.of(simulate(rows=20, clients=2, seed=1), "small")
    figures = run_fedcdh(simulated, "no such method")
    assert figures[:2] == (0, 0)
    assert "no such method" in figures.failure
    both = mean_record([{"m": figures}, {"m": Figures(1.0, 0.5, 2, 1, 1, 1)}])["m"]
    assert both[:3] == (0.5, 0.25, 2)
    assert both.failure.startswith("1 of 2: ")
    assert failure_record(ValueError("two\n lines"), 0.0).failure == "ValueError: two lines"


def test_the_oracle_finds_every_edge_and_every_change():
    simulated = RealStudy.of(simulate(rows=5, clients=2, seed=3), "small")
    assert oracle_record(simulated)["oracle"].skeleton == 1
    assert oracle_record(simulated)["oracle"][3:5] == (1, 1)
    assert oracle_record(study(("a", "b"))) == {}  # which mechanisms change is not known


@pytest.mark.parametrize("name", REAL_STUDIES)
def test_the_shared_data_sets(name):
    if not list(real_data.available_studies([name], lambda said: None)):
        pytest.skip(f"the data of {name} are not here; see src/fedcdh/evaluation/experiments/real_data.py")
    found = real_data.load_study(name)
    assert {node for arrow in found.arrows for node in arrow} <= {*found.names}
    assert all(np.isfinite(found.columns[variable]).all() for variable in found.names)
    assert len({len(column) for column in found.columns.values()}) == 1
    assert found.changing is None or found.changing <= {*found.names}
    assert found.has_acyclic_truth == (name not in {"mtl_hippocampus_7t", "fmri_sim_net5", "fmri_sim_net7"})
