"""Noise for differential privacy: how much, drawn how, what it protects, and tests that know about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from fedcdh.cli import main
from fedcdh.data.table import to_table
from fedcdh.discovery.api import discover_from
from fedcdh.errors import (
    DataError,
    DisclosureError,
    MomentBoundsError,
    NotPositiveSemidefiniteError,
    PlanError,
    SettingsError,
    SummaryError,
)
from fedcdh.inference.independence.noisy_moments_test import (
    POWER_90_DISTANCE,
    NoisyMomentsTest,
    detectable_correlation,
)
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, read_summary_header, unpack_summary
from fedcdh.privacy.differential import discrete_gaussian as sampling
from fedcdh.privacy.differential import mechanism
from fedcdh.privacy.differential.discrete_gaussian import sample_discrete_gaussian
from fedcdh.privacy.differential.mechanism import (
    add_noise,
    add_noise_share,
    clip_noisy_rows,
    noise_deviations,
)
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.protocols import DOMAIN, Query
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.descriptives import descriptive_statistics, summary_to_csv
from fedcdh.summaries.dp_parameters import (
    MAX_NOISY_COLUMNS,
    PRODUCT_STEPS,
    SENSITIVITY,
    DPParameters,
    calibrate_deviation,
    ceil_sqrt,
    compose_releases,
    gaussian_delta,
)
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.integer_vectors import decode_aggregate, encode_summary, group_clients
from fedcdh.summaries.noisy_moments import NoisyMoments
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries, validate_summary

CLIENTS = ("east", "north", "south")
USUAL = DPParameters(1, 1e-6)


def bits(seed: int = 0) -> Callable[[int], bytes]:
    return np.random.default_rng(seed).bytes


def a_plan(noise: DPParameters | None = USUAL, names: str = "abc", clients: tuple[str, ...] = CLIENTS) -> StudyPlan:
    return StudyPlan(tuple(Continuous(name) for name in names), clients, clip=6, noise=noise)


def chain(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """a → b → c."""
    a, b, c = np.random.default_rng(seed).standard_normal((3, rows))
    b = 0.6 * a + 0.8 * b
    return {"a": a, "b": b, "c": 0.6 * b + 0.8 * c}


def noisy_chains(plan: StudyPlan, rows: int, seed: int = 0) -> list[Summary]:
    draw = bits(seed)
    return [add_noise(summarize(chain(rows, 100 * seed + k), plan, c), plan, draw) for k, c in enumerate(plan.clients)]


# How much


@cache
def _pi() -> Decimal:
    """Machin's formula."""

    def arctan(inverse: int) -> Decimal:
        power, total = Decimal(1) / inverse, Decimal(0)
        for k in range(400):
            total += (-1) ** k * power / (2 * k + 1)
            power /= inverse**2
        return total

    with localcontext() as context:
        context.prec = 220
        return 4 * (4 * arctan(5) - arctan(239))


