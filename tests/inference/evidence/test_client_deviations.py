"""Deviations of the log likelihood by client, against what the rows give, and draws of clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from residual_studies import linear_pair, plan_of, score_of, split_rows

from fedcdh.inference.evidence.client_deviations import (
    CLIENTS_PER_CLIENT,
    OWN_WEIGHT_ROWS,
    draw_client_weights,
    measure_deviations,
)
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family

FAMILIES = [
    Family(node, frozenset(parents) | domain)
    for node, parents in (("x", ""), ("y", ""), ("y", "x"), ("x", "y"))
    for domain in (frozenset[str](), frozenset({DOMAIN}))
]


def deviations_of(score, families=FAMILIES):
    return measure_deviations(families, score.score, score)


def from_rows(tables, target, columns, differs):
    """Return each client's Gaussian log likelihood in a pooled regression, less its share of the whole."""

    def centre(values):
        return values - values.mean() if differs else values

    def stack(name):
        return np.concatenate([centre(table[name]) for table in tables.values()])

    sizes = [len(table[target]) for table in tables.values()]
    y = stack(target) if differs else stack(target) - stack(target).mean()
    design = np.column_stack([stack(name) - stack(name).mean() for name in columns] or [np.zeros(len(y))])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    squares = np.array([(part**2).sum() for part in np.split(residual, np.cumsum(sizes)[:-1])])
    if differs and columns:
        scaled = design / np.concatenate([table_columns(table, columns) for table in tables.values()]).std(axis=0)
        parts = zip(*(np.split(one, np.cumsum(sizes)[:-1]) for one in (scaled, residual)), strict=True)
        squares = np.array([leave_by_own_weights(*part) for part in parts])
    rows = np.array(sizes, dtype=float)
    parts = -rows / 2 * np.log(squares / rows) if differs else -squares / (squares.sum() / rows.sum()) / 2
    return parts - rows / rows.sum() * parts.sum()


def table_columns(table, columns):
    return np.column_stack([table[name] for name in columns])


def leave_by_own_weights(design, residual):
    """Return the sum of squares that a client's own weights leave, drawn towards the common ones."""
    moves = np.linalg.solve(design.T @ design + OWN_WEIGHT_ROWS * np.eye(design.shape[1]), design.T @ residual)
    return ((residual - design @ moves) ** 2).sum()


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(40, 120), min_size=2, max_size=6))
def test_gaussian_deviations_are_those_of_the_rows(seed, sizes):
    tables = studies.numbers(seed, sizes, count=3)
    names = [*next(iter(tables.values()))]
    families = [
        Family(names[0], frozenset(names[1 : 1 + count]) | domain)
        for count in range(3)
        for domain in (frozenset[str](), frozenset({DOMAIN}))
    ]
    found = deviations_of(score_of(tables), families).linear
    for family, row in zip(families, found, strict=True):
        expected = from_rows(tables, names[0], sorted(family.parents - {DOMAIN}), DOMAIN in family.parents)
        assert row == pytest.approx(expected, abs=0.05 + 0.02 * abs(expected).max())


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), noise=st.sampled_from(["normal", "exponential", "uniform", "two bumps"]))
def test_deviations_of_all_clients_cancel(seed, noise):
    score = score_of(split_rows(linear_pair(noise, seed, 600), 5))
    score(FAMILIES)
    for part in deviations_of(score):
        assert abs(part.sum(axis=1)).max() < 1e-6 * (1 + abs(part).max())


def test_clients_with_the_same_rows_do_not_disagree():
    table = linear_pair("exponential", 0, 300)
    score = score_of({f"site{number}": table for number in range(5)})
    score(FAMILIES)
    assert max(abs(part).max() for part in deviations_of(score)) < 1e-6 * 300


