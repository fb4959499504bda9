"""`fedcdh secure-sum run`: the coordinator's side of a secure sum, by file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, Quiet, parse_pairs
from fedcdh.errors import PlanError, SecureAggregationError, SettingsError, SummaryFormatError

if TYPE_CHECKING:
    from fedcdh.messages.aggregate_file import AggregateMessage
    from fedcdh.messages.study_file import Study
    from fedcdh.privacy.secure_aggregation.messages import SecAggRequest, SecAggTerms
    from fedcdh.privacy.secure_aggregation.session import ReplyCheck, ReplyT, SessionFolder
    from fedcdh.summaries.residuals import ResidualRequest


_ORDER = "The plan comes first: fedcdh secure-sum run PLAN FOLDER."


class WaitingForAnswers(Exception):  # noqa: N818 (not an error: the coordinator waits, as it should)
    """Sites have to answer before the next round."""


@report_errors
def run_command(
    plan: PlanFile,
    folder: Annotated[Path, typer.Argument(help="Folder of the rounds and of the sites' answers.", metavar="FOLDER")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Sum to write after the last round.", metavar="FILE")
    ] = Path("study.aggregate"),
    threshold: Annotated[
        int | None,
        typer.Option(
            help="Number of sites that must help to open the sum.", metavar="N", show_default="more than two thirds"
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Group of a site: only sums over groups become known. For every site, or none.",
            metavar="CLIENT=GROUP",
        ),
    ] = None,
    mixtures: Annotated[
        int,
        typer.Option(
            min=0,
            help="Open sums over sites with random signs, and no sums of single sites; for --method paper.",
            metavar="N",
        ),
    ] = 0,
    attempt: Annotated[
        int, typer.Option(min=1, help="Number of this attempt, in a folder of its own.", metavar="N")
    ] = 1,
    request: Annotated[
        Path | None,
        typer.Option(help="Add the sites' answers to this request instead, see fedcdh discover --ask.", metavar="FILE"),
    ] = None,
    after: Annotated[
        Path, typer.Option(help="Sum of the summaries, after which --request may be asked.", metavar="FILE")
    ] = Path("study.aggregate"),
    go_on: Annotated[bool, typer.Option("--go-on", help="Continue without sites that have not answered.")] = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the next round of a secure sum, and in the end the sum.

    The coordinator learns the sum of all summaries and no single one. Run this command again whenever answers have
    come into the folder. Sites answer with `fedcdh secure-sum join`. With --request, the answers of the sites to a
    request of `fedcdh discover --ask` are added, after the sum of their summaries.

    For example:

      fedcdh secure-sum run study.plan.json rounds/

      fedcdh secure-sum run study.plan.json rounds/ --go-on
    """
    from fedcdh.cli._file_kinds import refuse_other_kind
    from fedcdh.cli._inputs import read_study
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._outputs import check_replaceable, write_signed
    from fedcdh.messages.aggregate_file import pack_aggregate
    from fedcdh.privacy.secure_aggregation.messages import SecAggTerms
    from fedcdh.privacy.secure_aggregation.session import SessionFolder, run_session

    out = Output(quiet, as_json)
    refuse_other_kind(plan, "a plan", PlanError, _ORDER)
    if folder.is_file():
        raise SettingsError(f"{folder} is a file; expected a folder in its place. Were arguments exchanged? {_ORDER}")
    study, _ = read_study(plan)
    groups = parse_pairs(group, "--group", "CLIENT=GROUP")
    signing = load_signing_key(key, out)
    session = SessionFolder(folder, study, signing)
    transport = _FileTransport(session, out, go_on, complete=request is not None)
    try:
        if request is not None:
            _add_answers(out, transport, _read_request(request, study), _read_masked_sum(after, study, out), attempt)
            return
        terms = SecAggTerms.of(study, threshold=threshold, groups=groups, attempt=attempt, mixtures=mixtures)
        check_replaceable(output, "aggregate")
        changed = threshold is not None or bool(groups) or attempt > 1 or mixtures > 0
        _check_settings(session, terms, changed=changed)
        message = run_session(study, terms, transport)
    except WaitingForAnswers as waiting:
        out.say(str(waiting))
        out.result({"more": True})
        return
    written = write_signed(output, pack_aggregate(message), "aggregate", signing)
    for client in message.without_disclosure_control:
        out.warn(f"{client} took part without disclosure control")
    total = message.aggregate.total
    out.say(
        f"The sum is of {', '.join(total.clients)}: {total.rows} rows. Wrote {' and '.join(map(str, written))}.",
        f"Next: fedcdh discover {plan} {output}",
    )
    out.result({"more": False, "clients": total.clients, "rows": total.rows, "files": list(map(str, written))})


