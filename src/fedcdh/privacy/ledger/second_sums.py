"""Second secure sums: what one client must not mask again, because two sums over other clients can be subtracted.

A secure sum hides each summary among those of all clients. The sum over the clients of another plan, minus the first
one, is the sum over the clients in which the two differ: with one client fewer, the summary of that client. The server
needs the help of the clients for the second sum, and these refuse it here. It does not matter what the second plan is
called, which scales it has, or whether it names the first one. The same holds for numbers about these rows that would
leave without masks: they show this client, and the sum without them is that of fewer clients than was agreed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedcdh.errors import DisclosureError
from fedcdh.privacy.ledger.differencing import ReleasePair
from fedcdh.privacy.ledger.record import CLIENTS_KEY, LedgerEntry, Release


def check_second_sum(new: Release, earlier: Sequence[LedgerEntry]) -> None:
    """Refuse to mask something about rows of which this client has helped to open a sum over other clients.

    Parameters
    ----------
    new : Release
        What is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.

    Raises
    ------
    DisclosureError
        If a sum over other clients, about some of the same rows, was opened with the help of this client.

    Examples
    --------
    >>> check_second_sum(Release("masked", "north", "", "0" * 64, rows=500, numbers=12), [])  # nothing left before
    """
    if not new.is_masked:
        return
    for entry in _find_opened(new.client, earlier):
        release = entry.release
        if release.plan == new.plan:
            continue
        if release.details.get(CLIENTS_KEY) == new.details.get(CLIENTS_KEY):
            continue
        if ReleasePair.of(new, entry).may_share_rows:
            raise DisclosureError(
                f"By release {entry.number} of the ledger ({entry.time[:10]}, plan {release.plan[:12]}) this client "
                "has helped to open a secure sum about these rows, over other clients than those of this plan. "
                "Expected one secure sum of these rows: the difference of two sums would disclose the data of the "
                "clients in which they differ. Use the sum that was opened; a client that dropped out of it is not in "
                "it"
            )


def check_plain_after_sum(new: Release, earlier: Sequence[LedgerEntry]) -> None:
    """Refuse to send in plain something about rows of which this client has helped to open a sum.

    Parameters
    ----------
    new : Release
        What is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.

    Raises
    ------
    DisclosureError
        If columns of rows that are in an opened sum would leave without masks, by whatever plan.

    Examples
    --------
    >>> check_plain_after_sum(Release("summary", "north", "", "0" * 64, rows=500, numbers=12), [])  # nothing left
    """
    if new.kind not in ("summary", "answer") or new.is_masked:
        return
    for entry in _find_opened(new.client, earlier):
        if ReleasePair.of(new, entry).shares_rows:
            raise DisclosureError(
                f"By release {entry.number} of the ledger ({entry.time[:10]}, plan {entry.release.plan[:12]}) this "
                "client has masked numbers about these rows, and has helped to open their secure sum. Expected no "
                "numbers about them without masks, by any plan: these would show this client by itself, and leave a "
                "sum of fewer clients than was agreed on. Use the sum that was opened, or leave out its columns"
            )


def _find_opened(client: str, earlier: Sequence[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Yield the masked summaries whose sum was opened with the help of this client."""
    opened = {
        entry.release.plan
        for entry in earlier
        if entry.release.kind == "round"
        and entry.release.client == client
        and entry.release.details.get("message") == "opened"
    }
    yield from (entry for entry in earlier if entry.release.kind == "masked" and entry.release.plan in opened)
