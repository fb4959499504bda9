"""Stability as text: shares of runs, and the client on which a finding hangs."""

from __future__ import annotations

from fedcdh.discovery.stability import ChangeStability, EdgeStability, Stability
from fedcdh.discovery.stability_run import StabilityRun
from fedcdh.discovery.stability_text import format_hinges, list_hinges


def edge(source, mark, target, adjacent, same, gone=(), turned=()):
    return EdgeStability(source, target, mark, adjacent, same, 0.0, 0.0, gone, turned)


def stability(*edges, changing=(), kind="leave-one-out", notes=()):
    run = StabilityRun(("a", "b"), ("c",), frozenset(), frozenset(), frozenset())
    return Stability(kind, None, edges, changing, (run, run, run), notes)


def test_each_finding_that_hangs_on_one_client_is_named_with_it():
    found = stability(
        edge("v1", "→", "v3", 2 / 3, 2 / 3, gone=("city",)),
        edge("v1", "—", "v2", 1.0, 1 / 3, turned=("city", "north")),
        edge("v4", "→", "v5", 1.0, 1.0),
        edge("v5", "→", "v6", 1 / 3, 0.0, gone=("city",), turned=("north", "south", "west")),
        edge("v2", "", "v5", 1 / 3, 2 / 3, gone=("north",)),
        changing=(
            ChangeStability("v3", True, 2 / 3, ("north",)),
            ChangeStability("v4", False, 0.1, ("a", "b", "c", "d")),
            ChangeStability("v5", True, 1.0, ()),
        ),
    )
    assert list(list_hinges(found)) == [
        "v1 → v3 (gone without city)",
        "v1 — v2 (directed without city or north)",
        "v5 → v6 (gone without city, direction lost without north, south or west)",
        "v2 — v5 (appears without north)",
        "mechanism of v3 (no difference without north)",
        "mechanism of v4 (differs without any of 4 clients)",
    ]
    assert format_hinges(found, "site").startswith("hangs on one site: v1 → v3 (gone without city), ")


def test_it_says_that_nothing_hangs_on_one_client():
    assert format_hinges(stability(edge("a", "→", "b", 1.0, 1.0))) == "no finding changes when one client is left out"


def test_shares_are_printed_as_a_table():
    found = stability(
        edge("v1", "→", "v3", 1.0, 2 / 3),
        edge("v2", "", "v5", 1 / 3, 2 / 3),
        changing=(ChangeStability("v3", True, 1.0, ()), ChangeStability("v4", True, None, ())),
        kind="bootstrap",
        notes=("a note",),
    )
    assert str(found).splitlines() == [
        "3 runs, with clients resampled; shares of runs that agree with the result",
        "edge     adjacent  same mark",
        "v1 → v3      100%        67%",
        "only in runs: v2 — v5 33%",
        "mechanisms that differ: v3 100%",
        "note: a note",
    ]
