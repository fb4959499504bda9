"""The evidence of categorical nodes: exact where pairs tell all, honest where they do not, and fair between models."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from scipy.special import gammaln

from fedcdh.inference.evidence import multinomial
from fedcdh.inference.evidence._label_tables import PRIOR_ROWS
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.evidence.multinomial import MultinomialScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Family
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

LETTERS = np.array(list("pqrstu"))


def cohort_of(tables: studies.Tables, levels: int | dict[str, int] = 3) -> Cohort:
    """Integer columns are labels, others numbers; the plan may name more levels than occur."""
    first = next(iter(tables.values()))
    width = levels if isinstance(levels, dict) else dict.fromkeys(first, levels)
    plan = StudyPlan(
        tuple(
            Categorical(name, tuple(LETTERS[: width[name]])) if column.dtype.kind == "i" else Continuous(name)
            for name, column in first.items()
        ),
        tuple(tables),
    )
    return add_up([summarize(as_labels(table), plan, client) for client, table in tables.items()], plan)


def as_labels(table: studies.Table) -> dict[str, object]:
    return {name: LETTERS[column] if column.dtype.kind == "i" else column for name, column in table.items()}


def evidence_of(tables: studies.Tables, levels: int | dict[str, int] = 3) -> MultinomialScore:
    cohort = cohort_of(tables, levels)
    return MultinomialScore.of(cohort, GaussianScore(Basis.of(cohort), noisy=False))


def score(evidence: MultinomialScore, node: str, parents: str = "") -> tuple[float, float]:
    return evidence([Family(node, frozenset(parents))])[0]


def draw(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """One level per row of probabilities."""
    return (rng.random(len(rows))[:, None] > rows.cumsum(axis=1)).sum(axis=1).clip(max=rows.shape[1] - 1)


def random_study(rng: np.random.Generator, sizes: tuple[int, ...], levels: int = 3, change: float = 0.0):
    """y with the parent a; b is noise. The rows of y's table are mixed with own ones, with the weight `change`."""
    common = rng.dirichlet(np.ones(levels), levels)
    tables = {}
    for k, size in enumerate(sizes):
        a, b = rng.integers(0, levels, size), rng.integers(0, levels, size)
        own = (1 - change) * common + change * rng.dirichlet(np.ones(levels), levels)
        tables[f"site{k}"] = {"a": a, "b": b, "y": draw(rng, own[a])}
    return tables


def table_of(tables: studies.Tables, names: str, levels: int) -> np.ndarray:
    pooled = np.zeros([levels] * len(names))
    for table in tables.values():
        np.add.at(pooled, tuple(table[name] for name in names), 1)
    return pooled


def bdeu(table: np.ndarray) -> float:
    """Of a table (levels, configurations), cell by cell."""
    cell, total = PRIOR_ROWS / table.size, 0.0
    for column in table.T:
        total += gammaln(cell * len(column)) - gammaln(cell * len(column) + column.sum())
        total += sum(gammaln(cell + count) - gammaln(cell) for count in column)
    return float(total)


# Exactness


def test_no_parent_or_one_is_the_dirichlet_multinomial_of_the_rows():
    tables = random_study(np.random.default_rng(0), (50, 7, 120))
    evidence = evidence_of(tables)
    assert score(evidence, "y")[0] == pytest.approx(bdeu(table_of(tables, "y", 3)[:, None]), abs=1e-9)
    assert score(evidence, "y", "a")[0] == pytest.approx(bdeu(table_of(tables, "ya", 3)), abs=1e-9)


def test_variables_share_one_table_whichever_is_the_node():
    rng = np.random.default_rng(19)
    levels = {"a": 2, "b": 3, "c": 2, "y": 3}
    tables = {f"site{k}": {name: rng.integers(0, n, 60) for name, n in levels.items()} for k in range(3)}
    evidence = evidence_of(tables, levels)
    families = [Family(node, frozenset(levels) - {node}) for node in levels]
    alone = [evidence([family])[0] for family in families]
    together = evidence([*families, Family("y", frozenset("ab"))])
    assert np.array(together[:4]) == pytest.approx(np.array(alone), abs=1e-9)


def test_the_two_directions_of_a_pair_have_the_same_evidence():
    evidence = evidence_of(random_study(np.random.default_rng(1), (40, 60)))
    forward = score(evidence, "a")[0] + score(evidence, "y", "a")[0]
    backward = score(evidence, "y")[0] + score(evidence, "a", "y")[0]
    assert forward == pytest.approx(backward, abs=1e-9)


# What must not matter