def exact_delta(epsilon: float, deviation: float) -> Decimal:
    """Φ(1/2σ − εσ) − exp(ε) Φ(−1/2σ − εσ) to some hundred digits, by the series of the error function."""

    def normal(x: Decimal) -> Decimal:
        z = x / Decimal(2).sqrt()
        term, total, n = z, z, 0
        while abs(term) > Decimal(10) ** -150:
            n += 1
            term = -term * z * z / n
            total += term / (2 * n + 1)
        return (1 + 2 * total / _pi().sqrt()) / 2

    with localcontext() as context:
        context.prec = 200
        e, s = Decimal(epsilon), Decimal(deviation)
        return normal(1 / (2 * s) - e * s) - e.exp() * normal(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_the_deviation_is_right_to_nine_digits(epsilon, delta):
    found = calibrate_deviation(epsilon, delta)
    assert exact_delta(epsilon, found * (1 + 1e-9)) < Decimal(delta) < exact_delta(epsilon, found * (1 - 1e-9))


def test_delta_is_the_mass_by_which_one_curve_exceeds_the_other():
    epsilon, deviation = 1.0, 2.0

    def excess(x: float) -> float:
        return max(stats.norm.pdf(x, 1, deviation) - math.exp(epsilon) * stats.norm.pdf(x, 0, deviation), 0.0)

    start = epsilon * deviation**2 + 0.5  # where the two are equal
    assert gaussian_delta(epsilon, deviation) == pytest.approx(integrate.quad(excess, start, 60)[0], rel=1e-8)


def test_steps_are_those_of_the_grid():
    assert PRODUCT_STEPS == GRID**2
    noise = DPParameters(1, 1e-5)
    exact = calibrate_deviation(1, 1e-5) * SENSITIVITY * PRODUCT_STEPS
    assert exact < noise.deviation < exact * 1.001


@given(st.integers(1, 10**40))
def test_roots_are_rounded_up(square):
    assert (ceil_sqrt(square) - 1) ** 2 < square <= ceil_sqrt(square) ** 2


def test_whole_steps_are_as_good_as_a_bell_curve():
    """Their total variation is at most 1/(8σ²) an entry (`docs/noise.md`): together a thousandth of delta at most."""
    for epsilon, delta in ((10.0, 1e-10), (0.01, 1e-10), (10.0, 1e-2)):
        entries = MAX_NOISY_COLUMNS * (MAX_NOISY_COLUMNS + 1) // 2
        apart = entries / (8 * DPParameters(epsilon, delta).deviation ** 2)
        assert (1 + math.exp(epsilon)) * apart < 1e-3 * delta
    sigma, places = 2.0, np.arange(-60, 61)
    whole = np.exp(-(places**2) / (2 * sigma**2))
    rounded = stats.norm.cdf((places + 0.5) / sigma) - stats.norm.cdf((places - 0.5) / sigma)
    assert 0 < np.abs(whole / whole.sum() - rounded).sum() / 2 < 1 / (8 * sigma**2)


def test_parts_of_the_honest_add_up_to_all_of_it():
    for honest in (1, 3, 7):
        noise = DPParameters(0.7, 1e-6, distributed=True, honest=honest)
        assert noise.deviation**2 <= honest * noise.client_deviation**2 <= noise.deviation**2 * (1 + 1e-9)
    assert DPParameters(0.7, 1e-6).client_deviation == DPParameters(0.7, 1e-6).deviation


def test_releases_add_up():
    assert compose_releases([DPParameters(0.25, 1e-6), DPParameters(0.5, 1e-7)]) == (0.75, pytest.approx(1.1e-6))


# Drawn how


@pytest.mark.parametrize("deviation", [1, 2, 7])
def test_draws_have_the_probabilities_of_the_discrete_gaussian(deviation):
    drawn = sample_discrete_gaussian(np.full(60_000, deviation), bits(deviation))
    reach = np.arange(-3 * deviation, 3 * deviation + 1)
    everywhere = np.arange(-50 * deviation, 50 * deviation + 1)
    expected = np.exp(-(reach**2) / (2 * deviation**2)) / np.exp(-(everywhere**2) / (2 * deviation**2)).sum()
    found = np.array([(drawn == value).sum() for value in reach])
    rest = len(drawn) - found.sum()
    p = stats.chisquare([*found, rest], [*(expected * len(drawn)), (1 - expected.sum()) * len(drawn)]).pvalue
    assert p > 1e-6


@pytest.mark.parametrize("deviation", [3 * 2**36, 2**52])
def test_draws_with_large_deviations_are_normal(deviation):
    drawn = sample_discrete_gaussian(np.full(60_000, deviation), bits()) / deviation
    assert stats.kstest(drawn, stats.norm.cdf).pvalue > 1e-6
    assert abs(drawn.mean()) < 5 / math.sqrt(60_000)
    assert abs(drawn.var() - 1) < 5 * math.sqrt(2 / 60_000)


def test_deviations_go_by_their_places():
    sizes = np.array([[1, 2**40], [2**20, 5]])
    drawn = np.array([sample_discrete_gaussian(sizes, bits(seed)) for seed in range(200)])
    assert drawn.std(axis=0) / sizes == pytest.approx(np.ones((2, 2)), abs=0.3)


@pytest.mark.parametrize(("tail", "below"), [(b"\x00", True), (b"\xff", False)])
def test_close_decisions_are_made_with_more_bits(tail, below):
    """u and exp(−1) agree in their first 53 bits; then zeros follow, or ones."""
    with localcontext() as context:
        context.prec = 60
        first = int(Decimal(-1).exp() * (1 << 53))
    words = iter([(first << 11).to_bytes(8, "little")])
    found = sampling._is_below_exp(np.ones(1), lambda i: Fraction(1), lambda count: next(words, tail * count))
    assert found.tolist() == [below]


def test_the_same_bits_give_the_same_noise_and_others_another():
    plan = a_plan()
    exact = summarize(chain(500), plan, "north")
    assert add_noise(exact, plan, bits(1)) == add_noise(exact, plan, bits(1))
    assert add_noise(exact, plan, bits(1)) != add_noise(exact, plan, bits(2))
    assert add_noise(exact, plan) != add_noise(exact, plan)  # from the operating system


def test_noise_in_a_summary_has_the_deviations_that_the_proof_needs():
    plan = a_plan(DPParameters(2, 1e-5, degree=1), names="ab")
    exact, draw = summarize({"a": [0.1, 2], "b": [1, -3]}, plan, "north"), bits()
    raw = np.array([mechanism._add_discrete_noise(exact, 1 << 40, draw).moments - exact.moments for _ in range(600)])
    assert raw.std(axis=0) / (1 << 40) == pytest.approx(
        np.sqrt([[18, 3, 3], [3, 2, 1], [3, 1, 2]]), rel=6 / math.sqrt(2 * 600)
    )
    assert np.array_equal(raw, raw.transpose(0, 2, 1))
    assert not (raw[:, 0] % GRID).any()
    assert not (raw[:, 0, 0] % GRID**2).any()


# What one row can move


def extreme_rows(rng: np.random.Generator, rows: int, names: str) -> dict[str, np.ndarray]:
    sizes = 10.0 ** rng.uniform(-3, 8, (len(names), rows))
    values = rng.standard_normal((len(names), rows)) * sizes * (rng.random((len(names), rows)) < 0.7)
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_no_row_of_100_000_is_outside_of_the_ball(degree):
    rng = np.random.default_rng(degree)
    plan = a_plan(DPParameters(1, 1e-6, degree=degree), names="abcdef")
    longest = 0
    for _ in range(10):
        features = Encoder(plan, "north")(to_table(extreme_rows(rng, 10_000, "abcdef"))).astype(np.int64)
        assert (features[0] == GRID).all()
        longest = max(longest, int((features[1:] ** 2).sum(axis=0).max()))
    assert 0.9999 * GRID**2 < longest <= GRID**2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e149, 1e149), min_size=3, max_size=3),
    st.sampled_from(["no", "yes"]),
    st.floats(0.01, 10),
    st.integers(1, 3),
)
def test_one_row_moves_the_sums_by_no_more_than_the_sensitivity(values, label, epsilon, degree):
    """In whole numbers: Σ (entry/its deviation)² ≤ (Δ/σ)², of the row that is added."""
    noise = DPParameters(epsilon, 1e-6, degree=degree)
    variables = (*(Continuous(name) for name in "abc"), Categorical("d", ("no", "yes")))
    plan = StudyPlan(variables, ("north",), clip=6, noise=noise)
    row = {**{name: [value] for name, value in zip("abc", values, strict=True)}, "d": [label]}
    others = {**{name: [0.5, -1.0] for name in "abc"}, "d": ["no", "yes"]}
    without = summarize(others, plan, "north")
    moved = (without + summarize(row, plan, "north")).moments - without.moments
    upper = np.triu_indices(len(moved))
    sizes = noise_deviations(len(moved), noise.deviation)[upper].tolist()
    total = sum(Fraction(int(entry) ** 2, size**2) for entry, size in zip(moved[upper], sizes, strict=True))
    assert total <= Fraction(8, 9) * Fraction(PRODUCT_STEPS, noise.deviation) ** 2


