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
from fedcdh.errors import SecureAggregationError

if TYPE_CHECKING:
    from fedcdh.privacy.secure_aggregation.messages import SecAggRequest
    from fedcdh.privacy.secure_aggregation.session import ReplyCheck, ReplyT, SessionFolder


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
    attempt: Annotated[
        int, typer.Option(min=1, help="Number of this attempt, in a folder of its own.", metavar="N")
    ] = 1,
    go_on: Annotated[bool, typer.Option("--go-on", help="Continue without sites that have not answered.")] = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the next round of a secure sum, and in the end the sum.

    The coordinator learns the sum of all summaries and no single one. Run this command again whenever answers have
    come into the folder. Sites answer with `fedcdh secure-sum join`.

    For example:

      fedcdh secure-sum run study.plan.json rounds/

      fedcdh secure-sum run study.plan.json rounds/ --go-on
    """
    from fedcdh.cli._inputs import read_study
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._outputs import check_replaceable, write_signed
    from fedcdh.messages.aggregate_file import pack_aggregate
    from fedcdh.privacy.secure_aggregation.messages import SecAggTerms
    from fedcdh.privacy.secure_aggregation.session import SessionFolder, run_session

    out = Output(quiet, as_json)
    study, _ = read_study(plan)
    groups = parse_pairs(group, "--group", "CLIENT=GROUP")
    terms = SecAggTerms.of(study, threshold=threshold, groups=groups, attempt=attempt)
    check_replaceable(output, "aggregate")
    signing = load_signing_key(key, out)
    session = SessionFolder(folder, study, signing)
    before = session.request(SecAggTerms)
    if before is not None and before != terms and (threshold is not None or groups or attempt > 1):
        raise SecureAggregationError(
            f"{folder} holds a secure sum with other settings. Choose another folder for another attempt."
        )
    try:
        message = run_session(study, terms, _FileTransport(session, out, go_on))
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


@dataclass(frozen=True)
class _FileTransport:
    """A transport that takes answers from files, and waits until they have come."""

    folder: SessionFolder
    out: Output
    go_on: bool  # without those who are missing; not in a round that has only just begun
    new: list[str] = field(default_factory=list)

    def announce(self, path: Path) -> None:
        """Say that there is a file to send."""
        self.new.append(path.name)
        self.out.say(f"Wrote {path}. Send it to the sites.")

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """Return the answers in the folder; raise WaitingForAnswers if some are missing."""
        from fedcdh.privacy.secure_aggregation.session import REQUEST_FILE_NAMES

        found = self.folder.replies(kind, check)
        if (missing := [client for client in clients if client not in found]) and (self.new or not self.go_on):
            path = self.folder.folder / REQUEST_FILE_NAMES[type(request)]
            raise WaitingForAnswers(
                f"Answers of {', '.join(missing)} to {path} are missing. Put them into {self.folder.folder} and run "
                "this command again; with --go-on, it continues without them."
            )
        return {client: answer for client, answer in found.items() if client in clients}
