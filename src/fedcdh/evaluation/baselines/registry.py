"""All methods by name, with what each assumes: the columns are those of the paper's Table 1.

A method is imported when it is loaded, so that none needs its libraries before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.entry import BaselineEntry
from fedcdh.evaluation.baselines.listings import (
    constraint_based,
    function_based,
    optimisation_based,
    own_methods,
    references,
    score_based,
)


def find_baseline(name: str) -> BaselineEntry:
    """Find the method of this name.

    Parameters
    ----------
    name : str
        A key of `BASELINES`, such as "fedpc".

    Returns
    -------
    BaselineEntry
        The method, which can be called.

    Raises
    ------
    SettingsError
        If there is no method of this name.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import find_baseline
    >>> find_baseline("fedpc").assumptions.strategy
    'Voting'
    """
    if name not in BASELINES:
        raise SettingsError(f"found the method {name!r}; expected one of {', '.join(BASELINES)}; choose one of these")
    return BASELINES[name]


def to_markdown_table(entries: Iterable[BaselineEntry] | None = None) -> str:
    """Write the methods as a table in Markdown, one row each.

    Parameters
    ----------
    entries : iterable of BaselineEntry, optional
        The methods to write, all of them unless given.

    Returns
    -------
    str
        The table that the page "Rivals" of the documentation shows.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import to_markdown_table
    >>> to_markdown_table().splitlines()[2].split("|")[1].strip()
    '`fedcdh`'
    """
    chosen = BASELINES.values() if entries is None else entries
    rows = [_TABLE_HEADS, ("---",) * len(_TABLE_HEADS), *map(_table_row, chosen)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


_TABLE_HEADS = (
    "Name",
    "Method",
    "Category",
    "Data distribution",
    "Causal model assumption",
    "Identifiability requirement",
    "Federated strategy",
    "Extra",
)


def _table_row(entry: BaselineEntry) -> tuple[str, ...]:
    says = entry.assumptions
    return (
        f"`{entry.name}`",
        f"{entry.title} ({entry.reference})",
        says.category,
        says.distribution,
        says.model,
        "Yes" if says.identifiable else "No",
        says.strategy,
        f"`{entry.extra}`" if entry.extra else "–",
    )


_ENTRIES = (
    *own_methods.ENTRIES,
    *constraint_based.ENTRIES,
    *score_based.ENTRIES,
    *optimisation_based.ENTRIES,
    *function_based.ENTRIES,
    *references.ENTRIES,
)
BASELINES: Mapping[str, BaselineEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""All methods by name: ours first, then the baselines of the paper, then references."""
