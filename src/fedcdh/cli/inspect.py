"""`fedcdh inspect`: what a file reveals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.errors import SummaryFormatError

MAX_FILE_BYTES = 1 << 31
"""Bytes of a summary that is inspected without a plan."""


@report_errors
def inspect_command(
    file: Annotated[Path, typer.Argument(help="Summary, sum, profile, plan, request or answer.", metavar="FILE")],
    plan: Annotated[
        Path | None,
        typer.Option(
            help="Plan of a summary or a sum.", metavar="FILE", show_default="a fitting one beside FILE or here"
        ),
    ] = None,
    numbers: Annotated[
        Path | None,
        typer.Option(help="CSV file to write with every number of a summary or a sum.", metavar="FILE"),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show what a file reveals.

    The description is in plain words and numbers: what anybody who receives the file can compute from it.

    For example:

      fedcdh inspect north.summary

      fedcdh inspect north.summary --numbers numbers.csv
    """
    from fedcdh._io.storage import read_regular_file
    from fedcdh.cli import _descriptions
    from fedcdh.cli._inputs import naming_file, refuse_running_sum
    from fedcdh.messages.aggregate_file import is_aggregate
    from fedcdh.messages.answer_file import is_answer
    from fedcdh.messages.round_files import is_request

    out = Output(quiet, as_json)
    content = read_regular_file(file, MAX_FILE_BYTES, "a summary, a sum, a profile or a plan")
    with naming_file(file):
        if content[:1] == b"{" and b'"fedcdh-study' in content:
            _descriptions.describe_plan(out, file, content)
        elif is_request(content):
            _descriptions.describe_request(out, file, content)
        elif content[:1] == b"{":
            _descriptions.describe_profile(out, file, content)
        elif is_aggregate(content):
            _descriptions.describe_aggregate(out, file, content, plan, numbers)
        elif not _is_container(content):
            raise SummaryFormatError("This is not a file of fedcdh. Expected a summary, a sum, a profile or a plan.")
        elif is_answer(content):
            _descriptions.describe_answer(out, file, content)
        else:
            refuse_running_sum(content)
            _descriptions.describe_summary(out, file, content, plan, numbers)


def _is_container(content: bytes) -> bool:
    """Check that a JSON header follows the eight bytes of its length."""
    return content[8:9] == b"{"
