"""What the coordinator asks next, where tests may ask sites again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._answers_folder import AnswersFolder
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import expand_paths, load_signing_key, read_study
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, Quiet
from fedcdh.cli._summaries import SUMMARY_PATTERN, SummaryReader
from fedcdh.discovery.api import discover_from
from fedcdh.errors import PendingAnswersError
from fedcdh.summaries.validation import admit_summaries


@report_errors
def request_command(
    plan: PlanFile,
    summaries: Annotated[list[Path], typer.Argument(help="One summary of every client.", metavar="SUMMARY...")],
    answers: Annotated[Path, typer.Option(help="The folder for requests and answers.", metavar="FOLDER")],
    alpha: Annotated[float | None, typer.Option(help="The level of the tests; the same for discover.")] = None,
    max_conditioning_size: Annotated[
        int | None, typer.Option(help="The most variables to condition on; the same for discover.")
    ] = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the next question to the sites, if there is one: as far as the search comes with the answers so far.

    Example:

      fedcdh request study.plan.json *.summary --answers rounds/
    """
    out = Output(quiet, as_json)
    study, _ = read_study(plan)
    messages, _ = SummaryReader(study).read_all(expand_paths(summaries, SUMMARY_PATTERN), out)
    cohort = admit_summaries([message.summary for message in messages], study.plan)
    source = AnswersFolder(answers, study, cohort, load_signing_key(key, out), out)
    try:
        discover_from(
            cohort,
            study.plan,
            method="constraint",
            alpha=alpha,
            knowledge=study.knowledge,
            max_conditioning_size=max_conditioning_size,
            source=source,
        )
    except PendingAnswersError as needed:
        out.say(str(needed))
        out.result({"more": True})
        return
    out.say(f"No more is to be asked: fedcdh discover {plan} ... --method constraint --answers {answers}")
    out.result({"more": False})
