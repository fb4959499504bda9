"""The sizes of a simulated study: names of clients and variables, numbers of rows, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.protocols import DOMAIN


def name_clients(clients: int) -> tuple[str, ...]:
    """Return client01, client02 and so on; a client keeps its name, and so its draws, when others join."""
    return tuple(f"client{k:02d}" for k in range(1, clients + 1))


def count_rows(rows: int | Sequence[int], clients: int) -> dict[str, int]:
    """Return the number of rows of each client."""
    if clients < 1:
        raise SettingsError(f"found {clients} clients; expected at least 1; simulate more", parameter="clients")
    counts = [int(rows)] * clients if isinstance(rows, int | np.integer) else list(rows)
    if len(counts) != clients:
        raise SettingsError(
            f"found {len(counts)} row counts for {clients} clients; expected one number, or one per client; give these",
            parameter="rows",
        )
    if min(counts) < 1:
        raise SettingsError(
            f"found a client with {min(counts)} rows; expected at least 1 for every client; simulate more",
            parameter="rows",
        )
    return dict(zip(name_clients(clients), counts, strict=True))


def name_variables(names: Sequence[str] | None, variables: int) -> tuple[str, ...]:
    """Return the names of the variables, v1, v2 and so on unless they are given."""
    labels = tuple(f"v{i}" for i in range(1, variables + 1)) if names is None else tuple(names)
    if len(labels) != variables:
        raise SettingsError(
            f"found {len(labels)} names for {variables} variables; expected one name for each; give these",
            parameter="names",
        )
    if len(set(labels)) < len(labels) or DOMAIN in labels:
        raise SettingsError(
            f"found the names {', '.join(labels)}; expected names that differ from one another and from {DOMAIN!r}; "
            "rename some",
            parameter="names",
        )
    return labels


def max_edges(variables: int) -> int:
    """Return the number of pairs of variables."""
    return variables * (variables - 1) // 2


def check_sizes(variables: int, clients: int, edges: int, changing: int, seed: int) -> None:
    """Refuse sizes that no study can have."""
    most = max_edges(variables)
    if variables < 1:
        raise SettingsError(f"found {variables} variables; expected at least 1; simulate more", parameter="variables")
    if not 0 <= edges <= most:
        raise SettingsError(
            f"found {edges} edges; {variables} variables have room for 0 to {most} edges; choose another number",
            parameter="edges",
        )
    if not 0 <= changing <= variables:
        raise SettingsError(
            f"found {changing} changing variables; expected 0 to {variables}; choose another number",
            parameter="changing",
        )
    if changing and clients < 2:
        raise SettingsError(
            f"found {changing} changing variables and a single client; expected at least 2 clients, between which "
            "mechanisms can differ; simulate more clients, or no changing variable",
            parameter="changing",
        )
    if seed < 0:
        raise SettingsError(f"found seed {seed}; expected a whole number from 0 upwards; choose one", parameter="seed")


def check_finite(tables: Mapping[str, Array], seed: int) -> None:
    """Refuse a study with values that are too large."""
    if not all(np.isfinite(table).all() for table in tables.values()):
        raise SettingsError(
            f"seed {seed} gives values that are too large to represent; expected finite values; take another seed or "
            "fewer "
            "edges",
            parameter="seed",
        )
