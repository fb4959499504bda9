"""What sums over sites tell about single sites: python -m benchmarks.attacks.surrogate --help

Masks hide all but the sum of the summaries, and the sums of φ times the features of the client index, which tests of
what differs need. With one feature for every site, these are the site's own sums. With one for every group of sites,
they are the group's. The sums of a site hold those of its squares, so its standard deviations are known as well.

`OPENED` and `HIDDEN` of `fedcdh.summaries.opened_by_sums` say in words what is known and what is not. `read_opened`
computes all of the former; `guess_correlations` tries the latter. It ends with an error if a hidden quantity is found,
or one that is said to be known is not.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.attacks.common import Array, Table, normal_rows
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.opened_by_sums import OPENED
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

MAX_ERROR = 0.01
"""Error up to which a quantity counts as known."""
MIN_GUESS = 0.8
"""A hidden quantity counts as found if a guess has less than this share of the error without any site's sums."""


def make_clients(number: int, seed: int) -> Cohort:
    """Sites whose means differ by a standard deviation or so."""
    rng = np.random.default_rng([seed, number, 7])
    tables = {}
    for k in range(number):
        shifts = rng.standard_normal(4)
        rows = normal_rows(int(rng.integers(200, 1000)), 4, rng)
        tables[f"s{k:02}"] = {name: x + shift for (name, x), shift in zip(rows.items(), shifts, strict=True)}
    plan = StudyPlan.from_tables(tables)
    return add_up((summarize(table, plan, site) for site, table in tables.items()), plan)


def attack_surrogate(cohort: Cohort, size: int) -> tuple[float, float, float]:
    """The largest error of a site's sums, of its mean (root mean square, sd of all rows), and of its rows, in rows.

    The attacker takes each site for the average of its group, as large as the others.
    """
    groups = {client: f"g{k // size:02}" for k, client in enumerate(cohort.clients)}
    known = Aggregate.of(cohort, None if size == 1 else groups)
    first = dict(zip(known.clients, known.first_moments, strict=True))
    members = {name: len(clients) for name, clients in known.groups}
    _, scatter = cohort.total.means_and_scatter()
    spread = np.sqrt(scatter.diagonal() / cohort.total.rows)
    linear = [span.start for span in cohort.plan.layout.spans.values()]
    sums, means, rows = [], [], []
    for client, summary in zip(cohort.clients, cohort.summaries, strict=True):
        group = client if size == 1 else groups[client]
        told = first[group] / members[group]
        sums.append(np.abs(told - summary.moments[0]).max() / cohort.total.moments[0, 0])
        means.append((told / told[0] - summary.moments[0] / summary.moments[0, 0])[linear] / spread[linear])
        rows.append(abs(told[0] / (cohort.total.moments[0, 0] / cohort.total.rows) - summary.rows))
    return float(max(sums)), float(np.sqrt(np.mean(np.square(means)))), float(max(rows))


def draw_unlike_tables(number: int, seed: int, kind: str) -> dict[str, Table]:
    """Sites whose spreads differ, and whose correlations are unrelated, or follow from the same effects."""
    rng = np.random.default_rng([seed, number, 8])
    tables = {}
    for k in range(number):
        n, spreads = int(rng.integers(400, 1000)), np.exp(0.4 * rng.standard_normal(4))
        noise = rng.standard_normal((n, 4)) * spreads
        effects = np.triu(rng.standard_normal((4, 4)) if kind == "unrelated" else np.full((4, 4), 0.6), 1)
        rows = noise @ np.linalg.inv(np.eye(4) - effects)
        level = np.where(rng.random(n) < 0.2 + 0.6 * k / number, "a", "b")
        tables[f"s{k:02}"] = {**{f"v{j}": rows[:, j] for j in range(4)}, "g": level}
    return tables


def add_up_tables(tables: dict[str, Table]) -> Cohort:
    plan = StudyPlan.from_tables(tables)
    return add_up((summarize(table, plan, site) for site, table in tables.items()), plan)


def read_opened(known: Aggregate) -> dict[str, Array]:
    """Compute what is said to be known of each client or group, from the sums that are opened."""
    plan, means = known.plan, known.means
    numbers = [v for v in plan.variables if isinstance(v, Continuous)]
    levels = [v for v in plan.variables if isinstance(v, Categorical)]
    spans, rows = plan.layout.spans, np.array(known.client_rows)
    first = [spans[v.name].start for v in numbers]
    sizes = plan.clip * np.array([v.scale for v in numbers])
    shapes = np.hstack([means[:, spans[v.name].start + 2 : spans[v.name].stop] for v in numbers])
    counts = np.hstack([means[:, spans[v.name]] * rows[:, None] for v in levels])
    return {
        "rows": rows,
        "means": np.array([v.location for v in numbers]) + sizes * means[:, first],
        "deviations": sizes * np.sqrt(means[:, [place + 1 for place in first]] - means[:, first] ** 2),
        "shapes": shapes,
        "counts": counts,
    }


