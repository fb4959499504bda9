"""Clients that leave a study or join it: a later plan by which summaries of the earlier plan stay valid.

A later plan differs from an earlier one in its clients only. It records who joined and who left. So the fingerprint of
each earlier plan can be computed from it, and a summary that names this fingerprint has the numbers that the later plan
asks for. Nobody has to be believed: another scale, level or recipe would give another fingerprint.

Secure sums are different. The sums over two sets of clients differ by single clients, so no plan with distributed noise
can be changed in this way, and a site that has helped to open a secure sum masks nothing for other clients
(`fedcdh.privacy.ledger`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fedcdh._io.text import abbreviate_list, suggest_name
from fedcdh.errors import PlanError, PlanMismatchError

if TYPE_CHECKING:
    from fedcdh.summaries.plan import StudyPlan
    from fedcdh.summaries.summary import Summary

MAX_CLIENT_CHANGES = 100
"""Changes of clients that a plan may record."""


@dataclass(frozen=True)
class ClientChange:
    """Clients that joined a study, and clients that left it, from one plan to the next.

    Parameters
    ----------
    joined : tuple of str, default ()
        Names of the clients that joined; sorted.
    left : tuple of str, default ()
        Names of the clients that left; sorted.

    Examples
    --------
    >>> ClientChange(left=("south",)).left
    ('south',)
    """

    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "joined", tuple(sorted(self.joined)))
        object.__setattr__(self, "left", tuple(sorted(self.left)))
        names = [*self.joined, *self.left]
        if not names or len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
            raise PlanError(
                f"a change of clients has the names {abbreviate_list(map(str, names))}; expected one or more different "
                "names; make the plan again"
            )

    def to_document(self) -> dict[str, Any]:
        """Return the change as a JSON object, without empty lists.

        Returns
        -------
        dict
            The lists that have names.
        """
        return {key: list(names) for key, names in asdict(self).items() if names}


def change_clients(plan: StudyPlan, *, without: Iterable[str] = (), joined: Iterable[str] = ()) -> StudyPlan:
    """Return the same plan for other clients; summaries by the given plan are valid by it.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study so far.
    without : iterable of str, default ()
        Clients that leave the study.
    joined : iterable of str, default ()
        Clients that join it.

    Returns
    -------
    StudyPlan
        The plan, which names the change.

    Raises
    ------
    PlanError
        If a client is not in the plan, is in it already, or none would be left; or if noise is distributed, so that
        only secure sums can be made by the plan.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("east", "north", "south"))
    >>> later = change_clients(plan, without=["east"])
    >>> later.clients, plan.fingerprint in later.fingerprints
    (('north', 'south'), True)
    """
    leaving, joining = sorted(set(without)), sorted(set(joined))
    check_client_names(leaving, plan.clients)
    if present := sorted(set(joining) & plan.client_set):
        raise PlanError(
            f"client {present[0]!r} is in the plan already; expected the name of another client; leave it out",
            parameter="joined",
        )
    if plan.noise is not None and plan.noise.distributed:
        raise PlanError(
            "the plan has distributed noise, which only a secure sum can add up; its clients cannot change, because "
            "the sums over two sets of clients differ by the data of single clients; continue the secure sum without "
            "the "
            "clients that dropped out",
            parameter="without",
        )
    left = plan.client_set - set(leaving)
    if not left | set(joining):
        raise PlanError("no client would be left in the plan; expected one or more; keep a client", parameter="without")
    change = ClientChange(tuple(joining), tuple(leaving))
    return replace(plan, clients=(*left, *joining), client_changes=(*plan.client_changes, change))


def check_client_names(names: Collection[str], clients: Sequence[str], parameter: str = "without") -> None:
    """Refuse names that are not those of clients.

    Parameters
    ----------
    names : collection of str
        Names that were given.
    clients : sequence of str
        Clients of the plan.
    parameter : str, default "without"
        The parameter by which they were given.

    Raises
    ------
    PlanError
        If a name is not that of a client; all of them are named.

    Examples
    --------
    >>> check_client_names(["nort"], ["north", "south"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.PlanError: the plan has no client 'nort', did you mean 'north'?; ...
    """
    if unknown := sorted(set(names) - set(clients)):
        found = ", ".join(f"{name!r}{suggest_name(name, clients)}" for name in unknown)
        raise PlanError(
            f"the plan has no client {found}; expected some of {abbreviate_list(clients)}; correct the name",
            parameter=parameter,
        )


def iter_earlier_plans(plan: StudyPlan) -> Iterator[StudyPlan]:
    """Yield the plans from which this one was made, the latest first.

    Parameters
    ----------
    plan : StudyPlan
        A plan.

    Yields
    ------
    StudyPlan
        A plan that differs from it in its clients only.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> [earlier == plan for earlier in iter_earlier_plans(change_clients(plan, joined=["east"]))]
    [True]
    """
    clients = set(plan.clients)
    for count in reversed(range(len(plan.client_changes))):
        change = plan.client_changes[count]
        clients = (clients - set(change.joined)) | set(change.left)
        yield replace(plan, clients=tuple(clients), client_changes=plan.client_changes[:count])


def check_client_changes(clients: Collection[str], changes: Sequence[ClientChange]) -> None:
    """Refuse changes that cannot have led to these clients.

    Parameters
    ----------
    clients : collection of str
        Clients of the plan.
    changes : sequence of ClientChange
        Changes that it records, the first one first.

    Raises
    ------
    PlanError
        If a client that joined is not there, or one that left is.

    Examples
    --------
    >>> check_client_changes(["north"], [ClientChange(left=("south",))])
    """
    if len(changes) > MAX_CLIENT_CHANGES:
        raise PlanError(
            f"the plan records {len(changes)} changes of its clients; expected at most {MAX_CLIENT_CHANGES}; make a "
            "new plan"
        )
    present = set(clients)
    for change in reversed(changes):
        if not set(change.joined) <= present or present & set(change.left):
            raise PlanError(
                "the plan records changes of its clients that cannot have led to its present ones; ask the coordinator "
                "for the file again"
            )
        present = (present - set(change.joined)) | set(change.left)
    if not present:
        raise PlanError("the plan records changes from a plan without clients; ask the coordinator for the file again")


def adopt_summary(summary: Summary, plan: StudyPlan) -> Summary:
    """Return a summary by an earlier plan as one by its later plan; any other is returned as it is.

    Parameters
    ----------
    summary : Summary
        Summary of a client.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    Summary
        The summary, which names the plan if the plan follows the one that it named.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> later = change_clients(plan, without=["south"])
    >>> adopt_summary(summarize({"age": [50, 61]}, plan, "north"), later).plan == later.fingerprint
    True
    """
    if summary.plan == plan.fingerprint or summary.plan not in plan.fingerprints:
        return summary
    return replace(summary, plan=plan.fingerprint)


def belongs_to(original: str, summary: Summary, plan: StudyPlan) -> bool:
    """Return whether a bootstrap replicate that names this digest was drawn from the rows of a summary.

    Parameters
    ----------
    original : str
        Digest that the replicate names.
    summary : Summary
        Summary by this plan.
    plan : StudyPlan
        Plan of the study. The replicate may follow an earlier one, whose fingerprint is a part of the digest.

    Returns
    -------
    bool
        True if one of the plans gives this digest.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> summary = summarize({"age": [50, 61]}, plan, "north")
    >>> belongs_to(summary.digest, summary, plan)
    True
    """
    if original == summary.digest:
        return True
    return any(replace(summary, plan=one).digest == original for one in plan.fingerprints - {summary.plan})


def find_left_clients(plan: StudyPlan) -> tuple[str, ...]:
    """Return the clients of earlier plans that are not in this one.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    tuple of str
        Their names, sorted.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> find_left_clients(change_clients(plan, without=["south"]))
    ('south',)
    """
    return tuple(sorted({name for change in plan.client_changes for name in change.left} - plan.client_set))


def describe_plan_mismatch(whose: str, found: str, plan: StudyPlan, advice: str) -> PlanMismatchError:
    """Return the error for something that follows another plan.

    Parameters
    ----------
    whose : str
        What follows the other plan, such as "the summary of north".
    found : str
        Fingerprint of the plan that it follows.
    plan : StudyPlan
        Plan of the study.
    advice : str
        What to do.

    Returns
    -------
    PlanMismatchError
        The error.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> "follows plan 000000000000" in str(describe_plan_mismatch("it", "0" * 64, plan, "ask"))
    True
    """
    return PlanMismatchError(f"{whose} follows plan {found[:12]}, not this plan ({plan.fingerprint[:12]}); {advice}")
