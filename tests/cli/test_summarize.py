"""`fedcdh summarize`: one summary for one set of rows, however they are stored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedcdh.cli import main
from fedcdh.privacy.ledger.ledger_file import settings_folder


@pytest.mark.parametrize("parts", [[1], [100, 250], [1, 2, 3, 299]])
@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_any_split_into_files_gives_the_same_summary(study, tmp_path, parts, form):
    table = pa.csv.read_csv(study / "north" / "data.csv")
    edges = [0, *parts, table.num_rows]
    for number, (start, stop) in enumerate(pairwise(edges)):
        piece, path = table.slice(start, stop - start), str(tmp_path / f"part{number}.{form}")
        if form == "parquet":
            pq.write_table(piece, path, row_group_size=70)
        else:
            with pa.output_stream(path, compression="gzip" if form.endswith("gz") else None) as stream:
                pa.csv.write_csv(piece, stream)
    out = tmp_path / "north.summary"
    pattern = str(tmp_path / f"part*.{form}")
    assert main(["summarize", str(study / "study.plan.json"), pattern, "--client", "north", "-o", str(out), "-q"]) == 0
    assert out.read_bytes() == (study / "north.summary").read_bytes()


def test_any_number_of_workers_gives_the_same_summary(study, tmp_path):
    plan, data, out = str(study / "study.plan.json"), str(study / "north" / "data.csv"), tmp_path / "north.summary"
    for workers in ("1", "2", "3"):
        command = ["summarize", plan, data, "--client", "north", "--workers", workers, "-o", str(out), "-q"]
        assert main(command) == 0
        assert out.read_bytes() == (study / "north.summary").read_bytes()
        out.unlink()
    assert main(["summarize", plan, data, "--client", "north", "--workers", "0", "-o", str(out), "-q"]) == 2
    assert not out.exists()


def test_running_again_changes_nothing(study, tmp_path):
    for _ in range(2):
        arguments = [
            "summarize",
            str(study / "study.plan.json"),
            str(study / "south" / "data.csv"),
            "--client",
            "south",
        ]
        assert main([*arguments, "-o", str(tmp_path / "south.summary"), "-q"]) == 0
        assert (tmp_path / "south.summary").read_bytes() == (study / "south.summary").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["south.summary"]


def test_names_of_columns_and_ways_of_writing_numbers_do_not_matter(study, tmp_path):
    table = pa.csv.read_csv(study / "north" / "data.csv").to_pydict()
    names = {name: f"Messwert {name.upper()}" for name in table}
    lines = [";".join(names.values())]
    lines += [";".join(repr(value).replace(".", ",") for value in row) for row in zip(*table.values(), strict=True)]
    (tmp_path / "export.csv").write_text("\n".join(lines), encoding="utf-16")
    renames = "".join(f'"{theirs}" = "{ours}"\n' for ours, theirs in names.items())
    (tmp_path / "names.toml").write_text(renames, encoding="utf-8")
    style = ["--delimiter", ";", "--decimal", ",", "--encoding", "utf-16", "--column-map", str(tmp_path / "names.toml")]
    arguments = ["summarize", str(study / "study.plan.json"), str(tmp_path / "export.csv"), "--client", "north", *style]
    assert main([*arguments, "-o", str(tmp_path / "north.summary"), "-q"]) == 0
    assert (tmp_path / "north.summary").read_bytes() == (study / "north.summary").read_bytes()


def test_the_policy_of_a_site_is_kept(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = settings_folder()
    settings.mkdir()
    plan = json.loads((study / "study.plan.json").read_text(encoding="utf-8"))
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client", "north"]
    cases = {
        "min_rows = 301": "300 rows, expected at least 301",
        'excluded_variables = ["v3"]': "'v3' is among the excluded_variables",
        'allowed_variables = ["v1"]': "'v2' is not among the allowed_variables",
        'plans = ["000000000000"]': "add it to plans",
        f'coordinator_keys = ["ed25519:{"A" * 42}E="]': "is not signed",
    }
    for text, complaint in cases.items():
        (settings / "policy.toml").write_text(text, encoding="utf-8")
        assert main(arguments) == 7, text
        assert complaint in capsys.readouterr().err
        assert not (tmp_path / "north.summary").exists()
    (settings / "policy.toml").write_text(f'plans = ["{plan["fingerprint"]}"]', encoding="utf-8")
    assert main(arguments) == 0
    (settings / "policy.toml").write_text("min_rows = 301", encoding="utf-8")
    assert main([*arguments, "--no-disclosure-control"]) == 0
    assert "disclosure control is off" in capsys.readouterr().err
    assert main(["inspect", "north.summary", "--plan", str(study / "study.plan.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["disclosure_control"] is False
    (settings / "policy.toml").write_text("min_row = 3", encoding="utf-8")
    assert main(arguments) == 2
    assert "did you mean 'min_rows'" in capsys.readouterr().err


def test_ctrl_c_leaves_nothing_half_done(study, tmp_path):
    table = pa.csv.read_csv(study / "north" / "data.csv")
    pq.write_table(pa.concat_tables([table] * 20_000), tmp_path / "large.parquet")
    arguments = ["summarize", str(study / "study.plan.json"), "large.parquet", "--client", "north"]
    with subprocess.Popen([sys.executable, "-m", "fedcdh", *arguments], cwd=tmp_path, stderr=subprocess.PIPE) as run:
        time.sleep(0.5)
        while run.poll() is None:  # as often as it takes: python itself may be starting still
            run.send_signal(signal.SIGINT)
            time.sleep(0.5)
        said = run.stderr.read() if run.stderr else b""
    assert run.returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["large.parquet"], said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_site_killed_at_any_point_of_writing_leaves_no_false_message(study, tmp_path):
    """Killed at every line of the writing code in turn: the message is absent or complete, and signed or refused."""
    assert main(["keys", "new", "-o", str(tmp_path / "site.key"), "-q"]) == 0
    environment = {**os.environ, "FEDCDH_KEY": str(tmp_path / "site.key")}
    (tmp_path / "runs").mkdir()
    arguments = [str(study / "study.plan.json"), str(study / "north" / "data.csv"), str(tmp_path / "runs")]
    program = [sys.executable, str(Path(__file__).parents[1] / "support" / "killed_writer.py"), *arguments]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    steps, complete = int(run.stdout), (study / "north.summary").read_bytes()
    assert steps > 50
    left = {"nothing": 0, "no signature": 0, "both": 0}
    for place in (tmp_path / "runs").iterdir():
        message, signature = place / "north.summary", place / "north.summary.sig"
        assert not message.exists() or message.read_bytes() == complete
        if signature.exists():
            assert main(["keys", "verify", str(message), "--by", str(tmp_path / "site.pub"), "-q"]) == 0
        left["both" if signature.exists() else "no signature" if message.exists() else "nothing"] += 1
    assert all(left.values()), left
