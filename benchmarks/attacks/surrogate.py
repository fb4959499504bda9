"""What sums over sites tell about single sites: python -m benchmarks.attacks.surrogate --help

Masks hide all but the sum of the summaries, and the sums of φ times the features of the client index, which tests of
what differs need. With one feature for every site, these are the site's own sums. With one for every group of sites,
they are the group's.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.attacks.common import normal_rows
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.plan import StudyPlan


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


if __name__ == "__main__":
    main()