def test_the_sensitivity_is_nearly_attained():
    noise = DPParameters(1, 1e-6, degree=1)
    plan = a_plan(noise, names="a", clients=("north",))
    moved = summarize({"a": [6.0]}, plan, "north").moments
    upper = np.triu_indices(2)
    size = math.sqrt(((moved[upper] / noise_deviations(2, noise.deviation)[upper]) ** 2).sum())
    assert 0.999 < size / (SENSITIVITY * PRODUCT_STEPS / noise.deviation) <= 1


def audited(noise: DPParameters, deviation: int, draws: int = 40_000) -> float:
    """A lower bound on epsilon: what the best test of a table against its neighbour finds, four errors less."""
    plan = a_plan(noise, names="a", clients=("north",))
    moved = summarize({"a": [6.0]}, plan, "north").moments[np.triu_indices(2)]
    sizes = noise_deviations(2, deviation)[np.triu_indices(2)]
    without = sample_discrete_gaussian(np.tile(sizes, (draws, 1)), bits(1))
    with_it = sample_discrete_gaussian(np.tile(sizes, (draws, 1)), bits(2)) + moved
    scores = [(drawn / sizes) @ (moved / sizes) for drawn in (without, with_it)]
    found = [0.0]
    for threshold in np.quantile(scores[0], np.linspace(0.5, 0.999, 40)):
        hit, false = ((score > threshold).mean() for score in scores[::-1])
        low = hit - 4 * math.sqrt(hit * (1 - hit) / draws) - noise.delta
        high = false + 4 * math.sqrt(false * (1 - false) / draws) + 4 / draws
        if low > 0:
            found.append(math.log(low / high))
    return max(found)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_an_audit_finds_no_more_epsilon_than_was_claimed(epsilon):
    noise = DPParameters(epsilon, 1e-3, degree=1)
    assert epsilon / 4 < audited(noise, noise.deviation) < epsilon


