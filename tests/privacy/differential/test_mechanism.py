"""Noise in summaries has the deviations that the proof needs, and an audit finds no more epsilon."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy_studies import CLIENTS, a_plan, bits, chain, noisy_chains

from fedcdh.data.table import to_table
from fedcdh.discovery.api import discover_from
from fedcdh.errors import (
    PlanError,
    SummaryError,
)
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, read_summary_header, unpack_summary
from fedcdh.privacy.differential import mechanism
from fedcdh.privacy.differential.discrete_gaussian import sample_discrete_gaussian
from fedcdh.privacy.differential.mechanism import (
    add_noise,
    add_noise_share,
    clip_noisy_rows,
    noise_deviations,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.descriptives import descriptive_statistics, summary_to_csv
from fedcdh.summaries.dp_parameters import (
    PRODUCT_STEPS,
    SENSITIVITY,
    DPParameters,
)
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.integer_vectors import decode_aggregate, encode_summary, group_clients
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries, validate_summary
from fedcdh.summaries.variables import Categorical, Continuous


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


def test_what_a_noisy_summary_means():
    plan = a_plan(DPParameters(4, 1e-6))
    (mean, spread) = descriptive_statistics(noisy_chains(plan, 20_000)[0], plan)["a"]
    assert (mean, spread) == (pytest.approx(0, abs=0.05), pytest.approx(1, abs=0.1))
    assert "a squared,b cubed" in summary_to_csv(noisy_chains(plan, 300)[0], plan)


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
    with pytest.raises(SummaryError, match="only one of the summary of"):
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
