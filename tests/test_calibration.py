"""Under the null, rejections stay near alpha: for pairs within clients and for the domain, with up to 3 conditions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import studies
from scipy import stats

from benchmarks.calibration_data import Instance, calibration_domain, calibration_pair
from fedcdh.basis import Basis
from fedcdh.independence.regression import RegressionTest
from fedcdh.questions import DOMAIN, Question

ALPHA = 0.05
ALLOWED = 0.08


def rejections(p_values: Iterable[float]) -> int:
    return sum(p_value <= ALPHA for p_value in p_values)


def few_enough(rejected: int, count: int) -> bool:
    """Whether a test that rejects in a share ALLOWED of the cases would do so at least this often, one time in 100."""
    return stats.binom.sf(rejected - 1, count, ALLOWED) > 0.01


def answer(instance: Instance, within: bool) -> float:
    names = instance.study.names
    tables = {
        client: {name: table[:, j] for j, name in enumerate(names)} for client, table in instance.study.tables.items()
    }
    question = instance.question
    given = question.given | {DOMAIN} if within else question.given
    (found,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([Question(question.x, question.y, given)])
    return found.p_value


@pytest.mark.slow
@pytest.mark.parametrize("conditioning", [0, 1, 2, 3])
@pytest.mark.parametrize("mechanism", ["linear", "sin", "square"])
@pytest.mark.parametrize("within", [True, False], ids=["given the domain", "plain"])
def test_pairs_hold_their_level(mechanism, conditioning, within):
    count = 400
    p_values = [
        answer(calibration_pair(mechanism, conditioning=conditioning, seed=seed), within) for seed in range(count)
    ]
    assert few_enough(rejections(p_values), count), rejections(p_values) / count


@pytest.mark.slow
@pytest.mark.parametrize("conditioning", [0, 1, 2, 3])
@pytest.mark.parametrize("mechanism", ["linear", "sin", "square"])
def test_the_domain_holds_its_level(mechanism, conditioning):
    count = 400
    p_values = [
        answer(calibration_domain(mechanism, conditioning=conditioning, seed=seed), False) for seed in range(count)
    ]
    assert few_enough(rejections(p_values), count), rejections(p_values) / count


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
    count = 300
    question = Question(DOMAIN, "x", frozenset({"z"}))
    p_values = [
        RegressionTest(Basis.of(studies.cohort_of(binary_study(seed, share, slope, as_text))))([question])[0].p_value
        for seed in range(count)
    ]
    assert few_enough(rejections(p_values), count), rejections(p_values) / count


# The same, once over lightly


@pytest.mark.parametrize("within", [True, False], ids=["given the domain", "plain"])
def test_pairs_hold_their_level_roughly(within):
    p_values = [answer(calibration_pair("sin", conditioning=1, seed=seed), within) for seed in range(60)]
    assert rejections(p_values) <= 9  # at level 0.05 once in 2000 runs, and these seeds are fixed


def test_the_domain_holds_its_level_roughly():
    p_values = [answer(calibration_domain("sin", conditioning=1, seed=seed), False) for seed in range(60)]
    assert rejections(p_values) <= 9


@pytest.mark.parametrize("as_text", [True, False], ids=["text", "number"])
def test_the_domain_holds_its_level_roughly_for_binary_variables(as_text):
    questions = [Question(DOMAIN, "x"), Question(DOMAIN, "x", frozenset({"z"}))]
    rejected = np.zeros(2, dtype=int)
    for seed in range(40):
        for k, slope in enumerate((0.0, 1.0)):  # without an effect of z, it need not be given
            tables = binary_study(seed, 0.15, slope, as_text)
            (found,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([questions[k]])
            rejected[k] += found.p_value <= ALPHA
    assert rejected.max() <= 8