def test_the_audit_would_find_too_little_noise():
    noise = DPParameters(1.0, 1e-3, degree=1)
    assert audited(noise, noise.deviation // 2) > 1.0


# Summaries with noise


def test_a_noisy_summary_tells_no_counts_of_what_was_left_out():
    plan = a_plan()
    rows = chain(300)
    rows["a"][:40] = np.nan
    found = add_noise(summarize(rows, plan, "north"), plan, bits())
    assert found.rows_read == found.rows
    assert set(found.missing.values()) == {0}


def test_a_noisy_summary_has_one_row_at_least():
    plan = a_plan(DPParameters(0.1, 1e-6))
    exact = summarize({name: [0.0, 1.0] for name in "abc"}, plan, "north")
    draws = [add_noise(exact, plan, bits(seed)) for seed in range(10)]
    assert {found.rows for found in draws} > {1}
    assert min(found.rows for found in draws) == 1


def test_noise_adds_up_with_the_summaries():
    plan = a_plan()
    sent = noisy_chains(plan, 400)
    assert plan.noise is not None
    assert add_up(sent, plan).total.noise == 3 * plan.noise.deviation**2
    assert np.array_equal(add_up(sent, plan).total.moments, sum(one.moments for one in sent))


def test_parts_of_noise_add_up_under_masks_to_what_one_would_have_added():
    plan = a_plan(DPParameters(1, 1e-6, distributed=True, honest=2))
    assert plan.noise is not None
    parts = [add_noise_share(summarize(chain(400, k), plan, c), plan, bits(k)) for k, c in enumerate(CLIENTS)]
    everybody = group_clients(dict.fromkeys(CLIENTS, "all"), CLIENTS)
    total = decode_aggregate(sum(encode_summary(part, plan, everybody) for part in parts), plan, everybody).total
    assert total == clip_noisy_rows(reduce(Summary.__add__, parts))
    assert total.noise >= plan.noise.deviation**2
    assert discover_from(Aggregate.from_total(total, plan), plan).changing == frozenset()


def test_files_say_how_much_noise_there_is():
    plan = a_plan()
    sent = noisy_chains(plan, 300)[0]
    assert plan.noise is not None
    blob = pack_summary(SummaryMessage(sent), plan)
    assert unpack_summary(blob, plan).summary == sent
    assert read_summary_header(blob).noise == plan.noise.deviation


def test_what_arrives_with_noise_is_let_in_and_what_noise_does_not_explain_is_not():
    plan = a_plan(DPParameters(1, 1e-6))
    assert plan.noise is not None
    for seed in range(5):
        admit_summaries(noisy_chains(plan, 300, seed), plan)
    sent = noisy_chains(plan, 300)[0]
    damage = np.zeros_like(sent.moments)
    damage[1, 1] = -100 * plan.noise.deviation
    with pytest.raises(NotPositiveSemidefiniteError):
        validate_summary(replace(sent, moments=sent.moments + damage), plan)
    with pytest.raises(MomentBoundsError):
        validate_summary(replace(sent, moments=sent.moments - 10 * damage), plan)


def test_what_a_noisy_summary_means():
    plan = a_plan(DPParameters(4, 1e-6))
    (mean, spread) = descriptive_statistics(noisy_chains(plan, 20_000)[0], plan)["a"]
    assert (mean, spread) == (pytest.approx(0, abs=0.05), pytest.approx(1, abs=0.1))
    assert "a squared,b cubed" in summary_to_csv(noisy_chains(plan, 300)[0], plan)


# Plans


def test_plans_without_noise_are_what_they_were():
    plan = StudyPlan((Continuous("age", 60, 15), Categorical("smoker", ("no", "yes"))), ("north", "south"))
    other = StudyPlan(
        (Continuous("x"),), ("a",), Fourier(width=7, seed=3), clip=12, study="s", max_rounds=2, max_bytes=99
    )
    assert plan.fingerprint == "9720cbad6e2ba1f4366c6220f87cd47f3849e5bc7432282f111505c8413d8980"
    assert other.fingerprint == "45c85054b7634b9ce74cd95e9079c17e6198799ba0631478e4503df0274c8204"


@given(st.floats(0.01, 10), st.floats(1e-10, 1e-2), st.integers(1, 3), st.integers(100, 10**8))
def test_plans_with_noise_come_back_as_they_were_written(epsilon, delta, degree, rows):
    for noise in (
        DPParameters(epsilon, delta, expected_rows=rows, degree=degree),
        DPParameters(epsilon, delta, distributed=True, honest=degree, expected_rows=rows),
    ):
        plan = a_plan(noise)
        assert StudyPlan.from_json(plan.to_json()) == plan
        assert plan.fingerprint != replace(plan, noise=None).fingerprint


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"epsilon": 0}, "epsilon is 0; expected a number from 0.01 to 10"),
        ({"epsilon": math.nan}, "from 0.01 to 10"),
        ({"epsilon": True}, "expected a number"),
        ({"epsilon": 1, "delta": 0.5}, "delta is 0.5; expected a number from 1e-10 to 0.01"),
        ({"epsilon": 1, "distributed": "nobody"}, "expected True"),
        ({"epsilon": 1, "honest": 2}, "leave their number out"),
        ({"epsilon": 1, "degree": 4}, "from 1 to 3"),
        ({"epsilon": 1, "expected_rows": 1.5}, "whole number from 100"),
    ],
)
def test_noise_that_is_none_is_refused(fields, says):
    with pytest.raises(PlanError, match=says):
        DPParameters(**fields)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clip": 30}, "set the clip to 6"),
        ({"family": Hermite(width=6)}, "leave the family out"),
        ({"max_rounds": 1}, "leave the rounds out"),
        ({"noise": DPParameters(1, 1e-6, distributed=True, honest=9)}, "9 honest clients; expected at most its 3 clients"),
    ],
)
def test_plans_that_noise_does_not_cover_are_refused(change, says):
    with pytest.raises(PlanError, match=says):
        replace(a_plan(), **change)


