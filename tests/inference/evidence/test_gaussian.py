"""The evidence of continuous nodes: what the pooled rows say, blind to names, order and units, and fair between models.

The references work on rows and dense covariances: y = design · w + noise, w ~ N(0, σ² diag(variances)), log σ² flat.
"""

from __future__ import annotations

import numpy as np
import pytest
import studies
from evidence_study import EvidenceStudy, every_family
from scipy.special import gammaln, logsumexp

from fedcdh.inference.evidence import gaussian
from fedcdh.inference.evidence._gaussian_moments import RegressionSums
from fedcdh.inference.evidence.gaussian import (
    LARGE_SHIFT_PROBABILITY,
    LARGE_SHIFT_VARIANCES,
    NOISE_FREEDOM,
    PRIOR_VARIANCES,
    SHIFT_VARIANCES,
    GaussianScore,
)
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort


def family(node: str, parents: str = "", *, domain: bool = False) -> Family:
    return Family(node, frozenset(parents) | ({DOMAIN} if domain else frozenset()))


@pytest.fixture(scope="module")
def study() -> EvidenceStudy:
    return EvidenceStudy()


def dense(y: np.ndarray, design: np.ndarray, variances: np.ndarray) -> float:
    """The log marginal likelihood with the covariance of the rows written out."""
    covariance = np.eye(len(y)) + (design * variances) @ design.T
    distance = y @ np.linalg.solve(covariance, y)
    logdet = np.linalg.slogdet(covariance)[1]
    return float(gammaln(len(y) / 2) - len(y) / 2 * np.log(np.pi * distance) - logdet / 2)


def log_mean(values: list[float]) -> float:
    return float(logsumexp(values) - np.log(len(values)))


def invariant(study: EvidenceStudy, one: Family, curved: bool) -> float:
    y, (design, variances) = study.rows.coordinates[one.node][:, 0], study.design(one.parents, curved)
    return log_mean([dense(y, design, size * variances) for size in PRIOR_VARIANCES])


def shifted(study: EvidenceStudy, one: Family, curved: bool) -> float:
    """Every client has an intercept of its own; the best of the sizes pays for having been chosen."""
    y, (design, variances) = study.rows.coordinates[one.node][:, 0], study.design(one.parents, curved)
    best = max(PRIOR_VARIANCES, key=lambda size: dense(y, design, size * variances))
    own = study.membership()
    columns = np.concatenate([design, own], axis=1)
    near, far = (
        log_mean([dense(y, columns, np.append(best * variances, np.full(own.shape[1], share))) for share in shares])
        for shares in (SHIFT_VARIANCES, LARGE_SHIFT_VARIANCES)
    )
    return float(logsumexp([near, far], b=[1 - LARGE_SHIFT_PROBABILITY, LARGE_SHIFT_PROBABILITY])) - np.log(
        len(PRIOR_VARIANCES)
    )


def mean_of_both(reference, study: EvidenceStudy, one: Family) -> float:
    """Straight and curved mechanisms, where a parent has curved columns at all."""
    bends = any(study.rows.predictors[p].shape[1] > study.rows.means_of(p).shape[1] for p in one.parents)
    return log_mean([reference(study, one, curved) for curved in ((False, True) if bends else (False,))])


def test_shared_mechanisms_equal_those_of_the_pooled_rows(study):
    assert len(study.families) == 48
    straight, curved = (GaussianScore(study.basis, curved)(study.families) for curved in (False, True))
    for one, (first, _), (second, _) in zip(study.families, straight, curved, strict=True):
        assert first == pytest.approx(invariant(study, one, curved=False), rel=1e-9)
        assert second == pytest.approx(mean_of_both(invariant, study, one), rel=1e-9)


def test_shifted_levels_equal_those_of_the_pooled_rows(study):
    """Where only sums over clients are known, and noise has no spread of its own, a change is one of level."""
    basis = Basis.of(Aggregate.of(study.cohort))
    straight, curved = (GaussianScore(basis, curved, noisy=False)(study.families) for curved in (False, True))
    for one, (same, first), (_, second) in zip(study.families, straight, curved, strict=True):
        assert same == pytest.approx(invariant(study, one, curved=False), rel=1e-8)
        assert first == pytest.approx(shifted(study, one, curved=False), rel=1e-8)
        assert second == pytest.approx(mean_of_both(shifted, study, one), rel=1e-8)


Rows = list[np.ndarray]


def drawn(seed: int, clients: int, rows: int, width: int, spread: float) -> tuple[Rows, Rows]:
    """Per client a design with a constant and a target; the noise differs by factors of exp(spread · normal)."""
    rng = np.random.default_rng([seed, clients, rows])
    designs = [np.column_stack([np.ones(rows), rng.standard_normal((rows, width - 1))]) for _ in range(clients)]
    noises = np.exp(spread * rng.standard_normal(clients))
    return designs, [
        design @ np.linspace(0.5, 1, width) + noise * rng.standard_normal(rows)
        for design, noise in zip(designs, noises, strict=True)
    ]


