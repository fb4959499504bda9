"""Strengths of edges, against regressions on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.effect_sizes import find_weak_arrows, measure_strengths, shows_at_clients, smallest_strengths
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.aggregation import Aggregate

COUNTS = st.integers(2, 8)
COLLIDER = PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")])


def linear_tables(seed, slopes=((1.0, 0.5),) * 3, rows=300):
    """Return x and y that depend on each other a little, and z with slopes of its own at every client."""
    tables = {}
    for client, (of_x, of_y) in enumerate(slopes):
        x, y, e = np.random.default_rng([seed, client]).standard_normal((3, rows))
        y = y + 0.4 * x
        tables[f"c{client}"] = {"x": x, "y": y, "z": of_x * x + of_y * y + e}
    return tables


def basis_of(tables, linear=True):
    basis = Basis.of(studies.cohort_of(tables))
    return replace(basis, predictors=basis.targets) if linear else basis


def left_by(target, columns):
    """Return the residual sum of squares of a regression with a constant, and its parameters."""
    design = np.column_stack([np.ones(len(target)), *columns])
    return float(((target - design @ np.linalg.lstsq(design, target, rcond=None)[0]) ** 2).sum()), design.shape[1]


def adjusted_share(tables, target, others, cause):
    """Return the adjusted partial R² of regressions, one for each table; their sums of squares are added up."""
    found = np.array(
        [
            [left_by(table[target], [table[name] for name in names]) for names in (others, [*others, cause])]
            for table in tables
        ]
    ).sum(axis=0)
    rows = sum(len(table[target]) for table in tables)
    (before, few), (after, more) = found
    return max(0.0, 1 - (after / (rows - more)) / (before / (rows - few)))


def pool(tables):
    return {name: np.concatenate([table[name] for table in tables.values()]) for name in next(iter(tables.values()))}


@settings(max_examples=15)
@given(st.integers(0, 999), st.floats(-2, 2), st.floats(-2, 2))
def test_strengths_are_those_of_a_regression_on_all_rows(seed, of_x, of_y):
    tables = linear_tables(seed, ((of_x, of_y),) * 3)
    found = measure_strengths(COLLIDER, basis_of(tables))
    assert found.keys() == COLLIDER.arrows
    for cause, other in (("x", "y"), ("y", "x")):
        assert found[cause, "z"] == pytest.approx(adjusted_share([pool(tables)], "z", [other], cause), abs=1e-4)
        assert 0 <= found[cause, "z"] <= 1


@settings(max_examples=15)
@given(st.integers(0, 999), st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=2, max_size=4))
def test_where_mechanisms_differ_every_client_has_a_regression_of_its_own(seed, slopes):
    tables = linear_tables(seed, slopes)
    dag = PartialGraph.from_dag((DOMAIN, *"xyz"), [*COLLIDER.arrows, (DOMAIN, "z")])
    found = measure_strengths(dag, basis_of(tables))
    assert found.keys() == COLLIDER.arrows  # the domain has no strength
    for cause, other in (("x", "y"), ("y", "x")):
        assert found[cause, "z"] == pytest.approx(adjusted_share([*tables.values()], "z", [other], cause), abs=1e-4)


def test_effects_of_opposite_sign_are_found_where_the_mechanism_differs():
    tables = linear_tables(0, [(1.0, 0.0), (-1.0, 0.0)])
    same, differs = (PartialGraph.from_dag((DOMAIN, *"xyz"), [("x", "z"), *more]) for more in ([], [(DOMAIN, "z")]))
    assert measure_strengths(same, basis_of(tables))["x", "z"] < 0.02
    assert measure_strengths(differs, basis_of(tables))["x", "z"] > 0.4


def test_variables_that_are_independent_explain_about_nothing():
    strengths = []
    for seed in range(10):
        tables = linear_tables(seed, [(0.0, 0.0)] * 3)
        strengths += measure_strengths(COLLIDER, basis_of(tables, linear=False)).values()
    assert max(strengths) < 0.02  # of 900 rows
    assert strengths.count(0.0) >= 5  # the correction makes about half of them negative


def test_curved_effects_count_as_far_as_features_show_them():
    tables = {}
    for client in range(3):
        x, y, e = np.random.default_rng(client).standard_normal((3, 300))
        tables[f"c{client}"] = {"x": x, "y": y, "z": x**2 - 1 + e}
    found = measure_strengths(COLLIDER, basis_of(tables, linear=False))
    assert found["x", "z"] == pytest.approx(2 / 3, abs=0.06)  # a variance of 2, and noise of 1
    assert measure_strengths(COLLIDER, basis_of(tables))["x", "z"] < 0.1


def test_labels_as_causes_and_as_effects():
    tables = studies.mixed(0, (200, 150))
    basis = basis_of(tables, linear=False)
    names = [*tables["clinic a"]]
    dag = PartialGraph(names)
    every = [(tail, head) for tail in names for head in names if tail != head]
    found = measure_strengths(dag, basis, every)
    assert found.keys() == set(every)
    assert all(0 <= strength <= 1 for strength in found.values())
    assert max(found.values()) > 0.1


def test_arrows_outside_the_dag_are_measured_given_the_causes_in_it():
    tables = linear_tables(1)
    dag = PartialGraph.from_dag("xyz", [("x", "z")])
    found = measure_strengths(dag, basis_of(tables), [("y", "z")])
    assert [*found.values()] == pytest.approx([adjusted_share([pool(tables)], "z", ["x"], "y")], abs=1e-4)


def test_copies_and_constants_have_strengths_between_nothing_and_all():
    tables = linear_tables(2)
    for table in tables.values():
        table["x"], table["z"] = table["y"].copy(), np.ones(len(table["y"]))
    found = measure_strengths(COLLIDER, basis_of(tables, linear=False))
    assert set(found.values()) == {0.0}
    for table in tables.values():
        table["z"] = table["y"] * 2.0
    found = measure_strengths(PartialGraph.from_dag("yz", [("y", "z")]), basis_of(tables))
    assert found["y", "z"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("differs", [False, True])
def test_sums_over_clients_have_strengths_as_well(differs):
    """Clients whose effects are the same: the sum within clients says as much as their own moments."""
    tables = linear_tables(3)
    dag = PartialGraph.from_dag((DOMAIN, *"xyz"), [*COLLIDER.arrows, *([(DOMAIN, "z")] if differs else [])])
    cohort = studies.cohort_of(tables)
    alone, summed = (measure_strengths(dag, Basis.of(known)) for known in (cohort, Aggregate.of(cohort)))
    for arrow, strength in alone.items():
        assert summed[arrow] == pytest.approx(strength, abs=0.02)


def test_a_client_with_fewer_rows_than_columns_breaks_nothing():
    tables = linear_tables(4) | {"small": {name: column[:2] for name, column in linear_tables(5)["c0"].items()}}
    dag = PartialGraph.from_dag((DOMAIN, *"xyz"), [*COLLIDER.arrows, (DOMAIN, "z")])
    found = measure_strengths(dag, basis_of(tables, linear=False))
    assert found["x", "z"] == pytest.approx(measure_strengths(dag, basis_of(linear_tables(4)))["x", "z"], abs=0.05)


def chain_tables(seed, rows=400):
    """Return x → y → z at three clients."""
    tables = {}
    for client in range(3):
        x, e, f = np.random.default_rng([seed, client]).standard_normal((3, rows))
        y = 0.9 * x + e
        tables[f"c{client}"] = {"x": x, "y": y, "z": 0.9 * y + f}
    return tables


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_the_smallest_strength_is_that_of_some_set_of_neighbours(seed):
    tables = linear_tables(seed)
    found = smallest_strengths(COLLIDER, basis_of(tables))
    rows = pool(tables)
    for cause, other in (("x", "y"), ("y", "x")):
        expected = min(
            adjusted_share([rows], target, given_names, tail)
            for target, tail in (("z", cause), (cause, "z"))
            for given_names in ([], [other])
        )
        assert found[cause, "z"] == pytest.approx(expected, abs=2e-3)
    assert all(
        found[arrow] <= strength + 1e-12 for arrow, strength in measure_strengths(COLLIDER, basis_of(tables)).items()
    )


def test_an_edge_that_another_variable_explains_has_no_smallest_strength():
    """The edge x → z is false: given x alone it is large, given y it is nothing."""
    dag = PartialGraph.from_dag("xyz", [("x", "z"), ("z", "y"), ("x", "y")])
    for seed in range(5):
        basis = basis_of(chain_tables(seed))
        assert measure_strengths(dag, basis)["x", "z"] > 0.2
        assert smallest_strengths(dag, basis)["x", "z"] < 0.01
        assert smallest_strengths(dag, basis)["x", "y"] > 0.1


def test_of_two_causes_that_say_the_same_one_stays():
    """Each explains less than 2 % given the other, and nearly all of the effect alone."""
    for seed in range(5):
        tables = {}
        for client in range(3):
            x, e, noise = np.random.default_rng([seed, client]).standard_normal((3, 1000))
            tables[f"c{client}"] = {"x": x, "y": x + 0.02 * e, "z": x + noise}
        basis = basis_of(tables)
        assert max(measure_strengths(COLLIDER, basis).values()) < 0.02

        def measure(dag, basis=basis):
            return measure_strengths(dag, basis)

        assert len(find_weak_arrows(COLLIDER, 0.02, measure)) == 1
        assert find_weak_arrows(COLLIDER, 0.02, measure, COLLIDER.arrows) == {}
        assert len(find_weak_arrows(COLLIDER, 0.9, measure)) == 2


def gains_of_rows(tables, target, others, cause):
    """Return by how much the mean square at each client falls with the cause, predicted from other clients' rows."""

    def centred(table, names):
        return np.column_stack([table[name] - table[name].mean() for name in names]) if names else None

    found = []
    for here, table in tables.items():
        rest, squares = [one for name, one in tables.items() if name != here], []
        for names in (others, [*others, cause]):
            left = centred(table, [target])[:, 0]
            if names:
                design = np.vstack([centred(one, names) for one in rest])
                response = np.concatenate([centred(one, [target])[:, 0] for one in rest])
                left = left - centred(table, names) @ np.linalg.lstsq(design, response, rcond=None)[0]
            squares.append((left**2).mean())
        found.append(squares[0] - squares[1])
    return np.array(found)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    slope=st.sampled_from([0.0, 0.1, 0.3]),
    spread=st.sampled_from([0.0, 0.2]),
    clients=COUNTS,
)
def test_an_edge_shows_if_a_further_client_would_show_it(seed, slope, spread, clients):
    own = np.random.default_rng(seed).normal(size=clients) * spread + slope
    tables = linear_tables(seed, [(1.0, float(one)) for one in own])
    gains = gains_of_rows(tables, "z", ["x"], "y")
    bound = gains.mean() - stats.t.ppf(0.9, clients - 1) * gains.std(ddof=1) * np.sqrt(1 + 1 / clients)
    if abs(bound) > 0.02 * abs(gains).max():
        assert shows_at_clients(COLLIDER, basis_of(tables), ("y", "z")) == (bound > 0)


