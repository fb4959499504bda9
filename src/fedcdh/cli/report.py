"""`fedcdh report`: an HTML report of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet


@report_errors
def report_command(
    result: Annotated[Path, typer.Argument(help="Folder of a result, or its result.json.", metavar="RESULT")],
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make an HTML report of a result.

    The report is one file with the graph, the evidence and all tables. It needs no network.

    For example:

      fedcdh report result/ -o study.html
    """
    from fedcdh.cli._outputs import check_replaceable, refuse_input_as_output
    from fedcdh.reporting.html import read_document, write_report

    out = Output(quiet, as_json)
    refuse_input_as_output(output, [result])
    check_replaceable(output, "report")
    written = write_report(read_document(result), output)
    out.say(f"Wrote {written} ({written.stat().st_size:,} bytes). Open it in a browser; it needs no network.")
    out.result({"files": [str(written)], "bytes": written.stat().st_size})