def test_a_plan_file_with_another_word_about_noise_is_refused():
    text = a_plan().to_json()
    with pytest.raises(PlanError):
        StudyPlan.from_json(text.replace('"degree":3', '"degree":3,"strength":1'))
    with pytest.raises(PlanError):
        StudyPlan.from_json(text.replace('"epsilon":1.0', '"epsilon":"1.0"'))


# Refusals


def test_exact_summaries_of_a_plan_with_noise_go_nowhere():
    plan = a_plan()
    exact = [summarize(chain(300, k), plan, client) for k, client in enumerate(CLIENTS)]
    for attempt in (
        lambda: add_up(exact, plan),
        lambda: discover_from(exact, plan),
        lambda: admit_summaries(exact, plan),
        lambda: validate_summary(exact[0], plan),
        lambda: pack_summary(SummaryMessage(exact[0]), plan),
    ):
        with pytest.raises(SummaryError, match="noisy"):
            attempt()
    total = reduce(Summary.__add__, exact)
    with pytest.raises(SummaryError, match="none of the noise"):
        discover_from(Aggregate.from_total(total, plan), plan)
    with pytest.raises(SummaryError, match="only one has noise"):
        exact[0] + add_noise(exact[1], plan, bits())


def test_noise_is_added_once_and_by_whom_the_plan_says():
    plan = a_plan()
    exact = summarize(chain(300), plan, "north")
    sent = add_noise(exact, plan, bits())
    with pytest.raises(SummaryError, match="has its noise already"):
        add_noise(sent, plan)
    with pytest.raises(SummaryError, match="two noisy summaries of client 'north'"):
        add_up([sent, add_noise(exact, plan, bits(5))], plan)
    with pytest.raises(PlanError, match="asks for no noise"):
        add_noise(summarize(chain(300), a_plan(None), "north"), a_plan(None))
    with pytest.raises(PlanError, match="distributed=True"):
        add_noise_share(exact, plan)
    together = a_plan(DPParameters(1, 1e-6, distributed=True, honest=3))
    part = add_noise_share(summarize(chain(300), together, "north"), together, bits())
    for attempt in (lambda: add_up([part], together), lambda: pack_summary(SummaryMessage(part), together)):
        with pytest.raises(SummaryError):
            attempt()
    with pytest.raises(PlanError, match="add noise together"):
        add_noise(summarize(chain(300), together, "north"), together)


