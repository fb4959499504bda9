"""Rules for a client that answers requests without a person: it must not be asked until it has released everything.

Every further plan looks at the same rows in another way, and two answers to one plan differ by the rows that changed
in between. An unattended client therefore answers a limited number of plans, and each of them, like each description
of a column, with the same content every time. What the ledger holds may leave again; the rest is for people to decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedcdh.errors import DisclosureError
from fedcdh.privacy.ledger.record import DESCRIPTIONS_KEY, SUMMARY_KINDS, LedgerEntry, Release


def check_unattended(new: Release, earlier: Sequence[LedgerEntry], max_plans: int) -> None:
    """Refuse a release that an unattended client may not make.

    Releases without disclosure control do not count, nor do those of other clients in the same ledger.

    Parameters
    ----------
    new : Release
        What is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.
    max_plans : int
        Largest number of plans that the client answers.

    Raises
    ------
    DisclosureError
        If the plan or the column was released before with other content, or if there are too many plans.

    Examples
    --------
    >>> first = Release("summary", "north", "a" * 64, "0" * 64, rows=500, numbers=12)
    >>> check_unattended(first, [], max_plans=1)
    >>> earlier = [LedgerEntry(1, "2026-01-01", first)]
    >>> second = Release("summary", "north", "b" * 64, "0" * 64, rows=500, numbers=12)
    >>> check_unattended(second, earlier, max_plans=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: This client has released summaries by 1 plans...
    """
    own = [entry for entry in earlier if entry.release.client == new.client]
    controlled = [entry for entry in own if entry.release.disclosure_control]
    if new.kind == "profile":
        for what, number in _changed_descriptions(new, controlled):
            raise DisclosureError(_describe_change(what, number))
    if new.kind not in SUMMARY_KINDS:
        return
    plans: dict[str, list[LedgerEntry]] = {}
    for entry in controlled:
        if entry.release.kind in SUMMARY_KINDS:
            plans.setdefault(entry.release.plan, []).append(entry)
    if new.plan in plans:
        check_same_content(new.plan, new.digest, plans[new.plan])
    elif len(plans) >= max_plans:
        raise DisclosureError(
            f"This client has released summaries by {len(plans)} plans. Unattended, it releases by at most {max_plans} "
            "plans about the same rows. If the person responsible for data protection agrees, raise max_plans in "
            "site.toml"
        )


def check_same_content(plan: str, digest: str, earlier: Sequence[LedgerEntry]) -> None:
    """Refuse other content than that which was released by the same plan.

    Parameters
    ----------
    plan : str
        Fingerprint of the plan.
    digest : str
        Digest of the summary of the present rows.
    earlier : sequence of LedgerEntry
        Entries of summaries by this plan.

    Raises
    ------
    DisclosureError
        If no entry has this digest.
    """
    if all(entry.release.digest != digest for entry in earlier):
        raise DisclosureError(_describe_change(f"plan {plan[:12]}", earlier[-1].number))


def _changed_descriptions(new: Release, earlier: Sequence[LedgerEntry]) -> Iterator[tuple[str, int]]:
    """Yield the columns that the profile describes otherwise than before, with the number of that release."""
    descriptions = new.details.get(DESCRIPTIONS_KEY, {})
    for entry in earlier:
        known = entry.release.details.get(DESCRIPTIONS_KEY, {}) if entry.release.kind == "profile" else {}
        for name, digest in descriptions.items():
            if known.get(name, digest) != digest:
                yield f"column {name[:80]}", entry.number


def _describe_change(what: str, number: int) -> str:
    return (
        f"For {what} this client would release other numbers than in release {number} of its ledger, so its rows have "
        "changed. Expected the same rows: the difference of the two releases would disclose single rows. Restore the "
        "rows of that release; or, if the person responsible for data protection agrees, make the release by hand "
        "(fedcdh profile, fedcdh summarize), or ask for a plan of another name and raise max_plans in site.toml"
    )
