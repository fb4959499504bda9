"""The same label in other words: what only somebody who sees several profiles can notice.

Merged as they are, yes/no, Yes/No and true/false make six levels, and every mechanism looks as if it differed between
clients. Two things are doubted: labels that differ in nothing but their spelling (case, spaces, 1.0 for 1, other
letters for the same sign), within one client or between clients; and groups of clients that have no label in common.

What cannot be told apart: levels that really belong to one site, such as its wards; the coordinator says so. Not seen:
other words beside a shared one, as in yes/no/unknown and true/false/unknown; nor sites that have one label each.
"""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from fedcdh.data.labels import as_whole
from fedcdh.federation.planning.unit_consistency import COUNT_AT_LEAST
from fedcdh.summaries.column_profiles import ColumnProfile

_SHOWN = 4  # groups of spellings or of clients in one message
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def folded(level: str) -> str:
    """What is left of a label when its spelling is left aside.

    >>> folded(" JA ") == folded("ja"), folded("1.0")
    (True, '1')
    """
    return _tidy(unicodedata.normalize("NFKC", level).casefold())


def _tidy(level: str) -> str:
    """The label without needless spaces, signs and decimals, its capitals kept."""
    return as_whole(" ".join(unicodedata.normalize("NFKC", level).split()))


def spellings(variable: str, columns: Mapping[str, ColumnProfile]) -> str | None:
    """What to say about labels that differ only in their spelling; None if there are none."""
    counts = _counts(columns.values())
    twins = [group for group in _same_fold(counts) if len(group) > 1]
    if not twins:
        return None
    told = "; ".join(_told(group, columns) for group in twins[:_SHOWN])
    more = f"; and {len(twins) - _SHOWN} more" if len(twins) > _SHOWN else ""
    return (
        f"variable {variable!r} has labels that differ only in their spelling ({told}{more}), which would become "
        "different levels. Correct them at the site and make its profile again; or declare its levels to settle it, "
        f"all of them if they really differ, else one spelling of each:\n{_declaration(variable, _one_of_each(counts))}"
    )


def strangers(variable: str, columns: Mapping[str, ColumnProfile]) -> str | None:
    """What to say about groups of clients that have no label in common; None if there is one group."""
    usable = {client: column for client, column in columns.items() if column.count >= COUNT_AT_LEAST}
    groups = _connected({client: {folded(level) for level in column.levels} for client, column in usable.items()})
    pooled = [_counts(usable[client] for client in group) for group in groups]
    words = [_one_of_each(counts) for counts in pooled]
    if len(groups) < 2 or all(len(levels) < 2 for levels in words):
        return None
    pairs = list(zip(groups, words, strict=True))
    told = " and ".join(f"{_listed(group)} ({_listed(levels)})" for group, levels in pairs[:_SHOWN])
    more = f" and {len(groups) - _SHOWN} more groups" if len(groups) > _SHOWN else ""
    largest = max(range(len(groups)), key=lambda k: sum(pooled[k].values()))
    return (
        f"variable {variable!r} has no label in common at {told}{more}; this looks like other words for the same "
        "levels. Write them with the same words at all sites and make the profiles again (to tell the sites which, "
        f"declare its levels); or, if these labels really belong to their sites, as names of wards do, accept it with "
        f"--accept-ranges {shlex.quote(variable)}, or declare all of them. A declaration may begin with\n"
        f"{_declaration(variable, words[largest])}"
    )


def _counts(columns: Iterable[ColumnProfile]) -> dict[str, int]:
    """How many rows have each label, all columns taken together."""
    found: dict[str, int] = {}
    for column in columns:
        for level, count in zip(column.levels, column.counts, strict=True):
            found[level] = found.get(level, 0) + count
    return found


def _same_fold(levels: Iterable[str]) -> list[list[str]]:
    """The labels in groups that differ only in their spelling."""
    return [list(group) for _, group in groupby(sorted(levels, key=lambda level: (folded(level), level)), key=folded)]


def _one_of_each(counts: Mapping[str, int]) -> list[str]:
    """One spelling of each label: a tidy one, and in small letters, if there is one; of several the most frequent."""

    def merit(level: str) -> tuple[bool, bool, int]:
        return _tidy(level) == level, folded(level) == level, counts[level]

    return [max(group, key=merit) for group in _same_fold(counts)]


def _connected(levels: Mapping[str, set[str]]) -> list[list[str]]:
    """The clients in groups: who shares a label with one of a group belongs to it."""
    groups: list[tuple[list[str], set[str]]] = []
    for client in sorted(levels):
        near = [group for group in groups if group[1] & levels[client]]
        members = sorted([client, *(member for group, _ in near for member in group)])
        groups = [group for group in groups if group not in near]
        groups.append((members, levels[client].union(*(found for _, found in near))))
    return sorted(members for members, _ in groups)


def _told(group: Sequence[str], columns: Mapping[str, ColumnProfile]) -> str:
    """Each spelling with the clients that have it."""
    return ", ".join(
        f"{level!r} at {_listed([client for client in sorted(columns) if level in columns[client].levels])}"
        for level in group
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more


def _declaration(variable: str, levels: Iterable[str]) -> str:
    """Two lines of TOML; texts are written there as in JSON."""
    name = variable if _BARE.fullmatch(variable) else json.dumps(variable, ensure_ascii=False)
    return f"[variables.{name}]\nlevels = [{', '.join(json.dumps(level, ensure_ascii=False) for level in levels)}]"
