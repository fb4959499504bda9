"""The command line: what a person sees, the files left behind, and the exit codes."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fedcdh
from fedcdh.cli import main
from fedcdh.cli._bootstrap_files import write_with_replicates
from fedcdh.cli._inputs import write_signed
from fedcdh.data.readers import open_tables
from fedcdh.errors import ExitCode
from fedcdh.reporting.result_files import render_result_json

KEY = "ed25519:A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
SITES = {"north": 300, "south": 350, "coast": 400}
COMMANDS = [
    "compare",
    "demo",
    "discover",
    "inspect",
    "keygen",
    "plan",
    "profile",
    "report",
    "sign",
    "simulate",
    "summarize",
    "verify",
]


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path_factory, monkeypatch):
    """No key and no policy of the person who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE", "FEDCDH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


def simulated(folder: Path, seed: int = 3) -> Path:
    rows = ",".join(map(str, SITES.values()))
    assert (
        main(["simulate", "-o", str(folder), "--sites", ",".join(SITES), "--rows", rows, "--seed", str(seed), "-q"])
        == 0
    )
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with a plan, and a profile and a summary of every site; nothing in it is ever changed."""
    folder = simulated(tmp_path_factory.mktemp("study"))
    for site in SITES:
        data = str(folder / site / "data.csv")
        assert main(["profile", data, "--client", site, "-o", str(folder / f"{site}.profile.json"), "-q"]) == 0
    plan = str(folder / "study.plan.json")
    assert main(["plan", *(str(folder / f"{site}.profile.json") for site in SITES), "-o", plan, "-q"]) == 0
    for site in SITES:
        data = str(folder / site / "data.csv")
        assert main(["summarize", plan, data, "--client", site, "-o", str(folder / f"{site}.summary"), "-q"]) == 0
    return folder


def summaries(folder: Path) -> list[str]:
    return [str(folder / f"{site}.summary") for site in SITES]


def test_by_file_and_in_process_give_the_same_bytes(study, tmp_path):
    assert main(["discover", str(study / "study.plan.json"), *summaries(study), "-o", str(tmp_path / "r"), "-q"]) == 0
    tables = {site: open_tables(study / site / "data.csv") for site in SITES}
    profiles = [fedcdh.profile(table, site) for site, table in tables.items()]
    plan = fedcdh.StudyPlan.from_profiles(profiles)
    result = fedcdh.discover_from([fedcdh.summarize(table, plan, site) for site, table in tables.items()], plan)
    assert (tmp_path / "r" / "result.json").read_text(encoding="utf-8") == render_result_json(result)
    frames = {site: pa.Table.from_batches([*pa.csv.open_csv(study / site / "data.csv")]) for site in SITES}
    assert render_result_json(fedcdh.discover(frames)) == render_result_json(result)


def test_the_order_of_files_and_settings_that_change_nothing_change_no_byte(study, tmp_path):
    plan = str(study / "study.plan.json")
    assert main(["discover", plan, *summaries(study), "-o", str(tmp_path / "a"), "-q"]) == 0
    assert main(["discover", plan, *reversed(summaries(study)), "-o", str(tmp_path / "b"), "--json"]) == 0
    for name in ("result.json", "graph.dot", "edges.csv", "graph.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    with (tmp_path / "a" / "edges.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 21  # all pairs of six variables and the domain


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
    style = ["--delimiter", ";", "--decimal", ",", "--encoding", "utf-16", "--map", str(tmp_path / "names.toml")]
    arguments = ["summarize", str(study / "study.plan.json"), str(tmp_path / "export.csv"), "--client", "north", *style]
    assert main([*arguments, "-o", str(tmp_path / "north.summary"), "-q"]) == 0
    assert (tmp_path / "north.summary").read_bytes() == (study / "north.summary").read_bytes()


def test_inspect_says_what_leaves(study, tmp_path, capsys):
    assert main(["inspect", str(study / "north.summary"), "--numbers", str(tmp_path / "all.csv")]) == 0
    shown = capsys.readouterr().out
    table = pa.csv.read_csv(study / "north" / "data.csv")
    assert f"{np.mean(table['v1']):.5g} ± {np.std(table['v1']):.4g}" in shown
    assert "703 sums" in shown
    assert "not signed" in shown
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 703
    assert rows[0] == {"feature": "1", "times": "1", "sum": "300.0", "sum_as_sent": str(300 << 36)}
    for file, words in (("study.plan.json", "v1  "), ("north.profile.json", "client north: 300 rows")):
        assert main(["inspect", str(study / file)]) == 0
        assert words in capsys.readouterr().out


def test_json_is_for_programs_and_quiet_is_quiet(study, tmp_path, capsys):
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client", "north"]
    assert main([*arguments, "-o", str(tmp_path / "a"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == 300
    assert document["bytes"] == (tmp_path / "a").stat().st_size
    assert main([*arguments, "-o", str(tmp_path / "b"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_signed_study(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, here = str(study / "north" / "data.csv"), {"client": "north"}
    assert main(["keygen", "--json"]) == 0
    assert (tmp_path / "site.key").stat().st_mode & 0o077 == 0
    public = json.loads(capsys.readouterr().out)["public"]
    assert main(["keygen"]) == 2  # a key is never overwritten
    assert main(["profile", data, "--client", here["client"], "-q"]) == 0
    others = [str(study / f"{site}.profile.json") for site in SITES if site != "north"]
    assert main(["plan", "north.profile.json", *others, "-q"]) == 0
    assert json.loads((tmp_path / "study.plan.json").read_text(encoding="utf-8"))["keys"] == {"north": public}
    assert main(["verify", "study.plan.json", "--by", "site.pub"]) == 0
    plan = "study.plan.json"
    assert main(["keygen", "-o", "other.key", "-q"]) == 0
    for site in SITES:
        arguments = ["summarize", plan, str(study / site / "data.csv"), "--client", site, "-q"]
        assert main([*arguments, "--key", "other.key"]) == (6 if site == "north" else 0)
        assert main(arguments) == 0
    found = [f"{site}.summary" for site in SITES]
    assert main(["discover", plan, *found, "-q"]) == 0
    assert main(["verify", "north.summary", "--by", public]) == 0

    assert main(["sign", "north.summary", "--key", "other.key", "-q"]) == 0  # by another key
    assert main(["discover", plan, *found, "-q"]) == 6
    assert "ask the sender whether the key has changed" in capsys.readouterr().err
    (tmp_path / "north.summary.sig").unlink()  # not signed at all
    assert main(["discover", plan, *found, "-q"]) == 6
    assert main(["verify", "north.summary"]) == 6
    assert main(["sign", "north.summary", "-q"]) == 0
    assert main(["discover", plan, *found, "-q"]) == 0
    (tmp_path / "north.profile.json.sig").unlink()
    assert main(["plan", "north.profile.json", *others, "-q"]) == 6


def test_messages_of_an_older_study_are_refused(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    profiles = [str(study / f"{site}.profile.json") for site in SITES]
    assert main(["plan", *profiles, "--study", "cardio 2027", "-q"]) == 0
    assert main(["discover", "study.plan.json", *summaries(study), "-q"]) == 4
    assert "make the summary again" in capsys.readouterr().err
    assert main(["inspect", "study.plan.json"]) == 0
    assert "study cardio 2027" in capsys.readouterr().out


def test_a_key_may_have_a_passphrase(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedcdh.cli.keys.getpass", lambda prompt: "tell nobody")
    assert main(["keygen", "--passphrase", "-q"]) == 0
    (tmp_path / "x.summary").write_bytes(b"anything")
    assert main(["sign", "x.summary"]) == 6
    assert "give its passphrase" in capsys.readouterr().err
    monkeypatch.setenv("FEDCDH_PASSPHRASE", "tell nobody")
    assert main(["sign", "x.summary"]) == 0
    answers = iter(["one", "two"])
    monkeypatch.setattr("fedcdh.cli.keys.getpass", lambda prompt: next(answers))
    assert main(["keygen", "--passphrase", "-o", "second.key"]) == 6
    assert not (tmp_path / "second.key").exists()


def test_the_policy_of_a_site_is_kept(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = json.loads((study / "study.plan.json").read_text(encoding="utf-8"))
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client", "north"]
    cases = {
        "min_rows = 301": "300 rows, expected at least 301",
        'withheld = ["v3"]': "'v3' is withheld",
        'variables = ["v1"]': "'v2' is not among the variables",
        'plans = ["000000000000"]': "add it to plans",
        f'coordinator_keys = ["ed25519:{"A" * 42}E="]': "is not signed",
    }
    for text, complaint in cases.items():
        (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
        assert main(arguments) == 7, text
        assert complaint in capsys.readouterr().err
        assert not (tmp_path / "north.summary").exists()
    (tmp_path / "policy.toml").write_text(f'plans = ["{plan["fingerprint"]}"]', encoding="utf-8")
    assert main(arguments) == 0
    (tmp_path / "policy.toml").write_text("min_rows = 301", encoding="utf-8")
    assert main([*arguments, "--research"]) == 0
    assert "research, no privacy" in capsys.readouterr().err
    assert main(["inspect", "north.summary", "--plan", str(study / "study.plan.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["research"] is True
    (tmp_path / "policy.toml").write_text("smalest_rows = 3", encoding="utf-8")
    assert main(arguments) == 2
    assert "did you mean 'min_rows'" in capsys.readouterr().err


def broken(study: Path, tmp_path: Path) -> dict[str, tuple[list[str], int, str]]:
    """Ways to go wrong: arguments, exit code, and what the message says."""
    plan, data = str(study / "study.plan.json"), str(study / "north" / "data.csv")
    summarize = ["summarize", plan, data, "--client"]
    (tmp_path / "text.csv").write_text("v1,v2,v3,v4,v5,v6\n1,2,3,4,5,oops\n", encoding="utf-8")
    (tmp_path / "not.plan.json").write_text("{}", encoding="utf-8")
    (tmp_path / "damaged.summary").write_bytes((study / "north.summary").read_bytes()[:-1])
    (tmp_path / "precious").write_text("a key", encoding="utf-8")
    (tmp_path / "declared.toml").write_text("[variables.x]\nkind = 'continuos'\n", encoding="utf-8")
    twice = [str(study / "north.summary"), *summaries(study)]
    return {
        "no such command": (["dance"], 2, "No such command"),
        "no client": (["profile", data], 2, "Missing option"),
        "no such data": (["profile", "nowhere.csv", "--client", "north"], 3, "nowhere.csv"),
        "text where numbers belong": (["summarize", plan, str(tmp_path / "text.csv"), "--client", "north"], 3, "'v6'"),
        "no such client": ([*summarize, "west"], 3, "'west' is not part of the plan"),
        "not a plan": (["summarize", str(tmp_path / "not.plan.json"), data, "--client", "north"], 4, "plan"),
        "no plan": (["summarize", "nowhere.json", data, "--client", "north"], 4, "there is no file"),
        "overwriting data": ([*summarize, "north", "-o", data], 2, "would overwrite"),
        "overwriting the plan": ([*summarize, "north", "-o", plan], 2, "would overwrite"),
        "no profiles": (["plan"], 2, "needs profiles"),
        "a bad declaration": (["plan", "--declare", str(tmp_path / "declared.toml")], 4, "found 'continuos'"),
        "a damaged summary": (["discover", plan, str(tmp_path / "damaged.summary")], 5, "send its summary again"),
        "a lacking summary": (["discover", plan, summaries(study)[0]], 5, "no summary from client"),
        "a summary twice": (["discover", plan, *twice], 5, "'north'"),
        "no such method": (["discover", plan, *summaries(study), "--method", "magic"], 2, "no method 'magic'"),
        "a bad level": (["discover", plan, *summaries(study), "--alpha", "7"], 2, "alpha is 7"),
        "a bad kind": (["profile", data, "--client", "n", "--kind", "v1=ordinal"], 2, "choose one of"),
        "a client that is a path": (["profile", data, "--client", "../n"], 2, "name the file with -o"),
        "overwriting a key": ([*summarize, "north", "-o", str(tmp_path / "precious")], 2, "is something else"),
        "a plan by nobody": (["discover", plan, *summaries(study), "--plan-key", KEY], 6, "ask who made it"),
        "nothing to sign with": (["sign", plan], 6, "fedcdh keygen"),
        "bad rows": (["simulate", "-o", str(tmp_path / "s"), "--rows", "1,2"], 2, "one for each of the 3 sites"),
        "bad sites": (["simulate", "-o", str(tmp_path / "s"), "--sites", "../up"], 2, "names of folders"),
        "not a truth": (
            ["compare", str(tmp_path / "not.plan.json"), str(study / "truth.json")],
            3,
            "expected result.json",
        ),
    }


def test_what_goes_wrong_is_said_without_a_traceback(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    cases = broken(study, tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for name, (arguments, code, words) in cases.items():
        assert main(arguments) == code, name
        said = capsys.readouterr()
        assert words in said.err, name
        assert "Traceback" not in said.err + said.out, name
        assert code in set(ExitCode)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before  # and nothing was left behind


def test_a_mistake_of_ours_is_called_one(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("fedcdh.cli.demo.hospital_study", lambda seed: 1 / 0)
    assert main(["demo", "-o", str(tmp_path)]) == 70
    assert "ZeroDivisionError, a mistake of this program" in capsys.readouterr().err
    monkeypatch.setenv("FEDCDH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["demo", "-o", str(tmp_path)])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"fedcdh {command}" in capsys.readouterr().out.split("Example")[1]


def test_the_overview_names_every_command_and_exit_code(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [command for command in COMMANDS if f" {command} " not in shown] == []
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fedcdh {fedcdh.__version__}\n"
    page = (Path(fedcdh.__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for code, meaning in ((int(code), code.meaning) for code in ExitCode):
        assert f"| {code} | {meaning} |" in page


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(shell):
    environment = {**os.environ, "_FEDCDH_COMPLETE": f"source_{shell}"}
    run = subprocess.run([sys.executable, "-m", "fedcdh"], env=environment, capture_output=True, text=True, check=False)
    assert "_FEDCDH_COMPLETE" in run.stdout


def test_the_demo_shows_the_graph_and_where_the_report_is(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "smoker → cholesterol" in shown
    assert "mechanisms that differ between clients: medication, systolic_pressure" in shown
    assert str(tmp_path / "out" / "report.html") in shown
    names = ["edges.csv", "graph.dot", "graph.txt", "report.html", "result.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    (tmp_path / "taken").write_text("a file, not a folder", encoding="utf-8")
    assert main(["demo", "-o", str(tmp_path / "taken"), "-q"]) == 8
    assert "choose another place" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "a file, not a folder"


def test_a_terminal_without_arrows_is_no_reason_to_fail(study):
    run = subprocess.run(
        [sys.executable, "-m", "fedcdh", "discover", str(study / "study.plan.json"), *summaries(study), "-o", "r"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=study,
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0
    assert b"v3 ? v5" in run.stdout


def test_names_do_nothing_to_a_terminal(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("x,[red]y[/red]\n" + "1,2\n2,3\n" * 60, encoding="utf-8")
    arguments = ["profile", str(tmp_path / "d.csv"), "-o", str(tmp_path / "p.json"), "--client"]
    assert main([*arguments, "n\x07"]) != 0
    (tmp_path / "e.csv").write_text("\x1b[2Jx,y\n" + "1,2\n2,3\n" * 60, encoding="utf-8")
    assert main([arguments[0], str(tmp_path / "e.csv"), *arguments[2:], "north"]) != 0
    assert main([*arguments, "north"]) == 0
    said = capsys.readouterr()
    assert "[red]y[/red]" in said.out
    assert not {"\x1b", "\x07"} & set(said.out + said.err)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_seen_enough_stops_nothing(study, tmp_path, unbuffered):
    command = f"{sys.executable} -m fedcdh profile {study / 'north' / 'data.csv'} --client north | true"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "north.profile.json").read_bytes() == (study / "north.profile.json").read_bytes()


def test_lists_of_a_policy_speak_of_the_sites_own_columns(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text('withheld = ["v1"]', encoding="utf-8")
    (tmp_path / "names.toml").write_text('"v1" = "harmless"', encoding="utf-8")
    data = str(study / "north" / "data.csv")
    assert main(["profile", data, "--client", "north", "--map", "names.toml"]) == 7
    assert "'harmless' (here 'v1') is withheld" in capsys.readouterr().err
    assert main(["profile", data, "--client", "north", "--plan", str(study / "study.plan.json")]) == 7


def test_what_the_user_has_set_up_comes_before_what_lies_around(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["profile", str(study / "north" / "data.csv"), "--client", "north"]
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "fedcdh"
    settings.mkdir()
    (settings / "policy.toml").write_text('withheld = ["v1"]', encoding="utf-8")
    (tmp_path / "policy.toml").write_text("research = true", encoding="utf-8")
    assert main(arguments) == 7
    (settings / "policy.toml").unlink()
    assert main([*arguments, "-q"]) == 0
    assert "research, no privacy" in capsys.readouterr().err  # also for those who want to hear nothing
    (tmp_path / "policy.toml").unlink()
    (tmp_path / "policy.toml").symlink_to("nowhere")
    assert main(arguments) == 7


def test_a_column_without_values_is_no_mistake_of_ours(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("x,y\n" + "1,\n2,\n" * 60, encoding="utf-8")
    assert main(["profile", str(tmp_path / "d.csv"), "--client", "north", "-o", str(tmp_path / "p.json")]) == 0
    assert "no values" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "p.json")]) == 0


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
    assert main(["keygen", "-o", str(tmp_path / "site.key"), "-q"]) == 0
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
            assert main(["verify", str(message), "--by", str(tmp_path / "site.pub"), "-q"]) == 0
        left["both" if signature.exists() else "no signature" if message.exists() else "nothing"] += 1
    assert all(left.values()), left


def test_stability_is_part_of_a_result_that_asked_for_it(study, tmp_path):
    arguments = ["discover", str(study / "study.plan.json"), *summaries(study), "-q", "-o"]
    assert main([*arguments, str(tmp_path / "plain")]) == 0
    assert main([*arguments, str(tmp_path / "again"), "--stability"]) == 0
    plain, again = (json.loads((tmp_path / name / "result.json").read_text("utf-8")) for name in ("plain", "again"))
    found = again.pop("stability")
    assert again == plain
    assert [run["left_out"] for run in found["runs"]] == [["coast"], ["north"], ["south"]]
    assert main(["report", str(tmp_path / "again"), "-o", str(tmp_path / "study.html"), "-q"]) == 0
    assert "Stability of links" in (tmp_path / "study.html").read_text("utf-8")


@pytest.mark.parametrize(
    "written",
    [
        lambda path: write_signed(path, b"sums", "aggregate", None),
        lambda path: write_with_replicates(path, b"sums", [b"sums of rows drawn anew"], [], None),
    ],
)
def test_a_full_disk_is_told_with_the_name_of_the_file_that_was_asked_for(tmp_path, monkeypatch, written):
    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fedcdh._io.storage._write_all", full)
    with pytest.raises(OSError, match="No space left") as refused:
        written(tmp_path / "north.summary")
    assert refused.value.filename == str(tmp_path / "north.summary")
    assert list(tmp_path.iterdir()) == []
