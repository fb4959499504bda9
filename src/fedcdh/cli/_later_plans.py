"""Plans of a study whose clients change: `fedcdh plan --like`, and clients that are left out of a result."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import naming_file, read_study
from fedcdh.cli._keys import describe_signature, read_public_key
from fedcdh.errors import PlanError, SettingsError, SummaryError

if TYPE_CHECKING:
    from fedcdh.messages.study_file import Study
    from fedcdh.summaries.plan import StudyPlan


def make_later_study(
    like: Path, without: Collection[str], joined: Collection[str], keys: Mapping[str, str], out: Output
) -> Study:
    """Return the study of a plan file, for other clients."""
    if not without and not joined:
        raise SettingsError(
            f"--like {like} was given, and no client that leaves or joins. Name clients with --without or --with; for "
            "the same clients, use the plan itself."
        )
    study, signer = read_study(like)
    read = {client: read_public_key(text) for client, text in keys.items()}
    with naming_file(like):
        later = study.change_clients(without=without, joined=joined, keys=read)
    out.say(f"Like plan {study.plan.fingerprint[:12]}, {describe_signature(signer)}.")
    return later


def refuse_with_like(given: Mapping[str, object]) -> None:
    """Refuse options that would change more of a plan than its clients."""
    if named := [option for option, value in given.items() if value]:
        raise SettingsError(
            f"--like was given together with {abbreviate_list(named)}. A plan like another one changes the clients "
            "only, so that summaries stay valid. Leave out one or the other."
        )


def refuse_without_like(without: Collection[str], joined: Collection[str]) -> None:
    """Refuse changes of clients where no plan is named that is changed."""
    if without or joined:
        option = "--without" if without else "--with"
        raise SettingsError(
            f"{option} was given, and no plan whose clients change. Name that plan with --like; a new plan has the "
            "clients of its profiles and of its declaration."
        )


def say_later_plan(out: Output, study: Study, output: Path, joined: Collection[str]) -> None:
    """Print which summaries stay valid, and who has to do something."""
    stay = [client for client in study.plan.clients if client not in joined]
    out.say(
        f"Summaries that {abbreviate_list(stay)} sent by the earlier plan stay valid: these sites need to send nothing "
        "again."
    )
    if joined:
        out.say(f"Send the plan to {abbreviate_list(sorted(joined))}, and ask for summaries by it.")
    out.say(
        f"Next: fedcdh discover {output} *.summary",
        "If a secure sum was opened by the earlier plan, make no second one: their difference would disclose what the "
        "sites sent that left or joined. The sites refuse it.",
    )


def check_left_out(names: Collection[str], plan: StudyPlan) -> frozenset[str]:
    """Return the clients to leave out, which have to be in the plan."""
    from fedcdh.summaries.client_changes import check_client_names

    check_client_names(names, plan.clients)
    if set(names) >= plan.client_set:
        raise PlanError("All clients of the plan were left out. Expected one or more that stay.", parameter="without")
    return frozenset(names)


def refuse_missing(
    present: Collection[str], plan: StudyPlan, without: Collection[str], file: Path, command: str
) -> None:
    """Refuse to go on while a client is missing; say how to go on without it."""
    lacking = [client for client in plan.clients if client not in {*present, *without}]
    if not lacking:
        return
    options = " ".join(f"--without {shlex.quote(client)}" for client in (*sorted(without), *lacking)[:5])
    dots = " ..." if len(without) + len(lacking) > 5 else ""
    it = "it" if len(lacking) == 1 else "them"
    raise SummaryError(
        f"There is no summary from client {abbreviate_list(lacking)}, which the plan names. Expected one of every "
        "client. "
        f"Wait for {it}, or leave {it} out: {command} {options}{dots}. To let the plan itself go on without {it}: "
        "fedcdh "
        f"plan --like {file} {options}{dots} -o NEW.plan.json; by that plan, the summaries that have come stay valid."
    )
