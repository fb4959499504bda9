"""`fedcdh secure-sum join`: a site's side of a secure sum, by file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import (
    AsJson,
    ClientName,
    ColumnMapFile,
    Decimal,
    Delimiter,
    Encoding,
    KeyFile,
    LedgerFile,
    MaxMissingShare,
    MissingMarkers,
    NoDisclosureControl,
    PlanFile,
    PolicyFile,
    Quiet,
    Workers,
    build_csv_style,
    open_data,
)
from fedcdh.errors import SecureAggregationError, SettingsError, SignatureError

if TYPE_CHECKING:
    from fedcdh.cli._site_setup import SiteSetup
    from fedcdh.data.readers import TableFiles
    from fedcdh.privacy.secure_aggregation.client import ResidualPart
    from fedcdh.privacy.secure_aggregation.messages import SecAggTerms
    from fedcdh.summaries.summary import Summary

ANSWER_SUFFIXES = {
    "terms": "keys",
    "roster": "shares",
    "delivery": "masked",
    "present": "confirmed",
    "confirmations": "opened",
}
"""The suffix of a site's answer to each round."""
STATE_FILE_NAME = "masking-state-{}"
"""It does not begin with the client's name: who sends NAME.* must not send secrets."""


@report_errors
def join_command(
    plan: PlanFile,
    request: Annotated[Path, typer.Argument(help="The coordinator's file of this round.", metavar="ROUND")],
    client: ClientName,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Table files, as for summarize; needed in the third round only.", metavar="[DATA...]"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Answer to write.", metavar="FILE", show_default="NAME.keys, NAME.shares, ..."
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="This site's secrets between rounds.",
            metavar="FILE",
            show_default=STATE_FILE_NAME.format("NAME.json"),
        ),
    ] = None,
    column_map: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: MissingMarkers = None,
    max_missing_share: MaxMissingShare = 0.5,
    workers: Workers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    no_disclosure_control: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Answer one round of a secure sum at a site.

    The coordinator learns the sum of all sites' summaries, or of their answers to a request, and no single one. Send
    back the one file that is written.

    For example:

      fedcdh secure-sum join study.plan.json rounds/1-terms.json --client north --key north.key

      fedcdh secure-sum join study.plan.json rounds/3-delivery.json data.csv --client north --key north.key
    """
    from fedcdh.cli._outputs import check_replaceable, default_file_name, refuse_input_as_output
    from fedcdh.cli._site_setup import SiteOptions, set_up_site
    from fedcdh.privacy.secure_aggregation.client import ResidualPart
    from fedcdh.privacy.secure_aggregation.client_states import ClientStates
    from fedcdh.privacy.secure_aggregation.messages import SecAggTerms

    out = Output(quiet, as_json)
    site = set_up_site(plan, client, out, SiteOptions(policy, ledger, key, column_map, no_disclosure_control))
    if site.signing is None:
        raise SignatureError(
            "There is no key of this site, which a secure sum needs. Make one with `fedcdh keys new`, or name it with "
            "--key."
        )
    asked = _read_round(request, site)
    states = ClientStates(state or Path(STATE_FILE_NAME.format(default_file_name(client, ".json"))))
    memory = states.find(site.study, client, asked)
    target = output or default_file_name(client, f".{ANSWER_SUFFIXES[asked.kind]}")

    def open_rows(progress: Any) -> TableFiles:
        if not files:
            raise SettingsError("No data were named, and this round is about the rows. Name them after ROUND.")
        source = open_data(files, column_map, build_csv_style(delimiter, decimal, encoding, missing), progress)
        for path in (target, memory.path):
            refuse_input_as_output(path, [plan, request, *(file.path for file in source.files)])
        return source

    refuse_input_as_output(target, [plan, request])
    check_replaceable(target, "masking")
    if isinstance(asked, SecAggTerms):
        states.check_terms(site.study, client, asked, site.gate)
    summarize = _summarizer(out, site, client, open_rows, max_missing_share, workers)
    provide = _answerer(out, site, client, open_rows)
    residuals = ResidualPart(states.of_summaries.read(site.study, client), provide)
    _answer_round(out, site, client, asked, memory, summarize, residuals, target)


def _read_round(request: Path, site: SiteSetup) -> Any:
    """Return the coordinator's message of this round."""
    from fedcdh._io.storage import read_regular_file
    from fedcdh.cli._inputs import naming_file
    from fedcdh.cli._keys import find_signer
    from fedcdh.privacy.secure_aggregation.codec import max_message_bytes, read_message
    from fedcdh.privacy.secure_aggregation.messages import REQUEST_TYPES

    most = max(max_message_bytes(site.study.plan, kind) for kind in REQUEST_TYPES)
    content = read_regular_file(request, most, "the file of a round", refuse=SecureAggregationError)
    with naming_file(request):
        asked: Any = read_message(content, site.study.plan, *REQUEST_TYPES)
        site.policy.check_request(find_signer(request, content, "masking"))
    return asked