def test_a_weak_edge_at_all_clients_shows_and_one_at_few_does_not():
    everywhere = basis_of(linear_tables(1, [(1.0, 0.15)] * 10, rows=3000))
    at_two = basis_of(linear_tables(1, [(1.0, 0.5)] * 2 + [(1.0, 0.0)] * 8, rows=3000))
    both = [measure_strengths(COLLIDER, basis)["y", "z"] for basis in (everywhere, at_two)]
    assert max(both) < 0.03
    assert min(both) > 0.005
    assert shows_at_clients(COLLIDER, everywhere, ("y", "z"))
    assert not shows_at_clients(COLLIDER, at_two, ("y", "z"))


def test_sums_and_single_clients_show_nothing():
    tables = linear_tables(1, [(1.0, 0.5)] * 3)
    assert shows_at_clients(COLLIDER, basis_of(tables), ("y", "z"))
    total = Basis.of(Aggregate.of(studies.cohort_of(tables)))
    assert not shows_at_clients(COLLIDER, total, ("y", "z"))
    assert not shows_at_clients(COLLIDER, basis_of({"c0": tables["c0"]}), ("y", "z"))


def test_weak_arrows_that_show_stay_down_to_a_quarter():
    strengths = {("x", "z"): 0.012, ("y", "z"): 0.004}

    def measure(dag):
        return {arrow: strengths[arrow] for arrow in dag.arrows}

    assert find_weak_arrows(COLLIDER, 0.02, measure, (), lambda dag, arrow: True) == {("y", "z"): 0.004}
    assert find_weak_arrows(COLLIDER, 0.02, measure) == strengths
    assert find_weak_arrows(COLLIDER, 0.0, measure, (), lambda dag, arrow: True) == {}
