"""Tables of labels: neither what is kept, nor what is asked for together, changes the evidence."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.inference.evidence import _label_tables
from fedcdh.inference.evidence._label_tables import LabelTables, _merge_shapes
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares

LEVELS = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2}


def tables_of(seed: int = 0, clients: int = 3, shares: RowShares = ALL_ROWS) -> LabelTables:
    """Counts of pairs at every client, of labels of which each depends on the one before; every level occurs."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum([*LEVELS.values()])
    levels = {name: np.arange(end - LEVELS[name], end) for name, end in zip(LEVELS, ends, strict=True)}
    counts = []
    for _ in range(clients):
        columns, last = [], rng.integers(0, 4, 200)
        for size in LEVELS.values():
            last = np.where(rng.random(200) < 0.6, last, rng.integers(0, 4, 200)) % size
            columns.append(np.eye(size)[last])
        rows = np.concatenate(columns, axis=1)
        counts.append(rows.T @ rows)
    return LabelTables(np.array(counts), levels, shares)


KEYS = [
    (node, *sorted(parents))
    for node in LEVELS
    for size in range(4)
    for parents in itertools.combinations(sorted(LEVELS.keys() - {node}), size)
]


def values(tables: LabelTables, keys: list[tuple[str, ...]]) -> np.ndarray:
    differing, shared = tables.differing(keys), tables.shared(keys)
    return np.array([[*shared[key], differing[key]] for key in keys])


@pytest.mark.parametrize("limits", [{}, {"MAX_KEPT_ELEMENTS": 0}, {"_BATCH_ELEMENTS": 1}, {"_MAX_EMPTY_ELEMENTS": 0}])
@pytest.mark.parametrize("clients", [1, 3])
def test_a_key_has_the_same_evidence_alone_and_among_others(monkeypatch, limits, clients):
    expected = np.concatenate([values(tables_of(clients=clients), [key]) for key in KEYS])
    for name, value in limits.items():
        monkeypatch.setattr(_label_tables, name, value)
    together = tables_of(clients=clients)
    assert values(together, KEYS) == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert values(together, KEYS[::-1])[::-1] == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_a_share_of_the_rows_is_scored_alike_alone_and_among_others():
    shares = RowShares(0.5, 0.2)
    expected = np.concatenate([values(tables_of(shares=shares), [key]) for key in KEYS])
    assert values(tables_of(shares=shares), KEYS) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_what_is_known_is_not_computed_again(monkeypatch):
    tables, completed = tables_of(), []
    original = _label_tables.complete_tables
    monkeypatch.setattr(_label_tables, "complete_tables", lambda pairs: completed.append(pairs) or original(pairs))
    tables.shared([("a", "b", "c"), ("d", "b", "c")])
    once = len(completed)
    tables.shared([("b", "a", "c"), ("a", "b", "c")])  # the same variables, and another node
    tables.differing([("a", "b", "c")])
    assert len(completed) == once > 0
    tables.shared([("e", "b", "c")])
    assert len(completed) > once


def test_the_oldest_tables_are_forgotten(monkeypatch):
    monkeypatch.setattr(_label_tables, "MAX_KEPT_ELEMENTS", 2 * 2 * 2 * 3 * 3)  # a, b, c at three clients, twice
    tables, completed = tables_of(), []
    original = _label_tables.complete_tables
    monkeypatch.setattr(_label_tables, "complete_tables", lambda pairs: completed.append(pairs) or original(pairs))
    for key in [("a", "b", "c"), ("b", "a", "c")]:
        tables.shared([key])
    assert len(completed) == 1
    for key in [("a", "b", "e"), ("a", "c", "d")]:  # the second is larger than what is left beside the first
        tables.shared([key])
    tables.shared([("c", "a", "b")])
    assert len(completed) == 4


shapes = st.lists(st.tuples(st.integers(2, 5), st.integers(2, 5), st.integers(2, 5)), unique=True, max_size=8)


@given(shapes, st.integers(1, 4), st.integers(1, 200))
def test_merged_shapes_hold_every_set_once(some, count, clients):
    sets = {shape: [(str(shape), str(number)) for number in range(count)] for shape in some}
    merged = _merge_shapes(sets, clients)
    where = {names: shape for shape, several in merged.items() for names in several}
    assert sorted(where) == sorted(names for several in sets.values() for names in several)
    assert sum(map(len, merged.values())) == count * len(some)
    for shape, several in sets.items():
        for names in several:
            assert all(own <= larger for own, larger in zip(shape, where[names], strict=True))
    used = sum(math.prod(shape) * len(several) for shape, several in sets.items())
    room = sum(math.prod(shape) * len(several) for shape, several in merged.items())
    assert (room - used) * clients <= _label_tables._MAX_EMPTY_ELEMENTS * max(0, len(some) - len(merged))


def test_tables_of_a_share_of_the_rows_keep_their_margins_and_draw_clients_together():
    rng = np.random.default_rng(8)
    tables = rng.integers(0, 30, (3, 4, 2, 5)).astype(float)  # levels, configurations, keys, clients
    some = _label_tables._count_share(tables, RowShares(0.4, 0.1))
    assert some.sum(axis=-1) == pytest.approx(0.4 * tables.sum(axis=-1))
    assert some.sum(axis=(0, 1)) == pytest.approx(0.4 * tables.sum(axis=(0, 1)))
    shares, drawn = (one / one.sum(axis=(0, 1)) for one in (tables, some))
    pooled_shares = tables.sum(axis=-1, keepdims=True) / tables.sum(axis=(0, 1, 3))[:, None]
    assert drawn - pooled_shares == pytest.approx(0.5 * (shares - pooled_shares))
    assert _label_tables._count_share(tables, ALL_ROWS) is tables
