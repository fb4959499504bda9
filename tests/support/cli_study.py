"""A small study by file, made by the commands themselves, for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

from fedcdh.cli import main
from fedcdh.cli._inputs import read_study
from fedcdh.messages.round_files import request_to_json
from fedcdh.summaries.joint import JointRequest

KEY = "ed25519:A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
SITES = {"north": 300, "south": 350, "coast": 400}
DECLARATION = 'clients = ["north", "south", "coast"]\n' + "".join(
    f'[variables.v{number}]\nkind = "continuous"\nrange = [-20, 20]\n' for number in range(1, 7)
)


def run(*arguments: object, code: int = 0) -> None:
    """Run a command, which has to end with this exit code."""
    words = [str(argument) for argument in arguments]
    assert main(words) == code, " ".join(words)


def simulate_study(folder: Path, seed: int = 3) -> Path:
    rows = ",".join(map(str, SITES.values()))
    run("simulate", "-o", folder, "--sites", ",".join(SITES), "--rows", rows, "--seed", seed, "-q")
    return folder


def make_study(folder: Path) -> Path:
    """Write data, a profile and a summary of every site, and the plan."""
    simulate_study(folder)
    for site in SITES:
        run("profile", data_of(folder, site), "--client", site, "-o", folder / f"{site}.profile.json", "-q")
    run("plan", *(folder / f"{site}.profile.json" for site in SITES), "-o", folder / "study.plan.json", "-q")
    for site in SITES:
        summary = folder / f"{site}.summary"
        run("summarize", folder / "study.plan.json", data_of(folder, site), "--client", site, "-o", summary, "-q")
    return folder


def data_of(folder: Path, site: str = "north") -> str:
    return str(folder / site / "data.csv")


def plan_of(folder: Path) -> str:
    return str(folder / "study.plan.json")


def summaries(folder: Path) -> list[str]:
    return [str(folder / f"{site}.summary") for site in SITES]


def write_request(folder: Path) -> None:
    """Write a request that asks about one pair of variables."""
    plan = read_study(folder / "study.plan.json")[0].plan
    (folder / "rounds").mkdir()
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    (folder / "rounds" / "request-001.json").write_text(request_to_json(request))
