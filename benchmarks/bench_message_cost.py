"""The cost of further messages by the number of variables: python -m benchmarks.bench_message_cost --help

Ten clients of 100 rows, as many edges as variables. For every number of variables it prints the numbers of a summary,
the families that clients were asked about, the sums and rounds of further messages, the ratio of sums to the summary,
and true edges whose arrow is right, reversed, open or missed. "time" is that of `discover` with further messages in
multiples of `discover` with one message, both measured in this run, one after the other. Choose settings on seeds below
1000; report on others.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.bench_noise_shapes import judge
from benchmarks.noise_shapes.programs import Found
from fedcdh import discover
from fedcdh.evaluation.experiments.noise_shape_data import Cell, GridStudy, draw
from fedcdh.privacy.disclosure.thresholds import count_released_numbers

MECHANISMS = (("linear", "exponential"), ("linear", "laplace"), ("curved", "gaussian"), ("size", "exponential"))
"""Mechanisms and noises of the studies."""
SIZE = "10 x 100"
MANY_ROUNDS = 20


@dataclass(frozen=True)
class Cost:
    """The cost of further messages in one study, or on average."""

    summary: float
    families: float
    sums: float
    rounds: float
    seconds_one: float
    seconds: float
    right: float
    reversed: float
    open: float
    missed: float
    extra: float


def measure(study: GridStudy, max_rounds: int = MANY_ROUNDS) -> Cost:
    """Run one message and further messages on a study."""
    first = time.perf_counter()
    discover(dict(study.tables), rounds="one")
    second = time.perf_counter()
    result = discover(dict(study.tables), rounds="residuals", max_rounds=max_rounds)
    third = time.perf_counter()
    asked = result.search_result.residuals
    families, cost = (len(asked.families), (asked.entries, asked.rounds)) if asked else (0, (0, 0))
    counts = judge(study, Found(result.graph.arrows, result.graph.lines))
    outcomes = (counts[one] for one in ("right", "reversed", "open", "missed", "extra"))
    return Cost(count_released_numbers(result.cohort.plan), families, *cost, second - first, third - second, *outcomes)


def average(costs: Sequence[Cost]) -> Cost:
    """Return the mean of every figure."""
    names = Cost.__dataclass_fields__
    return Cost(**{name: float(np.mean([getattr(cost, name) for cost in costs])) for name in names})


HEADING = (
    f"{'':44}{'summary':>9}{'families':>10}{'sums':>8}{'ratio':>8}{'rounds':>8}{'right':>8}{'rev.':>7}{'open':>7}"
    f"{'missed':>8}{'extra':>7}{'one, s':>9}{'time':>7}"
)


def show(title: str, cost: Cost) -> None:
    """Print the mean figures of a cell; edges are means per study."""
    print(
        f"{title:44}{cost.summary:9.0f}{cost.families:10.0f}{cost.sums:8.0f}{cost.sums / cost.summary:8.2f}"
        f"{cost.rounds:8.1f}{cost.right:8.1f}{cost.reversed:7.1f}{cost.open:7.1f}{cost.missed:8.1f}{cost.extra:7.1f}"
        f"{cost.seconds_one:9.2f}{cost.seconds / cost.seconds_one:7.1f}",
        flush=True,
    )


def run(cell: Cell, max_rounds: int, seed: int) -> Cost:
    """Measure the study of a cell and a seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(draw(cell, seed), max_rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1002", help="first:last+1 (default 1000:1002)")
    parser.add_argument("--variables", default="6,12,30,100", help="numbers of variables (default 6,12,30,100)")
    parser.add_argument("--max-rounds", type=int, default=MANY_ROUNDS, help="2 for the form with two rounds")
    parser.add_argument("--workers", type=int, default=1, help="more than 1 disturbs the times")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    print(f"{SIZE}, seeds {first}..{last - 1}, at most {options.max_rounds} rounds\n{HEADING}")
    with ProcessPoolExecutor(options.workers) as pool:
        for variables in map(int, options.variables.split(",")):
            every: list[Cost] = []
            for mechanism, noise in MECHANISMS:
                cell = Cell(noise, mechanism, SIZE, variables=variables)
                costs = list(pool.map(partial(run, cell, options.max_rounds), range(first, last)))
                show(f"{variables} variables, {mechanism}, {noise}", average(costs))
                every += costs
            show(f"{variables} variables, all", average(every))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