def sums_of(designs: Rows, targets: Rows) -> RegressionSums:
    """One family at all clients."""
    return RegressionSums(
        np.array([[x.T @ x for x in designs]]),
        np.array([[x.T @ y for x, y in zip(designs, targets, strict=True)]]),
        np.array([[y @ y for y in targets]]),
    )


@pytest.mark.parametrize("width", [1, 3])
def test_own_weights_with_common_noise_equal_those_of_the_rows(width):
    designs, targets = drawn(0, 3, 15, width, 0.3)
    prior, own = np.linspace(1, 3, width), np.linspace(0.2, 0.7, width)
    sums = sums_of(designs, targets).with_own_weights(own[None])
    found = gaussian._exact_evidence(sums.pooled(), prior[None], 45.0)
    blocks = np.zeros((45, 3 * width))
    for k, design in enumerate(designs):
        blocks[15 * k : 15 * (k + 1), width * k : width * (k + 1)] = design
    columns = np.concatenate([np.concatenate(designs), blocks], axis=1)
    expected = dense(np.concatenate(targets), columns, np.concatenate([prior, np.tile(own, 3)]))
    assert found.evidence[0] == pytest.approx(expected, rel=1e-10)


def test_columns_of_zeros_change_no_score(study, monkeypatch):
    basis = Basis.of(study.cohort)
    few = GaussianScore(basis)(study.families)
    monkeypatch.setattr(gaussian, "_MAX_PADDED_CLIENTS", 0)
    many = GaussianScore(basis)(study.families)
    assert np.array(many) == pytest.approx(np.array(few), rel=1e-11)


def integrated(designs: Rows, targets: Rows, prior: float, own: float) -> float:
    """Noise per client, by quadrature over the one common weight and the logarithm of the common scale."""
    weights, logs = np.linspace(-3, 3, 901), np.linspace(-7, 5, 301)
    w, scale = weights[:, None], np.exp(logs)[None, :]
    total = -np.log(2 * np.pi * scale * prior) / 2 - w**2 / (2 * scale * prior)
    for design, y in zip(designs, targets, strict=True):
        metric = np.linalg.inv(np.eye(len(y)) + own * design @ design.T)
        x = design[:, 0]
        left = y @ metric @ y - 2 * w * (x @ metric @ y) + w**2 * (x @ metric @ x)
        total = total + (
            gammaln((len(y) + NOISE_FREEDOM) / 2)
            - gammaln(NOISE_FREEDOM / 2)
            + NOISE_FREEDOM / 2 * np.log(NOISE_FREEDOM * scale)
            - len(y) / 2 * np.log(np.pi)
            - (len(y) + NOISE_FREEDOM) / 2 * np.log(NOISE_FREEDOM * scale + left)
            + np.linalg.slogdet(metric)[1] / 2
        )
    return float(logsumexp(total) + np.log((weights[1] - weights[0]) * (logs[1] - logs[0])))


@pytest.mark.parametrize("spread", [0.0, 0.7])
@pytest.mark.parametrize(("clients", "rows"), [(2, 15), (3, 15), (3, 4), (2, 100), (10, 30)])
def test_noise_per_client_is_close_to_the_integral(clients, rows, spread):
    """Measured over 12 seeds each: within 0.21 with common weights, 0.10 with own ones."""
    for seed in range(4):
        designs, targets = drawn(seed, clients, rows, 1, spread)
        sums, sizes = sums_of(designs, targets), np.full(clients, float(rows))
        for own, within in ((0.0, 0.3), (0.5, 0.15)):
            used = sums.with_own_weights(np.array([[own]])) if own else sums
            found = gaussian._laplace_evidence(used, np.ones((1, 1)), sizes, np.ones(1)).evidence[0]
            assert found == pytest.approx(integrated(designs, targets, 1.0, own), abs=within)


@pytest.fixture(scope="module")
def tables() -> studies.Tables:
    return studies.mixed(5, (40, 25, 30, 12, 3))


def test_what_is_asked_without_change_is_the_same_as_with_it(tables):
    """The shared mechanism is weighed without looking at single clients, and to the last digit as if one had."""
    cohort = studies.cohort_of(tables)
    evidence = GaussianScore(Basis.of(cohort))
    families = every_family(cohort.plan.names)
    assert evidence.same(families) == [same for same, _ in evidence(families)]


def test_a_family_that_is_asked_for_twice_is_answered_twice():
    cohort = studies.cohort_of(studies.mixed(1, (30, 20, 25)))
    evidence = GaussianScore(Basis.of(cohort))
    families = every_family(cohort.plan.names, nodes=("age", "score"))
    assert evidence(families + families) == evidence(families) * 2


