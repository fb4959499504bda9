"""Formats of files have numbered versions: a file of another version gets an error that says so."""

from __future__ import annotations

import re

from fedcdh._io.text import cut_repr

_VERSIONED = re.compile(r"(fedcdh-[a-z-]+)-([0-9]{1,6})")


def find_format_mismatch(found: object, expected: str) -> tuple[str, ...]:
    """Compare the format that a file names with the one that this version reads.

    Parameters
    ----------
    found : object
        The format that the file names, such as ``"fedcdh-plan-2"``.
    expected : str
        The format that this version reads, such as ``"fedcdh-plan-3"``.

    Returns
    -------
    tuple of str
        Reason and, for another version of the same format, advice; empty if both formats are the same.

    Examples
    --------
    >>> find_format_mismatch("fedcdh-plan-2", "fedcdh-plan-3")[0]
    'it has the format fedcdh-plan-2 of an earlier version, and this version reads fedcdh-plan-3'
    >>> find_format_mismatch("fedcdh-plan-3", "fedcdh-plan-3")
    ()
    """
    if found == expected:
        return ()
    ours, theirs = _VERSIONED.fullmatch(expected), _VERSIONED.fullmatch(found) if isinstance(found, str) else None
    if ours is None or theirs is None or ours[1] != theirs[1]:
        return (f"it names the format {cut_repr(found)}, and {expected!r} was expected",)
    if int(theirs[2]) < int(ours[2]):
        reason = f"it has the format {found} of an earlier version, and this version reads {expected}"
        return (reason, "make it again with this version")
    reason = f"made by a newer fedcdh: it has the format {found} of a later version, and this version reads {expected}"
    return (reason, "update fedcdh, or make the file again with this version")