def mixed_study(rng: np.random.Generator, sizes: tuple[int, ...], effect: float = 1.5, shift: float = 0.0):
    """x → y ← a, z is noise; x and z are numbers."""
    tables = {}
    for k, size in enumerate(sizes):
        x, z, a = rng.standard_normal(size) + shift * k, rng.standard_normal(size), rng.integers(0, 3, size)
        y = (rng.logistic(size=size) < effect * x + (a == 1) - 0.5 * shift * effect * (len(sizes) - 1)).astype(int)
        tables[f"site{k}"] = {"x": x, "z": z, "a": a, "b": rng.integers(0, 3, size), "y": y}
    return tables


FAMILIES = [
    Family(node, frozenset(p)) for node in "ayb" for p in ("", "x", "xz") for p in (p, p + "ayb".replace(node, ""))
]


def test_the_order_of_clients_and_rows_does_not_matter():
    rng = np.random.default_rng(5)
    tables = mixed_study(rng, (40, 60, 25))
    moved = {
        client: {name: column[order] for name, column in tables[client].items()}
        for client in reversed(tables)
        for order in [rng.permutation(len(tables[client]["x"]))]
    }
    renamed = {f"another {9 - k}": table for k, table in enumerate(moved.values())}
    expected = np.array(evidence_of(tables)(FAMILIES))
    assert np.array(evidence_of(moved)(FAMILIES)) == pytest.approx(expected, abs=1e-9)
    assert np.array(evidence_of(renamed)(FAMILIES)) == pytest.approx(expected, abs=1e-9)
    assert np.array(evidence_of(tables)(FAMILIES[::-1]))[::-1] == pytest.approx(expected, abs=1e-9)


def test_parts_of_a_client_add_up():
    tables = mixed_study(np.random.default_rng(6), (40, 60, 25))
    whole = cohort_of(tables)
    parts = [
        summarize({name: np.asarray(column)[place] for name, column in as_labels(table).items()}, whole.plan, client)
        for client, table in tables.items()
        for place in (slice(0, 11), slice(11, None))
    ]
    added = add_up(parts, whole.plan)
    first = MultinomialScore.of(whole, GaussianScore(Basis.of(whole), noisy=False))(FAMILIES)
    assert MultinomialScore.of(added, GaussianScore(Basis.of(added), noisy=False))(FAMILIES) == first


def test_levels_that_no_row_has_do_not_matter():
    tables = mixed_study(np.random.default_rng(7), (40, 60), effect=0.5)
    expected = np.array(evidence_of(tables, 3)(FAMILIES))
    assert np.array(evidence_of(tables, 6)(FAMILIES)) == pytest.approx(expected, abs=1e-6)


def test_a_constant_target_has_nothing_to_explain():
    tables = mixed_study(np.random.default_rng(8), (40, 60))
    for table in tables.values():
        table["y"] = np.ones_like(table["y"])
    evidence = evidence_of(tables)
    for parents in ("", "a", "ab", "x", "axz"):
        assert score(evidence, "y", parents) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_a_constant_parent_tells_nothing():
    tables = random_study(np.random.default_rng(9), (40, 60))
    for table in tables.values():
        table["b"] = np.zeros_like(table["b"])
    evidence = evidence_of(tables)
    assert score(evidence, "y", "ab") == pytest.approx(score(evidence, "y", "a"), abs=1e-4)


def test_one_client_cannot_differ():
    evidence = evidence_of(mixed_study(np.random.default_rng(10), (80,)))
    for same, differing in evidence(FAMILIES):
        assert differing <= same + 1e-9


@pytest.mark.parametrize("limits", [{"MAX_CELLS": 27}, {"MIN_CELLS": 27, "ROWS_PER_CELL": 10}], ids=str)
def test_tables_too_large_are_no_way_out(monkeypatch, limits):
    rng = np.random.default_rng(11)
    tables = {f"site{k}": {n: rng.integers(0, 3, 80) for n in "abcdy"} for k in range(3)}
    for table in tables.values():
        table["y"] = np.where(rng.random(80) < 0.7, table["a"], table["y"])
    evidence = evidence_of(tables)
    for name, value in limits.items():
        monkeypatch.setattr(multinomial, name, value)
    large, best = score(evidence, "y", "abcd"), score(evidence, "y", "a")
    within = [score(evidence, "y", "a" + other) for other in "bcd"]
    assert all(value < max(other[place] for other in within) for place, value in enumerate(large))
    assert large < best


# Which model wins


