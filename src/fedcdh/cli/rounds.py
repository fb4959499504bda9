"""Further rounds by file: the coordinator writes a request, sites answer it, and discovery goes on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli.failing import speaking
from fedcdh.cli.options import (
    AsJson,
    Client,
    Decimal,
    Delimiter,
    Encoding,
    Files,
    KeyFile,
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
from fedcdh.cli.output import Output
from fedcdh.cli.places import (
    blaming,
    file_name,
    read_study,
    replaceable,
    signed_by,
    signer_of,
    the_key,
    the_policy,
    write_signed,
)
from fedcdh.errors import AnswersNeeded, NotASummary
from fedcdh.files.disk import read_regular, write_whole
from fedcdh.files.rounds import (
    TEXT_AT_MOST,
    AnswerMessage,
    answer_bytes_at_most,
    ledger_text,
    pack_answer,
    read_ledger,
    read_request,
    request_text,
    unpack_answer,
)
from fedcdh.files.signing import SigningKey
from fedcdh.files.studies import Study
from fedcdh.plan import StudyPlan
from fedcdh.reading import read_renames
from fedcdh.rounds import JointRequest, JointSummary, Ledger
from fedcdh.taking_part import check_invitation, checked_answer, own_names


@dataclass(frozen=True)
class AnswersFolder:
    """Answers that come by mail, all in one folder; what has not come yet is asked for by a file there."""

    folder: Path
    study: Study
    key: SigningKey | None
    out: Output

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """The answers in the folder; AnswersNeeded, with the request written there, while some are missing."""
        found: dict[str, Sequence[JointSummary]] = {}
        for path in sorted(self.folder.glob(f"*.answer-{request.number:03d}")):
            message = self._read(path, request)
            if message.client in found:
                raise NotASummary(f"{path} is a second answer of {message.client} to one request; leave one there")
            found[message.client] = message.answers
        if lacking := [client for client in self.study.plan.clients if client not in found]:
            path = self.folder / f"request-{request.number:03d}.json"
            replaceable(path, "request")
            write_signed(path, request_text(request).encode(), "request", self.key)
            raise AnswersNeeded(
                f"answers of {', '.join(lacking)} are needed to {path}, about {len(request.sets)} sets of variables; "
                f"send it to the sites, put their answers (NAME.answer-{request.number:03d}) into {self.folder}, and "
                "run this again"
            )
        return found

    def _read(self, path: Path, request: JointRequest) -> AnswerMessage:
        most = answer_bytes_at_most(self.study.plan, request)
        content = read_regular(path, most, "an answer to this request", refuse=NotASummary)
        with blaming(path):
            message = unpack_answer(content, self.study.plan, request)
        if signed_by(path, content, "answer", self.study.keys.get(message.client)) is None:
            self.out.warn(f"{path} is not signed: that it comes from {message.client} is known only by the way it came")
        if message.research:
            self.out.warn(f"{path} was made for research, without privacy")
        return message


@speaking
def answer_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="The coordinator's request.", metavar="REQUEST")],
    files: Files,
    client: Client,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The answer; else NAME.answer-001.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="What was told before; else NAME.ledger.json. Keep it.", metavar="FILE")
    ] = None,
    renames: Renames = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    policy: PolicyFile = None,
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
    rules, signing = the_policy(policy, research, out), the_key(key, out)
    study, signer = read_study(plan)
    renamed = read_renames(renames) if renames else {}
    own = own_names(renamed)
    check_invitation(study, signer, client, rules, own, signing)
    content = read_regular(request, TEXT_AT_MOST, "a request", refuse=NotASummary)
    with blaming(request):
        asked = read_request(content, study.plan)
        rules.check_request(signer_of(request, content, "request"))
    target = output or file_name(client, f".answer-{asked.number:03d}")
    book = ledger or file_name(client, ".ledger.json")
    spent = _read_ledger(book, study.plan)
    with out.progress("answer") as advance:
        source = open_data(files, renames, csv_style(delimiter, decimal, encoding, missing), advance)
        for path in (target, book):
            not_an_input(path, [plan, request, *(file.path for file in source.files)])
        replaceable(target, "answer")
        answers, told = checked_answer(source, study.plan, client, rules, asked, spent, own)
    message = pack_answer(AnswerMessage(asked.digest, answers, rules.research), study.plan)
    write_whole(book, ledger_text(told, study.plan))  # first: what is not in the ledger must not have left
    written = write_signed(target, message, "answer", signing)
    out.say(
        f"{len(asked.sets)} sets of variables; the answer has {len(message)} bytes. So far {told.rounds} of "
        f"{study.plan.most_rounds} rounds and {told.bytes} of {study.plan.most_bytes} bytes are used up.",
        f"Wrote {' and '.join(map(str, written))}. Keep {book}.",
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


def _read_ledger(path: Path, plan: StudyPlan) -> Ledger:
    if not path.exists():
        return Ledger()
    content = read_regular(path, TEXT_AT_MOST, "a ledger", refuse=NotASummary)
    with blaming(path):
        return read_ledger(content, plan)