def simulated(seed: int, clients: int, rows: int, change: str = "nothing") -> Cohort:
    """x → y with a straight effect; z is alone. What changes differs between the clients by factors of about 2."""
    rng = np.random.default_rng([seed, clients, rows])
    tables = {}
    for k in range(clients):
        x, z, noise = rng.standard_normal((3, rows))
        sign = 1 if k % 2 else -1
        size = rng.uniform(0.3, 0.9)
        slope = 0.7 + sign * size * (change == "weight")
        level = sign * size * (change == "level")
        y = level + slope * x + np.exp(sign * size * (change == "noise")) * noise
        tables[f"c{k:02d}"] = {"x": x, "y": y, "z": z}
    return studies.cohort_of(tables)


def mean_gains(count: int, clients: int, rows: int, change: str, *pairs: tuple[Family, Family]) -> np.ndarray:
    """How much higher the evidence of the second family of each pair is, prior odds left aside, on average."""
    bare = {one: Family(one.node, one.parents - {DOMAIN}) for pair in pairs for one in pair}
    asked, found = list(dict.fromkeys(bare.values())), []
    for seed in range(count):
        evidence = GaussianScore(Basis.of(simulated(seed, clients, rows, change)))
        known = dict(zip(asked, evidence(asked), strict=True))
        value = {one: known[bare[one]][DOMAIN in one.parents] for one in bare}
        found.append([value[second] - value[first] for first, second in pairs])
    return np.mean(found, axis=0)


SHAPES = [(10, 30), (2, 100)]


COUNTS = [30, pytest.param(200, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("clients", "rows"), SHAPES)
def test_noise_is_no_parent_and_a_cause_is_one(clients, rows, count):
    noise = [
        (family(node, parents, domain=domain), family(node, parents + more, domain=domain))
        for domain in (False, True)
        for node, parents, more in (("y", "x", "z"), ("z", "", "x"), ("z", "x", "y"))
    ]
    cause = [
        (family("y", parents, domain=domain), family("y", parents + "x", domain=domain))
        for domain in (False, True)
        for parents in ("", "z")
    ]
    gains = mean_gains(count, clients, rows, "nothing", *noise, *cause)
    assert (gains[: len(noise)] < 0).all(), gains
    assert (gains[len(noise) :] > 25).all(), gains


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("change", "least"), [("noise", 5.0), ("weight", 5.0), ("level", 5.0)])
@pytest.mark.parametrize(("clients", "rows"), SHAPES)
def test_noise_is_no_parent_of_what_changes(clients, rows, change, least, count):
    gains = mean_gains(
        count,
        clients,
        rows,
        change,
        (family("y", "x"), family("y", "xz")),
        (family("y", "x", domain=True), family("y", "xz", domain=True)),
        (family("y", "x"), family("y", "x", domain=True)),
    )
    assert (gains[:2] < -0.05).all(), gains
    assert gains[2] > least, gains


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("clients", "rows"), [*SHAPES, (10, 25), (2, 25)])
def test_what_does_not_change_is_not_said_to(clients, rows, count):
    gains = mean_gains(
        count,
        clients,
        rows,
        "nothing",
        (family("y", "x"), family("y", "x", domain=True)),
        (family("z"), family("z", domain=True)),
        (family("x"), family("x", domain=True)),
    )
    assert (gains < -0.7).all(), gains


@pytest.mark.parametrize("change", ["noise", "weight", "level"])
@pytest.mark.parametrize(("clients", "rows", "least"), [(10, 25, 5.0), (2, 25, 1.0)])
def test_what_changes_is_said_to_by_few_rows(clients, rows, change, least):
    gains = mean_gains(
        30,
        clients,
        rows,
        change,
        (family("y", "x"), family("y", "x", domain=True)),
        (family("z"), family("z", domain=True)),
    )
    assert gains[0] > least, gains
    assert gains[1] < -0.7, gains


@pytest.mark.parametrize("deviation", [1.0, 0.1, 0.01, 0.001, 0.0])
@pytest.mark.parametrize(("clients", "rows"), [(10, 30), (3, 100)])
def test_an_effect_may_be_as_exact_as_it_likes_without_changing(clients, rows, deviation):
    """The better a parent explains a variable, the less may that count as a difference between clients."""
    gains = []
    for seed in range(5):
        rng = np.random.default_rng([seed, clients])
        tables = {}
        for k in range(clients):
            x, noise = rng.standard_normal((2, rows))
            tables[f"c{k}"] = {"x": x, "y": x + deviation * noise}
        ((alike, different),) = GaussianScore(Basis.of(studies.cohort_of(tables)))([family("y", "x")])
        gains.append(different - alike)
    assert np.mean(gains) < 0, gains
