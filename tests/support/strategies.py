"""Random graphs, plans and damaged bytes that several test files share."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from oracle import random_dag

from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAIN = st.text("abcxyz_0189", min_size=1, max_size=4)
ODD = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6)
"""Quotes, backslashes, spaces, brackets and letters of all scripts: what people call their columns."""


@st.composite
def graphs(draw, names=ODD, directed_only=False):
    nodes = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    arrows, lines = set(), set()
    for j, head in enumerate(nodes):
        for tail in nodes[:j]:
            kind = draw(st.sampled_from(["", "arrow"] if directed_only else ["", "arrow", "line"]))
            if kind == "arrow":
                arrows.add((tail, head))
            elif kind == "line":
                lines.add(frozenset((tail, head)))
    order = draw(st.permutations(nodes))
    return PartialGraph(tuple(order), frozenset(arrows), frozenset(lines))


def mutated(blob: bytes, rng: random.Random) -> bytes:
    at, more = (
        rng.randrange(len(blob)),
        bytes(rng.choices(b'0123456789abcdef",:{}[]-.eE \n\x00\xff', k=rng.randint(1, 3))),
    )
    return rng.choice(
        [
            blob[:at] + more + blob[at:],
            blob[:at] + blob[at + len(more) :],
            blob[:at] + more + blob[at + len(more) :],
            blob[:at],
            blob[:at] + bytes([blob[at] ^ (1 << rng.randrange(8))]) + blob[at + 1 :],
        ]
    )


printable = st.characters(exclude_categories=["C", "Zl", "Zp"])
"""Quotes, backslashes, emoji, letters from right to left, every space: all that takes up room in a line."""
name = st.text(printable, min_size=1, max_size=8).filter(lambda text: text != DOMAIN)
number = st.floats(-1e299, 1e299)
positive = st.floats(0, 1e299, exclude_min=True)
families = st.one_of(
    st.builds(Hermite, st.integers(2, 64), st.floats(0.01, 100)),
    st.builds(Fourier, st.integers(2, 64), st.floats(0.01, 100), st.integers(0, 2**63)),
)


@st.composite
def plans(draw) -> StudyPlan:
    names = draw(st.lists(name, min_size=1, max_size=4, unique=True))
    levels = st.lists(st.text(printable, max_size=6), min_size=1, max_size=4, unique=True).map(tuple)
    bulk = (st.none() | number, st.none() | positive)
    variables = [
        draw(
            st.one_of(
                st.builds(Continuous, st.just(n), number, positive, *bulk), st.builds(Categorical, st.just(n), levels)
            )
        )
        for n in names
    ]
    clients = draw(st.lists(st.text(printable, min_size=1, max_size=6), min_size=1, max_size=4, unique=True))
    return StudyPlan(tuple(variables), tuple(clients), draw(families), draw(st.floats(1, 100)))


@st.composite
def dags(draw, most: int = 8, changing: float = 0.3) -> PartialGraph:
    rng = random.Random(draw(st.integers(0, 2**32)))
    return random_dag(rng, draw(st.integers(1, most)), draw(st.floats(0, 5)), changing)


@st.composite
def partial_graphs(draw, most: int = 7) -> PartialGraph:
    """Acyclic arrows and any lines: what a noisy search may hand over."""
    dag = draw(dags(most))
    forgotten = draw(st.sets(st.sampled_from(sorted(dag.arrows)))) if dag.arrows else set()
    return PartialGraph(dag.nodes, dag.arrows - forgotten, frozenset(map(frozenset, forgotten)))
