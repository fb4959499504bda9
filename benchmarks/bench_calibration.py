"""How often tests reject what is true, and miss what is not: python -m benchmarks.bench_calibration --help

Rates of p < 0.05 over seeds from 1000 up, on data whose answer is known (see `calibration_data`). All tests of a row
see the same tables. "default" is the test of method "constraint" as that method asks it: within clients, the domain
always among the conditions. "pooled" is the same test asked without the domain. "sums" is the default test where only
the sum of the summaries is known, with the first moments of each client; the paper's test gives the same answers then.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.calibration_data import Instance, calibration_domain, calibration_pair, gaussian, heavy_tailed
from fedcdh._runtime.array_types import Array
from fedcdh.data.table import to_table
from fedcdh.evaluation.simulation import Function, Simulation, identity
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, IndependenceTest, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile

ALPHA = 0.05
FIRST_SEED = 1000
HIGHEST_LEVEL = 0.08  # of the default test, in every row of the first two tables
LOWEST_POWER = 0.85  # of the default test, where KCI has about 0.95
CHUNK = 10  # seeds per task


def cohorts_of(study: Simulation, families: Iterable[FeatureFamily]) -> dict[FeatureFamily, Cohort]:
    """What the server sees of a study with each of these features: a plan from profiles, one summary per client."""
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    profiles = [profile(table, client) for client, table in tables.items()]
    plans = [StudyPlan.from_profiles(profiles, family=family) for family in families]
    return {
        plan.family: add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
        for plan in plans
    }


@dataclass(frozen=True)
class Contender:
    """A test from summaries: its features, how it is made for a seed, and what is always among the conditions."""

    name: str
    family: Callable[[int], FeatureFamily]
    test: Callable[[Cohort, int], IndependenceTest]
    given: frozenset[str] = frozenset()

    def p_value(self, cohorts: Mapping[FeatureFamily, Cohort], question: Query, seed: int) -> float:
        given = question.given | (self.given - question.pair)
        return self.test(cohorts[self.family(seed)], seed)([replace(question, given=given)])[0].p_value


def hermite(seed: int) -> FeatureFamily:
    return Hermite()


def fourier(seed: int) -> FeatureFamily:
    return Fourier(width=5, seed=seed)


def regression(cohort: Cohort, seed: int) -> IndependenceTest:
    return RegressionTest(Basis.of(cohort))


def regression_on_sums(cohort: Cohort, seed: int) -> IndependenceTest:
    return RegressionTest(Basis.of(Aggregate.of(cohort)))


def of_paper(cohort: Cohort, seed: int) -> IndependenceTest:
    return KernelTest.of_paper(cohort, seed=seed)


def concatenated(cohort: Cohort, seed: int) -> IndependenceTest:
    return KernelTest.concatenated(cohort)


DEFAULT = Contender("default", hermite, regression, frozenset({DOMAIN}))
SUMS = Contender("sums", hermite, regression_on_sums, frozenset({DOMAIN}))
POOLED = Contender("pooled", hermite, regression)
PAPER = Contender("paper", fourier, of_paper)
CONCATENATED = Contender("concat", hermite, concatenated)
PAIRS = (DEFAULT, SUMS, POOLED, PAPER, CONCATENATED)
DOMAINS = (DEFAULT, SUMS, PAPER, CONCATENATED)  # asked about the domain, "default" and "pooled" are one


def kci(instance: Instance) -> float:
    """The p-value of causal-learn's KCI on the pooled rows, as it comes."""
    from causallearn.utils.cit import CIT  # the peer is an optional extra

    rows = np.concatenate(list(instance.study.tables.values()))
    return float(CIT(rows, "kci")(0, 1, list(range(2, rows.shape[1]))))


@dataclass(frozen=True)
class Row:
    """One line of a table: how its instances are made, and by how many seeds."""

    label: str
    make: Callable[..., Instance]
    repetitions: int


def p_values(row: Row, contenders: Sequence[Contender], seeds: Sequence[int]) -> list[list[float]]:
    """For each seed the p-value of each contender, all from the same rows."""
    found = []
    for seed in seeds:
        instance = row.make(seed=seed)
        cohorts = cohorts_of(instance.study, {contender.family(seed) for contender in contenders})
        found.append([contender.p_value(cohorts, instance.query, seed) for contender in contenders])
    return found


def p_values_of_kci(row: Row, seeds: Sequence[int]) -> list[list[float]]:
    return [[kci(row.make(seed=seed))] for seed in seeds]


