"""Our methods as baselines: the graph of `discover`, and the bytes of the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fedcdh
from fedcdh.cli import main
from fedcdh.data.table import to_table
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.fedcdh_methods import run_fedcdh
from fedcdh.evaluation.baselines.interface import Traffic
from fedcdh.evaluation.simulation import simulate
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fedcdh", {}),
        ("fedcdh-one-message", {"rounds": "one"}),
        ("fedcdh-constraint", {"method": "constraint"}),
        ("fedcdh-constraint-one-message", {"method": "constraint", "rounds": "one"}),
        ("fedcdh-rounds", {"method": "constraint", "rounds": "adaptive"}),
        ("fedcdh-paper", {"method": "paper"}),
    ],
)
def test_ours_is_what_users_of_discover_get(name, settings):
    study = simulate("general", variables=5, clients=4, rows=70, seed=8)
    result = fedcdh.discover(dict(study.tables), names=study.names, seed=8, **settings)
    found = BASELINES[name](study.tables, study.names, 8)
    assert found.augmented == result.augmented
    assert found.graph == result.graph
    assert found.changing == result.changing
    assert found.directed == result.to_dag().arrows


@pytest.mark.parametrize(("engine", "family"), [("paper", Fourier(7, seed=9)), ("constraint", Hermite(7))])
def test_ours_counts_the_files(engine, family):
    study = simulate(variables=4, clients=3, rows=50, seed=9)
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    profiles = [fedcdh.profile(table, client) for client, table in tables.items()]
    plan = StudyPlan.from_profiles(profiles, family=family)
    summaries = [fedcdh.summarize(table, plan, client) for client, table in tables.items()]
    up = [profile_to_json(ProfileMessage(one)).encode() for one in profiles]
    up += [pack_summary(SummaryMessage(one), plan) for one in summaries]
    down = len(Study(plan).to_json().encode())
    found = run_fedcdh(study.tables, study.names, 9, method=engine, width=7, rounds="one")
    assert found.traffic == Traffic(6, sum(map(len, up)), 3, 3 * down)
    assert found.augmented == fedcdh.discover_from(summaries, plan, method=engine, seed=9).augmented


def test_ours_reads_codes_as_labels():
    study = simulate(variables=3, clients=3, rows=80, seed=2)
    tables = {client: np.column_stack([table[:, :2], table[:, 2] > 0]) for client, table in study.tables.items()}
    kinds = {study.names[2]: "categorical"}
    result = fedcdh.discover(tables, names=study.names, kinds=kinds)
    found = run_fedcdh(tables, study.names, kinds=kinds)
    assert found.augmented == result.augmented
    assert found.traffic != run_fedcdh(tables, study.names).traffic


@pytest.mark.parametrize("engine", ["evidence", "constraint"])
def test_ours_asks_about_residuals_as_discover_does(engine):
    study = simulate("linear", variables=4, clients=3, rows=200, seed=3)
    result = fedcdh.discover(dict(study.tables), names=study.names, method=engine, rounds="residuals")
    found = run_fedcdh(study.tables, study.names, method=engine, rounds="residuals")
    assert found.augmented == result.augmented
    assert found.traffic.bytes_up > run_fedcdh(study.tables, study.names, method=engine, rounds="one").traffic.bytes_up


def test_the_bytes_that_are_counted_are_those_of_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "releases.jsonl"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    study = simulate(variables=3, clients=3, rows=300, changing=1, seed=6)
    for client, table in study.tables.items():
        rows = ["".join(f"{value!r}," for value in row.tolist())[:-1] for row in table]
        Path(f"{client}.csv").write_text("\n".join([",".join(study.names), *rows, ""]))
        assert main(["profile", f"{client}.csv", "--client", client, "-o", f"{client}.profile.json", "-q"]) == 0
    profiles = [f"{client}.profile.json" for client in study.tables]
    assert main(["plan", *profiles, "-o", "study.plan.json", "-q"]) == 0
    for client in study.tables:
        assert main(["summarize", "study.plan.json", f"{client}.csv", "--client", client, "-q"]) == 0
    written = sum(path.stat().st_size for path in tmp_path.iterdir() if path.suffix in (".summary", ".json"))
    sent = written - Path("study.plan.json").stat().st_size
    assert run_fedcdh(study.tables, study.names, rounds="one").traffic.bytes_up == sent
