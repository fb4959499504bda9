"""Further rounds by file at a site: it answers a request of the coordinator, and keeps count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh._io.storage import read_regular_file
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import check_replaceable, default_file_name, find_signer, naming_file, write_signed
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
    Missing,
    NoDisclosureControl,
    PlanFile,
    PolicyFile,
    Quiet,
    build_csv_style,
    open_data,
    refuse_input_as_output,
)
from fedcdh.cli._site_setup import set_up_site
from fedcdh.errors import SummaryFormatError
from fedcdh.messages.round_files import (
    ANSWER_SUFFIX,
    MAX_TEXT_BYTES,
    AnswerMessage,
    pack_answer,
    request_from_json,
)
from fedcdh.privacy.ledger.gate import spent_round_budget
from fedcdh.privacy.releases import ReleaseContext, release_answer


@report_errors
def answer_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="The coordinator's request.", metavar="REQUEST")],
    files: DataFiles,
    client: ClientName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The answer; else NAME.answer-001.")] = None,
    renames: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    research: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Answer a further question of the coordinator: how a few variables act together. Same rows as in the summary.

    The plan states how many such questions a site answers, and how many bytes; a ledger keeps count.

    Example:

      fedcdh answer study.plan.json request-001.json data.parquet --client north
    """
    out = Output(quiet, as_json)
    study, _, rules, signing, gate, own = set_up_site(
        plan, client, out, policy=policy, research=research, ledger=ledger, key=key, renames=renames
    )
    content = read_regular_file(request, MAX_TEXT_BYTES, "a request", refuse=SummaryFormatError)
    with naming_file(request):
        asked = request_from_json(content, study.plan)
        rules.check_request(find_signer(request, content, "request"))
    target = output or default_file_name(client, ANSWER_SUFFIX.format(asked.number))
    spent = spent_round_budget(gate.ledger.entries(), study.plan)
    context = ReleaseContext(client, rules, own, gate)
    with out.progress("answer") as advance:
        source = open_data(files, renames, build_csv_style(delimiter, decimal, encoding, missing), advance)
        refuse_input_as_output(target, [plan, request, *(file.path for file in source.files)])
        check_replaceable(target, "answer")
        answers, told = release_answer(source, study.plan, context, asked, spent)
    message = pack_answer(AnswerMessage(asked.digest, answers, not rules.disclosure_control), study.plan)
    written = write_signed(target, message, "answer", signing)
    out.say(
        f"{len(asked.sets)} sets of variables; the answer has {len(message)} bytes. So far {told.rounds} of "
        f"{study.plan.max_rounds} rounds and {told.bytes} of {study.plan.max_bytes} bytes are used up.",
        f"Wrote {' and '.join(map(str, written))}.",
    )
    out.result(
        {
            "client": client,
            "bytes": len(message),
            "sets": len(asked.sets),
            "rounds": told.rounds,
            "files": list(map(str, written)),
        }
    )
