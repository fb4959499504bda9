"""Tests that may ask clients again, beside those of one message: python -m benchmarks.bench_adaptive_rounds --help

Rates of p < 0.05 on data whose answer is known (`adaptive_data`), seeds from 1000 up; the features were
chosen on seeds below 1000. "one" is the default test from one message, "adaptive" the
same with joint features of the conditioning set, "RCIT" causal-learn's on the pooled rows, which are then all in one
place. What it does to graphs is the experiment `rounds`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.adaptive_data import MECHANISMS, Draw, adaptive_pair
from benchmarks.calibration_data import calibration_domain
from fedcdh._runtime.array_types import Array
from fedcdh.data.table import to_table
from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.joint import LocalAnswerSource
from fedcdh.summaries.plan import StudyPlan

ALPHA = 0.05
FIRST_SEED = 1000
HIGHEST_LEVEL, BELOW_RCIT = 0.08, 0.05
TESTED_MECHANISMS = ("linear", "sin", "square", "product")
VARIANTS = {"alike": {}, "differing": {"differing": True}, "a label": {"labels": 1}}


def sine_coupling(noise: Array) -> Array:
    """A coupling that bends twice."""
    return np.sin(2 * noise)


COUPLINGS = {"linear": (lambda noise: noise, 0.12), "square": (np.square, 0.12), "sin 2ε": (sine_coupling, 0.2)}


def adaptive_p_values(draw: Draw) -> tuple[float, float]:
    """The p-values of the one message and of the test that asks again, both within clients."""
    tables = {client: to_table(table) for client, table in draw.tables.items()}
    plan = replace(StudyPlan.from_tables(tables), max_rounds=1, max_bytes=10**9)
    cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
    basis = Basis.of(cohort)
    asked = [replace(draw.query, given=draw.query.given | ({DOMAIN} - draw.query.pair))]
    again = JointRegressionTest(cohort, basis, LocalAnswerSource(tables, plan, cohort), max_sets=1)
    return RegressionTest(basis)(asked)[0].p_value, again(asked)[0].p_value


def rcit_p_value(draw: Draw) -> float:
    """The p-value of causal-learn's RCIT on the pooled rows, as it comes."""
    from causallearn.utils.cit import CIT  # the peer is an optional extra

    return float(CIT(draw.numbers, "rcit")(0, 1, list(range(2, draw.numbers.shape[1]))))


def draw_domain_case(mechanism: str, conditioning: int, seed: int) -> Draw:
    """℧ ⫫ x | Z, in the shape of the other draws."""
    instance = calibration_domain(mechanism, conditioning=conditioning, seed=seed)
    names = instance.study.names
    tables = {client: dict(zip(names, rows.T, strict=True)) for client, rows in instance.study.tables.items()}
    return Draw(tables, Query(DOMAIN, "x", frozenset(names[1:])), np.zeros((0, 2)))


def rejection_rates(make: Callable[..., Draw], seeds: Sequence[int], peer: bool) -> Array:
    found = [
        [*adaptive_p_values(draw), *([rcit_p_value(draw)] if peer else [])]
        for draw in (make(seed=seed) for seed in seeds)
    ]
    return np.asarray((np.array(found) < ALPHA).mean(axis=0))


def print_table(title: str, rows: dict[str, Callable[..., Draw]], seeds: Sequence[int], peer: bool) -> dict[str, Array]:
    print(f"\n{title}, seeds {seeds[0]}..{seeds[-1]}\n{'':36}{'one':>9}{'adaptive':>10}" + f"{'RCIT':>9}" * peer)
    found = {}
    for label, make in rows.items():
        found[label] = rejection_rates(make, seeds, peer)
        ours_here, theirs = found[label][:2], found[label][2:]
        print(f"{label:36}{ours_here[0]:9.3f}{ours_here[1]:10.3f}" + "".join(f"{r:9.3f}" for r in theirs), flush=True)
    return found


def show_levels(seeds: Sequence[int], peer: bool, mechanisms: Sequence[str], kinds: Sequence[str]) -> None:
    rows = {
        f"|Z|={size} {mechanism}, {kind}": partial(adaptive_pair, mechanism, conditioning=size, **VARIANTS[kind])
        for kind in kinds
        for size in (1, 2, 3)
        for mechanism in mechanisms
        if size > 1 or mechanism in TESTED_MECHANISMS[:3]
    }
    found = print_table("Level, x ⫫ y | Z true: 10 clients of 100 rows", rows, seeds, peer)
    worst = max(found, key=lambda label: found[label][1])
    verdict = "met" if found[worst][1] <= HIGHEST_LEVEL else "MISSED"
    print(f"adaptive: at most {found[worst][1]:.3f} ({worst}); target {HIGHEST_LEVEL}: {verdict}", flush=True)


def show_domain_levels(seeds: Sequence[int]) -> None:
    rows = {
        f"|Z|={size} {mechanism}": partial(draw_domain_case, mechanism, size)
        for size in (2, 3)
        for mechanism in TESTED_MECHANISMS
    }
    print_table("Level, ℧ ⫫ x | Z true, Z shifts between clients", rows, seeds, peer=False)


def show_power(seeds: Sequence[int], peer: bool) -> None:
    rows = {
        f"|Z|={size} {mechanism}, {dependence} {name}": partial(
            adaptive_pair, mechanism, conditioning=size, dependence=dependence, coupling=coupling
        )
        for name, (coupling, dependence) in COUPLINGS.items()
        for size in (1, 2, 3)
        for mechanism in TESTED_MECHANISMS
        if size > 1 or mechanism in TESTED_MECHANISMS[:3]
    }
    found = print_table("Power, x ⫫ y | Z false: the noise of x enters y with this weight and shape", rows, seeds, peer)
    if peer:
        behind = {label: float(r[2] - r[1]) for label, r in found.items()}
        short = {label: gap for label, gap in behind.items() if gap > BELOW_RCIT}
        shown = ", ".join(f"{label} by {gap:.2f}" for label, gap in short.items()) or "nowhere"
        print(f"more than {BELOW_RCIT} behind RCIT: {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--tables", nargs="+", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--kinds", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--rcit", action="store_true", help="RCIT in table 1 too")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    options = parser.parse_args()
    peer = find_spec("causallearn") is not None
    seeds = range(options.first_seed, options.first_seed + options.repetitions)
    error = np.sqrt(ALPHA * (1 - ALPHA) / options.repetitions)
    print(f"Rejection rates at α = {ALPHA}; one standard error of a rate of {ALPHA}: {error:.3f}")
    others = [name for name in MECHANISMS if name not in TESTED_MECHANISMS]
    measure = {
        1: lambda: show_levels(seeds, peer and options.rcit, TESTED_MECHANISMS, options.kinds),
        2: lambda: show_levels(seeds[:100], False, others, options.kinds),
        3: lambda: show_domain_levels(seeds),
        4: lambda: show_power(seeds[:100], peer),
    }
    with threadpool_limits(1):
        for number in options.tables:
            measure[number]()


if __name__ == "__main__":
    main()
