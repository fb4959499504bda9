"""A masked sum by file at a site: whatever the round asks for, one file to send back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedcdh._io.storage import read_regular, write_whole
from fedcdh._runtime.cpu_count import usual_workers
from fedcdh.cli._console import Output
from fedcdh.cli._errors import speaking
from fedcdh.cli._inputs import (
    blaming,
    file_name,
    replaceable,
    signer_of,
)
from fedcdh.cli._options import (
    AsJson,
    Client,
    Decimal,
    Delimiter,
    Encoding,
    KeyFile,
    LedgerFile,
    Missing,
    PlanFile,
    PolicyFile,
    Quiet,
    Renames,
    Research,
    Workers,
    csv_style,
    not_an_input,
    open_data,
)
from fedcdh.cli._site_setup import invited
from fedcdh.errors import MaskingError, SettingsError, SignatureError
from fedcdh.privacy.releases import checked_summary
from fedcdh.privacy.secure_aggregation.client import Site
from fedcdh.privacy.secure_aggregation.client_state import StateFile
from fedcdh.privacy.secure_aggregation.codec import bytes_at_most, read
from fedcdh.privacy.secure_aggregation.messages import REQUESTS, Opened, Present, Roster, Terms, digest_of
from fedcdh.summaries.summary import Summary

ANSWERS = {
    "terms": "keys",
    "roster": "shares",
    "delivery": "masked",
    "present": "confirmed",
    "confirmations": "opened",
}
"""What a site answers to what; files are called so."""
STATE = "masking-state-{}"
"""It begins unlike all that is mailed: who sends NAME.* sends no secrets."""


@speaking
def mask_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="The coordinator's file of this round.", metavar="ROUND")],
    client: Client,
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
            help=f"What this site remembers from round to round; else {STATE.format('NAME.json')}.", metavar="FILE"
        ),
    ] = None,
    renames: Renames = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    max_dropped: Annotated[
        float, typer.Option(help="The share of rows that may be left out for missing values.", metavar="SHARE")
    ] = 0.5,
    workers: Workers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    research: Research = False,
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
    study, _, rules, signing, gate, own = invited(
        plan, client, out, policy=policy, research=research, ledger=ledger, key=key, renames=renames
    )
    if signing is None:
        raise SignatureError(
            "a masked sum needs the key of this site; make one with `fedcdh keygen`, name it with --key"
        )
    most = max(bytes_at_most(study.plan, kind) for kind in REQUESTS)
    content = read_regular(request, most, "the file of a round", refuse=MaskingError)
    with blaming(request):
        asked: Any = read(content, study.plan, *REQUESTS)
        rules.check_request(signer_of(request, content, "masking"))
    memory = StateFile(state or Path(STATE.format(file_name(client, ".json"))))
    target = output or file_name(client, f".{ANSWERS[asked.kind]}")

    def rows() -> tuple[Summary, bool]:
        if not files:
            raise SettingsError("this round is about the rows; name the data after the file of the round")
        with out.progress("mask") as advance:
            source = open_data(files, renames, csv_style(delimiter, decimal, encoding, missing), advance)
            for path in (target, memory.path):
                not_an_input(path, [plan, request, *(file.path for file in source.files)])
            summary, _ = checked_summary(
                source,
                study.plan,
                client,
                rules,
                own,
                max_dropped=max_dropped,
                masked=True,
                gate=gate,
                workers=workers or usual_workers(study.plan.columns),
            )
        return summary, rules.research

    not_an_input(target, [plan, request])
    replaceable(target, "masking")
    if isinstance(asked, Terms):
        gate.check_remembered(study.plan, client, memory.path)
    reply = memory.answer(Site(study, client, signing), asked, rows)
    write_whole(target, reply.to_bytes())
    _explain(out, asked, digest_of(study))
    out.say(f"Wrote {target} ({len(reply.to_bytes())} bytes). Send it to the coordinator.")
    if isinstance(reply, Opened):
        out.say(f"This site's part is done. {memory.path} holds no secrets any more; keep it until the study is over.")
    else:
        out.say(f"Keep {memory.path} secret, and where it is.")
    out.result({"client": client, "round": reply.kind, "bytes": len(reply.to_bytes()), "files": [str(target)]})


def _explain(out: Output, asked: Any, plan_file: str) -> None:
    """What this round was about, and what people have to compare by a way that does not lead through the server."""
    if isinstance(asked, Terms):
        groups = sorted(set(asked.groups.values()))
        known = f"every group ({', '.join(groups)})" if groups else "every site"
        out.say(
            f"This site agrees to a masked sum that {asked.threshold} sites have to open. The coordinator will learn "
            f"the sum, and rows and means of {known}.",
            f"Compare with the other sites, by telephone say: plan file {spelled(plan_file)}. If all have the same, "
            "all know the same keys.",
        )
    elif isinstance(asked, Roster):
        out.say(f"Taking part: {', '.join(asked.clients)}. Session {spelled(asked.digest)}.")
    elif isinstance(asked, Present):
        out.say(f"This site has signed that the sum is of {', '.join(asked.clients)}, and signs no other list.")


def spelled(digest: str) -> str:
    """The first 128 bits, for people to compare."""
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))
