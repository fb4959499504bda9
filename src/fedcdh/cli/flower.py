"""Studies over Flower: the folder that `flwr run` takes, and a trial of all of it on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh._io.storage import write_atomically
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.cli.demo import to_csv
from fedcdh.errors import SettingsError
from fedcdh.evaluation.simulation import simulate
from fedcdh.federation.flower.app_folder import to_toml_value, write_app
from fedcdh.federation.flower.local_trial import LocalTrial, find_program

flower_app = typer.Typer(
    no_args_is_help=True,
    help="Studies of sites that are online, over Flower.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
NewFolder = Annotated[Path, typer.Argument(help="A new folder.", metavar="FOLDER")]


@flower_app.command("init")
@report_errors
def init_command(
    folder: NewFolder,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where results go; else a folder beside it.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the app of a study: a folder that `flwr run` takes as it is.

    Example:

      fedcdh flower init heart-study
    """
    out = Output(quiet, as_json)
    written = write_app(folder, output)
    out.say(f"Wrote {folder}. Settings of a run are in {folder / 'pyproject.toml'}.")
    out.say(f"With a SuperLink that Flower knows as study: flwr run {folder} study --stream")
    out.result({"files": list(map(str, written))})


@flower_app.command("trial")
@report_errors
def trial_command(
    folder: NewFolder,
    sites: Annotated[str, typer.Option(help="Names of the sites.", metavar="A,B,...")] = "north,south,coast",
    rows: Annotated[int, typer.Option(min=1, help="Rows of each site.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated data.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Try a whole study on this machine: simulated sites, certificates, keys, a SuperLink and SuperNodes, TLS.

    Every command is shown before it runs; all processes listen on 127.0.0.1 only and are ended afterwards.

    Example:

      fedcdh flower trial flower-trial
    """
    out = Output(quiet, as_json)
    names = [name.strip() for name in sites.split(",")]
    if len(set(names)) != len(names) or not all(name.isidentifier() for name in names):
        raise SettingsError(f"--sites {sites}: expected different names of letters and digits")
    if folder.exists() and any(folder.iterdir()):
        raise SettingsError(f"{folder} is not empty; choose another folder")
    find_program("flower-superlink")
    _write_sites(folder, names, rows, seed)
    with LocalTrial(folder, say=lambda line: out.say(f"$ {line}")) as trial:
        trial.prepare()
        trial.start_link()
        for name in names:
            trial.add_node(name, folder / "sites" / name / "site.toml")
        out.say(trial.run({"expected-sites": len(names), "timeout": 120.0}))
    if not (trial.result / "result.json").exists():
        raise SettingsError(f"the study did not end well; its logs are in {folder / 'logs'}")
    out.say(f"The result is in {trial.result}, all that the coordinator received in {trial.result / 'journal'}.")
    out.result({"result": str(trial.result), "sites": names})


def _write_sites(folder: Path, names: list[str], rows: int, seed: int) -> None:
    study = simulate(clients=len(names), rows=rows, seed=seed)
    for name, table in zip(names, study.tables.values(), strict=True):
        write_atomically(folder / "sites" / name / "data.csv", to_csv(study.names, table.tolist()))
        write_atomically(folder / "sites" / name / "site.toml", f'client = {to_toml_value(name)}\ndata = "data.csv"\n')
