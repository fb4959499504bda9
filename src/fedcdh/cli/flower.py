"""`fedcdh flower`: studies of sites that are online, over Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet, split_names
from fedcdh.errors import SettingsError

NewFolder = Annotated[Path, typer.Argument(help="New folder to write.", metavar="FOLDER")]


@report_errors
def init_command(
    folder: NewFolder,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder for results.", metavar="FOLDER", show_default="a folder beside the app"
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the Flower app of a study.

    `flwr run` takes the folder as it is.

    For example:

      fedcdh flower init heart-study
    """
    from fedcdh.federation.flower.app_folder import write_app

    out = Output(quiet, as_json)
    written = write_app(folder, output)
    out.say(f"Wrote {folder}. The settings of a run are in {folder / 'pyproject.toml'}.")
    out.say(f"If Flower knows your SuperLink as study, run: flwr run {folder} study --stream")
    out.result({"files": list(map(str, written))})


@report_errors
def trial_command(
    folder: NewFolder,
    sites: Annotated[str, typer.Option(help="Names of the sites.", metavar="A,B,...")] = "north,south,coast",
    rows: Annotated[int, typer.Option(min=1, help="Rows of each site.", metavar="N")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated data.", metavar="N")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a complete Flower study on this machine.

    The trial has simulated sites, certificates, keys, a SuperLink and SuperNodes with TLS. Every command is printed
    before it runs. All processes listen on 127.0.0.1 only and are stopped at the end.

    For example:

      fedcdh flower trial flower-trial
    """
    from fedcdh.federation.flower.local_trial import LocalTrial, find_program

    out, names = Output(quiet, as_json), split_names(sites) or []
    if len(set(names)) != len(names) or not all(name.isidentifier() for name in names):
        raise SettingsError(f"--sites was given {sites}. Expected different names of letters and digits.")
    if folder.exists() and any(folder.iterdir()):
        raise SettingsError(f"The folder {folder} is not empty. Choose another folder.")
    find_program("flower-superlink")
    _write_sites(folder, names, rows, seed)
    with LocalTrial(folder, report=lambda line: out.say(f"$ {line}")) as trial:
        trial.prepare()
        trial.start_link()
        for name in names:
            trial.add_node(name, folder / "sites" / name / "site.toml")
        out.say(trial.run({"expected-sites": len(names), "timeout": 120.0}))
    if not (trial.result / "result.json").exists():
        raise SettingsError(f"The study gave no result. Read its logs in {folder / 'logs'}.")
    out.say(f"The result is in {trial.result}; all that the coordinator received is in {trial.result / 'journal'}.")
    out.result({"result": str(trial.result), "sites": names})


def _write_sites(folder: Path, names: list[str], rows: int, seed: int) -> None:
    from fedcdh._io.storage import write_atomically
    from fedcdh.cli.simulate import to_csv
    from fedcdh.evaluation.simulation import simulate
    from fedcdh.federation.flower.app_folder import to_toml_value

    study = simulate(clients=len(names), rows=rows, seed=seed)
    for name, table in zip(names, study.tables.values(), strict=True):
        write_atomically(folder / "sites" / name / "data.csv", to_csv(study.names, table.tolist()))
        write_atomically(folder / "sites" / name / "site.toml", f'client = {to_toml_value(name)}\ndata = "data.csv"\n')
