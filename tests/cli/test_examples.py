"""Every example in the help of a command runs as it is printed."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cli_study import DECLARATION, SITES, data_of, run, write_request

from fedcdh.cli import _registry, main
from fedcdh.cli._registry import COMMANDS


def examples() -> list[str]:
    found: list[str] = []
    groups = [getattr(_registry, name) for name in ("ROUNDS", "SECURE_SUM", "KEYS", "LEDGER", "POLICY", "FLOWER")]
    for entries in (COMMANDS, *groups):
        for entry in entries.values():
            module, _, attribute = entry.target.partition(":")
            text = inspect.getdoc(getattr(import_module(module), attribute)) or ""
            if callable(getattr(import_module(module), attribute)):
                found += re.findall(r"^  (fedcdh .*)$", text, re.MULTILINE)
    return found


def write_tables(folder: Path) -> None:
    """Write the table of north in the forms that examples name."""
    table = pa.csv.read_csv(data_of(folder / "study"))
    pq.write_table(table, folder / "data.parquet")
    shutil.copy(data_of(folder / "study"), folder / "data.csv")
    renamed = table.rename_columns([f"col_{name}" for name in table.column_names])
    with pa.output_stream(folder / "export.csv.gz", compression="gzip") as stream:
        pa.csv.write_csv(renamed, stream)
    (folder / "names.toml").write_text("".join(f'"col_{name}" = "{name}"\n' for name in table.column_names))
    (folder / "2024").mkdir()
    for month, part in enumerate((table.slice(0, 150), table.slice(150)), start=1):
        values = enumerate(part["v1"].to_pylist())
        lines = ["v1;ward", *(f"{value:.4f};{place % 3}".replace(".", ",") for place, value in values)]
        (folder / "2024" / f"{month}.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A folder with all files that examples name, as people would have made them."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "home"))
        patch.chdir(folder)
        run("simulate", "-o", "study", "--sites", ",".join(SITES), "--rows", "700,750,800", "--seed", 3, "-q")
        write_tables(folder)
        (folder / "variables.toml").write_text(DECLARATION)
        for site in ("north", "south"):
            (folder / f"{site}.recipes.toml").write_text("[recipes.v1]\nround = 0.01\n")
        for site in SITES:
            patch.setenv("FEDCDH_LEDGER", str(folder / "ledgers" / site / "releases.jsonl"))
            run("keys", "new", "-o", f"{site}.key", "-q")
            run("profile", data_of(folder / "study", site), "--client", site, "--key", f"{site}.key", "-q")
        (folder / "home" / "fedcdh").mkdir(parents=True, exist_ok=True)
        shutil.copy("north.key", folder / "home" / "fedcdh" / "site.key")
        shutil.copy("north.pub", "site.pub")
        run("plan", *(f"{site}.profile.json" for site in SITES), "--max-rounds", 3, "-q")
        (folder / "inbox").mkdir()
        for site in SITES:
            patch.setenv("FEDCDH_LEDGER", str(folder / "ledgers" / site / "releases.jsonl"))
            data = data_of(folder / "study", site)
            run("summarize", "study.plan.json", data, "--client", site, "--key", f"{site}.key", "-q")
            for name in (f"{site}.summary", f"{site}.summary.sig"):
                shutil.copy(name, folder / "inbox" / name)
        run("discover", "study.plan.json", *(f"{site}.summary" for site in SITES), "-q")
        run("aggregate", "study.plan.json", "inbox", "-q")
    return folder


def play_secure_sum(folder: Path, rounds: list[str]) -> None:
    """Let the coordinator begin these rounds of a secure sum, and all sites answer them."""
    for name in rounds:
        run("secure-sum", "run", "study.plan.json", "rounds", "-q")
        for site in SITES:
            words = ["--client", site, "--key", f"{site}.key", "-q"]
            run("secure-sum", "join", "study.plan.json", f"rounds/{name}", *words)
            for suffix in ("keys", "shares"):
                if (answer := folder / f"{site}.{suffix}").exists():
                    shutil.copy(answer, folder / "rounds" / answer.name)


def rename_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the study again with the names of variables that the examples of effects have."""
    names = {"v1": "treated", "v2": "stay", "v3": "age", "v4": "stage"}
    for site in SITES:
        monkeypatch.setenv("FEDCDH_LEDGER", str(folder / "stays" / site / "releases.jsonl"))
        path = Path(data_of(folder / "study", site))
        heading, rows = path.read_text().split("\n", 1)
        renamed = ",".join(names.get(name, name) for name in heading.split(","))
        path.write_text(f"{renamed}\n{rows}")
        run("profile", path, "--client", site, "--key", f"{site}.key", "-q")
    run("plan", *(f"{site}.profile.json" for site in SITES), "-q")
    for site in SITES:
        monkeypatch.setenv("FEDCDH_LEDGER", str(folder / "stays" / site / "releases.jsonl"))
        data = data_of(folder / "study", site)
        run("summarize", "study.plan.json", data, "--client", site, "--key", f"{site}.key", "-q")
    run("discover", "study.plan.json", *(f"{site}.summary" for site in SITES), "-q")


def prepare(folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring the folder to where the command of an example is the next one to run."""
    if words[0] == "ledger":
        monkeypatch.setenv("FEDCDH_LEDGER", str(folder / "ledgers" / "north" / "releases.jsonl"))
    elif words[:2] == ["keys", "new"]:
        monkeypatch.setattr("fedcdh.cli.keys.getpass", lambda prompt: "secret")
        for name in ("home/fedcdh/site.key", "site.pub", "north.key", "north.pub"):
            (folder / name).unlink()
    elif words[:2] == ["policy", "show"]:
        (folder / "policy.toml").write_text("max_leverage = 0.9\n")
    elif words[:2] == ["keys", "verify"]:
        run("keys", "sign", "study.plan.json", "-q")
    elif words[:2] == ["secure-sum", "join"]:
        play_secure_sum(folder, ["1-terms.json", "2-roster.json"] if "rounds/3-delivery.json" in words else [])
        run("secure-sum", "run", "study.plan.json", "rounds", "-q")
    elif words[:2] == ["secure-sum", "run"] and "--go-on" in words:
        play_secure_sum(folder, ["1-terms.json"])
    elif words[:2] == ["rounds", "answer"]:
        write_request(folder)
    elif words[0] == "effect" and "treated" in words:
        rename_variables(folder, monkeypatch)


@pytest.mark.parametrize("line", examples())
def test_an_example_runs(line, prepared, tmp_path, monkeypatch, capsys):
    program, *words = shlex.split(line)
    assert program == "fedcdh"
    if words[:2] == ["flower", "trial"]:
        pytest.importorskip("flwr", reason="flwr is not installed")
    folder = tmp_path / "here"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "releases.jsonl"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home"))
    prepare(folder, words, monkeypatch)
    waiting = int(words[0] == "discover" and "--ask" in words)  # for answers to the request that it writes
    assert main(words) == waiting, capsys.readouterr()
    assert not waiting or (folder / "rounds" / "request-001.json").exists()


def test_there_are_examples_of_every_command():
    named = {" ".join(line.split()[1:3]) for line in examples()}
    assert len(named) >= 20
