"""Bootstrap replicates by file: from summarize to discover, and back to what was there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import studies
from effort import steps

from fedcdh._io import storage
from fedcdh.cli import main
from fedcdh.cli._bootstrap_files import collect_replicates
from fedcdh.cli._console import Output
from fedcdh.cli._summaries import ReplicateFile, SummaryReader
from fedcdh.data.readers import open_tables
from fedcdh.discovery.api import discover_from
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import unpack_summary
from fedcdh.privacy import releases
from fedcdh.reporting.result_files import stability_to_dict
from fedcdh.summaries.bootstrap import bootstrap_summaries

SITES = {"north": 400, "south": 420, "coast": 380}


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE", "FEDCDH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with a plan, the tables and two copies of every site; nothing in it is ever changed."""
    folder = tmp_path_factory.mktemp("study")
    rows = ",".join(map(str, SITES.values()))
    made = [
        "simulate",
        "-o",
        str(folder),
        "--sites",
        ",".join(SITES),
        "--rows",
        rows,
        "--variables",
        "3",
        "--seed",
        "11",  # nobody stands out, whatever is drawn
    ]
    assert main([*made, "-q"]) == 0
    for site in SITES:
        data = str(folder / site / "data.csv")
        assert main(["profile", data, "--client", site, "-o", str(folder / f"{site}.profile.json"), "-q"]) == 0
    profiles = [str(folder / f"{site}.profile.json") for site in SITES]
    assert main(["plan", *profiles, "-o", str(folder / "study.plan.json"), "-q"]) == 0
    for site in SITES:
        assert summarized(folder, site, folder, 2) == 0
    return folder


def summarized(study: Path, site: str, folder: Path, copies: int, *more: str) -> int:
    arguments = ["summarize", str(study / "study.plan.json"), str(study / site / "data.csv"), "--client", site]
    return main([*arguments, "-o", str(folder / f"{site}.summary"), "--bootstrap", str(copies), "-q", *more])


def discovered(study: Path, files: list[Path], out: Path, *more: str) -> int:
    return main(["discover", str(study / "study.plan.json"), *map(str, files), "-o", str(out), *more])


def plain(folder: Path) -> list[Path]:
    return [folder / f"{site}.summary" for site in SITES]


def test_copies_by_file_are_those_in_process(study, tmp_path, monkeypatch, capsys):
    plan = Study.from_json((study / "study.plan.json").read_bytes()).plan
    monkeypatch.setattr(releases.secrets, "randbits", lambda bits: 7 * bits)
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client", "north"]
    assert main([*arguments, "-o", str(tmp_path / "north.summary"), "--bootstrap", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["replicates"] == 2
    assert sorted(said["files"]) == sorted(map(str, tmp_path.iterdir()))
    assert said["bytes_in_all"] == sum(path.stat().st_size for path in tmp_path.iterdir())
    expected = bootstrap_summaries(open_tables(study / "north" / "data.csv"), plan, "north", 2, 7 * 128)
    for number, copy in enumerate(expected, start=1):
        assert unpack_summary((tmp_path / f"north.boot-00{number}.summary").read_bytes(), plan).summary == copy
    assert (tmp_path / "north.summary").read_bytes() == (study / "north.summary").read_bytes()


def test_every_run_draws_anew(study, tmp_path):
    assert summarized(study, "north", tmp_path, 2) == 0
    drawn = {path.read_bytes() for folder in (study, tmp_path) for path in folder.glob("north.boot-*")}
    assert len(drawn) == 4


def test_copies_say_how_stable_a_result_is_and_change_nothing_else(study, tmp_path, capsys):
    files = sorted(study.glob("*.summary"))
    assert discovered(study, plain(study), tmp_path / "plain", "-q") == 0
    assert discovered(study, files, tmp_path / "a") == 0
    said = capsys.readouterr()
    assert "Found again on 2 bootstrap replicates" in said.out
    assert said.err.count("is not signed") == len(SITES)
    assert discovered(study, files[::-1], tmp_path / "b", "--stability", "--json") == 0
    assert json.loads(capsys.readouterr().out)["replicates"] == 2
    for name in ("graph.txt", "graph.dot", "edges.csv"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    without, one, both = (json.loads((tmp_path / n / "result.json").read_text("utf-8")) for n in ("plain", "a", "b"))
    found = one.pop("row_stability")
    assert one == without
    assert found == both.pop("row_stability")
    assert both.pop("stability")["kind"] == "leave-one-out"
    assert both == without
    plan = Study.from_json((study / "study.plan.json").read_bytes()).plan
    received = [unpack_summary(path.read_bytes(), plan).summary for path in files]
    result = discover_from([summary for summary in received if not summary.replicate], plan)
    copies = [[summary for summary in received if summary.replicate == number] for number in (2, 1)]
    expected = stability_to_dict(result.stability(replicates=copies))
    assert found == json.loads(json.dumps(expected))
    assert main(["report", str(tmp_path / "b"), "-o", str(tmp_path / "study.html"), "-q"]) == 0
    page = (tmp_path / "study.html").read_text("utf-8")
    assert "With resampled rows" in page
    assert "with each site left out in turn" in page


def test_a_copy_cannot_stand_for_the_summary(study, tmp_path, capsys):
    swapped = [study / "north.boot-001.summary", *plain(study)[1:]]
    assert discovered(study, swapped, tmp_path / "r", "-q") == 5
    assert "Only bootstrap replicates of north are here" in capsys.readouterr().err
    renamed = tmp_path / "north.summary"
    renamed.write_bytes(swapped[0].read_bytes())
    assert discovered(study, [renamed, *plain(study)], tmp_path / "r", "-q") == 0  # known by what it says, not its name
    assert "row_stability" not in json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert main(["inspect", str(renamed), "--plan", str(study / "study.plan.json")]) == 0
    assert "is bootstrap replicate 1 of the summary of client north" in capsys.readouterr().out
    assert discovered(study, [*study.glob("*.summary"), renamed], tmp_path / "r", "-q") == 5
    assert "a second bootstrap replicate 1 of client 'north'" in capsys.readouterr().err


def test_copies_that_not_all_sites_sent_are_left_out_and_named(study, tmp_path, capsys):
    files = [path for path in study.glob("*.summary") if path.name != "coast.boot-002.summary"]
    assert discovered(study, files, tmp_path / "r") == 0
    assert "replicates 2 are left out, because coast did not send them; 1 are used" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))["row_stability"]["runs"]) == 1