def test_the_shape_of_the_noise_counts():
    """At one of five clients y causes x: it disagrees about the direction, which only the noise tells."""
    tables = split_rows(linear_pair("exponential", 1, 2000), 5)
    tables["site3"] = {"x": tables["site3"]["y"], "y": tables["site3"]["x"]}
    score = score_of(tables)
    score(FAMILIES)
    full = dict(zip(FAMILIES, deviations_of(score).full, strict=True))
    forward = full[Family("x")] + full[Family("y", frozenset("x"))]
    backward = full[Family("y")] + full[Family("x", frozenset("y"))]
    lead = forward - backward
    assert lead.argmin() == 3
    assert lead[3] < -10
    assert np.delete(lead, 3).min() > 0


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), rows=st.sampled_from([200, 2000]))
def test_effects_that_differ_say_nothing_about_the_direction(seed, rows):
    """With weights of its own, every client fits x → y and y → x alike, if both mechanisms may change."""
    random, tables = np.random.default_rng(seed), {}
    for client in range(6):
        x = random.normal(size=rows)
        tables[f"site{client}"] = {"x": x, "y": random.uniform(-2, 2) * x + random.normal(size=rows)}
    score = score_of(tables)
    found = dict(zip(FAMILIES, deviations_of(score).linear, strict=True))
    changes = frozenset({DOMAIN})
    forward = found[Family("x", changes)] + found[Family("y", frozenset("x") | changes)]
    backward = found[Family("y", changes)] + found[Family("x", frozenset("y") | changes)]
    assert abs(forward - backward).max() < 8


def test_draws_cancel_and_depend_on_content_only():
    tables = studies.numbers(3, (60, 50, 40, 60, 50))
    weights = draw_client_weights(Basis.of(studies.cohort_of(tables)), 3, [0])
    assert weights.shape == (6, 5)
    assert abs(weights.sum(axis=0)).max() == 0
    assert abs(weights.sum(axis=1)).max() < 1e-12
    assert weights.min() < 0 < weights.max()
    order = [*reversed(tables)]
    renamed = {f"c{number}": tables[name] for number, name in enumerate(order)}
    again = draw_client_weights(Basis.of(studies.cohort_of(renamed)), 3, [0])
    assert np.array_equal(again, weights[:, ::-1])


def test_draws_have_the_variance_of_the_clients_drawn():
    basis = Basis.of(studies.cohort_of(studies.numbers(3, (60, 50, 40, 60, 50))))
    weights = draw_client_weights(basis, 4000, [1])
    assert weights.var() == pytest.approx((1 - 1 / 5) / CLIENTS_PER_CLIENT, rel=0.05)


def spread_beside_rows(draw, clients=20, rows=60, seeds=40):
    """Return the variance of an evidence by its spread over clients, relative to Vuong's by rows, over many studies."""
    found, by_rows = [], []
    for seed in range(seeds):
        tables = {f"c{client:02}": draw(np.random.default_rng([seed, client]), rows) for client in range(clients)}
        pooled = studies.pooled_table(tables)
        x, y = (pooled[name] - pooled[name].mean() for name in "xy")
        left = y - x * (x @ y) / (x @ x)
        gains = (y / y.std()) ** 2 / 2 - (left / left.std()) ** 2 / 2  # of each row, up to a constant
        by_rows.append(len(y) * gains.var())
        plan = plan_of(tables)
        counted = tuple(replace(variable, product_share=1.0, mean_share=1.0) for variable in plan.variables)
        score = score_of(tables, plan=replace(plan, variables=counted))  # as if nobody knew that rows depend
        without, with_x = deviations_of(score, [Family("y"), Family("y", frozenset("x"))]).linear
        found.append(((with_x - without) ** 2).sum() * clients / (clients - 1))
    return np.mean(found) / np.mean(by_rows)


def independent_rows(random, rows):
    x, noise = random.standard_normal((2, rows))
    return {"x": x, "y": 0.5 * x + noise}


def rows_in_time(random, rows):
    x, noise = random.standard_normal((2, rows + 50))
    for row in range(1, rows + 50):
        x[row] += 0.8 * x[row - 1]
        noise[row] += 0.8 * noise[row - 1]
    return {"x": x[50:], "y": 0.5 * x[50:] + noise[50:]}


def test_the_spread_over_clients_is_the_variance_of_rows_where_these_are_independent():
    """Vuong's variance needs a sum of squares over rows; clients give the same, and see that rows depend as well."""
    assert spread_beside_rows(independent_rows) == pytest.approx(1.0, abs=0.15)
    assert spread_beside_rows(rows_in_time) > 1.8