def gains(count: int, make, *questions: tuple[str, str, str]) -> np.ndarray:
    """(simulations, questions): the evidence of y with the second parents minus the first, same or differing."""
    found = []
    for seed in range(count):
        evidence = evidence_of(make(np.random.default_rng([12, seed])))
        found.append([])
        for which, first, second in questions:
            place = ("same", "differing").index(which)
            found[-1].append(score(evidence, "y", second)[place] - score(evidence, "y", first)[place])
    return np.array(found)


def test_a_cause_raises_the_evidence_and_noise_lowers_it():
    questions = [
        ("same", "", "a"),
        ("same", "", "b"),
        ("same", "a", "ab"),
        ("differing", "", "a"),
        ("differing", "a", "ab"),
    ]
    found = gains(200, lambda rng: random_study(rng, (60, 60, 60)), *questions)
    means = found.mean(axis=0)
    assert means[0] > 5
    assert means[3] > 0
    assert means[1] < -3
    assert means[2] < -5
    assert means[4] < -5
    assert (found[:, 1] > 0).mean() < 0.05


@pytest.mark.parametrize("sizes", [(25, 25), (25,) * 6, (100,) * 6, (1000,) * 6, (10, 50, 400), (5000, 5000)], ids=str)
def test_mechanisms_are_told_to_differ_only_if_they_do(sizes):
    def against(change: float, count: int) -> np.ndarray:
        found = []
        for seed in range(count):
            evidence = evidence_of(random_study(np.random.default_rng([13, seed]), sizes, change=change))
            found.append([np.subtract(*score(evidence, "y", parents)[::-1]) for parents in ("", "a", "ab")])
        return np.array(found)

    nothing = against(0.0, 200)
    assert (nothing.mean(axis=0) < -0.3).all()
    assert (nothing > 0).mean() < 0.15
    something = against(0.5, 60)[:, 1]
    assert something.mean() > nothing[:, 1].mean() + 0.3
    if len(sizes) > 2:
        assert something.mean() > 0.5
    if min(sizes) >= 100:
        assert something.mean() > 10


def test_a_mechanism_that_is_certain_does_not_differ():
    rng = np.random.default_rng(14)
    tables = {f"site{k}": {n: (rng.random(500) < 0.1 + 0.1 * k).astype(int) for n in "ab"} for k in range(6)}
    for table in tables.values():
        table["y"] = table["a"] | table["b"]
    evidence = evidence_of(tables)
    same, differing = score(evidence, "y", "ab")
    assert differing == pytest.approx(same, abs=1e-3)
    assert same > score(evidence, "y", "a")[0] + 100


def test_a_number_can_cause_a_label():
    questions = [
        ("same", "a", "ax"),
        ("differing", "a", "ax"),
        ("same", "", "z"),
        ("same", "ax", "axz"),
        ("differing", "a", "az"),
    ]
    means = gains(60, lambda rng: mixed_study(rng, (60, 60, 60)), *questions).mean(axis=0)
    assert means[0] > 10
    assert means[1] > 10
    assert (means[2:] < -0.1).all()


@pytest.mark.parametrize(("sizes", "shift"), [((200,) * 3, 1.0), ((1000,) * 6, 0.5), ((25, 25), 1.0)], ids=str)
def test_a_shift_of_the_cause_is_not_a_change_of_the_effect(sizes, shift):
    found = []
    for seed in range(20):
        evidence = evidence_of(mixed_study(np.random.default_rng([15, seed]), sizes, shift=shift))
        found.append([np.subtract(*score(evidence, "y", parents)[::-1]) for parents in ("a", "ax")])
    assert np.mean(found, axis=0)[0] > 0
    assert np.mean(found, axis=0)[1] < -0.3
    assert (np.array(found)[:, 1] > 0).mean() <= 0.2


def test_a_change_of_the_effect_is_seen_beside_its_cause():
    found = []
    for seed in range(20):
        tables = mixed_study(np.random.default_rng([17, seed]), (200, 200, 200))
        for k, table in enumerate(tables.values()):
            flipped = np.random.default_rng([18, seed, k]).random(200) < 0.3 * k
            table["y"] = np.where(flipped, 1, table["y"])
        found.append(np.subtract(*score(evidence_of(tables), "y", "ax")[::-1]))
    assert np.mean(found) > 10


def test_the_gain_from_numbers_stays_below_the_entropy():
    tables = mixed_study(np.random.default_rng(16), (300, 300), effect=50.0)
    for table in tables.values():
        table["z"] = np.sign(table["x"]) * 1.0
        table["y"] = (table["x"] > 0).astype(int)
    evidence = evidence_of(tables)
    for place, value in enumerate(score(evidence, "y", "xz")):
        assert score(evidence, "y")[place] + 300 < value < 0