def test_work_to_find_who_did_not_send_copies_grows_with_the_sites(capsys):
    def work(sites: int) -> int:
        cohort = studies.cohort_of({f"site {k:03}": {"x": np.arange(3.0) + k} for k in range(sites)})
        sent = [
            ReplicateFile(Path("copy"), client, number, False) for client in cohort.clients[1:] for number in (1, 2)
        ]
        return steps(lambda: collect_replicates(sent, cohort, SummaryReader(Study(cohort.plan)), Output()))

    assert work(200) < 5 * work(50)
    assert "replicates 1 to 2 are left out, because site 000 did not send them; 0 are used" in capsys.readouterr().err


def test_a_new_summary_takes_older_copies_with_it(study, tmp_path, capsys):
    for copies, files in ((2, 3), (1, 2), (0, 1)):
        assert summarized(study, "north", tmp_path, copies, "--no-disclosure-control") == 0
        assert len(list(tmp_path.iterdir())) == files
    (tmp_path / "north.boot-007.summary").write_bytes((study / "south.boot-001.summary").read_bytes())
    assert summarized(study, "north", tmp_path, 1) == 2
    assert "is not a bootstrap replicate of north" in capsys.readouterr().err
    (tmp_path / "north.boot-007.summary").write_text("my notes")
    assert summarized(study, "north", tmp_path, 0) == 2
    assert (tmp_path / "north.boot-007.summary").read_text() == "my notes"


@pytest.mark.parametrize("stop", [4, 9, 14])
def test_an_interrupt_leaves_what_was_there(study, tmp_path, monkeypatch, stop):
    """Signed, 6 files and then 4: after the ledger, these are written aside, older ones moved away, newer ones in."""
    assert main(["keys", "new", "-o", str(tmp_path / "site.key"), "-q"]) == 0
    key, out = ("--key", str(tmp_path / "site.key"), "--no-disclosure-control"), tmp_path / "out"
    assert summarized(study, "north", out, 2, *key) == 0
    before, move, moves = {path.name: path.read_bytes() for path in out.iterdir()}, os.replace, []
    assert len(before) == 6

    def interrupted(source, target):
        moves.append(target)
        if len(moves) == stop + 1:
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(storage.os, "replace", interrupted)
    assert summarized(study, "north", out, 1, *key) == 130
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert summarized(study, "north", out, 1, *key) == 0
    assert len(list(out.iterdir())) == 4
    assert not set(before.values()) & {path.read_bytes() for path in out.glob("*boot*")}


def test_copies_of_an_older_summary_that_stayed_in_the_folder_are_refused(study, tmp_path, capsys):
    """The site sent two copies first, then, with one row more in its table, one."""
    data = (study / "north" / "data.csv").read_text("utf-8")
    (tmp_path / "north").mkdir()
    (tmp_path / "north" / "data.csv").write_text(data + data.splitlines()[1] + "\n", "utf-8")
    arguments = ["summarize", str(study / "study.plan.json"), str(tmp_path / "north" / "data.csv"), "--client", "north"]
    assert main([*arguments, "-o", str(tmp_path / "north.summary"), "--bootstrap", "1", "-q"]) == 0
    others = [path for path in study.glob("*.summary") if not path.name.startswith("north")]
    newer = [tmp_path / "north.summary", tmp_path / "north.boot-001.summary"]
    assert discovered(study, [*others, *newer, study / "north.boot-002.summary"], tmp_path / "r", "-q") == 5
    assert "bootstrap replicate 2 of client 'north' belongs to another summary" in capsys.readouterr().err
    assert discovered(study, [*others, *newer], tmp_path / "r", "-q") == 0


def test_no_summary_is_called_like_a_copy_of_another(study, tmp_path, capsys):
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client"]
    for name in ("north.boot-001", "north.boot-1000"):
        assert main([*arguments, name, "-q"]) == 2
        assert main([*arguments, "north", "-o", str(tmp_path / f"{name}.summary"), "-q"]) == 2
        assert capsys.readouterr().err.count("is the name of a bootstrap replicate") == 2
    assert main([*arguments, "north", "-o", str(tmp_path / "north.boot-1.summary"), "-q"]) == 0


def test_the_policy_says_how_many_copies_may_leave(study, tmp_path, capsys):
    assert summarized(study, "north", tmp_path, 30) == 7
    assert "with up to 2 bootstrap replicates the summary may leave" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert summarized(study, "north", tmp_path, 2) == 0
    assert summarized(study, "north", tmp_path / "research", 5, "--no-disclosure-control") == 0
    assert len(list((tmp_path / "research").iterdir())) == 6