def _summarizer(
    out: Output,
    site: SiteSetup,
    client: str,
    open_rows: Callable[[Any], TableFiles],
    max_missing_share: float,
    workers: int | None,
) -> Callable[[], tuple[Summary, bool]]:
    """Return the function that computes this site's summary, called only in the round that needs it."""
    from fedcdh._runtime.cpu_count import default_workers
    from fedcdh.cli._site_settings import announcing_ledger
    from fedcdh.privacy.releases import ReleaseContext, release_summary

    def summarize() -> tuple[Summary, bool]:
        with announcing_ledger(site.gate, out), out.progress("secure-sum") as advance:
            threads = workers or default_workers(site.study.plan.layout.n_columns)
            context = ReleaseContext(client, site.policy, site.own_names, site.gate, max_missing_share, threads)
            summary, _ = release_summary(open_rows(advance), site.study.plan, context, masked=True)
        return summary, site.policy.disclosure_control

    return summarize


def _answerer(
    out: Output, site: SiteSetup, client: str, open_rows: Callable[[Any], TableFiles]
) -> Callable[[SecAggTerms], tuple[Any, bool]]:
    """Return the function that answers the request in the terms, called only in the round that needs it."""
    from fedcdh.cli._site_settings import announcing_ledger
    from fedcdh.privacy.ledger.gate import spent_round_budget
    from fedcdh.privacy.releases import ReleaseContext, release_answer

    def answer(terms: SecAggTerms) -> tuple[Any, bool]:
        assert terms.residuals is not None
        plan = site.study.plan
        spent = spent_round_budget(site.gate.ledger.entries(), plan)
        context = ReleaseContext(client, site.policy, site.own_names, site.gate)
        with announcing_ledger(site.gate, out), out.progress("secure-sum") as advance:
            answers, total = release_answer(
                open_rows(advance), plan, context, terms.residuals, spent, masked_with=terms.threshold - 1
            )
        out.say(f"{total.rounds} of {plan.max_rounds} rounds and {total.bytes} of {plan.max_bytes} bytes are used up.")
        return answers, site.policy.disclosure_control

    return answer


def _answer_round(
    out: Output,
    site: SiteSetup,
    client: str,
    asked: Any,
    memory: Any,
    summarize: Callable[[], tuple[Summary, bool]],
    residuals: ResidualPart,
    target: Path,
) -> None:
    """Compute the answer, write it, and say what to do next."""
    from fedcdh._io.storage import write_atomically
    from fedcdh.privacy.secure_aggregation.client import SecAggClient
    from fedcdh.privacy.secure_aggregation.messages import UnmaskingShares, hash_study

    assert site.signing is not None
    limits = site.policy.secure_sum_limits()
    member = SecAggClient(site.study, client, site.signing, residuals=residuals, limits=limits)
    reply = memory.answer(member, asked, summarize, site.gate)
    write_atomically(target, reply.to_bytes())
    _explain_round(out, asked, hash_study(site.study), site.study.plan.clients)
    out.say(f"Wrote {target} ({len(reply.to_bytes())} bytes). Send it to the coordinator.")
    if isinstance(reply, UnmaskingShares):
        out.say(f"This site is done. {memory.path} holds no secrets any more; keep it until the study is over.")
    else:
        out.say(f"Keep {memory.path} secret and in its place.")
    out.result({"client": client, "round": reply.kind, "bytes": len(reply.to_bytes()), "files": [str(target)]})


def _explain_round(out: Output, asked: Any, plan_file: str, clients: tuple[str, ...]) -> None:
    """Say what this round is about, and what people should compare over another channel than the coordinator's."""
    from fedcdh.privacy.secure_aggregation.messages import Roster, SecAggTerms, SurvivorList
    from fedcdh.summaries.opened_by_sums import describe_opened, describe_opened_mixtures

    if isinstance(asked, SecAggTerms) and asked.residuals is not None:
        out.say(
            f"This site agrees to add its answers about the residuals of {len(asked.residuals.queries)} regressions to "
            f"a secure sum that {asked.threshold} sites must help to open. The coordinator will learn the sum.",
        )
    elif isinstance(asked, SecAggTerms):
        groups = sorted(set(asked.groups.values()))
        known = f"every group ({', '.join(groups)})" if groups else "every site"
        learned = f"for {known} {describe_opened()}"
        if asked.mixtures:
            learned = describe_opened_mixtures(asked.signs_of(clients, clients))
        out.say(
            f"This site agrees to a secure sum that {asked.threshold} sites must help to open. The coordinator will "
            f"learn the sum, and {learned}.",
            f"Compare this plan file with the other sites, for example by telephone: {format_digest(plan_file)}. "
            "If all have the same, all know the same keys.",
        )
    elif isinstance(asked, Roster):
        out.say(f"Taking part: {', '.join(asked.clients)}. Session {format_digest(asked.digest)}.")
    elif isinstance(asked, SurvivorList):
        out.say(f"This site has signed that the sum is of {', '.join(asked.clients)}, and signs no other list.")


def format_digest(digest: str) -> str:
    """Return the first 128 bits in groups of four digits, for people to compare."""
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))
