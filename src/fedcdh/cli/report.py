"""A result to look at: one HTML file with the graph, the evidence behind it, and all tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import check_replaceable
from fedcdh.cli._options import AsJson, Quiet, refuse_input_as_output
from fedcdh.reporting.html import read_document, write_report


@report_errors
def report_command(
    result: Annotated[Path, typer.Argument(help="A result's folder, or its result.json.", metavar="RESULT")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The HTML file.")] = Path("report.html"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a report to look at, to print or to mail: one HTML file that needs no network.

    Example:

      fedcdh report result/ -o study.html
    """
    out = Output(quiet, as_json)
    refuse_input_as_output(output, [result])
    check_replaceable(output, "report")
    written = write_report(read_document(result), output)
    out.say(f"Wrote {written} ({written.stat().st_size:,} bytes). Open it in a browser, also without a network.")
    out.result({"files": [str(written)], "bytes": written.stat().st_size})
