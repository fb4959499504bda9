"""How often tests reject with noise for differential privacy: true null hypotheses (level) and false ones (power).

    python -m benchmarks.bench_differential_privacy --repetitions 100

Plans have six variables and delta = 1e-5; the variables that a question is not about are independent noise. "naive" is
the same test when it takes the noise for rows. Features, weights and limits were chosen on seeds below 1000. Noise is
drawn in float64 here: that is no good for privacy, fast, and the same to fifteen digits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.calibration_data import Instance, calibration_domain, calibration_pair
from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.result import Discovery
from fedcdh.evaluation.baselines.private_sparse_bnsl import run_private_sparse_bnsl
from fedcdh.evaluation.baselines.sparse_bnsl import run_sparse_bnsl
from fedcdh.evaluation.simulation import MechanismModel, Simulation, simulate
from fedcdh.graphs.metrics import compare, compare_changing
from fedcdh.inference.independence.noisy_moments_test import NoisyMomentsTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.privacy.differential.mechanism import clip_noisy_rows, noise_deviations
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.dp_parameters import PRODUCT_STEPS, DPParameters
from fedcdh.summaries.features import bounded
from fedcdh.summaries.noisy_moments import NoisyMoments
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Continuous

ALPHA, DELTA, VARIABLES, CLIENTS = 0.05, 1e-5, 6, 5
ROWS, EPSILONS = (1000, 10_000, 100_000), (0.5, 1.0, 2.0, 4.0, 8.0)
MODELS: tuple[MechanismModel, ...] = ("linear", "general")
DEGREE = 3
MOST, SEARCHES = {100_000: 50}, 20
"""Repetitions where they take long."""


@dataclass(frozen=True)
class Setting:
    """A kind of data with a question; `scales` is what the plan takes for the standard deviations, over the truth."""

    label: str
    make: Callable[..., Instance]
    scales: float = 1.0


def exact_summaries(instance: Instance, seed: int, scales: float) -> tuple[StudyPlan, list[Summary]]:
    """Every client's summary before noise, by a plan whose epsilon can still be changed."""
    study, rng = instance.study, np.random.default_rng([seed, 0x015E])
    rows = np.concatenate(list(study.tables.values()))
    own = [
        Continuous(name, float(mean), scales * float(spread))
        for name, mean, spread in zip(study.names, rows.mean(axis=0), rows.std(axis=0), strict=True)
    ]
    others = [Continuous(f"other{i}", 0.0, scales) for i in range(VARIABLES - len(own))]
    noise = DPParameters(1.0, DELTA, expected_rows=len(rows), degree=DEGREE)
    plan = StudyPlan((*own, *others), tuple(study.tables), clip=bounded.BOUNDED_CLIP, noise=noise)
    summaries = []
    for client, table in study.tables.items():
        columns = {name: table[:, i] for i, name in enumerate(study.names)}
        columns |= {other.name: rng.standard_normal(len(table)) for other in others}
        summaries.append(summarize(columns, plan, client))
    return plan, summaries


def add_noise(summary: Summary, noise: DPParameters, rng: np.random.Generator) -> Summary:
    """As `privacy.noise.noisy`, from numpy's generator."""
    sizes = noise_deviations(len(summary.moments), noise.deviation)
    drawn = np.triu(np.rint(rng.standard_normal(sizes.shape) * sizes)).astype(np.int64)
    drawn[0] = np.rint(drawn[0] / 2.0**18).astype(np.int64) << 18
    drawn[0, 0] = round(int(drawn[0, 0]) / 2**36) << 36
    drawn += np.triu(drawn, 1).T
    return clip_noisy_rows(replace(summary, moments=summary.moments + drawn, noise=noise.deviation**2))


