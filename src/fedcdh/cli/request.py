"""`fedcdh rounds request`: the coordinator's next question to the sites, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, Method, PlanFile, Quiet, Rounds
from fedcdh.errors import PendingAnswersError


@report_errors
def request_command(
    plan: PlanFile,
    summaries: Annotated[
        list[Path], typer.Argument(help="One summary of every client: files, patterns, folders.", metavar="SUMMARY...")
    ],
    answers: Annotated[Path, typer.Option(help="Folder of requests and answers.", metavar="FOLDER")],
    method: Annotated[Method, typer.Option(help="Search method, as for discover.", metavar="METHOD")] = "auto",
    rounds: Annotated[
        Rounds, typer.Option(help="What sites are asked: residuals or adaptive.", metavar="ROUNDS")
    ] = "auto",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Significance level, as for discover.",
            metavar="ALPHA",
            show_default="0.05",
        ),
    ] = None,
    max_conditioning_size: Annotated[
        int | None, typer.Option(help="Largest conditioning set, as for discover.", metavar="N")
    ] = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the next question to the sites, if there is one.

    The search goes as far as the answers in the folder allow.

    For example:

      fedcdh rounds request study.plan.json *.summary --answers rounds/
    """
    from fedcdh.cli._answers_folder import AnswersFolder
    from fedcdh.cli._inputs import expand_paths, read_study
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._summaries import SUMMARY_PATTERN, SummaryReader
    from fedcdh.discovery.api import discover_from
    from fedcdh.summaries.validation import admit_summaries

    out = Output(quiet, as_json)
    study, _ = read_study(plan)
    reader = SummaryReader(study)
    messages, _ = reader.read_all(expand_paths(summaries, SUMMARY_PATTERN), out)
    cohort = admit_summaries([message.summary for message in messages], study.plan)
    uncontrolled = frozenset(client for _, client in reader.uncontrolled)
    source = AnswersFolder(answers, study, cohort, load_signing_key(key, out), out, uncontrolled)
    try:
        discover_from(
            cohort,
            study.plan,
            method=method,
            alpha=alpha,
            knowledge=study.knowledge,
            max_conditioning_size=max_conditioning_size,
            source=source,
            rounds=rounds,
        )
    except PendingAnswersError as pending:
        out.say(str(pending))
        out.result({"more": True})
        return
    chosen = "".join(
        f" --{name} {value}" for name, value in (("method", method), ("rounds", rounds)) if value != "auto"
    )
    out.say(f"All questions are answered. Find the graph with: fedcdh discover {plan} ...{chosen} --ask {answers}")
    out.result({"more": False})
