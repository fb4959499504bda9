"""Commands on a full disk: a sentence, an exit code, and no partial file; also where only the exit code is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_study import data_of, make_study, plan_of, summaries, write_request

from fedcdh.errors import ExitCode

resource = pytest.importorskip("resource", reason="limits the size of files, which needs POSIX")
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="/dev/full, a device that is always full, is not there")
MAX_BYTES = 48
"""Fewer than any file of ours has."""


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    make_study(folder)
    write_request(folder)
    return folder


def run_command(*words: object, max_bytes: int | None = None, **streams: object) -> subprocess.CompletedProcess:
    """Run a command in a process of its own, in which no file may become longer than this."""

    def limit() -> None:
        if max_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))

    command = [sys.executable, "-m", "fedcdh", *map(str, words)]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, text=True, check=False, timeout=120, preexec_fn=limit, **given)


def commands(folder: Path, out: Path) -> dict[str, tuple[object, ...]]:
    """Every kind of command that writes files, with the file or folder that it should write."""
    plan, data, ledger = plan_of(folder), data_of(folder), out / "ledger.jsonl"
    return {
        "simulate": ("simulate", "-o", out / "data", "--sites", "a,b,c", "--rows", "200,200,200", "--seed", 1),
        "profile": ("profile", data, "--client", "north", "-o", out / "north.profile.json", "--ledger", ledger),
        "plan": (
            "plan",
            *(folder / f"{site}.profile.json" for site in ("north", "south")),
            "-o",
            out / "new.plan.json",
        ),
        "summarize": ("summarize", plan, data, "--client", "north", "-o", out / "n.summary", "--ledger", ledger),
        "aggregate": ("aggregate", plan, *summaries(folder), "-o", out / "study.aggregate"),
        "discover": ("discover", plan, *summaries(folder), "-o", out / "result"),
        "keys": ("keys", "new", "-o", out / "site.key"),
        "demo": ("demo", "-o", out / "demo"),
    }


NAMES = tuple(commands(Path(), Path()))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_has_no_room_is_named_and_nothing_partial_stays(study, tmp_path, name):
    done = run_command(*commands(study, tmp_path)[name], max_bytes=MAX_BYTES)
    assert done.returncode in (ExitCode.FILES, ExitCode.POLICY), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("fedcdh: The ")]
    assert str(tmp_path) in line
    assert "File too large" in line
    assert "Expected a" in line
    assert "delete other files there" in line.lower()
    assert "Traceback" not in done.stderr
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left == []


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        ("profile", "--help"),
        ("keys", "--help"),
        ("inspect", "north.summary"),
        ("inspect", "north.summary", "--json"),
        ("ledger", "show"),
        ("simulate", "-o", "new", "--rows", "200,200", "--sites", "a,b"),
    ],
    ids=" ".join,
)
def test_standard_output_without_room_is_an_error(study, tmp_path, words):
    words = tuple(
        study / word if word == "north.summary" else tmp_path / word if word == "new" else word for word in words
    )
    with FULL.open("w") as full:
        done = run_command(*words, stdout=full)
        silent = run_command(*words, stdout=full, stderr=full)
    assert (done.returncode, silent.returncode) == (ExitCode.FILES, ExitCode.FILES)
    assert done.stderr.splitlines()[-1] == (
        "fedcdh: Standard output cannot be written (No space left on device). Expected room for all that the command "
        "prints. Send its output to another place, or delete other files there, and run it again."
    )
    assert "Traceback" not in done.stderr


@needs_full
def test_an_error_that_cannot_be_written_keeps_its_exit_code(tmp_path):
    with FULL.open("w") as full:
        for stdout in (subprocess.PIPE, full):
            done = run_command("inspect", tmp_path / "absent.summary", stdout=stdout, stderr=full)
            said = run_command("inspect", tmp_path / "absent.summary")
            assert done.returncode == said.returncode != 0


def test_a_ledger_that_was_cut_by_a_full_disk_is_repaired(study, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    words = ("summarize", plan_of(study), data_of(study), "--client", "north", "-o", tmp_path / "n.summary")
    cut = run_command(*words, "--ledger", ledger, max_bytes=2000)  # the first line fits, the second does not
    assert cut.returncode == ExitCode.POLICY
    assert "so nothing leaves. Expected a folder with room" in cut.stderr
    assert not (tmp_path / "n.summary").exists()
    done = run_command(*words, "--ledger", ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 releases" in run_command("ledger", "verify", "--ledger", ledger).stdout