def test_what_does_not_know_about_noise_refuses_it():
    plan = a_plan(DPParameters(8, 1e-6))
    sent = noisy_chains(plan, 2000)
    for method in ("evidence", "paper"):
        with pytest.raises(SettingsError, match="takes the noise in these summaries for dependence"):
            discover_from(sent, plan, method=method)
    with pytest.raises(SettingsError, match="have noise"):
        Basis.of(add_up(sent, plan))
    with pytest.raises(SettingsError, match="summaries have noise"):
        discover_from(sent, plan).drift()
    with pytest.raises(SettingsError, match="spend the plan's epsilon again"):
        bootstrap_summaries(chain(300), plan, "north", 2, 1)


# At the site


def test_the_gate_counts_epsilon_and_refuses_beyond_the_budget(tmp_path):
    plan, gate = a_plan(DPParameters(1, 1e-6)), ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl"))
    policy, rows = Policy(epsilon_budget=2.5), chain(400)
    first, second = (release_summary(rows, plan, ReleaseContext("north", policy, gate=gate))[0] for _ in range(2))
    assert first != second
    with pytest.raises(DisclosureError, match=r"have spent 2\. Expected at most 2\.5"):
        release_summary(rows, plan, ReleaseContext("north", policy, gate=gate))
    release_summary(
        chain(400, seed=9), plan, ReleaseContext("north", policy, gate=gate)
    )  # other rows have a budget of their own


def test_the_policy_keeps_its_rules_unless_it_says_that_noise_is_enough():
    plan, few = a_plan(DPParameters(1, 1e-6)), chain(30)
    with pytest.raises(DisclosureError, match="there are 30 rows"):
        release_summary(few, plan, ReleaseContext("north"))
    release_summary(few, plan, ReleaseContext("north", Policy(waive_counts_below_epsilon=1.0)))
    with pytest.raises(DisclosureError, match="there are 30 rows"):
        release_summary(
            few, a_plan(DPParameters(1.5, 1e-6)), ReleaseContext("north", Policy(waive_counts_below_epsilon=1.0))
        )
    with pytest.raises(SettingsError, match="waive_counts_below_epsilon"):
        Policy(waive_counts_below_epsilon=5.0)


