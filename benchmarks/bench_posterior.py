"""What probabilities cost, and studies of labels: python -m benchmarks.bench_posterior --help

Simulated studies have ten clients, and one edge per variable. *Search* is the processor time from the sum of the
summaries to the best graphs, with all rounds about residuals; *probabilities* is the time of the posterior over graphs
that follows. Their ratio is the figure to compare: seconds belong to one machine on one day.

Studies of labels are published networks with several domains (`fedcdh.evaluation.experiments.real_data`). *Reading* is
the time that profiles and summaries take, from the file to the sum: work that every study has. *Search* and
*probabilities* are as above, and the last column is their sum beside reading. Every run has its own process.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_evidence_priors import replace_prior
from benchmarks.bench_evidence_scale import run_in_process
from fedcdh.discovery import score_search
from fedcdh.discovery.api import discover
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, available_studies, load_study
from fedcdh.evaluation.simulation import simulate

LABEL_STUDIES = ("bn_asia", "bn_sachs_net", "bn_child", "bn_alarm")


class Cost(NamedTuple):
    """Processor seconds of the parts of a study."""

    reading: float
    search: float
    probabilities: float
    families: float  # that the search scored


def measure_cost(data: Any, **settings: Any) -> Cost:
    """Run `discover` and time its parts."""
    spent = {"search": 0.0, "probabilities": 0.0}
    scored = [0]

    def timed(name: str, function: Any) -> Any:
        def run(*values: Any, **options: Any) -> Any:
            start = process_time()
            try:
                return function(*values, **options)
            finally:
                spent[name] += process_time() - start

        return run

    with ExitStack() as stack:
        for place, name, part in (
            (score_search.ScoreSearch, "__call__", "search"),
            (score_search, "compute_posterior", "probabilities"),
        ):
            stack.enter_context(replace_prior(place, name, timed(part, getattr(place, name))))
        start = process_time()
        discover(data, method="evidence", progress=lambda before, new: scored.append(before + new), **settings)
        total = process_time() - start
    posterior = spent["probabilities"]
    return Cost(total - spent["search"], spent["search"] - posterior, posterior, max(scored))


def measure_size(model: Any, variables: int, rows: int, seed: int) -> Cost:
    """Time one simulated study."""
    study = simulate(model, variables=variables, edges=variables, rows=rows, seed=seed).standardised()
    return measure_cost(study.columns("site"), domain="site")


def measure_labels(name: str, seed: int) -> Cost:
    """Time one study of labels, reading its file included."""
    start = process_time()
    study = load_study(name)
    reading = process_time() - start
    found = measure_cost(study.columns, domain=DOMAIN_COLUMN, kinds=study.kinds, seed=seed)
    return found._replace(reading=reading + found.reading)


def show_sizes(models: Sequence[str], variables: Sequence[int], rows: int, seeds: range) -> None:
    """Print a row for every model and number of variables."""
    print(f"Probabilities beside the search: K = 10, n_k = {rows}, edges = d, means over seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'':24}{'search s':>10}{'probabilities s':>17}{'ratio':>8}{'families':>10}")
    for model in models:
        for size in variables:
            cost = Cost(*run_in_process(partial(measure_size, model, size, rows), seeds))
            ratio = cost.probabilities / cost.search
            title = f"{model:9}d = {size}"
            print(
                f"{title:24}{cost.search:10.2f}{cost.probabilities:17.2f}{ratio:8.2f}{cost.families:10.0f}", flush=True
            )


def show_labels(names: Iterable[str]) -> None:
    """Print a row for every study of labels whose data are here."""
    print("\nStudies of labels")
    heads = "".join(
        f"{head:>{width}}" for head, width in (("reading s", 11), ("search s", 10), ("probabilities s", 17))
    )
    print(f"{'':24}{heads}{'in all s':>10}{'beside reading':>16}{'families':>10}")
    for name in available_studies(names):
        cost = Cost(*run_in_process(partial(measure_labels, name), range(1)))
        after = cost.search + cost.probabilities
        print(
            f"{name:24}{cost.reading:11.2f}{cost.search:10.2f}{cost.probabilities:17.2f}{cost.reading + after:10.2f}"
            f"{after / cost.reading:16.1f}{cost.families:10.0f}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variables", nargs="*", type=int, default=[30, 60, 100])
    parser.add_argument("--models", nargs="+", default=["linear", "general"])
    parser.add_argument("--rows", type=int, default=200, help="of each client (default 200)")
    parser.add_argument("--seeds", default="1000:1003", help="first:last+1 (default 1000:1003; choices: below 1000)")
    parser.add_argument("--labels", nargs="*", default=LABEL_STUDIES, help="studies of labels (default: all four)")
    parser.add_argument("--quick", action="store_true", help="12 and 30 variables, one seed, two studies of labels")
    options = parser.parse_args(arguments)
    if options.quick:
        options.variables, options.seeds, options.labels = [12, 30], "1000:1001", LABEL_STUDIES[:2]
    seeds = range(*map(int, options.seeds.split(":")))
    if options.variables:
        show_sizes(options.models, options.variables, options.rows, seeds)
    if options.labels:
        show_labels(options.labels)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