def _check_settings(session: SessionFolder, terms: SecAggTerms, *, changed: bool) -> None:
    """Refuse to go on with a session that has other settings than those of the command."""
    from fedcdh.privacy.secure_aggregation.messages import SecAggTerms

    before = session.request(SecAggTerms)
    if before is not None and before != terms and changed:
        raise SecureAggregationError(
            f"{session.folder} holds a secure sum with other settings. Choose another folder for another attempt."
        )


def _read_request(path: Path, study: Study) -> ResidualRequest:
    """Return the request about residuals in a file."""
    from fedcdh._io.storage import read_regular_file
    from fedcdh.cli._inputs import naming_file
    from fedcdh.messages.round_files import MAX_TEXT_BYTES, request_from_json
    from fedcdh.summaries.residuals import ResidualRequest

    content = read_regular_file(path, MAX_TEXT_BYTES, "a request", refuse=SummaryFormatError)
    with naming_file(path):
        request = request_from_json(content, study.plan)
    if not isinstance(request, ResidualRequest):
        raise SecureAggregationError(
            f"{path} asks for joint features. Expected a request about residuals, the only ones whose answers are "
            "added under masks. Name another file."
        )
    return request


def _read_masked_sum(path: Path, study: Study, out: Output) -> AggregateMessage:
    """Return the secure sum of the summaries."""
    from fedcdh.cli._summaries import read_aggregate

    message = read_aggregate(path, study, out)
    if message is None or not message.masked:
        raise SecureAggregationError(
            f"{path} is no secure sum. Expected the secure sum of the summaries, after which its sites answer under "
            "masks. Name it with --after."
        )
    return message


def _add_answers(
    out: Output, transport: _FileTransport, request: ResidualRequest, known: AggregateMessage, attempt: int
) -> None:
    """Write the next round of a sum of answers, and in the end say that the sum is there."""
    from fedcdh.federation.masked_rounds import check_summed_rows
    from fedcdh.privacy.secure_aggregation.messages import SecAggTerms
    from fedcdh.privacy.secure_aggregation.session import run_answer_session

    study = transport.folder.study
    terms = SecAggTerms.of(study, threshold=known.threshold, attempt=attempt, request=request)
    _check_settings(transport.folder, terms, changed=attempt > 1)
    found = run_answer_session(study, terms, transport, known.aggregate.total.clients)
    check_summed_rows(found, known.aggregate, request)
    for client in found.without_disclosure_control:
        out.warn(f"{client} took part without disclosure control")
    rows = found.answers[0].rows
    out.say(
        f"The sum of the answers to request {request.number} is of {', '.join(found.clients)}: {rows} rows. It is in "
        f"{transport.folder.folder}.",
        "Next: run fedcdh discover --ask again.",
    )
    out.result({"more": False, "clients": found.clients, "rows": rows, "files": []})


@dataclass(frozen=True)
class _FileTransport:
    """A transport that takes answers from files, and waits until they have come."""

    folder: SessionFolder
    out: Output
    go_on: bool  # without those who are missing; not in a round that has only just begun
    complete: bool = False  # whether there is no sum without one of the sites
    new: list[str] = field(default_factory=list)

    def announce(self, path: Path) -> None:
        """Say that there is a file to send."""
        self.new.append(path.name)
        self.out.say(f"Wrote {path}. Send it to the sites.")

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """Return the answers in the folder; raise WaitingForAnswers if some are missing."""
        from fedcdh.privacy.secure_aggregation.messages import ConfirmedSurvivors, SurvivorList
        from fedcdh.privacy.secure_aggregation.session import REQUEST_FILE_NAMES

        found = self.folder.replies(kind, check)
        if (missing := [client for client in clients if client not in found]) and (self.new or not self.go_on):
            path = self.folder.folder / REQUEST_FILE_NAMES[type(request)]
            with_all = self.complete and not isinstance(request, SurvivorList | ConfirmedSurvivors)
            option = "there is no sum of answers" if with_all else "with --go-on, it continues"
            raise WaitingForAnswers(
                f"Answers of {', '.join(missing)} to {path} are missing. Put them into {self.folder.folder} and run "
                f"this command again; {option} without them."
            )
        return {client: answer for client, answer in found.items() if client in clients}
