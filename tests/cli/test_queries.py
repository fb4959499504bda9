"""A query takes the place of a table in every command that reads one, and in the configuration of a site."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from pathlib import Path

import pytest
from cli_study import SITES, data_of, make_study, plan_of, run, write_request

from fedcdh.federation.site_config import read_site_config


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDCDH_LEDGER", str(folder / "releases.jsonl"))
        make_study(folder)
    for site in SITES:
        with Path(data_of(folder, site)).open(encoding="utf-8", newline="") as file:
            heading, *rows = csv.reader(file)
        connection = sqlite3.connect(folder / f"{site}.db")
        connection.execute(f"CREATE TABLE patients ({', '.join(f'{name} REAL' for name in heading)})")
        connection.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * len(heading))})", rows)
        connection.commit()
        connection.close()
        query = f'url = "sqlite:///{site}.db"\nquery = "SELECT * FROM patients"\n'
        (folder / f"{site}.query.toml").write_text(query)
    return folder


@pytest.fixture(autouse=True)
def own_ledgers(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "ledger" / "releases.jsonl"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [("profile",), ("summarize", "PLAN"), ("advise",), ("advise", "PLAN")])
def test_a_query_says_what_its_table_says(words, study, tmp_path, capsys):
    command = [plan_of(study) if word == "PLAN" else word for word in words]
    found = []
    for source in (study / "north.query.toml", data_of(study)):
        target = ["-o", tmp_path / "out.file"] if words[0] != "advise" else []
        run(*command, source, "--client", "north", *target, "-q" if target else "--json")
        found.append((tmp_path / "out.file").read_bytes() if target else capsys.readouterr().out)
        (tmp_path / "out.file").unlink(missing_ok=True)
    assert found[0] == found[1]


def test_a_query_answers_a_request(study, tmp_path):
    shutil.copytree(study, tmp_path / "study")
    write_request(tmp_path / "study")
    request = tmp_path / "study" / "rounds" / "request-001.json"
    found = []
    for name in ("north.query.toml", "north/data.csv"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FEDCDH_LEDGER", str(tmp_path / name.replace("/", "-") / "releases.jsonl"))
            run("summarize", plan_of(study), study / name, "--client", "north", "-o", tmp_path / "n.summary", "-q")
            words = ["rounds", "answer", plan_of(study), request, study / name, "--client", "north"]
            run(*words, "-o", tmp_path / "north.answer", "--no-disclosure-control", "-q")
        found.append((tmp_path / "north.answer").read_bytes())
        (tmp_path / "north.answer").unlink()
    assert found[0] == found[1]


def test_a_secure_sum_is_the_same_from_queries(study, tmp_path):
    sums = []
    for kind in ("query", "table"):
        folder = tmp_path / kind
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            sums.append(play_secure_sum(study, folder, kind, patch))
    assert sums[0] == sums[1]


def play_secure_sum(study, folder, kind, patch):
    """Play all rounds with keys of this study's own, and return the rows of the sum."""
    for site in SITES:
        run("keys", "new", "-o", f"{site}.key", "-q")
    keys = [word for site in SITES for word in ("--site-key", f"{site}={folder / f'{site}.pub'}")]
    run("plan", *(study / f"{site}.profile.json" for site in SITES), *keys, "-q")
    for name in ("1-terms", "2-roster", "3-delivery", "4-present", "5-confirmations"):
        run("secure-sum", "run", "study.plan.json", "rounds", "-q")
        for site in SITES:
            patch.setenv("FEDCDH_LEDGER", str(folder / site / "releases.jsonl"))
            source = study / f"{site}.query.toml" if kind == "query" else data_of(study, site)
            data = [source] if name == "3-delivery" else []
            words = ["secure-sum", "join", "study.plan.json", f"rounds/{name}.json", *data, "--client", site]
            run(*words, "--key", f"{site}.key", "-q")
            for path in folder.glob(f"{site}.*"):
                if path.suffix in (".keys", ".shares", ".masked", ".confirmed", ".opened"):
                    shutil.move(path, folder / "rounds" / path.name)
    run("secure-sum", "run", "study.plan.json", "rounds", "-q")
    run("discover", "study.plan.json", "study.aggregate", "-q")
    return (folder / "result" / "edges.csv").read_bytes()


def test_the_configuration_of_a_site_names_a_query(study, tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(f'client = "north"\ndata = "{study / "north.query.toml"}"\n')
    node = read_site_config(path)
    assert node.rows().kinds() == dict.fromkeys(("v1", "v2", "v3", "v4", "v5", "v6"), "continuous")
