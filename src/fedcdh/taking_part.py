"""What a site does with its rows when it takes part in a study, under its policy, before a byte leaves it.

By file or online, a person at a terminal or a program that answers a server: what may leave is decided here.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fedcdh.arrival import check, check_copy
from fedcdh.errors import SignatureError
from fedcdh.files.profiles import ProfileMessage
from fedcdh.files.signing import SigningKey, fingerprint
from fedcdh.files.studies import Study
from fedcdh.plan import StudyPlan
from fedcdh.policy import Policy
from fedcdh.profile import profile
from fedcdh.resampling import bootstrap_summaries, check_copies
from fedcdh.rounds import JointRequest, JointSummary, Ledger, answer_joint
from fedcdh.rounds.closeness import closeness
from fedcdh.sources import Kind, TableSource, source_of
from fedcdh.standing_out import Watched, WatchedCopies
from fedcdh.summary import Summary, summarize

NO_OTHER_NAMES: Mapping[str, str] = MappingProxyType({})


def own_names(renames: Mapping[str, str]) -> dict[str, str]:
    """From the study's names to this site's own, where they differ; renames lead the other way."""
    return {ours: theirs for theirs, ours in renames.items()}


def checked_profile(
    rows: Any,
    client: str,
    policy: Policy,
    own: Mapping[str, str] = NO_OTHER_NAMES,
    *,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    draft: str | None = None,
    key: SigningKey | None = None,
) -> ProfileMessage:
    """The profile of this site's rows, if the policy lets it leave; `draft` is the plan whose variables it follows."""
    found = profile(rows, client, variables=variables, kinds=kinds)
    policy.check_profile(found, own)
    return ProfileMessage(found, draft, key.public if key else None)


def check_invitation(
    study: Study,
    signed_by: str | None,
    client: str,
    policy: Policy,
    own: Mapping[str, str] = NO_OTHER_NAMES,
    key: SigningKey | None = None,
) -> None:
    """Refuses, before any row is read, a plan that the policy does not accept, or that names another key for us."""
    policy.check_plan(study.plan, signed_by, own)
    expected = study.keys.get(client)
    if expected is not None and (key is None or key.public != expected):
        found = f"the key here is {fingerprint(key.public)}" if key else "there is no key here"
        raise SignatureError(
            f"the plan names the key {fingerprint(expected)} for {client}, but {found}; name the right one with --key, "
            "or ask the coordinator for a plan with your new key"
        )


def checked_summary(
    rows: Any,
    plan: StudyPlan,
    client: str,
    policy: Policy,
    own: Mapping[str, str] = NO_OTHER_NAMES,
    *,
    max_dropped: float = 0.5,
    copies: int = 0,
) -> tuple[Summary, tuple[Summary, ...]]:
    """The summary of this site's rows and its bootstrap copies, if the policy lets all of them leave.

    They are checked as the server will: a site should not learn from others that something is wrong.
    """
    if copies:
        check_copies(plan, copies)
    source = source_of(rows, f"client {client!r}", only=plan.names)
    watched = Watched(source, plan)
    summary = summarize(watched, plan, client, max_dropped=max_dropped)
    policy.check_summary(summary, plan, watched.outermost, own, copies=copies)
    drawn = _drawn_anew(source, plan, summary, policy, copies)
    check(summary, plan)
    return summary, drawn


def checked_answer(
    rows: Any,
    plan: StudyPlan,
    client: str,
    policy: Policy,
    request: JointRequest,
    spent: Ledger,
    own: Mapping[str, str] = NO_OTHER_NAMES,
) -> tuple[tuple[JointSummary, ...], Ledger]:
    """The answer of this site in a further round and its ledger afterwards, if plan and policy let it leave.

    The ledger has to be kept before the answer leaves: what is not in it must not have been told.
    """
    source = source_of(rows, f"client {client!r}", only=plan.names)
    summary = summarize(source, plan, client, max_dropped=1.0)
    answers, told = answer_joint(source, plan, client, request, spent, summary.rows)
    policy.check_joint(plan, summary.rows, told, closeness(source, plan, summary, answers), own)
    for answer in answers:
        answer.check(plan, summary)
    return answers, told


def _drawn_anew(
    source: TableSource, plan: StudyPlan, summary: Summary, policy: Policy, copies: int
) -> tuple[Summary, ...]:
    """Bootstrap copies of the summary, each held to the policy; nobody learns the seed, and nobody could tell it."""
    if not copies:
        return ()
    seen = WatchedCopies(plan, summary)
    drawn = bootstrap_summaries(source, plan, summary.clients[0], copies, secrets.randbits(128), watch=seen)
    policy.check_together(seen.together)
    for copy in drawn:
        policy.check_copy(copy, plan, seen.outermost[copy.copy], seen.times[copy.copy])
        check(copy, plan)
        check_copy(copy, summary)  # also finds rows that have changed since the summary was made
    return drawn
