"""Plans about the same rows, side by side: whether a summary may leave after summaries by other plans.

The ledger keeps the plan of every summary. Before another one leaves, the present rows are encoded by all of these
plans, and the leverage of every row and of every small group in all columns together has to keep to limits. A plan
takes part where its columns are in the table, unless the sketches show that the earlier summary was of other rows.
Where its columns are not in the table, although rows are shared, or its plan is not known, nothing can be computed, and
the summary does not leave.

Limit: rows that have gone since the earlier summary are not at hand, and rows that have come since are encoded as if
they had been there. The rules about changed rows (`differencing`) apply to these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.data.sources import check_rereadable
from fedcdh.errors import DisclosureError, PlanError
from fedcdh.privacy.disclosure.plan_union import PlanColumns, column_names, measure_union
from fedcdh.privacy.disclosure.separated_groups import UnionLimits
from fedcdh.privacy.ledger.differencing import ReleasePair
from fedcdh.privacy.ledger.record import ENCODING_KEY, LedgerEntry, Release
from fedcdh.privacy.release_context import ReleaseContext, invert_renames
from fedcdh.summaries.plan import StudyPlan

HashText = Callable[[str], str]
"""Turns a text into a keyed hash of it."""
_REFUSED = "This summary must not leave after the releases in this site's ledger:\n- "
_WITHDRAW = "\nIf an earlier summary was never sent, withdraw it: fedcdh ledger withdraw NUMBER --reason ..."
_MAX_LISTED = 5


@dataclass(frozen=True)
class EarlierPlan:
    """The plan of an earlier summary whose rows may be those of the new one.

    Parameters
    ----------
    entry : LedgerEntry
        The earlier summary.
    columns : PlanColumns or None
        Its plan, and the columns of the present table; None if the plan is not known.
    shares_rows : bool
        Whether the two surely have rows in common.

    Examples
    --------
    >>> entry = LedgerEntry(1, "2026-01-01", Release("summary", "north", "", "0" * 64, 500, 12))
    >>> EarlierPlan(entry, None, True).columns is None
    True
    """

    entry: LedgerEntry
    columns: PlanColumns | None
    shares_rows: bool


def find_earlier_plans(
    new: Release, earlier: Sequence[LedgerEntry], local_names: Mapping[str, str], hash_level: HashText = str
) -> tuple[EarlierPlan, ...]:
    """Return the plans of earlier summaries that may be about rows of a new one; each plan once.

    Parameters
    ----------
    new : Release
        The summary that is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.
    local_names : mapping from str to str
        From the names in the present table to the site's own column names, where these differ.
    hash_level : callable, optional
        How the ledger hashes levels. Default: it keeps them.

    Returns
    -------
    tuple of EarlierPlan
        The plans, without that of the new summary.

    Examples
    --------
    >>> new = Release("summary", "north", "", "0" * 64, 500, 12)
    >>> find_earlier_plans(new, [], {})
    ()
    """
    here, known = invert_renames(local_names), {_identify(new): None}
    found = []
    for entry in earlier:
        if entry.release.kind not in ("summary", "masked") or _identify(entry.release) in known:
            continue
        pair = ReleasePair.of(new, entry)
        if pair.may_share_rows:
            known[_identify(entry.release)] = None
            found.append(EarlierPlan(entry, _read_columns(entry.release, here, hash_level), pair.shares_rows))
    return tuple(found)


def check_plan_union(
    rows: Any,
    plan: StudyPlan,
    context: ReleaseContext,
    hash_level: HashText,
    new: Release,
    earlier: Sequence[LedgerEntry],
) -> None:
    """Refuse a summary if its columns and those of earlier plans together single out a row, or a few.

    Parameters
    ----------
    rows : table or source of rows
        The rows of the summary, with any further columns of the table.
    plan : StudyPlan
        The plan of the summary.
    context : ReleaseContext
        The client and its rules.
    hash_level : callable
        How the ledger hashes levels.
    new : Release
        The summary that is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.

    Raises
    ------
    DisclosureError
        If the leverage exceeds the limit, or cannot be computed although rows are shared.
    DataError
        If the rows can be read only once.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("age"),), ("north",))
    >>> new = Release("summary", "north", plan.fingerprint, "0" * 64, 500, 12)
    >>> check_plan_union({"age": [60.0]}, plan, ReleaseContext("north"), str, new, [])  # nothing left before
    """
    if not context.policy.disclosure_control:
        return
    others = find_earlier_plans(new, earlier, context.local_names, hash_level)
    if not others:
        return
    _refuse_imputed(plan, others)
    check_rereadable(rows, context.label, "a summary after one by another plan")
    compared = _find_comparable(rows, plan, context, others)
    if not compared:
        return
    own = PlanColumns(plan.numbers, {name: name for name in plan.names})
    plans = [one.columns for one in compared if one.columns is not None]
    replicates = new.replicates + sum(one.entry.release.replicates for one in compared)
    policy, people = context.policy, context.policy.differencing_limits(plan).cell_count - 1
    limits = UnionLimits(policy.max_leverage, max(people, 1), replicates, policy.max_group_leverage)
    found = measure_union(rows, own, plans, context.client, limits)
    together = f"by all columns of this summary and of {_list_entries(compared)} together"
    if found.row > limits.of_rows:
        raise _refuse(
            f"one row has a high leverage {together} ({found.row:.4f}, expected at most {limits.of_rows:.4g}): from "
            "these summaries its values could be computed"
        )
    if found.people:
        raise _refuse(
            f"{found.people} people can be separated from all others {together}, expected no group of fewer than "
            f"{limits.max_people + 1}: from the sums over them, their values could be computed"
        )


def _refuse_imputed(plan: StudyPlan, others: Sequence[EarlierPlan]) -> None:
    """Refuse two plans about the same rows if one of them imputes: what is drawn differs, and single out rows."""
    found = [
        one
        for one in others
        if one.shares_rows and "impute" in (plan.missing, "" if one.columns is None else one.columns.plan.missing)
    ]
    if found:
        raise DisclosureError(
            f"{_REFUSED}it is about rows of {_list_entries(found)}, by another plan, and one of the two plans asks for "
            "imputed values. Expected one plan for rows with imputed values: the difference of two could disclose the "
            "people whose values are missing. Ask the coordinator to use the earlier plan again" + _WITHDRAW
        )


def _refuse(finding: str) -> DisclosureError:
    return DisclosureError(
        f"{_REFUSED}{finding}. The plans encode the same rows in different ways. Ask the coordinator to use the "
        "earlier plan again, and why there is another one; cut extreme values; or leave the common variables out"
        f"{_WITHDRAW}"
    )


def _find_comparable(
    rows: Any, plan: StudyPlan, context: ReleaseContext, found: Sequence[EarlierPlan]
) -> list[EarlierPlan]:
    """Return the plans whose columns are in the table; refuse where others share rows with it."""
    needed = {column for one in found if one.columns is not None for column in one.columns.kinds}
    present = frozenset(plan.names)
    if not needed <= present:
        present = column_names(rows, context.client, plan.names)
    for one in found:
        absent = None if one.columns is None else sorted(one.columns.kinds.keys() - present)
        if one.shares_rows and (absent is None or absent):
            what = (
                "whose plan is not known"
                if absent is None
                else f"whose columns {', '.join(map(repr, absent[:_MAX_LISTED]))} are not in this table"
            )
            raise DisclosureError(
                f"{_REFUSED}it is about rows of {_list_entries([one])}, {what}. Expected a known plan and all its "
                "columns, to compute what both summaries disclose together. Add these columns to the table (they do "
                "not leave by this plan), or leave the variables out that both have" + _WITHDRAW
            )
    return [one for one in found if one.columns is not None and one.columns.kinds.keys() <= present]


def _read_columns(release: Release, here: Mapping[str, str], hash_level: HashText) -> PlanColumns | None:
    """Return the plan of a release with the columns of the present table; None if it is not known."""
    encoding = release.details.get(ENCODING_KEY)
    if not isinstance(encoding, Mapping):
        return None
    try:
        plan = StudyPlan.from_json(encoding["plan"])
        columns = {name: here.get(own, own) for name, own in encoding["columns"].items()}
        return PlanColumns(plan, columns, hash_level)
    except (PlanError, LookupError, TypeError, AttributeError):
        return None


def _identify(release: Release) -> str:
    """Return the same text for releases that encode rows alike."""
    encoding = release.details.get(ENCODING_KEY)
    return release.digest if not isinstance(encoding, Mapping) else to_canonical_json(dict(encoding))


def _list_entries(found: Sequence[EarlierPlan]) -> str:
    numbers = [one.entry.number for one in found]
    more = f" and {len(numbers) - _MAX_LISTED} more" if len(numbers) > _MAX_LISTED else ""
    return f"release{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:_MAX_LISTED]))}{more}"