def read_truth(tables: dict[str, Table], cohort: Cohort) -> dict[str, Array]:
    """Compute the same from the rows; for the shape, the means of features at each site."""
    numbers = [np.column_stack([table[f"v{j}"] for j in range(4)]) for table in tables.values()]
    alone = [read_opened(Aggregate.from_total(one, cohort.plan)) for one in cohort.summaries]
    return {
        "rows": np.array([len(rows) for rows in numbers]),
        "means": np.array([rows.mean(axis=0) for rows in numbers]),
        "deviations": np.array([rows.std(axis=0) for rows in numbers]),
        "shapes": np.concatenate([one["shapes"] for one in alone]),
        "counts": np.array([[(table["g"] == level).sum() for level in "ab"] for table in tables.values()]),
    }


def correlations_of(scatter: Array) -> Array:
    spread = np.sqrt(scatter.diagonal())
    return np.asarray((scatter / np.outer(spread, spread))[np.triu_indices(len(scatter), 1)])


def guess_correlations(cohort: Cohort) -> tuple[float, float]:
    """Return the error of the best guess of a site's correlations, and that of whoever knows no site's sums.

    Guesses: the correlations, the covariances or the effects of all rows hold at every site. The attacker is lucky, and
    takes for each study the guess that fits best.
    """
    plan = cohort.plan
    numbers = [v for v in plan.variables if isinstance(v, Continuous)]
    places = [plan.layout.spans[v.name].start for v in numbers]
    rows = Aggregate.of(cohort)
    within = next(iter(rows.scatters(slice(None), slice(None))))[np.ix_(places, places)] / cohort.total.rows
    deviations = read_opened(rows)["deviations"] / (plan.clip * np.array([v.scale for v in numbers]))
    upper = np.triu_indices(len(places), 1)
    errors: dict[str, list[Array]] = {"correlations": [], "covariances": [], "forward": [], "backward": []}
    blind = correlations_of(cohort.total.means_and_scatter()[1][np.ix_(places, places)])
    unaided = []
    for summary, own in zip(cohort.summaries, deviations, strict=True):
        true = correlations_of(summary.means_and_scatter()[1][np.ix_(places, places)])
        one, other = own[upper[0]], own[upper[1]]
        guesses = {
            "correlations": correlations_of(within),
            "covariances": within[upper] / (one * other),
            "forward": within[upper] / within.diagonal()[upper[0]] * one / other,
            "backward": within[upper] / within.diagonal()[upper[1]] * other / one,
        }
        for name, guess in guesses.items():
            errors[name].append(np.clip(guess, -1, 1) - true)
        unaided.append(blind - true)
    best = min(float(np.sqrt(np.mean(np.square(one)))) for one in errors.values())
    return best, float(np.sqrt(np.mean(np.square(unaided))))


def error_of_opened(tables: dict[str, Table]) -> dict[str, float]:
    """Return the largest error of each quantity that is said to be known; of means and deviations in deviations."""
    cohort = add_up_tables(tables)
    found, true = read_opened(Aggregate.of(cohort)), read_truth(tables, cohort)
    unit = {"means": true["deviations"], "deviations": true["deviations"]}
    return {name: float(np.max(np.abs(found[name] - true[name]) / unit.get(name, 1.0))) for name in OPENED}


def show_statements(seeds: range) -> list[str]:
    """Try every statement, and return those that do not hold."""
    worst = dict.fromkeys(OPENED, 0.0)
    for seed in seeds:
        for name, error in error_of_opened(draw_unlike_tables(6, seed, "unrelated")).items():
            worst[name] = max(worst[name], error)
    print("\nsaid to be known of every site: largest error (of the first two of a variable in standard deviations)")
    for name, error in worst.items():
        print(f"  {OPENED[name]:40}{error:10.1e}")
    print("\nsaid to be hidden: correlations of a site, root mean square error (lucky guess; without sums of sites)")
    guessed = {}
    for kind in ("unrelated", "same effects"):
        both = np.array([guess_correlations(add_up_tables(draw_unlike_tables(6, seed, kind))) for seed in seeds])
        guessed[kind] = np.sqrt((both**2).mean(axis=0))
        print(f"  sites with {kind:30}{guessed[kind][0]:10.2f}{guessed[kind][1]:10.2f}")
    wrong = [name for name, error in worst.items() if error > MAX_ERROR]
    return wrong + (["correlations"] if guessed["unrelated"][0] < MIN_GUESS * guessed["unrelated"][1] else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20, help="from 1000 on (default 20)")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (3 if options.quick else options.seeds))
    print(f"4 numbers, sites of 200 to 1000 rows, means that differ by 1 sd, seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'sites':>6}{'in a group':>12}{'sums (share of the bound)':>28}{'means (sd)':>13}{'rows, at most':>15}")
    for number, size in ((3, 1), (12, 1), (12, 3), (12, 4), (12, 12)):
        worst = np.array([attack_surrogate(make_clients(number, seed), size) for seed in seeds])
        sums, rows = worst[:, 0].max(), worst[:, 2].max()
        print(f"{number:6}{size:12}{sums:28.1e}{np.sqrt((worst[:, 1] ** 2).mean()):13.2f}{rows:15.0f}")
    if wrong := show_statements(seeds):
        raise SystemExit(f"what is said about sums does not hold: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
