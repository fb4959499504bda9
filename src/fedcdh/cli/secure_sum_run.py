"""A masked sum by file at the coordinator: a folder with the files of the rounds, and with what sites sent back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import check_replaceable, load_signing_key, read_study, write_signed
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, Quiet, parse_pairs
from fedcdh.errors import SecureAggregationError
from fedcdh.messages.aggregate_file import pack_aggregate
from fedcdh.privacy.secure_aggregation.messages import SecAggRequest, SecAggTerms
from fedcdh.privacy.secure_aggregation.session import REQUEST_FILE_NAMES, ReplyCheck, ReplyT, SessionFolder, run_session


class WaitingForAnswers(Exception):  # noqa: N818 (no error: the coordinator waits, as it should)
    """Sites have to answer before the next round."""


@report_errors
def run_command(
    plan: PlanFile,
    folder: Annotated[Path, typer.Argument(help="The folder for the rounds and the sites' answers.", metavar="FOLDER")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The sum, once it is open.")] = Path("study.aggregate"),
    threshold: Annotated[
        int | None, typer.Option(help="So many sites have to open the sum; else more than two thirds.", metavar="N")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="CLIENT=GROUP: of a group, only sums become known. For every site, or none.", metavar="C=G"),
    ] = None,
    attempt: Annotated[
        int, typer.Option(min=1, help="Where attempts failed: the next number, and another folder.", metavar="N")
    ] = 1,
    go_on: Annotated[bool, typer.Option("--go-on", help="Go on without those who have not answered.")] = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add up the sites' summaries without seeing any of them: write the next round's file, in the end the sum.

    Run it again whenever answers have come into the folder. Sites answer with `fedcdh mask`.

    Examples:

      fedcdh masked study.plan.json rounds/

      fedcdh masked study.plan.json rounds/ --go-on
    """
    out = Output(quiet, as_json)
    study, _ = read_study(plan)
    groups = parse_pairs(group, "--group", "CLIENT=GROUP")
    terms = SecAggTerms.of(study, threshold=threshold, groups=groups, attempt=attempt)
    check_replaceable(output, "aggregate")
    signing = load_signing_key(key, out)
    rounds = SessionFolder(folder, study, signing)
    before = rounds.request(SecAggTerms)
    if before is not None and before != terms and (threshold is not None or groups or attempt > 1):
        raise SecureAggregationError(
            f"{folder} holds a sum with other terms; choose another folder for another attempt"
        )
    try:
        message = run_session(study, terms, _FileTransport(rounds, out, go_on))
    except WaitingForAnswers as missing:
        out.say(str(missing))
        out.result({"more": True})
        return
    written = write_signed(output, pack_aggregate(message), "aggregate", signing)
    for client in message.research:
        out.warn(f"{client} masked for research, without privacy: it did not enforce smallest numbers of rows")
    total = message.aggregate.total
    out.say(
        f"The sum is of {', '.join(total.clients)}: {total.rows} rows. Wrote {' and '.join(map(str, written))}.",
        f"Now: fedcdh discover {plan} {output}",
    )
    out.result({"more": False, "clients": total.clients, "rows": total.rows, "files": list(map(str, written))})


@dataclass(frozen=True)
class _FileTransport:
    """Answers come as files; until they have come, the coordinator waits."""

    folder: SessionFolder
    out: Output
    go_on: bool  # without those who are missing; not in a round that has begun only now
    new: list[str] = field(default_factory=list)

    def begun(self, path: Path) -> None:
        """There is a file to send."""
        self.new.append(path.name)
        self.out.say(f"Wrote {path}. Send it to the sites.")

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """What is in the folder; AnswersMissing if that is not all, unless the coordinator goes on with it."""
        found = self.folder.replies(kind, check)
        if (lacking := [client for client in clients if client not in found]) and (self.new or not self.go_on):
            path = self.folder.folder / REQUEST_FILE_NAMES[type(request)]
            raise WaitingForAnswers(
                f"answers of {', '.join(lacking)} to {path} are missing; put them into {self.folder.folder} and run "
                "this again (with --go-on, it goes on without them)"
            )
        return {client: answer for client, answer in found.items() if client in clients}
