"""Which counts of rows and of missing values can be true together."""

from __future__ import annotations

from collections.abc import Collection

from fedcdh.summaries.plan import StudyPlan


def are_counts_possible(plan: StudyPlan, rows: int, rows_read: int, missing: Collection[int]) -> bool:
    """Return whether some table has these counts.

    Where the plan asks for complete rows, a row is left out if and only if a value is missing. Where values are
    imputed, a row is left out if and only if all of its values are missing.

    Parameters
    ----------
    plan : StudyPlan
        The plan, which says what is done with missing values.
    rows : int
        Number of rows used.
    rows_read : int
        Number of rows read.
    missing : collection of int
        Number of missing values of each variable, in the rows that were read.

    Returns
    -------
    bool
        Whether the counts do not contradict each other.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",))
    >>> are_counts_possible(plan, 7, 10, [2, 3]), are_counts_possible(plan, 10, 10, [2, 3])
    (True, False)
    """
    left = rows_read - rows
    if rows < 1 or left < 0 or min(missing) < 0:
        return False
    if plan.missing == "complete":
        return max(missing) <= left <= sum(missing)
    fewest, most = left * len(missing), left * len(missing) + rows * (len(missing) - 1)
    return left <= min(missing) and max(missing) <= rows_read and fewest <= sum(missing) <= most
