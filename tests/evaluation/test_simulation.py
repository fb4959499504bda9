from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.errors import SettingsError
from fedcdh.evaluation.simulation import AUTHORS, PAPER, Dialect, MechanismModel, Simulation, identity, simulate, sinc
from fedcdh.protocols import DOMAIN

MODELS: tuple[MechanismModel, ...] = ("linear", "general")
sizes = st.tuples(st.integers(1, 9), st.integers(0, 2**32)).flatmap(
    lambda drawn: st.tuples(st.just(drawn[0]), st.integers(0, drawn[0] * (drawn[0] - 1) // 2), st.just(drawn[1]))
)


def acyclic(arrows: frozenset[tuple[str, str]]) -> bool:
    left = {end for arrow in arrows for end in arrow}
    while left:
        roots = {name for name in left if not any(head == name and tail in left for tail, head in arrows)}
        if not roots:
            return False
        left -= roots
    return True


def same_tables(first: Simulation, second: Simulation) -> bool:
    return list(first.tables) == list(second.tables) and all(
        np.array_equal(first.tables[client], second.tables[client]) for client in first.tables
    )


@given(sizes)
@settings(max_examples=40, deadline=None)
def test_the_graph_is_acyclic_and_has_exactly_as_many_edges_as_asked_for(size: tuple[int, int, int]):
    variables, edges, seed = size
    study = simulate(variables=variables, edges=edges, changing=min(variables, 2), seed=seed, clients=2, rows=2)
    assert len(study.arrows) == len({frozenset(arrow) for arrow in study.arrows}) == edges
    assert acyclic(study.arrows)
    assert len(study.changing) == min(variables, 2)
    assert study.augmented == study.arrows | {(DOMAIN, name) for name in study.changing}


@pytest.mark.parametrize("dialect", [PAPER, AUTHORS])
@pytest.mark.parametrize("model", MODELS)
def test_same_seed_same_bytes_other_seed_other_bytes(model: MechanismModel, dialect: Dialect):
    first, again, other = (simulate(model, seed=seed, dialect=dialect) for seed in (7, 7, 8))
    assert same_tables(first, again)
    assert (first.arrows, first.changing) == (again.arrows, again.changing)
    assert not same_tables(first, other)


@pytest.mark.parametrize("model", MODELS)
def test_more_rows_for_one_client_leave_all_else_as_it_was(model: MechanismModel):
    before = simulate(model, clients=3, rows=[20, 20, 20], seed=3)
    after = simulate(model, clients=3, rows=[20, 50, 20], seed=3)
    assert (before.arrows, before.changing) == (after.arrows, after.changing)
    for client in ("client01", "client03"):
        assert np.array_equal(before.tables[client], after.tables[client])
    assert np.array_equal(before.tables["client02"], after.tables["client02"][:20])


def test_one_more_client_leaves_the_others_as_they_were():
    few, many = simulate(clients=3, seed=4), simulate(clients=5, seed=4)
    assert all(np.array_equal(few.tables[client], many.tables[client]) for client in few.tables)


def test_a_denser_graph_contains_the_sparser_one_and_models_share_their_graph():
    assert simulate(edges=5, seed=5).arrows < simulate(edges=9, seed=5).arrows
    assert simulate("linear", seed=5).arrows == simulate("general", seed=5).arrows
    assert simulate("linear", seed=5).changing == simulate("general", seed=5).changing


def test_names_only_rename():
    plain, named = simulate(variables=3, seed=6), simulate(variables=3, seed=6, names=["x", "y", "z"])
    assert same_tables(plain, named)
    new = dict(zip(plain.names, named.names, strict=True))
    assert {(new[tail], new[head]) for tail, head in plain.arrows} == named.arrows


def test_all_graphs_are_drawn_equally_often():
    """Three variables and one edge: six graphs, each in a sixth of the seeds."""
    drawn = [min(simulate(variables=3, edges=1, clients=2, rows=1, seed=seed).arrows) for seed in range(600)]
    counts = [drawn.count(arrow) for arrow in permutations(("v1", "v2", "v3"), 2)]
    assert sum(counts) == 600
    assert stats.chisquare(counts).pvalue > 1e-3


def parameters(study: Simulation, client: str, name: str) -> np.ndarray:
    """Strengths of all causes of a variable and its noise's deviation, by least squares at one client."""
    index = {label: i for i, label in enumerate(study.names)}
    table = study.tables[client]
    causes = [index[tail] for tail, head in sorted(study.arrows) if head == name]
    design = np.column_stack([np.ones(len(table)), table[:, causes]])
    solution, *_ = np.linalg.lstsq(design, table[:, index[name]], rcond=None)
    return np.append(solution[1:], np.std(table[:, index[name]] - design @ solution))


@pytest.mark.parametrize(("dialect", "largest_deviation"), [(PAPER, np.sqrt(2)), (AUTHORS, 2.0)])
def test_only_changing_mechanisms_differ_between_clients(dialect: Dialect, largest_deviation: float):
    study = simulate(variables=5, clients=4, rows=20_000, seed=11, dialect=dialect)
    for name in study.names:
        found = np.array([parameters(study, client, name) for client in study.tables])
        strengths, deviations = found[:, :-1], found[:, -1]
        assert np.all((strengths > 0.45) & (strengths < 2.55))
        if name in study.changing:
            assert np.all(np.ptp(found, axis=0) > 0.1)
        else:
            assert np.all(np.ptp(found, axis=0) < 0.1)
            assert np.all((deviations > 0.97) & (deviations < largest_deviation * 1.03))


def test_a_changing_root_changes_its_noise_only():
    study = simulate(variables=2, edges=0, changing=1, clients=5, rows=20_000, seed=2)
    (name,) = study.changing
    column = study.names.index(name)
    assert all(abs(table[:, column].mean()) < 0.1 for table in study.tables.values())
    assert np.ptp([table[:, column].std() for table in study.tables.values()]) > 0.3


def nothing(x: np.ndarray) -> np.ndarray:
    return np.zeros_like(x)


def hundred(x: np.ndarray) -> np.ndarray:
    return np.full_like(x, 100.0)


def functions_in_use(dialect: Dialect, changing: int, seed: int) -> int:
    """How many of two functions, told apart by the level of their effect, are in use at twelve clients."""
    two = replace(dialect, functions=(nothing, hundred))
    study = simulate("general", variables=2, edges=1, changing=changing, clients=12, rows=5, seed=seed, dialect=two)
    ((_, head),) = study.arrows
    effect = study.names.index(head)
    return len({table[:, effect].mean() > 25 for table in study.tables.values()})


def test_in_the_paper_a_change_keeps_the_function_and_in_the_program_it_does_not():
    for seed in range(5):
        assert functions_in_use(PAPER, changing=2, seed=seed) == 1, f"seed {seed}"
        assert functions_in_use(AUTHORS, changing=0, seed=seed) == 1, f"seed {seed}"
        assert functions_in_use(AUTHORS, changing=2, seed=seed) == 2, f"seed {seed}"


def test_sinc_is_that_of_analysis():
    x = np.array([-2.0, 0.0, 0.5, 3.0])
    assert sinc(x) == pytest.approx([np.sin(2) / 2, 1.0, np.sin(0.5) / 0.5, np.sin(3) / 3])
    assert sinc in PAPER.functions
    assert sinc not in AUTHORS.functions
    assert identity in PAPER.functions


@pytest.mark.parametrize("model", MODELS)
def test_standardising_is_common_to_all_clients(model: MechanismModel):
    study = simulate(model, clients=3, rows=[50, 80, 30], seed=9)
    pooled = np.concatenate(list(study.standardised().tables.values()))
    assert pooled.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-9)
    assert pooled.std(axis=0) == pytest.approx(np.ones(6))
    for client, table in study.tables.items():
        for column in range(6):
            moved = study.standardised().tables[client][:, column]
            assert np.corrcoef(moved, table[:, column])[0, 1] == pytest.approx(1)
    assert study.standardised().arrows == study.arrows


def test_columns_make_data_frames():
    study = simulate(clients=2, rows=[3, 4], variables=3)
    for frame in (pd.DataFrame(study.columns()), pl.DataFrame(study.columns())):
        assert list(frame.columns) == ["site", "v1", "v2", "v3"]
        assert frame["site"].to_list() == ["client01"] * 3 + ["client02"] * 4
        assert frame["v2"].to_list() == np.concatenate(list(study.tables.values()))[:, 1].tolist()


def test_a_simulation_is_a_value():
    study = simulate()
    with pytest.raises(ValueError, match="read-only"):
        study.tables["client01"][0, 0] = 1.0
    assert same_tables(pickle.loads(pickle.dumps(study)), study)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"variables": 4, "edges": 7}, "found 7 edges; 4 variables have room for 0 to 6"),
        ({"variables": 4, "edges": -1}, "found -1 edges"),
        ({"variables": 0}, "found 0 variables"),
        ({"variables": 3, "changing": 4}, "found 4 changing variables; expected 0 to 3"),
        ({"clients": 1}, "a single client"),
        ({"clients": 0}, "found 0 clients"),
        ({"clients": 3, "rows": [5, 5]}, "2 row counts for 3 clients"),
        ({"rows": 0}, "at least 1"),
        ({"seed": -1}, "found seed -1"),
        ({"names": ["a", "b"]}, "2 names for 6 variables"),
        ({"variables": 2, "names": ["a", "a"]}, "names that differ"),
        ({"variables": 2, "names": ["a", DOMAIN]}, "names that differ"),
        ({"model": "cubic"}, "expected one of linear, general"),
    ],
)
def test_what_cannot_be_simulated_is_refused(arguments: dict[str, object], words: str):
    with pytest.raises(ValueError, match=words):
        simulate(**arguments)  # type: ignore[arg-type]


