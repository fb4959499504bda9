"""Under the null, rejections stay near alpha: for pairs within clients and for the domain, with up to 3 conditions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import studies
from scipy import stats

from benchmarks.calibration_data import Instance, calibration_domain, calibration_pair
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query

ALPHA = 0.05
ALLOWED = 0.08
COUNT = 300


def rejections(p_values: Iterable[float]) -> int:
    return sum(p_value <= ALPHA for p_value in p_values)


def few_enough(rejected: int, count: int) -> bool:
    """Whether a test that rejects in a share ALLOWED of the cases would do so at least this often, one time in 100."""
    return stats.binom.sf(rejected - 1, count, ALLOWED) > 0.01


def answers(instance: Instance, *more: frozenset[str]) -> list[float]:
    """The p-values of the instance's question, with more conditions each time."""
    names = instance.study.names
    tables = {
        client: {name: table[:, j] for j, name in enumerate(names)} for client, table in instance.study.tables.items()
    }
    asked = instance.query
    questions = [Query(asked.x, asked.y, asked.given | given) for given in more]
    return [answer.p_value for answer in RegressionTest(Basis.of(studies.cohort_of(tables)))(questions)]


PLAIN, WITHIN = frozenset[str](), frozenset({DOMAIN})


@pytest.mark.slow
@pytest.mark.parametrize("conditioning", [0, 1, 2, 3])
@pytest.mark.parametrize("mechanism", ["linear", "sin", "square"])
def test_pairs_hold_their_level(mechanism, conditioning):
    instances = (calibration_pair(mechanism, conditioning=conditioning, seed=seed) for seed in range(COUNT))
    plain, within = zip(*(answers(instance, PLAIN, WITHIN) for instance in instances), strict=True)
    assert few_enough(rejections(within), COUNT), rejections(within) / COUNT
    assert few_enough(rejections(plain), COUNT), rejections(plain) / COUNT


@pytest.mark.slow
@pytest.mark.parametrize("conditioning", [0, 1, 2, 3])
@pytest.mark.parametrize("mechanism", ["linear", "sin", "square"])
def test_the_domain_holds_its_level(mechanism, conditioning):
    instances = (calibration_domain(mechanism, conditioning=conditioning, seed=seed) for seed in range(COUNT))
    p_values = [answers(instance, PLAIN)[0] for instance in instances]
    assert few_enough(rejections(p_values), COUNT), rejections(p_values) / COUNT


def binary_study(seed: int, share: float, slope: float, as_text: bool, clients: int = 10, rows: int = 100):
    """A label that is a function of z and a coin alone, while z differs between clients."""
    rng = np.random.default_rng([seed, 77])
    tables = {}
    for k in range(clients):
        z = rng.standard_normal() + rng.standard_normal(rows)
        sick = rng.random(rows) < 1 / (1 + np.exp(-(np.log(share / (1 - share)) + slope * z)))
        tables[f"c{k}"] = {"x": np.where(sick, "yes", "no") if as_text else sick.astype(float), "z": z}
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("as_text", [True, False], ids=["text", "number"])
@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_domain_holds_its_level_for_binary_variables(share, slope, as_text):
    question = Query(DOMAIN, "x", frozenset({"z"}))
    p_values = [
        RegressionTest(Basis.of(studies.cohort_of(binary_study(seed, share, slope, as_text))))([question])[0].p_value
        for seed in range(COUNT)
    ]
    assert few_enough(rejections(p_values), COUNT), rejections(p_values) / COUNT


# The same, once over lightly


def test_pairs_hold_their_level_roughly():
    instances = (calibration_pair("sin", conditioning=1, seed=seed) for seed in range(60))
    for p_values in zip(*(answers(instance, PLAIN, WITHIN) for instance in instances), strict=True):
        assert rejections(p_values) <= 9  # at level 0.05 once in 2000 runs, and these seeds are fixed


def test_the_domain_holds_its_level_roughly():
    instances = (calibration_domain("sin", conditioning=1, seed=seed) for seed in range(60))
    assert rejections(answers(instance, PLAIN)[0] for instance in instances) <= 9


@pytest.mark.parametrize("as_text", [True, False], ids=["text", "number"])
def test_the_domain_holds_its_level_roughly_for_binary_variables(as_text):
    questions = [Query(DOMAIN, "x"), Query(DOMAIN, "x", frozenset({"z"}))]
    rejected = np.zeros(2, dtype=int)
    for seed in range(40):
        for k, slope in enumerate((0.0, 1.0)):  # without an effect of z, it need not be given
            tables = binary_study(seed, 0.15, slope, as_text)
            (found,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([questions[k]])
            rejected[k] += found.p_value <= ALPHA
    assert rejected.max() <= 8
