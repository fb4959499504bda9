"""Columns that single clients lack: who lacks what, and whether that was accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, TypeAlias

from fedcdh.data.sources import ColumnKind, to_source
from fedcdh.errors import PlanError, SettingsError

AbsentRule: TypeAlias = Literal["refuse", "allow"] | Mapping[str, Sequence[str]]
"""Columns that clients may lack: none, all that have no near name, or those that are named."""
MIN_SIMILARITY = 0.75
"""Similarity of two names, from 0 to 1, from which one may be a spelling of the other."""
_MAX_LISTED = 8


def check_absent(
    columns: Mapping[str, Collection[str]],
    rule: AbsentRule = "refuse",
    declared: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Return the columns that each client lacks, if they were accepted.

    Parameters
    ----------
    columns : mapping from str to collection of str
        Columns of each client.
    rule : {"refuse", "allow"} or mapping from str to sequence of str, default "refuse"
        What is accepted. "allow" accepts no column for which the client has another with nearly the same name.
    declared : mapping from str to sequence of str, optional
        Further columns that clients may lack, which a declaration names. A client that has one does not use it.

    Returns
    -------
    dict from str to tuple of str
        Clients that lack columns, sorted.

    Raises
    ------
    PlanError
        If a column is lacking that was not accepted.
    SettingsError
        If there is no such rule.

    Examples
    --------
    >>> check_absent({"north": ["age"], "south": ["age", "crp"]}, "allow")
    {'north': ('crp',)}
    """
    named = {**(rule if isinstance(rule, Mapping) else {}), **(declared or {})}
    if not isinstance(rule, Mapping) and rule not in ("refuse", "allow"):
        raise SettingsError(
            f"absent is {rule!r}; expected 'refuse', 'allow', or the columns that each client may lack, such as "
            "{'north': ['crp']}",
            parameter="absent",
        )
    found = {client: {*names} - {*named.get(client, ())} for client, names in columns.items()}
    everywhere = list(dict.fromkeys(name for client in sorted(columns) for name in columns[client]))
    if strange := sorted({*named} - {*columns}):
        raise PlanError(
            f"columns of client {strange[0]!r} are said to be absent, but there is no such client; correct the name",
            parameter="absent",
        )
    if unknown := sorted({name for names in named.values() for name in names} - {*everywhere}):
        raise PlanError(
            f"the column {unknown[0]!r} is said to be absent, but no client has it; correct the name",
            parameter="absent",
        )
    lacking = {
        client: tuple(sorted(names))
        for client in sorted(found)
        if (names := [name for name in everywhere if name not in found[client]])
    }
    open_ones = {
        client: rest
        for client, names in lacking.items()
        if (rest := tuple(name for name in names if name not in named.get(client, ())))
    }
    if open_ones and rule == "refuse":
        raise PlanError(_describe_refused(open_ones), parameter="absent")
    if open_ones and isinstance(rule, Mapping):
        raise PlanError(
            f"{describe_absent(open_ones)}, which is not among the accepted absent columns; add it there, or add or "
            "rename the column",
            parameter="absent",
        )
    _refuse_near_names(open_ones, found)
    return lacking


def describe_absent(lacking: Mapping[str, Sequence[str]]) -> str:
    """Say in words who lacks what.

    Parameters
    ----------
    lacking : mapping from str to sequence of str
        Columns that clients lack.

    Returns
    -------
    str
        Part of a sentence.

    Examples
    --------
    >>> describe_absent({"north": ["crp"], "south": ["bmi", "ldl"]})
    "client 'north' has no column 'crp', client 'south' has no columns 'bmi', 'ldl'"
    """
    parts = [
        f"client {client!r} has no column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:_MAX_LISTED]))}"
        + (f" and {len(names) - _MAX_LISTED} others" if len(names) > _MAX_LISTED else "")
        for client, names in lacking.items()
    ]
    more = f", and {len(parts) - _MAX_LISTED} more clients lack columns" if len(parts) > _MAX_LISTED else ""
    return ", ".join(parts[:_MAX_LISTED]) + more