def p_values(setting: Setting, rows: int, seed: int, each: bool, epsilons: Sequence[float]) -> Iterator[list[float]]:
    """For every epsilon the p-value of the test that knows the noise, and of the one that does not."""
    instance = setting.make(rows=rows // CLIENTS, clients=CLIENTS, seed=seed)
    plan, exact = exact_summaries(instance, seed, setting.scales)
    if not each:
        exact = [reduce(Summary.__add__, exact)]
    asked = instance.query
    if each and DOMAIN not in asked.pair:
        asked = Query(asked.x, asked.y, asked.given | {DOMAIN})
    for number, epsilon in enumerate(epsilons):
        rng = np.random.default_rng([seed, rows, number])
        noise = DPParameters(epsilon, DELTA, expected_rows=rows, degree=DEGREE)
        here = replace(plan, noise=noise)
        sent = [add_noise(replace(one, plan=here.fingerprint), noise, rng) for one in exact]
        known: Cohort | Aggregate = add_up(sent, here) if each else Aggregate.from_total(sent[0], here)
        moments = NoisyMoments.of(known)
        blind = replace(moments, deviations=np.full(len(sent), 1e-9))
        yield [NoisyMomentsTest(one)([asked])[0].p_value for one in (moments, blind)]


def print_table(
    title: str,
    settings: Sequence[Setting],
    each: bool,
    options: argparse.Namespace,
    sizes: Sequence[int],
    *,
    epsilons: Sequence[float] = EPSILONS,
    plain: bool = False,
) -> None:
    """Rates of rejection; with `plain`, also those of method "constraint" without noise."""
    print(f"\n{title}", flush=True)
    print(f"{'n':>8}{'epsilon':>9}  " + "".join(f"{setting.label:>18}" for setting in settings))
    for rows in sizes:
        most = min(options.repetitions, MOST.get(rows, options.repetitions))
        seeds = range(options.first_seed, options.first_seed + most)
        rates = [
            np.mean([[np.array(p) < ALPHA for p in p_values(s, rows, seed, each, epsilons)] for seed in seeds], axis=0)
            for s in settings
        ]
        for number, epsilon in enumerate(epsilons):
            cells = "".join(f"{f'{rate[number][0]:.2f} ({rate[number][1]:.2f})':>18}" for rate in rates)
            if most >= 1000:
                cells = "".join(f"{f'{rate[number][0]:.3f} ({rate[number][1]:.3f})':>18}" for rate in rates)
            print(f"{rows:8}{epsilon:9g}  {cells}", flush=True)
        if plain:
            found = [np.mean([plain_p_value(s, rows, seed) < ALPHA for seed in seeds]) for s in settings]
            print(f"{rows:8}{'none':>9}  " + "".join(f"{rate:11.2f}{'':7}" for rate in found), flush=True)


def plain_p_value(setting: Setting, rows: int, seed: int) -> float:
    """Of the test of method "constraint", from exact sums of the usual features."""
    instance = setting.make(rows=rows // CLIENTS, clients=CLIENTS, seed=seed)
    study, asked = instance.study, instance.query
    tables = {c: {n: table[:, i] for i, n in enumerate(study.names)} for c, table in study.tables.items()}
    plan = StudyPlan.from_tables(tables)
    basis = Basis.of(add_up([summarize(table, plan, client) for client, table in tables.items()], plan))
    if DOMAIN not in asked.pair:
        asked = Query(asked.x, asked.y, asked.given | {DOMAIN})
    return RegressionTest(basis)([asked])[0].p_value


def show_pairs(mechanism: str = "linear", sizes: Sequence[int] = (0, 1, 2), strength: float = 0.3) -> list[Setting]:
    level = [Setting(f"level |Z|={z}", partial(calibration_pair, mechanism, conditioning=z)) for z in sizes]
    there = partial(calibration_pair, mechanism, dependence=strength)
    return level + [Setting(f"power |Z|={z}", partial(there, conditioning=z)) for z in sizes]


def show_domains() -> list[Setting]:
    level = [Setting(f"level |Z|={z}", partial(calibration_domain, conditioning=z)) for z in (0, 1, 2)]
    there = partial(calibration_domain, noise_change=0.3, strength_change=0.3)
    return level + [Setting(f"power |Z|={z}", partial(there, conditioning=z)) for z in (0, 1, 2)]


def show_nonlinear() -> list[Setting]:
    cases = (("sin", 1), ("sin", 2), ("square", 1))
    level = [Setting(f"pair {m} |Z|={z}", partial(calibration_pair, m, conditioning=z)) for m, z in cases]
    return [*level, Setting("domain sin |Z|=1", partial(calibration_domain, "sin", conditioning=1))]


def share_misjudged() -> list[Setting]:
    return [
        replace(setting, label=f"{setting.label} x{scales:g}", scales=scales)
        for scales in (0.5, 2.0)
        for setting in show_pairs(sizes=(0, 1))
    ]


def show_sizes() -> None:
    """How much noise, and how many rows of normal variables are drawn onto the ball."""
    print("\n0. Noise in products of two features, in rows; R², and % of rows that are drawn in (normal variables)")
    print("".join(f"   epsilon {e:g}: {DPParameters(e, DELTA).deviation / PRODUCT_STEPS:.2f}" for e in EPSILONS))
    rng = np.random.default_rng(0)
    for variables in (3, 6, 12, 30):
        z = rng.standard_normal((variables, 100_000))
        for degree in (1, 3):
            size = sum(np.square(column).sum(axis=0) for column in bounded.power_features(z, degree))
            cells = []
            for rows in ROWS:
                radius = bounded.compute_radius(variables, 0, degree, rows)
                cells.append(f"n = {rows}: {radius**2:6.1f}, {100 * (size > radius**2).mean():4.1f} %")
            print(f"{variables:4} variables, degree {degree}   " + "   ".join(cells), flush=True)


def show_graphs(options: argparse.Namespace) -> None:
    """Skeleton F1 / direction F1 / share of changing variables found, of whole searches."""
    print(
        "\n6. Graphs, 2 of 6 mechanisms change, every client adds noise, no more than 20 repetitions (n = 100,000: 10)"
    )
    print(
        f"F1 of edges / of directions / share of changing variables found / of results with a warning; degree {DEGREE}"
    )
    heads = [f"eps {epsilon:g}" for epsilon in EPSILONS] + ["no noise"]
    print(f"{'model':>8}{'n':>8}  " + "".join(f"{head:>28}" for head in heads), flush=True)
    for model in MODELS:
        for rows in (rows for rows in ROWS if rows <= options.max_rows_per_client):
            most = min(options.repetitions, SEARCHES // 2 if rows in MOST else SEARCHES)
            seeds = range(options.first_seed, options.first_seed + most)
            found = np.mean([_searches(model, rows, seed) for seed in seeds], axis=0)
            cells = "".join(f"{' / '.join(f'{value:.2f}' for value in one):>28}" for one in found)
            print(f"{model:>8}{rows:8}  {cells}", flush=True)


def _searches(model: MechanismModel, rows: int, seed: int) -> list[list[float]]:
    study = simulate(model, clients=CLIENTS, rows=rows // CLIENTS, seed=seed)
    exact_result = discover(study.columns(), domain="site", method="constraint")
    return [*_noisy_searches(study, rows, seed), _scores(exact_result, study)]


def _noisy_searches(study: Simulation, rows: int, seed: int) -> list[list[float]]:
    plan, exact = exact_summaries(Instance(study, Query(*study.names[:2]), True), seed, 1.0)
    found = []
    for number, epsilon in enumerate(EPSILONS):
        rng = np.random.default_rng([seed, rows, number])
        noise = DPParameters(epsilon, DELTA, expected_rows=rows, degree=DEGREE)
        here = replace(plan, noise=noise)
        sent = [add_noise(replace(one, plan=here.fingerprint), noise, rng) for one in exact]
        found.append(_scores(discover_from(sent, here), study))
    return found


def show_rival(options: argparse.Namespace) -> None:
    """Skeleton F1 / direction F1 of our searches and of Fed-Sparse-BNSL, on the same rows and at equal privacy."""
    print("\n9. Graphs at equal epsilon and delta: ours as in table 6, and Fed-Sparse-BNSL; every client adds noise")
    print("F1 of edges / of directions, and standard errors of their differences (ours - theirs)")
    heads = [f"eps {epsilon:g}" for epsilon in EPSILONS] + ["no noise"]
    print(f"{'model':>8}{'n':>8}{'':>8}" + "".join(f"{head:>16}" for head in heads), flush=True)
    for model in MODELS:
        for rows in (rows for rows in ROWS if rows <= options.max_rows_per_client):
            most = min(options.repetitions, SEARCHES // 2 if rows in MOST else SEARCHES)
            seeds = range(options.first_seed, options.first_seed + most)
            found = np.array([_searches_beside_rival(model, rows, seed) for seed in seeds])
            spread = (found[:, 0] - found[:, 1]).std(axis=0, ddof=1) / np.sqrt(most)
            ours, theirs = found.mean(axis=0)
            for name, values in (("ours", ours), ("theirs", theirs), ("se", spread)):
                cells = "".join(f"{' / '.join(f'{value:.2f}' for value in one):>16}" for one in values)
                print(f"{model:>8}{rows:8}{name:>8}{cells}", flush=True)


def _searches_beside_rival(model: MechanismModel, rows: int, seed: int) -> list[list[list[float]]]:
    """F1 of edges and of directions, of ours and of the rival, at every epsilon and without noise."""
    study = simulate(model, clients=CLIENTS, rows=rows // CLIENTS, seed=seed)
    ours = [scores[:2] for scores in _searches(model, rows, seed)]
    results = [
        run_private_sparse_bnsl(study.tables, study.names, seed, epsilon=epsilon, delta=DELTA) for epsilon in EPSILONS
    ]
    standard = study.standardised()
    results.append(run_sparse_bnsl(standard.tables, standard.names, seed))
    scores = [compare(result.graph.arrows, study.arrows, result.graph.lines) for result in results]
    return [ours, [[score.skeleton.f1, score.direction.f1] for score in scores]]


def _scores(result: Discovery, study: Simulation) -> list[float]:
    beside = compare(result.graph.arrows, study.arrows, result.graph.lines)
    warned = any("outside of the region" in note for note in result.notes)
    changing = compare_changing(result.changing, study.changing)
    return [beside.skeleton.f1, beside.direction.f1, changing.recall, float(warned)]


def main() -> None:
    global DEGREE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--tables", nargs="+", type=int, default=[0, 1, 2, 3, 4, 5, 6])
    parser.add_argument("--degree", type=int, default=DEGREE, help="of the noise in the plan: 1, 2 or 3")
    parser.add_argument("--max-rows-per-client", type=int, default=ROWS[-1], help="of table 6")
    options = parser.parse_args()
    DEGREE = options.degree
    start = time.perf_counter()
    print(
        f"Rejection rates at level {ALPHA}, of the test that knows the noise (and of the naive one); {VARIABLES} "
        f"variables, delta {DELTA:g}, {CLIENTS} clients, seeds from {options.first_seed}, {options.repetitions} "
        f"repetitions (n = 100,000: at most {MOST[100_000]}); one standard error of a rate of {ALPHA} is "
        f"{np.sqrt(ALPHA * (1 - ALPHA) / options.repetitions):.3f}"
    )
    tables: dict[int, Callable[[], None]] = {
        0: show_sizes,
        1: lambda: print_table("1. x ⫫ y | Z, noise in the sum only; power: 0.3", show_pairs(), False, options, ROWS),
        2: lambda: print_table(
            "2. x ⫫ y | Z, ℧, every client adds noise; power: 0.3", show_pairs(), True, options, ROWS
        ),
        3: lambda: print_table(
            "3. ℧ ⫫ x | Z, every client adds noise; power: 0.3, 0.3", show_domains(), True, options, ROWS
        ),
        4: lambda: print_table(
            "4. Level where effects bend, every client adds noise",
            show_nonlinear(),
            True,
            options,
            ROWS[:2],
            plain=True,
        ),
        5: lambda: print_table(
            "5. Scales declared 0.5 and 2 times the truth, as 1", share_misjudged(), False, options, ROWS[1:2]
        ),
        6: lambda: show_graphs(options),
        7: lambda: print_table("7. As 1, level only", show_pairs()[:3], False, options, ROWS[:2], epsilons=(1.0,)),
        8: lambda: print_table(
            "8. As 2 and 3, level only", show_pairs()[:1] + show_domains()[:2], True, options, ROWS[:2], epsilons=(1.0,)
        ),
        9: lambda: show_rival(options),
    }
    with threadpool_limits(1):
        for number in options.tables:
            tables[number]()
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
