"""The command line: the only package that prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from fedcdh.cli._console import tolerate_encoding_errors
from fedcdh.cli.aggregate import aggregate_command
from fedcdh.cli.answer import answer_command
from fedcdh.cli.demo import compare_command, demo_command, simulate_command
from fedcdh.cli.experiment import experiment_command
from fedcdh.cli.flower import flower_app
from fedcdh.cli.inspect import inspect_command
from fedcdh.cli.keys import new_command, sign_command, verify_command
from fedcdh.cli.ledger import ledger_app
from fedcdh.cli.plan import discover_command, plan_command
from fedcdh.cli.report import report_command
from fedcdh.cli.request import request_command
from fedcdh.cli.secure_sum_join import join_command
from fedcdh.cli.secure_sum_run import run_command
from fedcdh.cli.summarize import profile_command, summarize_command
from fedcdh.errors import ExitCode
from fedcdh.messages import SOFTWARE

app = typer.Typer(
    name="fedcdh",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: " + "; ".join(f"{code:d} {code.meaning}" for code in ExitCode) + ".",
)
SITE, COORDINATOR, EXPERIMENTS, KEYS = "At a site", "At the coordinator", "Trying it out", "Keys and signatures"

app.command("profile", rich_help_panel=SITE)(profile_command)
app.command("summarize", rich_help_panel=SITE)(summarize_command)
app.command("answer", rich_help_panel=SITE)(answer_command)
app.command("mask", rich_help_panel=SITE)(join_command)
app.add_typer(ledger_app, name="ledger", rich_help_panel=SITE)
app.command("inspect", rich_help_panel=SITE)(inspect_command)
app.command("plan", rich_help_panel=COORDINATOR)(plan_command)
app.command("add", rich_help_panel=COORDINATOR)(aggregate_command)
app.command("discover", rich_help_panel=COORDINATOR)(discover_command)
app.command("request", rich_help_panel=COORDINATOR)(request_command)
app.command("masked", rich_help_panel=COORDINATOR)(run_command)
app.command("report", rich_help_panel=COORDINATOR)(report_command)
app.add_typer(flower_app, name="flower", rich_help_panel=COORDINATOR)
app.command("keygen", rich_help_panel=KEYS)(new_command)
app.command("sign", rich_help_panel=KEYS)(sign_command)
app.command("verify", rich_help_panel=KEYS)(verify_command)
app.command("demo", rich_help_panel=EXPERIMENTS)(demo_command)
app.command("simulate", rich_help_panel=EXPERIMENTS)(simulate_command)
app.command("compare", rich_help_panel=EXPERIMENTS)(compare_command)
app.command("experiment", rich_help_panel=EXPERIMENTS)(experiment_command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(SOFTWARE)
        raise typer.Exit


@app.callback()
def _fedcdh(
    version_: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What causes what, and what differs between sites, from one message per site."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code; `ExitCode` lists them."""
    tolerate_encoding_errors()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="fedcdh")
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BrokenPipeError:  # the reader of --help has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