def _describe_refused(lacking: Mapping[str, Sequence[str]]) -> str:
    return (
        f"{describe_absent(lacking)}, which others have; add or rename it there, or leave it out of the study; if it "
        "was never measured there, accept that: absent='allow' in Python, --allow-absent on the command line"
    )


def _refuse_near_names(lacking: Mapping[str, Sequence[str]], columns: Mapping[str, Collection[str]]) -> None:
    """Refuse a lacking column if the client has one of nearly the same name, which nobody has beside the first."""
    for client, names in lacking.items():
        for name in names:
            beside = {one for held in columns.values() if name in held for one in held}
            spare = sorted(one for one in columns[client] if one not in beside)
            near = [one for one in spare if _similarity(name, one) >= MIN_SIMILARITY]
            if near:
                raise PlanError(
                    f"client {client!r} has no column {name!r}, but a column {near[0]!r} that looks like another "
                    "spelling of it; rename it there; if they are two variables, name what is absent: "
                    f"absent={{{client!r}: [{name!r}]}} in Python, [absent] in the declaration",
                    parameter="absent",
                )


def _similarity(one: str, other: str) -> float:
    """Return how alike two names are, apart from case and everything that is no letter and no digit."""
    first, second = ("".join(filter(str.isalnum, name.casefold())) or name for name in (one, other))
    return SequenceMatcher(None, first[:100], second[:100]).ratio()


def columns_by_client(
    tables: Mapping[str, Any], variables: Sequence[str] | None, order_by: str | None, rule: AbsentRule
) -> dict[str, list[str]]:
    """Return the columns of each client that take part, without those that are named as absent there.

    Parameters
    ----------
    tables : mapping from str to table
        Table of each client.
    variables : sequence of str, optional
        Columns to use. Default: all.
    order_by : str, optional
        Column with the time of each row, which is no variable.
    rule : {"refuse", "allow"} or mapping from str to sequence of str
        What clients may lack.

    Returns
    -------
    dict from str to list of str
        Names of columns.

    Examples
    --------
    >>> columns_by_client({"north": {"age": [1.0]}, "south": {"age": [1.0], "crp": [2.0]}}, None, None, "allow")
    {'north': ['age'], 'south': ['age', 'crp']}
    """
    named = rule if isinstance(rule, Mapping) else {}
    found = {}
    for client, table in tables.items():
        present = list(to_source(table, f"client {client!r}").kinds())
        wanted = [name for name in present if name != order_by] if variables is None else list(variables)
        found[client] = [name for name in wanted if name in present and name not in named.get(client, ())]
    for name in variables or ():
        if not any(name in columns for columns in found.values()):
            raise PlanError(
                f"no client has the column {name!r}; expected it at one client at least; correct the name",
                parameter="variables",
            )
    return found


def check_kinds(kinds: Mapping[str, ColumnKind] | None, present: Mapping[str, Collection[str]]) -> None:
    """Refuse a kind that is declared for a column that no client has.

    Parameters
    ----------
    kinds : mapping from str to {"continuous", "categorical"}, optional
        Declared kinds.
    present : mapping from str to collection of str
        Columns of each client.

    Raises
    ------
    PlanError
        If nobody has such a column.

    Examples
    --------
    >>> check_kinds({"age": "continuous"}, {"north": ["age"]})
    """
    everywhere = {name for names in present.values() for name in names}
    if unknown := sorted({*(kinds or {})} - everywhere):
        raise PlanError(
            f"a kind is declared for {unknown[0]!r}, but no client has such a column; correct the name",
            parameter="kinds",
        )


def kinds_of(kinds: Mapping[str, ColumnKind] | None, present: Collection[str]) -> dict[str, ColumnKind]:
    """Return the declared kinds of the columns that a client has.

    Parameters
    ----------
    kinds : mapping from str to {"continuous", "categorical"}, optional
        Declared kinds.
    present : collection of str
        Columns of the client.

    Returns
    -------
    dict from str to {"continuous", "categorical"}
        Those of its columns.

    Examples
    --------
    >>> kinds_of({"age": "continuous", "ward": "categorical"}, ["age"])
    {'age': 'continuous'}
    """
    return {name: kind for name, kind in (kinds or {}).items() if name in present}
