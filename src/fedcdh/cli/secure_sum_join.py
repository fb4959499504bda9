"""A masked sum by file at a site: whatever the round asks for, one file to send back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh._runtime.cpu_count import default_workers
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import (
    check_replaceable,
    default_file_name,
    find_signer,
    naming_file,
)
from fedcdh.cli._options import (
    AsJson,
    ClientName,
    ColumnMapFile,
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
    Workers,
    build_csv_style,
    open_data,
    refuse_input_as_output,
)
from fedcdh.cli._site_setup import set_up_site
from fedcdh.errors import SecureAggregationError, SettingsError, SignatureError
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
from fedcdh.privacy.secure_aggregation.codec import max_message_bytes, read_message
from fedcdh.privacy.secure_aggregation.messages import (
    REQUEST_TYPES,
    Roster,
    SecAggTerms,
    SurvivorList,
    UnmaskingShares,
    hash_study,
)
from fedcdh.summaries.summary import Summary

ANSWER_SUFFIXES = {
    "terms": "keys",
    "roster": "shares",
    "delivery": "masked",
    "present": "confirmed",
    "confirmations": "opened",
}
"""What a site answers to what; files are called so."""
STATE_FILE_NAME = "masking-state-{}"
"""It begins unlike all that is mailed: who sends NAME.* sends no secrets."""


@report_errors
def join_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="The coordinator's file of this round.", metavar="ROUND")],
    client: ClientName,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Table files, as for summarize; only where the round needs them.", metavar="DATA"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The answer; else NAME.keys, NAME.shares, ...")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help=f"What this site remembers from round to round; else {STATE_FILE_NAME.format('NAME.json')}.",
            metavar="FILE",
        ),
    ] = None,
    renames: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    max_missing_share: Annotated[
        float, typer.Option(help="The share of rows that may be left out for missing values.", metavar="SHARE")
    ] = 0.5,
    workers: Workers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    research: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Take part in a masked sum: the coordinator learns the sum of all sites' summaries, and no single one.

    Do whatever the coordinator's file of this round asks for, and send back the one file that is written.

    Examples:

      fedcdh mask study.plan.json 1-terms.json --client north --key north.key

      fedcdh mask study.plan.json 3-delivery.json data.csv --client north --key north.key
    """
    out = Output(quiet, as_json)
    study, _, rules, signing, gate, own = set_up_site(
        plan, client, out, policy=policy, research=research, ledger=ledger, key=key, renames=renames
    )
    if signing is None:
        raise SignatureError(
            "a masked sum needs the key of this site; make one with `fedcdh keygen`, name it with --key"
        )
    most = max(max_message_bytes(study.plan, kind) for kind in REQUEST_TYPES)
    content = read_regular_file(request, most, "the file of a round", refuse=SecureAggregationError)
    with naming_file(request):
        asked: Any = read_message(content, study.plan, *REQUEST_TYPES)
        rules.check_request(find_signer(request, content, "masking"))
    memory = ClientStateFile(state or Path(STATE_FILE_NAME.format(default_file_name(client, ".json"))))
    target = output or default_file_name(client, f".{ANSWER_SUFFIXES[asked.kind]}")

    def rows() -> tuple[Summary, bool]:
        if not files:
            raise SettingsError("this round is about the rows; name the data after the file of the round")
        with out.progress("mask") as advance:
            source = open_data(files, renames, build_csv_style(delimiter, decimal, encoding, missing), advance)
            for path in (target, memory.path):
                refuse_input_as_output(path, [plan, request, *(file.path for file in source.files)])
            threads = workers or default_workers(study.plan.columns)
            context = ReleaseContext(client, rules, own, gate, max_missing_share, threads)
            summary, _ = release_summary(source, study.plan, context, masked=True)
        return summary, not rules.disclosure_control

    refuse_input_as_output(target, [plan, request])
    check_replaceable(target, "masking")
    if isinstance(asked, SecAggTerms):
        gate.check_secure_sum_state(study.plan, client, memory.path)
    reply = memory.answer(SecAggClient(study, client, signing), asked, rows)
    write_atomically(target, reply.to_bytes())
    _explain_round(out, asked, hash_study(study))
    out.say(f"Wrote {target} ({len(reply.to_bytes())} bytes). Send it to the coordinator.")
    if isinstance(reply, UnmaskingShares):
        out.say(f"This site's part is done. {memory.path} holds no secrets any more; keep it until the study is over.")
    else:
        out.say(f"Keep {memory.path} secret, and where it is.")
    out.result({"client": client, "round": reply.kind, "bytes": len(reply.to_bytes()), "files": [str(target)]})


def _explain_round(out: Output, asked: Any, plan_file: str) -> None:
    """What this round was about, and what people have to compare by a way that does not lead through the server."""
    if isinstance(asked, SecAggTerms):
        groups = sorted(set(asked.groups.values()))
        known = f"every group ({', '.join(groups)})" if groups else "every site"
        out.say(
            f"This site agrees to a masked sum that {asked.threshold} sites have to open. The coordinator will learn "
            f"the sum, and rows and means of {known}.",
            f"Compare with the other sites, by telephone say: plan file {format_digest(plan_file)}. If all have the same, "
            "all know the same keys.",
        )
    elif isinstance(asked, Roster):
        out.say(f"Taking part: {', '.join(asked.clients)}. Session {format_digest(asked.digest)}.")
    elif isinstance(asked, SurvivorList):
        out.say(f"This site has signed that the sum is of {', '.join(asked.clients)}, and signs no other list.")


def format_digest(digest: str) -> str:
    """The first 128 bits, for people to compare."""
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))
