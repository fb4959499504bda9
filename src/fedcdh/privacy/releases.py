"""What a site does with its rows when it takes part in a study, under its policy, before a byte leaves it.

By file or online, a person at a terminal or a program that answers a server: what may leave is decided here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fedcdh.data.sources import ColumnKind, CompleteCaseSource, TableSource, check_rereadable, is_partitioned, to_source
from fedcdh.errors import SettingsError, SignatureError
from fedcdh.messages.profile_file import ProfileMessage
from fedcdh.messages.signing import SigningKey, key_fingerprint
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.privacy.differential.mechanism import add_noise, add_noise_share
from fedcdh.privacy.disclosure.joint_risk import assess_joint_risk
from fedcdh.privacy.disclosure.leverage import ReplicateLeverage
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows
from fedcdh.privacy.ledger import ReleaseLedger, default_ledger
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.summaries.accumulator import check_summary_arguments, summarize
from fedcdh.summaries.bootstrap import bootstrap_summaries, check_replicate_count
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.joint import JointRequest, JointSummary, RoundBudget, answer_request
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile, profile
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import validate_replicate, validate_summary

NO_RENAMES: Mapping[str, str] = MappingProxyType({})


def invert_renames(renames: Mapping[str, str]) -> dict[str, str]:
    """From the study's names to this site's own, where they differ; renames lead the other way."""
    return {ours: theirs for theirs, ours in renames.items()}


def release_profile(
    rows: Any,
    client: str,
    policy: Policy,
    own: Mapping[str, str] = NO_RENAMES,
    *,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    draft: str | None = None,
    complete: bool = False,
    key: SigningKey | None = None,
    look: Callable[[Profile], None] = lambda profile: None,
    gate: ReleaseGate | None = None,
) -> ProfileMessage:
    """The profile of this site's rows, if the policy lets it leave; `draft` is the plan whose variables it follows.

    If only `complete` rows are described, a summary of the same variables will be of the same rows. `look` may refuse
    when it sees the profile.
    """
    if complete:
        source = to_source(rows, f"client {client!r}", only=variables)
        there = source.kinds()
        chosen = there if variables is None else {name: there[name] for name in variables if name in there}
        rows = CompleteCaseSource(source, {**chosen, **{n: kind for n, kind in (kinds or {}).items() if n in chosen}})
    found = profile(rows, client, variables=variables, kinds=kinds)
    policy.check_profile(found, own)
    if gate is not None and not policy.research:
        policy.check_partial_rows(_count_values_in_partial_rows(rows, found))
    look(found)
    if gate is not None:
        gate.record_profile(rows, found, policy, own)
    return ProfileMessage(found, draft, key.public if key else None)


def _count_values_in_partial_rows(rows: Any, found: Profile) -> dict[str, int]:
    """For every column, how many values it has in rows that lack another."""
    values = dict.fromkeys(found.columns, 0)
    if not any(column.missing for column in found.columns.values()):
        return values
    kinds = {name: column.kind for name, column in found.columns.items()}
    for table in to_source(rows, f"client {found.client!r}", only=list(kinds)).batches(kinds):
        gaps = np.logical_or.reduce([column.missing for column in table.columns.values()])
        for name, column in table.columns.items():
            values[name] += int((gaps & ~column.missing).sum())
    return values


def check_invitation(
    study: Study,
    signed_by: str | None,
    client: str,
    policy: Policy,
    own: Mapping[str, str] = NO_RENAMES,
    key: SigningKey | None = None,
) -> None:
    """Refuses, before any row is read, a plan that the policy does not accept, or that names another key for us."""
    policy.check_plan(study.plan, signed_by, own)
    expected = study.keys.get(client)
    if expected is not None and (key is None or key.public != expected):
        found = f"the key here is {key_fingerprint(key.public)}" if key else "there is no key here"
        raise SignatureError(
            f"the plan names the key {key_fingerprint(expected)} for {client}, but {found}; name the right one with --key, "
            "or ask the coordinator for a plan with your new key"
        )


def release_summary(
    rows: Any,
    plan: StudyPlan,
    client: str,
    policy: Policy,
    own: Mapping[str, str] = NO_RENAMES,
    *,
    max_missing_share: float = 0.5,
    copies: int = 0,
    masked: bool = False,
    look: Callable[[Summary], None] = lambda summary: None,
    gate: ReleaseGate | None = None,
    workers: int = 1,
) -> tuple[Summary, tuple[Summary, ...]]:
    """The summary of this site's rows and its bootstrap copies, if policy and ledger let all of them leave.

    They are checked as the server will: a site should not learn from others that something is wrong. `look` may refuse
    when it sees the summary. Where there is a gate, they are in the ledger when this returns, and may leave; `masked`
    says that the summary will do so under masks. Rows are read once, by so many `workers` (threads), or where they lie;
    copies, which are drawn row by row, are made by one.
    """
    if copies:
        check_replicate_count(plan, copies)
        check_rereadable(rows, f"client {client!r}", "a summary with bootstrap copies")
    check_summary_arguments(plan, client, max_missing_share)
    if plan.noise is not None:
        return _release_noisy_summary(
            rows, plan, plan.noise, client, policy, own, max_missing_share, look, gate, workers
        ), ()
    found = scan_rows(rows, plan, client, _scan_options(policy, gate, copies), workers=workers)
    summary = found.summary(max_missing_share)
    policy.check_summary(summary, plan, found.outermost.values, own, copies=copies, cells=found.few.cells)
    if found.lonely is not None:
        policy.check_row_leverage(found.lonely.largest(summary), copies)
    drawn = _draw_replicates(rows, plan, summary, policy, copies)
    validate_summary(summary, plan)
    look(summary)
    if gate is not None and found.seen is not None:
        gate.record_summary(summary, plan, found.seen, policy, own, copies=copies, masked=masked)
    return summary, drawn


def _scan_options(policy: Policy, gate: ReleaseGate | None, copies: int = 0) -> ScanOptions:
    """What policy and ledger have to know about the rows."""
    secret = None if gate is None else gate.ledger.secret()
    return (
        ScanOptions(secret=secret) if policy.research else ScanOptions(policy.few_values, policy.lonely(copies), secret)
    )


def _release_noisy_summary(
    rows: Any,
    plan: StudyPlan,
    noise: DPParameters,
    client: str,
    policy: Policy,
    own: Mapping[str, str],
    max_missing_share: float,
    look: Callable[[Summary], None],
    gate: ReleaseGate | None,
    workers: int,
) -> Summary:
    """The summary with its noise; or with its part, where sites add noise together and only masked sums leave.

    The policy looks at what would leave without noise, by the same plan otherwise: its rules stay what they are.
    """
    check_rereadable(rows, f"client {client!r}", "a summary with noise")
    plain = replace(plan, noise=None)
    found = scan_rows(rows, plain, client, _scan_options(policy, gate), workers=workers)
    exact = found.summary(max_missing_share)
    policy.check_summary(exact, plain, found.outermost.values, own, cells=found.few.cells, noise=noise)
    if found.lonely is not None:
        policy.check_row_leverage(found.lonely.largest(exact), noise=noise)
    exact = summarize(rows, plan, client, max_missing_share=max_missing_share, workers=workers)
    summary = add_noise(exact, plan) if noise.shared == "each" else add_noise_share(exact, plan)
    if noise.shared == "each":
        validate_summary(summary, plan)
    look(summary)
    if gate is not None and found.seen is not None:
        gate.record_noisy_summary(summary, noise, plan, found.seen, policy, own)
    return summary


def release(
    table: Any,
    plan: StudyPlan,
    client: str,
    *,
    policy: Policy | str | Path | None = None,
    ledger: str | Path | None = None,
    key: SigningKey | None = None,
    max_missing_share: float = 0.5,
    workers: int = 1,
) -> bytes:
    """The file of a client's summary, to be sent: held to the site's policy, and noted in its ledger before it returns.

    `summarize` gives the same numbers to whoever has the rows anyway; what leaves a site goes through here. `policy` is
    one, or a policy.toml; without it the defaults hold. `ledger` is the file of all that left this site, without it
    that of the command line (`docs/command-line.md`); `key` signs its entry. So many `workers` (threads) share the
    work; their number makes no difference to what leaves. DisclosureError says which rule is broken, what was found,
    what was expected and what can be done.

    >>> import tempfile
    >>> import numpy as np
    >>> from fedcdh.summaries.plan import Continuous
    >>> rows = np.random.default_rng(0).normal(60, 15, 300)
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> ledger = Path(tempfile.mkdtemp()) / "releases.jsonl"
    >>> message = release({"age": rows}, plan, "north", ledger=ledger)
    >>> message == release({"age": rows}, plan, "north", ledger=ledger)  # the same again tells nothing new
    True
    >>> release({"age": rows[1:]}, plan, "north", ledger=ledger)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: this summary must not leave after what left before, says the ledger of this site:
    - 1 or few more rows changed since release 1 ...
    """
    rules = policy if isinstance(policy, Policy) else Policy() if policy is None else Policy.from_file(Path(policy))
    gate = ReleaseGate(default_ledger() if ledger is None else ReleaseLedger(Path(ledger)), key)
    rules.check_plan(plan)
    summary, _ = release_summary(
        table, plan, client, rules, max_missing_share=max_missing_share, gate=gate, workers=workers
    )
    return pack_summary(SummaryMessage(summary, rules.research), plan)


def release_answer(
    rows: Any,
    plan: StudyPlan,
    client: str,
    policy: Policy,
    request: JointRequest,
    spent: RoundBudget,
    own: Mapping[str, str] = NO_RENAMES,
    *,
    look: Callable[[Summary], None] = lambda summary: None,
    gate: ReleaseGate | None = None,
) -> tuple[tuple[JointSummary, ...], RoundBudget]:
    """The answer of this site in a further round and its ledger afterwards, if plan and policy let it leave.

    The ledger has to be kept before the answer leaves: what is not in it must not have been told. `look` may refuse
    when it sees the summary of these rows.
    """
    check_rereadable(rows, f"client {client!r}", "an answer in a further round")
    source = _sequential_source(rows, plan, client, "an answer in a further round")
    found = scan_rows(source, plan, client, ScanOptions(secret=gate.ledger.secret() if gate else None))
    summary = found.summary(1.0)
    look(summary)
    answers, told = answer_request(source, plan, client, request, spent, summary.rows)
    policy.check_answer(plan, summary.rows, told, assess_joint_risk(source, plan, summary, answers), own)
    for answer in answers:
        answer.check(plan, summary)
    if gate is not None and found.seen is not None:
        gate.record_answer(request, answers, plan, found.seen, policy, own, spent, told)
    return answers, told


def _draw_replicates(rows: Any, plan: StudyPlan, summary: Summary, policy: Policy, copies: int) -> tuple[Summary, ...]:
    """Bootstrap copies of the summary, each held to the policy; nobody learns the seed, and nobody could tell it."""
    if not copies:
        return ()
    source, seen = (
        _sequential_source(rows, plan, summary.clients[0], "a bootstrap copy"),
        ReplicateLeverage(plan, summary),
    )
    drawn = bootstrap_summaries(source, plan, summary.clients[0], copies, secrets.randbits(128), observer=seen)
    policy.check_replicates(seen.together)
    for copy in drawn:
        policy.check_copy(copy, plan, seen.outermost[copy.copy], seen.times[copy.copy])
        validate_summary(copy, plan)
        validate_replicate(copy, summary)  # also finds rows that have changed since the summary was made
    return drawn


def _sequential_source(rows: Any, plan: StudyPlan, client: str, what: str) -> TableSource:
    """Rows for what needs all of them, one after the other."""
    if is_partitioned(rows) and not isinstance(rows, TableSource):
        raise SettingsError(
            f"{what} is made from rows in their order, which {type(rows).__name__} does not give; pass the table, or "
            "its files with fedcdh.open_tables(...)"
        )
    return to_source(rows, f"client {client!r}", only=plan.names)
