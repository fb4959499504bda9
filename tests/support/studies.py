"""Small studies for tests: clients of unequal size, mechanisms that differ, numbers and labels side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from fedcdh.discovery.api import discover
from fedcdh.discovery.result import Discovery
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.features import FeatureFamily, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile

Table = dict[str, np.ndarray]
Tables = dict[str, Table]


def mixed(seed: int = 0, sizes: Sequence[int] = (60, 45, 30, 14, 5)) -> Tables:
    """age → dose → group, age → score ← group, sex → score, flag alone; dose and sex differ between clients."""
    return {f"clinic {'abcdefghijkl'[k]}": _clinic(seed, k, size) for k, size in enumerate(sizes)}


def _clinic(seed: int, k: int, size: int) -> Table:
    rng = np.random.default_rng([seed, k])
    age = rng.standard_normal(size)
    dose = (1 - 0.5 * k) * np.sin(1.5 * age) + 0.3 * k + (1 + 0.1 * k) * rng.standard_normal(size)
    group = np.digitize(dose + rng.standard_normal(size), [-0.7, 0.9])
    sex = rng.random(size) < 0.3 + 0.1 * k
    score = age**2 + group + sex + rng.standard_normal(size)
    return {
        "age": 50 + 12 * age,
        "dose": dose,
        "group": np.array(["low", "middle", "high"])[group],
        "sex": np.where(sex, "f", "m"),
        "score": score,
        "flag": rng.integers(0, 2, size).astype(float),
    }


def numbers(seed: int = 0, sizes: Sequence[int] = (60, 50, 40), count: int = 4) -> Tables:
    """A chain v1 → v2 → ... of numbers; the second mechanism differs between clients."""
    tables = {}
    for k, size in enumerate(sizes):
        rng = np.random.default_rng([seed, 99, k])
        columns = [rng.standard_normal(size)]
        for j in range(1, count):
            columns.append((1 + 0.7 * k * (j == 1)) * columns[-1] + k * (j == 1) + rng.standard_normal(size))
        tables[f"site{k}"] = {f"v{j + 1}": column for j, column in enumerate(columns)}
    return tables


def plan_of(
    tables: Mapping[str, object],
    family: FeatureFamily = Hermite(),  # noqa: B008 (a value)
    accept_differences: Sequence[str] = (),
) -> StudyPlan:
    profiles = (profile(table, client) for client, table in tables.items())
    return StudyPlan.from_profiles(profiles, family=family, accept_differences=accept_differences)


def cohort_of(tables: Mapping[str, object], family: FeatureFamily = Hermite()) -> Cohort:  # noqa: B008 (a value)
    plan = plan_of(tables, family)
    return add_up([summarize(table, plan, client) for client, table in tables.items()], plan)


def pooled_table(tables: Tables, site: str = "site") -> Table:
    """All rows in one table, with a column that says where a row comes from."""
    sizes = [len(next(iter(table.values()))) for table in tables.values()]
    first = next(iter(tables.values()))
    columns = {name: np.concatenate([table[name] for table in tables.values()]) for name in first}
    return {site: np.repeat(list(tables), sizes), **columns}


def p_values(result: Discovery) -> dict[frozenset[str], float | None]:
    return {frozenset((edge.source, edge.target)): edge.p_value for edge in result.edges()}


def weights(result: Discovery) -> list[float]:
    """The log Bayes factors for or against every edge, where evidence was weighed."""
    found = {frozenset((edge.source, edge.target)): edge.log_bayes_presence for edge in result.edges()}
    return [found[pair] for pair in sorted(found, key=sorted) if found[pair] is not None]


def same_findings(first: Discovery, second: Discovery, within: float = 1e-9) -> bool:
    """The same graph, with the same p-value or Bayes factors for every pair."""
    mine, theirs = p_values(first), p_values(second)
    assert mine.keys() == theirs.keys()
    for pair, p_value in mine.items():
        other = theirs[pair]
        assert (p_value is None) == (other is None), pair
        assert p_value is None or abs(p_value - other) <= within, (sorted(pair), p_value, other)
    assert weights(first) == pytest.approx(weights(second), rel=100 * within, abs=100 * within)
    assert first.augmented == second.augmented
    assert (first.posterior is None) == (second.posterior is None)
    if first.posterior is not None and second.posterior is not None:
        assert first.posterior.arrows == pytest.approx(second.posterior.arrows, abs=1000 * within)
    return True


def sound(result: Discovery) -> bool:
    """What holds of every result, whatever the data."""
    assert result.augmented.is_acyclic()
    assert result.to_dag().is_dag()
    for edge in result.edges():
        assert edge.p_value is None or 0.0 <= edge.p_value <= 1.0
        if edge.probability is not None and edge.probability_forward is not None:
            assert 0.0 <= edge.probability_forward <= edge.probability <= 1.0
            assert not edge.mark or edge.probability >= result.settings.min_probability
    for answer in [*result.skeleton.separators.values(), *result.skeleton.strongest.values()]:
        assert np.isfinite(answer.statistic)
    assert str(result)
    return True


def found(tables: object, **settings: object) -> Discovery:
    """`discover`, and what holds of every result."""
    result = discover(tables, **settings)
    assert sound(result)
    return result
