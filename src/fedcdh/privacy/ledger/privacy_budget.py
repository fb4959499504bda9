"""The privacy budget: what all noisy releases of a ledger spend together.

Noisy releases about the same people add up, whatever their columns are: epsilon and delta of their composition are at
most the sums. A sketch can show that two releases have values in common. It cannot show that nobody is in both: a
person may have other columns, or newer values, in the second table. So every noisy release in the ledger counts.
People who are surely not in the other tables of a site get a ledger of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.record import LedgerEntry, Release

_ROUNDING = 1e-9  # relative: three times 0.1 may exceed 0.3 in float64


@dataclass(frozen=True)
class PrivacySpending:
    """Privacy budget that noisy releases have spent together, by basic composition.

    Parameters
    ----------
    epsilon, delta : float, default 0.0
        Sums over the releases.
    rows : int, default 0
        The largest number of rows of a release.
    numbers : tuple of int, default ()
        Numbers of the releases in the ledger.

    Examples
    --------
    >>> PrivacySpending(1.5, 2e-6, 500, (1, 3)).numbers
    (1, 3)
    """

    epsilon: float = 0.0
    delta: float = 0.0
    rows: int = 0
    numbers: tuple[int, ...] = ()


def spent_privacy(earlier: Sequence[LedgerEntry]) -> PrivacySpending:
    """Return what the noisy releases of a ledger have spent together.

    Parameters
    ----------
    earlier : sequence of LedgerEntry
        Active entries of the ledger.

    Returns
    -------
    PrivacySpending
        The sums.

    Examples
    --------
    >>> first = Release("noisy", "north", "", "0" * 64, rows=500, numbers=0, epsilon=0.5, delta=1e-6)
    >>> spent_privacy([LedgerEntry(1, "2026-01-01", first)])
    PrivacySpending(epsilon=0.5, delta=1e-06, rows=500, numbers=(1,))
    """
    noisy = [entry for entry in earlier if entry.release.kind == "noisy"]
    return PrivacySpending(
        math.fsum(entry.release.epsilon for entry in noisy),
        math.fsum(entry.release.delta for entry in noisy),
        max((_count_rows(entry.release) for entry in noisy), default=0),
        tuple(entry.number for entry in noisy),
    )


def check_privacy_budget(new: Release, earlier: Sequence[LedgerEntry], policy: Policy) -> None:
    """Refuse a noisy release that spends more than is left of epsilon or of delta.

    Parameters
    ----------
    new : Release
        What is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.
    policy : Policy
        The site's policy.

    Raises
    ------
    DisclosureError
        If a total would exceed its limit, and the policy enforces limits.

    Examples
    --------
    >>> new = Release("noisy", "north", "", "0" * 64, rows=500, numbers=0, epsilon=9.0, delta=1e-6)
    >>> check_privacy_budget(new, [], Policy())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: This noisy summary must not leave. It spends an epsilon of 9, ...
    """
    if not policy.disclosure_control:
        return
    spent = spent_privacy(earlier)
    max_delta = policy.delta_limit(max(spent.rows, _count_rows(new)))
    for name, setting, ours, before, limit in (
        ("epsilon", "epsilon_budget", new.epsilon, spent.epsilon, policy.epsilon_budget),
        ("delta", "delta_budget", new.delta, spent.delta, max_delta),
    ):
        if before + ours > limit * (1 + _ROUNDING):
            raise DisclosureError(
                f"This noisy summary must not leave. It spends {'an' if name == 'epsilon' else 'a'} {name} of "
                f"{ours:g}, and the {len(spent.numbers)} noisy releases in this site's ledger have spent {before:g}. "
                f"Expected at most {limit:g} in total: they may be about the same people, whatever their columns are. "
                "Send the file of an earlier release again, which adds nothing; keep a ledger of its own (--ledger) "
                f"for people who are in no other table of this site; or raise {setting} in policy.toml, after asking "
                "the person responsible for data protection"
            )


def _count_rows(release: Release) -> int:
    """Return the exact number of rows where it is known; the released number has noise."""
    return release.rows if release.complete_rows is None else release.complete_rows.values