def test_a_study_without_scale_or_with_a_taken_name_is_refused():
    single = simulate(variables=2, clients=1, rows=1, changing=0)
    with pytest.raises(ValueError, match="does not vary"):
        single.standardised()
    with pytest.raises(ValueError, match="expected another name"):
        single.columns(client_column="v1")


def test_numbers_too_large_to_hold_are_refused():
    squares = Dialect((np.square,), PAPER.deviation, PAPER.function_key)
    with pytest.raises(ValueError, match="take another seed"):
        simulate("general", variables=20, edges=190, dialect=squares)


def test_an_intervention_removes_the_causes_of_one_variable_at_one_client():
    """Its column is its noise there, everything before it stays, and its mechanism counts as changing."""
    for seed in range(10):
        plain = simulate(variables=5, clients=4, rows=30, changing=1, seed=seed)
        cut = simulate(variables=5, clients=4, rows=30, changing=1, seed=seed, interventions=2)
        assert len(cut.targets) == 2
        assert cut.arrows == plain.arrows
        assert cut.changing == plain.changing | set(cut.targets.values())
        for client, table in plain.tables.items():
            target = cut.targets.get(client)
            below = effects_of(plain.arrows, target) if target else set()
            for column, name in enumerate(plain.names):
                same = np.array_equal(table[:, column], cut.tables[client][:, column])
                assert same == (name not in below), f"seed {seed}, {client}, {name}"


