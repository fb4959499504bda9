"""Groups of clients: all clients of the plan, each in one group."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streams import CLIENTS, PLAN

from fedcdh.errors import SettingsError
from fedcdh.federation.streaming.client_groups import resolve_groups
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.features.bounded import BOUNDED_CLIP


def test_without_groups_each_client_is_by_itself():
    assert resolve_groups(PLAN, None) == tuple((client, (client,)) for client in CLIENTS)


def test_named_groups_hold_all_clients():
    named = {client: "odd" if place % 2 else "even" for place, client in enumerate(CLIENTS)}
    assert dict(resolve_groups(PLAN, named)) == {"even": CLIENTS[::2], "odd": CLIENTS[1::2]}


def test_with_noise_all_clients_are_together():
    noisy = replace(PLAN, noise=DPParameters(1.0, 1e-6), clip=BOUNDED_CLIP)
    assert resolve_groups(noisy, None) == (("all clients", CLIENTS),)
    with pytest.raises(SettingsError, match="Leave the groups out"):
        resolve_groups(noisy, dict.fromkeys(CLIENTS, "all"))


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        (dict.fromkeys(CLIENTS[1:], "all"), "lack the clients site a"),
        (dict.fromkeys([*CLIENTS, "stranger"], "all"), "not in the plan: stranger"),
        (dict.fromkeys(CLIENTS, " "), "A group is called ' '"),
        (dict.fromkeys(CLIENTS, "two\nlines"), "Rename it"),
    ],
)
def test_impossible_groups_are_refused(groups, problem):
    with pytest.raises(SettingsError, match=problem):
        resolve_groups(PLAN, groups)
