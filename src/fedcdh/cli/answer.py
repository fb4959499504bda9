"""`fedcdh rounds answer`: a site's answer to a question of the coordinator, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import (
    AsJson,
    ClientName,
    ColumnMapFile,
    DataFiles,
    Decimal,
    Delimiter,
    Encoding,
    KeyFile,
    LedgerFile,
    MissingMarkers,
    NoDisclosureControl,
    PlanFile,
    PolicyFile,
    Quiet,
    build_csv_style,
    open_data,
)
from fedcdh.errors import SummaryFormatError


@report_errors
def answer_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="Request of the coordinator.", metavar="REQUEST")],
    files: DataFiles,
    client: ClientName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Answer to write.", metavar="FILE", show_default="NAME.answer-001"),
    ] = None,
    column_map: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: MissingMarkers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    no_disclosure_control: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question of the coordinator at a site.

    The question is about the residuals of regressions, or about how a few variables act together. The rows must be
    those of the summary. The plan limits the number of questions and bytes, and the ledger counts them.

    For example:

      fedcdh rounds answer study.plan.json rounds/request-001.json data.parquet --client north
    """
    from fedcdh._io.storage import read_regular_file
    from fedcdh.cli._answers_folder import describe_content
    from fedcdh.cli._file_kinds import refuse_other_kind
    from fedcdh.cli._inputs import naming_file
    from fedcdh.cli._keys import find_signer
    from fedcdh.cli._outputs import check_replaceable, default_file_name, refuse_input_as_output, write_signed
    from fedcdh.cli._site_settings import announcing_ledger
    from fedcdh.cli._site_setup import SiteOptions, set_up_site
    from fedcdh.messages.answer_file import AnswerMessage, pack_answer
    from fedcdh.messages.round_files import ANSWER_SUFFIX, MAX_TEXT_BYTES, request_from_json
    from fedcdh.privacy.ledger.gate import spent_round_budget
    from fedcdh.privacy.releases import ReleaseContext, release_answer

    out = Output(quiet, as_json)
    site = set_up_site(plan, client, out, SiteOptions(policy, ledger, key, column_map, no_disclosure_control))
    found = site.study.plan
    refuse_other_kind(request, "a request", SummaryFormatError)
    content = read_regular_file(request, MAX_TEXT_BYTES, "a request", refuse=SummaryFormatError)
    with naming_file(request):
        asked = request_from_json(content, found)
        site.policy.check_request(find_signer(request, content, "request"))
    target = output or default_file_name(client, ANSWER_SUFFIX.format(asked.number))
    spent = spent_round_budget(site.gate.ledger.entries(), found)
    with announcing_ledger(site.gate, out), out.progress("answer") as advance:
        source = open_data(files, column_map, build_csv_style(delimiter, decimal, encoding, missing), advance)
        refuse_input_as_output(target, [plan, request, *(file.path for file in source.files)])
        check_replaceable(target, "answer")
        context = ReleaseContext(client, site.policy, site.own_names, site.gate)
        answers, total = release_answer(source, found, context, asked, spent)
    message = pack_answer(AnswerMessage(asked.digest, client, answers, site.policy.disclosure_control), found)
    written = write_signed(target, message, "answer", site.signing)
    out.say(
        f"The answer has {len(message)} bytes about {describe_content(asked)}. {total.rounds} of "
        f"{found.max_rounds} rounds and {total.bytes} of {found.max_bytes} bytes are used up.",
        f"Wrote {' and '.join(map(str, written))}.",
    )
    out.result(
        {
            "client": client,
            "bytes": len(message),
            "parts": len(answers),
            "rounds": total.rounds,
            "files": list(map(str, written)),
        }
    )
