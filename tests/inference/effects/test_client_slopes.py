"""Slopes from summaries, against least squares on the rows as the plan encodes them."""

from dataclasses import replace

import numpy as np
import pytest
from encoded_rows import encoded
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy_studies import a_plan, noisy_chains
from studies import cohort_of, mixed, numbers

from fedcdh.errors import SettingsError
from fedcdh.inference.effects.client_slopes import ClientScatters
from fedcdh.summaries.aggregation import Aggregate, add_up


def ols(y, columns, intercepts):
    """Coefficients, standard errors and freedom of ordinary least squares."""
    design = np.column_stack([*columns, *intercepts])
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ y
    freedom = len(y) - design.shape[1]
    noise = ((y - design @ slopes) ** 2).sum() / freedom
    return slopes, np.sqrt(noise * inverse.diagonal()), freedom


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_slopes_are_those_of_least_squares_on_encoded_rows(seed):
    tables = numbers(seed, sizes=(60, 50, 40), count=4)
    cohort = cohort_of(tables)
    scatters = ClientScatters.of(cohort)
    names = cohort.plan.names
    cause, outcome, *given_names = names
    slopes = scatters.slopes(scatters.design(cause, outcome, given_names))
    rows = {client: encoded(cohort, tables[client], client) for client in cohort.clients}
    for number, client in enumerate(cohort.clients):
        at = rows[client]
        ones = np.ones(at[cause].shape[1])
        expected, errors, freedom = ols(at[outcome][0], [at[name][0] for name in (cause, *given_names)], [ones])
        assert slopes.values[number] == pytest.approx(expected[0], rel=1e-9, abs=1e-9 * errors[0])
        assert np.sqrt(slopes.variances[number]) == pytest.approx(errors[0], rel=1e-9)
        assert slopes.freedom[number] == freedom
    stacked = {name: np.concatenate([rows[client][name][0] for client in cohort.clients]) for name in names}
    sites = [
        np.repeat(np.eye(len(rows))[k], [rows[c][cause].shape[1] for c in cohort.clients]) for k in range(len(rows))
    ]
    expected, errors, _ = ols(stacked[outcome], [stacked[name] for name in (cause, *given_names)], sites)
    assert slopes.common.value == pytest.approx(expected[0], rel=1e-9, abs=1e-9 * errors[0])
    assert slopes.common.standard_error == pytest.approx(errors[0], rel=0.5)  # noise may differ between sites there


def test_contrasts_of_levels_are_those_of_least_squares():
    tables = mixed(3, sizes=(120, 90))
    cohort = cohort_of(tables)
    scatters = ClientScatters.of(cohort)
    label = next(iter(scatters.levels))
    outcome, other = [name for name in cohort.plan.names if name not in scatters.levels][:2]
    before, after, *_ = scatters.levels[label]
    slopes = scatters.slopes(scatters.design(label, outcome, [other], (before, after)))
    back = scatters.slopes(scatters.design(label, outcome, [other], (after, before)))
    assert slopes.common.value == pytest.approx(-back.common.value, rel=1e-9)
    levels = cohort.plan.variables[cohort.plan.names.index(label)].levels
    columns, y, z, sites = [], [], [], []
    for number, client in enumerate(cohort.clients):
        at = encoded(cohort, tables[client], client)
        columns.append(at[label][[levels.index(level) for level in scatters.levels[label] if level != before]])
        y.append(at[outcome][0])
        z.append(at[other][0])
        sites.append(np.repeat(np.eye(len(cohort.clients))[:, [number]], len(y[-1]), axis=1))
    x = np.concatenate(columns, axis=1)
    expected, _, _ = ols(np.concatenate(y), [*x, np.concatenate(z)], np.concatenate(sites, axis=1))
    kept = [level for level in scatters.levels[label] if level != before]
    assert slopes.common.value == pytest.approx(expected[kept.index(after)], rel=1e-9)


def test_the_sum_over_sites_gives_the_same_common_slope():
    cohort = cohort_of(numbers(5))
    a, b, c, _ = cohort.plan.names
    whole, apart = (ClientScatters.of(one) for one in (Aggregate.of(cohort), cohort))
    both = [one.slopes(one.design(a, b, [c])).common for one in (whole, apart)]
    assert both[0].value == pytest.approx(both[1].value, rel=1e-9)
    assert both[0].standard_error == pytest.approx(both[1].standard_error, rel=0.5)
    assert not whole.apart
    assert apart.apart


def test_a_site_whose_cause_does_not_vary_has_no_slope_and_harms_no_other():
    tables = numbers(1, sizes=(50, 60))
    names = sorted(tables[next(iter(tables))])
    changed = {client: dict(table) for client, table in tables.items()}
    first = sorted(changed)[0]
    changed[first][names[0]] = np.full(len(changed[first][names[0]]), float(changed[first][names[0]][0]))
    scatters = ClientScatters.of(cohort_of(changed))
    slopes = scatters.slopes(scatters.design(names[0], names[1], []))
    assert list(slopes.known) == [False, True]
    assert slopes.common.value == pytest.approx(slopes.values[1], rel=1e-6)


def test_rows_that_depend_on_each_other_widen_the_interval():
    cohort = cohort_of(numbers(2))
    a, b, *_ = cohort.plan.names
    scatters = ClientScatters.of(cohort)
    design = scatters.design(a, b, [])
    whole, part = scatters.slopes(design), scatters.slopes(replace(design, rows_share=0.25))
    assert part.common.standard_error == pytest.approx(2 * whole.common.standard_error)
    assert part.variances == pytest.approx(4 * whole.variances)


def test_noise_is_refused():
    plan = a_plan()
    with pytest.raises(SettingsError, match="have noise, which moves every slope"):
        ClientScatters.of(add_up(noisy_chains(plan, 200), plan))
