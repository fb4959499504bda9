"""How often independent change finds the direction: python -m benchmarks.bench_independent_change --help

Pairs x → y whose mechanisms both change between clients; both forms of the principle see the same instances.
"""

from __future__ import annotations

import argparse

from fedcdh.data.table import to_table
from fedcdh.evaluation.simulation import AUTHORS, PAPER, simulate
from fedcdh.inference.independence.kernel_test import FeatureSpace, one_hot_domain, random_domain_features
from fedcdh.inference.independent_change import OperatorChange, PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile


def share_of_right_directions(model: str, dialect: str, clients: int, rows: int, seeds: range) -> list[float]:
    right = [0, 0, 0]
    for seed in seeds:
        study = simulate(
            model,
            variables=2,
            edges=1,
            changing=2,
            clients=clients,
            rows=rows,
            seed=seed,
            dialect={"paper": PAPER, "authors": AUTHORS}[dialect],
        ).standardised()
        tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
        plan = StudyPlan.from_profiles(profile(table, client) for client, table in tables.items())
        cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
        forms = (
            OperatorChange(Basis.of(cohort)),
            PrintedChange(FeatureSpace.of(cohort, one_hot_domain)),
            PrintedChange(FeatureSpace.of(cohort, random_domain_features)),
        )
        (arrow,) = study.arrows
        for position, form in enumerate(forms):
            (measured,) = form([arrow])
            right[position] += measured.forward < measured.backward
    return [count / len(seeds) for count in right]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1200", help="first:last+1 (default 1000:1200)")
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    print(f"share of pairs with the right direction, seeds {seeds.start}..{seeds.stop - 1}")
    print(f"{'setting':36}{'operators':>11}{'as printed':>12}{'printed, h features of ℧':>26}")
    for clients, rows in ((10, 100), (10, 25), (4, 100), (20, 200)):
        for model, dialect in (("linear", "paper"), ("general", "paper"), ("general", "authors")):
            shares = share_of_right_directions(model, dialect, clients, rows, seeds)
            setting = f"{model}, {dialect} dialect, K={clients}, n_k={rows}"
            print(f"{setting:36}{shares[0]:11.2f}{shares[1]:12.2f}{shares[2]:26.2f}", flush=True)


if __name__ == "__main__":
    main()
