"""Checks for labels that clients spell or name differently, which only the profiles of several clients reveal.

Merged unchanged, yes/no, Yes/No and true/false would be six levels, and every mechanism would seem to differ between
clients. Two things are reported: labels that differ only in their spelling (case, spaces, 1.0 for 1, variants of one
character), within one client or between clients; and groups of clients that have no label in common.

Levels that really belong to one site, such as its wards, look the same; the coordinator accepts or declares them.
Different words beside a shared one, as in yes/no/unknown and true/false/unknown, are not found, nor are clients with
one label each.
"""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from fedcdh.data.labels import strip_zero_decimals
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.unit_consistency import MIN_VALUES

_MAX_GROUPS_SHOWN = 4
"""Number of groups of spellings, or of clients, in one message."""
_MAX_NAMES_SHOWN = 5
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def fold_label(level: str) -> str:
    """Return a label without case, needless spaces and decimals.

    >>> fold_label(" JA ") == fold_label("ja"), fold_label("1.0")
    (True, '1')
    """
    return _normalise_label(unicodedata.normalize("NFKC", level).casefold())


def _normalise_label(level: str) -> str:
    """Return a label without needless spaces and decimals, its case kept."""
    return strip_zero_decimals(" ".join(unicodedata.normalize("NFKC", level).split()))


def find_spelling_variants(variable: str, columns: Mapping[str, ColumnProfile]) -> str | None:
    """Return the message about labels that differ only in their spelling; None if there are none."""
    counts = _count_levels(columns.values())
    twins = [group for group in _group_spellings(counts) if len(group) > 1]
    if not twins:
        return None
    shown = "; ".join(_describe_spellings(group, columns) for group in twins[:_MAX_GROUPS_SHOWN])
    more = f"; and {len(twins) - _MAX_GROUPS_SHOWN} more" if len(twins) > _MAX_GROUPS_SHOWN else ""
    return (
        f"The variable {variable!r} has labels that differ only in their spelling ({shown}{more}). Expected one "
        "spelling of each label, because different spellings become different levels. Correct the labels at the site "
        "and make its profile again; if they really differ, accept them with --accept-differences "
        f"{shlex.quote(variable)} (in Python accept_differences=[{variable!r}]); or declare the levels, one spelling "
        f"of each:\n{_to_declaration(variable, _preferred_spellings(counts))}"
    )


def find_disjoint_labels(variable: str, columns: Mapping[str, ColumnProfile]) -> str | None:
    """Return the message about groups of clients without a common label; None if there is one group."""
    usable = {client: column for client, column in columns.items() if column.count >= MIN_VALUES}
    groups = _group_clients(
        {client: {fold_label(level) for level in column.levels} for client, column in usable.items()}
    )
    pooled = [_count_levels(usable[client] for client in group) for group in groups]
    words = [_preferred_spellings(counts) for counts in pooled]
    if len(groups) < 2 or all(len(levels) < 2 for levels in words):
        return None
    pairs = list(zip(groups, words, strict=True))
    shown = " and ".join(f"{_join_names(group)} ({_join_names(levels)})" for group, levels in pairs[:_MAX_GROUPS_SHOWN])
    more = f" and {len(groups) - _MAX_GROUPS_SHOWN} more groups" if len(groups) > _MAX_GROUPS_SHOWN else ""
    largest = max(range(len(groups)), key=lambda k: sum(pooled[k].values()))
    return (
        f"The variable {variable!r} has no label in common at {shown}{more}. Expected the same words for the same "
        "levels. Use the same words at all sites and make the profiles again; the declared levels are what the sites "
        "follow. If these labels really belong to their sites, as names of wards do, accept the difference with "
        f"--accept-differences {shlex.quote(variable)} (in Python accept_differences=[{variable!r}]), or declare all "
        "of them. A declaration may begin with\n"
        f"{_to_declaration(variable, words[largest])}"
    )


def _count_levels(columns: Iterable[ColumnProfile]) -> dict[str, int]:
    """Return the number of rows with each label, over all columns."""
    found: dict[str, int] = {}
    for column in columns:
        for level, count in zip(column.levels, column.counts, strict=True):
            found[level] = found.get(level, 0) + count
    return found


def _group_spellings(levels: Iterable[str]) -> list[list[str]]:
    """Group the labels that differ only in their spelling."""
    return [
        list(group)
        for _, group in groupby(sorted(levels, key=lambda level: (fold_label(level), level)), key=fold_label)
    ]


def _preferred_spellings(counts: Mapping[str, int]) -> list[str]:
    """Return one spelling of each label: normalised and in lower case if possible, then the most frequent one."""

    def rank(level: str) -> tuple[bool, bool, int]:
        return _normalise_label(level) == level, fold_label(level) == level, counts[level]

    return [max(group, key=rank) for group in _group_spellings(counts)]


def _group_clients(levels: Mapping[str, set[str]]) -> list[list[str]]:
    """Group the clients: a client that shares a label with a group belongs to it."""
    groups: list[tuple[list[str], set[str]]] = []
    for client in sorted(levels):
        near = [group for group in groups if group[1] & levels[client]]
        members = sorted([client, *(member for group, _ in near for member in group)])
        groups = [group for group in groups if group not in near]
        groups.append((members, levels[client].union(*(found for _, found in near))))
    return sorted(members for members, _ in groups)


def _describe_spellings(group: Sequence[str], columns: Mapping[str, ColumnProfile]) -> str:
    """Return each spelling with the clients that use it."""
    return ", ".join(
        f"{level!r} at {_join_names([client for client in sorted(columns) if level in columns[client].levels])}"
        for level in group
    )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES_SHOWN} more" if len(names) > _MAX_NAMES_SHOWN else ""
    return ", ".join(map(repr, names[:_MAX_NAMES_SHOWN])) + more


def _to_declaration(variable: str, levels: Iterable[str]) -> str:
    """Return two lines of TOML, in which texts are written as in JSON."""
    name = variable if _BARE_KEY.fullmatch(variable) else json.dumps(variable, ensure_ascii=False)
    return f"[variables.{name}]\nlevels = [{', '.join(json.dumps(level, ensure_ascii=False) for level in levels)}]"