def test_a_target_is_uncorrelated_with_its_former_causes():
    study = simulate(variables=4, clients=2, rows=20_000, changing=0, edges=6, seed=3, interventions=1)
    ((client, target),) = study.targets.items()
    columns = dict(zip(study.names, study.tables[client].T, strict=True))
    causes = [tail for tail, head in study.arrows if head == target]
    assert causes
    assert all(abs(np.corrcoef(columns[cause], columns[target])[0, 1]) < 0.03 for cause in causes)
    assert study.changing == {target}


def test_one_more_client_moves_no_target():
    few = simulate(clients=4, interventions=3, seed=5)
    more = simulate(clients=5, interventions=3, seed=5)
    common = set(few.targets) & set(more.targets)
    assert common
    assert all(few.targets[client] == more.targets[client] for client in common)


@pytest.mark.parametrize("interventions", [-1, 3])
def test_interventions_leave_one_client_alone(interventions):
    with pytest.raises(SettingsError, match="interventions"):
        simulate(clients=3, interventions=interventions)
    with pytest.raises(SettingsError, match="edge"):
        simulate(clients=3, edges=0, interventions=1)


def effects_of(arrows, target):
    """The target and everything that it affects."""
    found = {target}
    while new := {head for tail, head in arrows if tail in found} - found:
        found |= new
    return found