def rejection_rate(
    pool: ProcessPoolExecutor, answers: Callable[[Sequence[int]], list[list[float]]], count: int
) -> Array:
    """The share of the first `count` seeds at which each test rejects."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    return np.mean([np.array(p) < ALPHA for part in pool.map(answers, chunks) for p in part], axis=0)


def print_table(
    pool: ProcessPoolExecutor, title: str, rows: Sequence[Row], contenders: Sequence[Contender], peer: bool = False
) -> dict[str, dict[str, float]]:
    names = [contender.name for contender in contenders] + ["KCI"] * peer
    print(f"\n{title}")
    print(f"{'':36}{'reps':>6}" + "".join(f"{name:>9}" for name in names))
    found = {}
    for row in rows:
        rates = rejection_rate(pool, partial(p_values, row, contenders), row.repetitions)
        if peer:
            rates = np.append(rates, rejection_rate(pool, partial(p_values_of_kci, row), row.repetitions))
        found[row.label] = dict(zip(names, rates.tolist(), strict=True))
        print(f"{row.label:36}{row.repetitions:6}" + "".join(f"{rate:9.3f}" for rate in rates), flush=True)
    return found


def highest_level(found: dict[str, dict[str, float]]) -> None:
    label = max(found, key=lambda row: found[row]["default"])
    rate = found[label]["default"]
    verdict = "met" if rate <= HIGHEST_LEVEL else "MISSED"
    print(f"default: at most {rate:.3f} ({label}); target {HIGHEST_LEVEL}: {verdict}")


def design_settings() -> list[tuple[str, int]]:
    """Mechanism and number of conditioning variables; without any, all mechanisms are the same."""
    return [("linear", 0)] + [(mechanism, size) for size in (1, 2, 3) for mechanism in ("linear", "sin", "square")]


def name_row(mechanism: str, size: int) -> str:
    return f"|Z|={size} {mechanism}" if size else "|Z|=0"


def show_pair_levels(pool: ProcessPoolExecutor, repetitions: int) -> None:
    rows = [
        Row(name_row(m, size), partial(calibration_pair, m, conditioning=size), repetitions)
        for m, size in design_settings()
    ]
    highest_level(print_table(pool, "1. Level, x ⫫ y | Z true: 10 clients of 100 rows, all alike", rows, PAIRS))


def show_domain_levels(pool: ProcessPoolExecutor, repetitions: int) -> None:
    for title, errors, most in (
        ("2. Level, ℧ ⫫ x | Z true: 10 clients of 100 rows, Z shifts between them", gaussian, repetitions),
        ("2b. The same with heavy-tailed noise (t with 5 degrees of freedom)", heavy_tailed, min(repetitions, 200)),
    ):
        rows = [
            Row(name_row(m, size), partial(calibration_domain, m, conditioning=size, errors=errors), most)
            for m, size in design_settings()
        ]
        highest_level(print_table(pool, title, rows, DOMAINS))


def show_domain_power(pool: ProcessPoolExecutor, repetitions: int) -> None:
    changes = {
        "noise 0.15": {"noise_change": 0.15},
        "noise 0.3": {"noise_change": 0.3},
        "strength 0.15": {"strength_change": 0.15},
        "strength 0.3": {"strength_change": 0.3},
    }
    rows = [
        Row(f"{name_row(m, size)}, {what}", partial(calibration_domain, m, conditioning=size, **change), repetitions)
        for m, size in [("linear", 0), ("linear", 1), ("sin", 1), ("square", 1), ("linear", 2), ("sin", 2)]
        for what, change in changes.items()
        if size or "noise_change" in change
    ]
    print_table(pool, "3. Power, ℧ ⫫ x | Z false: log strength or log noise differ by this deviation", rows, DOMAINS)


def sine_coupling(noise: Array) -> Array:
    """A coupling that bends twice."""
    return np.sin(2 * noise)


COUPLINGS: dict[str, Function] = {"linear": identity, "square": np.square, "sin 2ε": sine_coupling}
# Mechanism, |Z|, coupling, dependence: chosen on seeds 500 to 519 so that KCI rejects about 0.95 of the time.
ADDITIVE = (
    ("linear", 0, "linear", 0.19),
    ("linear", 0, "square", 0.16),
    ("linear", 0, "sin 2ε", 0.24),
    ("linear", 1, "linear", 0.17),
    ("sin", 1, "linear", 0.17),
    ("square", 1, "linear", 0.17),
    ("linear", 2, "linear", 0.17),
    ("sin", 2, "linear", 0.17),
    ("square", 2, "linear", 0.17),
)
# (x − z)² holds the product xz: no sum of functions of x and of z, so out of reach of pairwise moments.
NOT_ADDITIVE = (("linear", 1, "square", 0.15), ("linear", 2, "square", 0.16))


def show_pair_power(pool: ProcessPoolExecutor, repetitions: int, peer: int) -> None:
    for title, cases in (
        ("4. Power, x ⫫ y | Z false: the noise of x enters y with this weight and shape", ADDITIVE),
        ("4b. The same where E[y | x, Z] is not additive (no target)", NOT_ADDITIVE),
    ):
        rows = []
        for mechanism, size, coupling, dependence in cases:
            make = partial(calibration_pair, mechanism, conditioning=size, dependence=dependence)
            make = partial(make, coupling=COUPLINGS[coupling])
            rows.append(Row(f"{name_row(mechanism, size)}, {dependence} {coupling}", make, peer or repetitions))
        found = print_table(pool, title, rows, PAIRS, bool(peer))
        if cases is ADDITIVE:
            lowest_power(found)


def lowest_power(found: dict[str, dict[str, float]]) -> None:
    label = min(found, key=lambda row: found[row]["default"])
    rate = found[label]["default"]
    verdict = "met" if rate >= LOWEST_POWER else "MISSED"
    print(f"default: at least {rate:.3f} ({label}); target {LOWEST_POWER}: {verdict}")


def show_large_samples(pool: ProcessPoolExecutor, repetitions: int) -> None:
    rows = [
        Row(
            f"|Z|=1 {mechanism}, n={10 * rows}",
            partial(calibration_pair, mechanism, conditioning=1, rows=rows),
            min(repetitions, most),
        )
        for mechanism in ("linear", "sin")
        for rows, most in ((100, 500), (1000, 200), (10_000, 100))
    ]
    print_table(pool, "5. Level as n grows, x ⫫ y | Z true: 10 clients, all alike", rows, PAIRS)


def show_broken_assumptions(pool: ProcessPoolExecutor, repetitions: int) -> None:
    cases = (("noise grows with z", "linear", 1, 0.3), ("sin 3z", "wave", 1, 0.0), ("z1 · z2", "product", 2, 0.0))
    for title, make, contenders in (
        ("6. Level where an assumption fails, x ⫫ y | Z true", calibration_pair, PAIRS),
        ("6b. Level where an assumption fails, ℧ ⫫ x | Z true, Z shifts", calibration_domain, DOMAINS),
    ):
        rows = [
            Row(f"|Z|={size}, {label}", partial(make, m, conditioning=size, unrest=unrest), repetitions)
            for label, m, size, unrest in cases
        ]
        print_table(pool, title, rows, contenders)


def show_precise_levels(pool: ProcessPoolExecutor, repetitions: int) -> None:
    rows = [
        Row(name_row(m, n), partial(calibration_pair, m, conditioning=n), repetitions) for m, n in design_settings()[:6]
    ]
    highest_level(
        print_table(pool, "7. Table 1 again for our test alone, with more repetitions", rows, (DEFAULT, POOLED))
    )


def show_unlike_clients(pool: ProcessPoolExecutor, repetitions: int) -> None:
    changes = {
        "noise 0.3": {"noise_change": 0.3},
        "strength 0.15": {"strength_change": 0.15},
        "strength 0.3": {"strength_change": 0.3},
    }
    rows = [
        Row(f"{name_row('linear', size)}, {what}", partial(calibration_pair, conditioning=size, **change), repetitions)
        for size in (0, 1, 2)
        for what, change in changes.items()
        if size or "noise_change" in change
    ]
    title = "8. Level, x ⫫ y | Z true: log strengths, or the log noise of both, differ by this deviation"
    print_table(pool, title, rows, (DEFAULT, SUMS, POOLED))


def main() -> None:
    global FIRST_SEED
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--kci", type=int, default=40, help="repetitions beside causal-learn's KCI; 0 leaves it out")
    parser.add_argument("--tables", nargs="+", type=int, default=[1, 2, 3, 4, 5, 6, 8])
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    FIRST_SEED = options.first_seed
    if options.kci and find_spec("causallearn") is None:
        print("causal-learn is not installed (pip install 'fedcdh[experiments]'): no figures beside KCI")
        options.kci = 0
    n = options.repetitions
    start = time.perf_counter()
    error = np.sqrt(ALPHA * (1 - ALPHA) / n)
    print(
        f"Rejection rates at α = {ALPHA}, seeds from {FIRST_SEED}; one standard error of a rate of {ALPHA}: {error:.3f}"
    )
    measure = {
        1: lambda pool: show_pair_levels(pool, n),
        2: lambda pool: show_domain_levels(pool, n),
        3: lambda pool: show_domain_power(pool, min(n, 100)),
        4: lambda pool: show_pair_power(pool, min(n, 200), options.kci),
        5: lambda pool: show_large_samples(pool, n),
        6: lambda pool: show_broken_assumptions(pool, min(n, 200)),
        7: lambda pool: show_precise_levels(pool, 4 * n),
        8: lambda pool: show_unlike_clients(pool, min(n, 200)),
    }
    with ProcessPoolExecutor(options.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        for number in options.tables:
            measure[number](pool)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