def test_by_file_from_the_declaration_to_the_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sites = ("north", "south")
    (tmp_path / "variables.toml").write_text(
        'clients = ["north", "south"]\n' + "".join(f"[variables.{name}]\nmean = 0\nsd = 1\n" for name in "abc")
    )
    assert (
        main(["plan", "--declare", "variables.toml", "--epsilon", "4", "--expected-rows", "8000", "-o", "p.json"]) == 0
    )
    assert "epsilon 4, delta 1e-06, added by every site" in capsys.readouterr().out
    for k, site in enumerate(sites):
        rows = chain(4000, k)
        lines = ["a,b,c", *(",".join(f"{value:.6f}" for value in row) for row in zip(*rows.values(), strict=True))]
        (tmp_path / f"{site}.csv").write_text("\n".join(lines) + "\n")
        assert main(["summarize", "p.json", f"{site}.csv", "--client", site]) == 0
    assert "spends epsilon again" in capsys.readouterr().out
    assert main(["inspect", "north.summary", "--plan", "p.json"]) == 0
    assert "Noise was added to every sum" in capsys.readouterr().out
    assert main(["discover", "p.json", "north.summary", "south.summary", "-o", "result"]) == 0
    assert main(["profile", "north.csv", "--client", "north", "-q"]) == 0
    capsys.readouterr()
    assert main(["plan", "north.profile.json", "--epsilon", "1", "-o", "q.json"]) != 0
    assert "Profiles are exact numbers about the rows" in capsys.readouterr().err


# Tests that know the noise


def test_without_noise_the_statistic_is_n_times_the_squared_partial_correlation():
    plan = a_plan(DPParameters(10, 1e-2, degree=1, expected_rows=10**8), clients=("north",))
    rows = chain(3000)
    moments = NoisyMoments.of(Aggregate.from_total(add_noise(summarize(rows, plan, "north"), plan, bits()), plan))
    silent = replace(
        moments, moments=_exact_moments(plan, rows), deviations=np.full(1, 1e-12)
    )  # the same coordinates, and no noise in them
    values = np.array([rows[name] for name in "abc"])
    inverse = np.linalg.inv(np.cov(values))
    partial = -inverse[0, 2] / math.sqrt(inverse[0, 0] * inverse[2, 2])
    (plain, given_b) = NoisyMomentsTest(silent)([Query("a", "c"), Query("a", "c", frozenset("b"))])
    assert plain.statistic == pytest.approx(3000 * np.corrcoef(values)[0, 2] ** 2, rel=1e-3)
    assert given_b.statistic == pytest.approx(3000 * partial**2, rel=1e-2, abs=1e-3)


def _exact_moments(plan: StudyPlan, rows: dict[str, np.ndarray]) -> np.ndarray:
    found = summarize(rows, plan, "north").moments[None] / float(PRODUCT_STEPS)
    found[:, 0] /= math.sqrt(3)
    found[:, :, 0] /= math.sqrt(3)
    return found


def test_answers_do_not_depend_on_the_order_of_variables_or_levels():
    rng, rows = np.random.default_rng(3), chain(3000)
    label = np.where(rows["a"] + rng.standard_normal(3000) > 0, "yes", np.where(rows["b"] > 1, "maybe", "no"))
    table = {**rows, "d": label}
    names = ("a", "b", "c", "d")
    asked = [Query("a", "d"), Query("c", "d", frozenset("b")), Query("a", "c", frozenset("bd"))]
    found = []
    for order, levels in ((names, ("maybe", "no", "yes")), (names[::-1], ("yes", "maybe", "no"))):
        variables = tuple(Categorical(n, levels) if n == "d" else Continuous(n) for n in order)
        plan = StudyPlan(variables, ("north",), clip=6, noise=DPParameters(1, 1e-6))
        exact = summarize(table, plan, "north")
        total = Aggregate.from_total(replace(exact, noise=plan.noise.deviation**2), plan)  # type: ignore[union-attr]
        found.append([answer.p_value for answer in NoisyMomentsTest.of(total)(asked)])
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert found[0][0] < 1e-3


def test_a_study_with_noise_is_found():
    plan = a_plan(DPParameters(2, 1e-6, expected_rows=24_000))
    result = discover_from(noisy_chains(plan, 8000), plan)
    assert result.graph.skeleton == {frozenset("ab"), frozenset("bc")}
    assert result.settings.method == "constraint"
    assert result.changing == frozenset()
    assert any("nine times in ten" in note for note in result.notes)
    assert not any("the noise hides correlations" in note for note in result.notes)
    assert result.stability().edges
    assert '"drift": null' in render_result_json(result)


