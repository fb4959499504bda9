"""Many noisy summaries of the same people, and their total: python -m benchmarks.attacks.noisy_plans --help

The noise of one summary protects a person up to ε and δ. Noisy summaries of the same people add up, also if each is
about other columns: together they describe the person. A coordinator therefore asks one site for as many noisy
summaries as it gives: about disjoint columns, about the same columns of rows of which one was left out, and about
columns with newly measured values. The last part asks for a δ of 0.01.

The script adds up what leaves a site with the default policy and one ledger. It fails (exit code 1) if a total exceeds
the limit of the policy.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.attacks.common import SITE, Table, normal_rows
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

ATTEMPTS = 8
Question = tuple[Table, tuple[str, ...]]


def disjoint_columns(table: Table) -> Iterator[Question]:
    names = list(table)
    for start in range(0, len(names), 2):
        yield table, tuple(names[start : start + 2])


def fewer_rows(table: Table) -> Iterator[Question]:
    for number in range(ATTEMPTS):
        yield {name: np.delete(column, number) for name, column in table.items()}, tuple(table)[:2]


def measured_again(table: Table) -> Iterator[Question]:
    for number in range(ATTEMPTS):
        noise = np.random.default_rng(number)
        yield {name: x + 0.1 * noise.standard_normal(len(x)) for name, x in table.items()}, tuple(table)[:2]


QUESTIONS: dict[str, Callable[[Table], Iterator[Question]]] = {
    "disjoint columns": disjoint_columns,
    "one row fewer": fewer_rows,
    "measured again": measured_again,
}


def collect(name: str, rows: int, epsilon: float, delta: float, seed: int) -> tuple[int, float, float]:
    """Return how many noisy summaries left, and the epsilon and delta that they spent together."""
    table = normal_rows(rows, 2 * ATTEMPTS, np.random.default_rng([seed, rows]))
    left = 0
    with tempfile.TemporaryDirectory() as folder:
        context = ReleaseContext(SITE, gate=ReleaseGate(ReleaseLedger(Path(folder) / "releases.jsonl")))
        for asked, names in QUESTIONS[name](table):
            variables = tuple(Continuous(one, 0, 1.2) for one in names)
            plan = StudyPlan(variables, (SITE, "there"), clip=6, noise=DPParameters(epsilon, delta))
            try:
                context.policy.check_plan(plan)
                release_summary(asked, plan, context)
            except DisclosureError:
                continue
            left += 1
    return left, left * epsilon, left * delta


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    policy, succeeded = Policy(), False
    limits = policy.epsilon_budget, policy.delta_limit(options.rows)
    print(f"{options.rows} rows, seed {options.seed}, limits of the policy: epsilon {limits[0]:g}, delta {limits[1]:g}")
    print(f"{'questions':20}{'epsilon':>9}{'delta':>9}{'asked':>7}{'left':>6}{'total epsilon':>15}{'total delta':>13}")
    for name in QUESTIONS:
        for epsilon, delta in ((6.0, 1e-6), (1.0, 1e-5), (0.5, 0.01)):
            left, *totals = collect(name, options.rows, epsilon, delta, options.seed)
            cells = f"{epsilon:9g}{delta:9g}{ATTEMPTS:7}{left:6}{totals[0]:15g}{totals[1]:13g}"
            print(f"{name:20}{cells}", flush=True)
            succeeded |= any(total > limit * (1 + 1e-9) for total, limit in zip(totals, limits, strict=True))
    return int(succeeded)


if __name__ == "__main__":
    sys.exit(main())
