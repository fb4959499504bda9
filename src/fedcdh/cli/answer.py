"""Further rounds by file at a site: it answers a request of the coordinator, and keeps count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh._io.storage import read_regular
from fedcdh.cli._console import Output
from fedcdh.cli._errors import speaking
from fedcdh.cli._inputs import blaming, file_name, replaceable, signer_of, write_signed
from fedcdh.cli._options import (
    AsJson,
    Client,
    Decimal,
    Delimiter,
    Encoding,
    Files,
    KeyFile,
    LedgerFile,
    Missing,
    PlanFile,
    PolicyFile,
    Quiet,
    Renames,
    Research,
    csv_style,
    not_an_input,
    open_data,
)
from fedcdh.cli._site_setup import invited
from fedcdh.errors import NotASummary
from fedcdh.messages.round_files import (
    ANSWER_ENDING,
    TEXT_AT_MOST,
    AnswerMessage,
    pack_answer,
    read_request,
)
from fedcdh.privacy.ledger.gate import told_in_rounds
from fedcdh.privacy.releases import checked_answer


@speaking
def answer_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="The coordinator's request.", metavar="REQUEST")],
    files: Files,
    client: Client,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The answer; else NAME.answer-001.")] = None,
    renames: Renames = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    research: Research = False,
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
    study, _, rules, signing, gate, own = invited(
        plan, client, out, policy=policy, research=research, ledger=ledger, key=key, renames=renames
    )
    content = read_regular(request, TEXT_AT_MOST, "a request", refuse=NotASummary)
    with blaming(request):
        asked = read_request(content, study.plan)
        rules.check_request(signer_of(request, content, "request"))
    target = output or file_name(client, ANSWER_ENDING.format(asked.number))
    spent = told_in_rounds(gate.ledger.entries(), study.plan)
    with out.progress("answer") as advance:
        source = open_data(files, renames, csv_style(delimiter, decimal, encoding, missing), advance)
        not_an_input(target, [plan, request, *(file.path for file in source.files)])
        replaceable(target, "answer")
        answers, told = checked_answer(source, study.plan, client, rules, asked, spent, own, gate=gate)
    message = pack_answer(AnswerMessage(asked.digest, answers, rules.research), study.plan)
    written = write_signed(target, message, "answer", signing)
    out.say(
        f"{len(asked.sets)} sets of variables; the answer has {len(message)} bytes. So far {told.rounds} of "
        f"{study.plan.most_rounds} rounds and {told.bytes} of {study.plan.most_bytes} bytes are used up.",
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
