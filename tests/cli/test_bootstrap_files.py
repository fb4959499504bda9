"""Bootstrap replicates as files."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_study import SITES, data_of, plan_of, run

from fedcdh.cli import main
from fedcdh.cli._bootstrap_files import find_replicates, refuse_replicate_name, replicate_paths, write_with_replicates
from fedcdh.errors import SettingsError


def test_replicates_lie_beside_their_summary():
    found = replicate_paths(Path("out/north.summary"), 2)
    assert found == [Path("out/north.boot-001.summary"), Path("out/north.boot-002.summary")]
    assert replicate_paths(Path("north"), 1) == [Path("north.boot-001.summary")]


def test_a_summary_is_not_named_like_a_replicate():
    refuse_replicate_name(Path("north.boot.summary"))
    for name in ("north.boot-001.summary", "north.boot-1000.summary"):
        with pytest.raises(SettingsError, match="is the name of a bootstrap replicate"):
            refuse_replicate_name(Path(name))


def test_all_files_are_written_or_none(tmp_path):
    target = tmp_path / "north.summary"
    first = write_with_replicates(target, b"1", [b"2", b"3"], [], None)
    assert [path.name for path in first] == ["north.summary", "north.boot-001.summary", "north.boot-002.summary"]
    write_with_replicates(target, b"4", [], first[1:], None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["north.summary"]


def test_a_study_with_replicates_says_how_stable_it_is(study, here, capsys):
    for site in SITES:
        words = ["--client", site, "--bootstrap", 2, "--no-disclosure-control", "-q"]
        run("summarize", plan_of(study), data_of(study, site), *words)
    assert len(find_replicates(here / "north.summary", "north")) == 2
    with pytest.raises(SettingsError, match="not a bootstrap replicate of south"):
        find_replicates(here / "north.summary", "south")
    (here / "coast.boot-002.summary").unlink()
    capsys.readouterr()
    run("discover", plan_of(study), ".")
    said = capsys.readouterr()
    assert "bootstrap replicates 2 are left out, because coast did not send them; 1 are used" in said.err
    assert "Found again on 1 bootstrap replicates" in said.out
    (here / "north.summary").unlink()
    assert main(["discover", plan_of(study), "."]) == 5
    assert "Only bootstrap replicates of north are here" in capsys.readouterr().err
