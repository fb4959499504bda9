"""The groups of clients whose first moments a sum keeps apart."""

from __future__ import annotations

from collections.abc import Mapping

from fedcdh._io.text import MAX_NAME_LENGTH, abbreviate_list, is_name
from fedcdh.errors import SettingsError
from fedcdh.summaries.integer_vectors import Groups, group_clients
from fedcdh.summaries.plan import StudyPlan


def resolve_groups(plan: StudyPlan, groups: Mapping[str, str] | None) -> Groups:
    """Return the named groups; by default each client by itself, with noise all together."""
    if plan.noise is not None:
        if groups is not None:
            raise SettingsError(
                "The plan adds noise, and groups are given. Expected no groups, because their first moments would be "
                "too noisy. Leave the groups out."
            )
        return (("all clients", tuple(sorted(plan.clients))),)
    if groups is not None and groups.keys() != plan.client_set:
        lacking, unknown = sorted(plan.client_set - groups.keys()), sorted(groups.keys() - plan.client_set)
        raise SettingsError(
            f"The groups lack the clients {abbreviate_list(lacking) or '(none)'}, and name clients that are not in the "
            f"plan: {abbreviate_list(unknown) or '(none)'}. Expected a group for every client of the plan. Correct the "
            "groups."
        )
    for name in sorted(set(groups.values() if groups else ())):
        if not is_name(name) or not name.strip():
            raise SettingsError(
                f"A group is called {name[:80]!r}. Expected 1 to {MAX_NAME_LENGTH} printable characters on one line. "
                "Rename it."
            )
    return group_clients(groups or {}, plan.clients)