def test_a_study_that_noise_leaves_nothing_of_says_so():
    plan = a_plan(DPParameters(0.1, 1e-6, expected_rows=1000))
    notes = discover_from(noisy_chains(plan, 300), plan).notes
    assert any("the noise hides correlations" in note for note in notes)
    assert any("smaller than the noise" in note for note in notes)


def test_more_noise_and_more_conditions_leave_less_to_be_found():
    known = NoisyMoments.of(add_up(noisy_chains(plan := a_plan(DPParameters(4, 1e-6)), 4000), plan))
    louder = replace(known, deviations=4 * known.deviations)
    quiet = replace(known, deviations=1e-9 * known.deviations)
    assert detectable_correlation(known, 0) < detectable_correlation(known, 1) < 0.3
    assert detectable_correlation(known, 0) < detectable_correlation(louder, 0)
    assert detectable_correlation(quiet, 0) == pytest.approx(POWER_90_DISTANCE / math.sqrt(12_000), rel=0.05)


def test_wrong_units_are_noticed_by_the_server():
    plan = a_plan(DPParameters(4, 1e-6))
    far = {name: values * 10 for name, values in chain(3000).items()}
    sent = [add_noise(summarize(far, plan, client), plan, bits(k)) for k, client in enumerate(CLIENTS)]
    assert any("features were shortened" in note for note in discover_from(sent, plan).notes)


def rejections(questions: list[Query], changed: float, seeds: range, epsilon: float, rows: int) -> np.ndarray:
    """Shares of seeds at which each question is rejected, and by a test that takes noise for rows."""
    found = []
    for seed in seeds:
        plan = a_plan(DPParameters(epsilon, 1e-5, expected_rows=3 * rows), names="abcdef")
        rng = np.random.default_rng(seed)
        sent = []
        for k, client in enumerate(CLIENTS):
            a, b, c, d, e, f = rng.standard_normal((6, rows))
            d, e = 0.7 * d + 0.7 * a, 0.7 * e + 0.7 * a + changed * k
            values = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
            sent.append(add_noise(summarize(values, plan, client), plan, rng.bytes))
        known = NoisyMoments.of(add_up(sent, plan))
        blind = replace(known, deviations=np.full(3, 1e-9))
        found.append([[answer.p_value < 0.05 for answer in NoisyMomentsTest(one)(questions)] for one in (known, blind)])
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tests_that_know_the_noise_hold_their_level(epsilon):
    within = frozenset({DOMAIN})
    true = [
        Query("b", "c", within),
        Query("d", "e", within | {"a"}),
        Query("d", "e", within | {"a", "b"}),
        Query(DOMAIN, "b"),
        Query(DOMAIN, "d", frozenset("a")),
    ]
    knowing, blind = rejections(true, 0.0, range(1000, 1200), epsilon, 1000)
    assert knowing.max() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200)
    assert blind.max() > 0.9


@pytest.mark.slow
def test_tests_that_know_the_noise_see_what_is_there():
    within = frozenset({DOMAIN})
    false = [Query("a", "d", within), Query("d", "e", within), Query(DOMAIN, "e", frozenset("a"))]
    knowing, _ = rejections(false, 0.5, range(1000, 1040), 2.0, 2000)
    assert knowing.min() > 0.9


@pytest.mark.parametrize("epsilon", [4.8125, *(k / 16 for k in range(1, 160))])
def test_every_epsilon_has_its_noise(epsilon):
    """Far out, delta is the difference of two numbers that rounding may leave below nothing."""
    assert gaussian_delta(epsilon, calibrate_deviation(epsilon, 1e-6)) == pytest.approx(1e-6, rel=1e-6)


def test_rows_that_come_once_are_refused_before_they_are_gone_where_they_are_read_twice():
    batches = iter([chain(400)])
    with pytest.raises(DataError, match="found an iterator, which gives its rows once, but a summary with noise"):
        release_summary(batches, a_plan(), ReleaseContext("north"))
    with pytest.raises(DataError, match="bootstrap replicates reads the rows more than once"):
        release_summary(batches, a_plan(None), ReleaseContext("north"), replicates=2)
    summary, _ = release_summary(batches, a_plan(None), ReleaseContext("north"))  # nothing was taken from it
    assert summary == summarize(chain(400), a_plan(None), "north")
