"""Evidence of mechanisms that differ, where clients lack variables: from the clients that have the whole family.

What is expected of a client that lacks a variable says nothing about its own mechanisms. The evidence of a shared
mechanism is that of the completed sums. What a difference adds is measured at the clients that have the node and all
parents, and scaled to the rows of all clients that have the node, so that parents that few have are no worse for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedcdh.inference.absent_variables import select_clients
from fedcdh.inference.evidence._gaussian_moments import StackedMoments
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.orthonormal_basis import Chosen
from fedcdh.protocols import Family

UNKNOWN_CHANGE = -1.0
"""Log evidence for a difference where fewer than two clients have the whole family: nothing speaks for one."""


def score_held_families(
    score: GaussianScore, families: Sequence[Family], holding: Mapping[str, Chosen]
) -> list[tuple[float, float]]:
    """Return the log evidence of a shared mechanism, and of one that differs, for each family.

    Parameters
    ----------
    score : GaussianScore
        The score of the completed sums of all clients.
    families : sequence of Family
        Nodes with their parents.
    holding : mapping from str to array of bool
        For every variable which clients have it.

    Returns
    -------
    list of tuple of two float
        Both, in the order of the families.
    """
    same = dict(zip(families, score.same(families), strict=True))
    groups: dict[bytes, list[Family]] = {}
    for family in families:
        held = select_clients(holding, frozenset({family.node, *family.parents}))
        groups.setdefault(held.tobytes(), []).append(family)
    gains: dict[Family, float] = {}
    for key in sorted(groups):
        some = groups[key]
        held = select_clients(holding, frozenset({some[0].node, *some[0].parents}))
        gains.update(_measure_gains(score, some, held, holding))
    return [(same[family], same[family] + gains[family]) for family in families]


def _measure_gains(
    score: GaussianScore, families: Sequence[Family], held: Chosen, holding: Mapping[str, Chosen]
) -> dict[Family, float]:
    """Return what a difference adds to the evidence, for families that the same clients have."""
    if held.sum() < 2:
        return dict.fromkeys(families, UNKNOWN_CHANGE)
    basis = score.basis if held.all() else score.basis.select(held)
    scores = score.shared.scores if score.shared is not None else {}
    part = GaussianScore(basis, score.curved, score.noisy, StackedMoments(basis, scores))
    rows = score.basis.rows
    return {
        family: float((differing - same) * rows[holding[family.node]].sum() / rows[held].sum())
        for family, (same, differing) in zip(families, part(families), strict=True)
    }
