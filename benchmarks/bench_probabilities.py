"""Calibration of probabilities: python -m benchmarks.bench_probabilities --help

Of the edges that a result calls 80 % likely, 80 % should be there. The benchmark collects what results say about the
presence of edges, their direction and the change of mechanisms. Reliability tables, a diagram and the expected
calibration error (ECE) compare this with the truth. The benchmark also counts which drawn arrows are right. Choose
settings on seeds below 1000; report on others.

The ECE is the mean distance between what is said and what is found, over bins of probabilities. It is biased upwards
where statements are few: a perfect forecaster has a positive ECE, too. The figure "chance" is the mean ECE of such a
forecaster with the same probabilities, from 200 draws. Compare a single cell with it.

A direction is judged where a pair is truly adjacent and its edge has a probability of at least one half. `--real` uses
real and published data; of several studies of one source, only the first enters the totals. `--heart` prints the
likeliest arrow into age or sex of four hospitals' patients, which nothing causes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.probabilities.cells import Case, Study, choose_cases, real_study
from benchmarks.probabilities.diagram import draw_diagram
from benchmarks.probabilities.heart import show_heart
from benchmarks.probabilities.reliability import LIMITS, make_bins
from benchmarks.probabilities.report import HEADING, Record, by_family, goals, line, merge, show_totals, table
from benchmarks.probabilities.statements import KINDS, Statements, add_up, count_drawn, read_result
from fedcdh import PartialGraph, discover
from fedcdh.errors import FedCDHError
from fedcdh.evaluation.experiments.real_data import REAL_STUDIES, available_studies, load_study

METHODS: Mapping[str, Mapping[str, Any]] = {
    "evidence": {"method": "evidence"},
    "evidence, two rounds": {"method": "evidence", "max_rounds": 2},
    "evidence, one message": {"method": "evidence", "rounds": "one"},
}


class Outcome(NamedTuple):
    """The statements of one method about one study."""

    title: str
    method: str
    seed: int
    statements: Statements
    seconds: float
    failure: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return every statement, so that settings can be chosen without another run.

        Pairs have one order: statements 2k and 2k + 1 about arrows belong to statement k about presence.
        """
        said = {kind: [[one.said, int(one.true)] for one in self.statements.of(kind)] for kind in KINDS}
        names = {"title": self.title, "method": self.method, "seed": self.seed}
        return names | said | {"drawn": dict(self.statements.drawn), "failure": self.failure}


def ask(study: Study, title: str, method: str, seed: int = 0) -> Outcome:
    """Run one method on one study; with a refusal it has no statements, and misses all edges."""
    start, failure = time.perf_counter(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = discover(study.data, **study.options, **METHODS[method])
        except FedCDHError as reason:
            failure = f"{type(reason).__name__}: {' '.join(str(reason).split())}"
            found = Statements(drawn=count_drawn(PartialGraph(study.names), study.arrows))
        else:
            found = read_result(result, study)
    return Outcome(title, method, seed, found, time.perf_counter() - start, failure)


def run_case(methods: Sequence[str], job: tuple[Case, int]) -> list[Outcome]:
    """Draw one study and run every method on it."""
    case, seed = job
    study = case.draw(seed)
    return [ask(study, str(case), method, seed) for method in methods]


def run_cases(pool: Executor, cases: Sequence[Case], methods: Sequence[str], seeds: range) -> list[Outcome]:
    """Run every method on every study, and print a line for each cell."""
    jobs = [(case, seed) for case in cases for seed in seeds]
    results, outcomes = pool.map(partial(run_case, methods), jobs), []
    print(f"seeds {seeds.start}..{seeds.stop - 1}\n{HEADING}")
    for case in cases:
        found = [outcome for _ in seeds for outcome in next(results)]
        for method in methods:
            show_line(Record(str(case), case.group, case.family, statements_of(found, method)), method, found)
        outcomes += found
    return outcomes


def show_line(record: Record, method: str, outcomes: Iterable[Outcome]) -> None:
    refusals = [one.failure for one in outcomes if one.method == method and one.failure]
    print(f"{line(record)}  {method}", flush=True)
    if refusals:
        print(f"  {len(refusals)} refused, the first because of {refusals[0][:120]}", flush=True)


def statements_of(outcomes: Iterable[Outcome], method: str) -> Statements:
    return add_up(one.statements for one in outcomes if one.method == method)


def records_of(cases: Sequence[Case], outcomes: Sequence[Outcome], method: str) -> list[Record]:
    """Return one record per cell."""
    by_title: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_title.setdefault(one.title, []).append(one)
    return [Record(str(case), case.group, case.family, statements_of(by_title[str(case)], method)) for case in cases]


# Real data


def run_real_study(job: tuple[str, str]) -> Outcome:
    name, method = job
    return ask(real_study(load_study(name)), name, method)


def run_real(pool: Executor, names: Sequence[str], methods: Sequence[str]) -> list[Outcome]:
    """Run every method on every study whose data are here, and print a line for each."""
    jobs = [(name, method) for name in available_studies(names) for method in methods]
    print(f"real and published studies\n{HEADING}")
    outcomes = []
    for outcome in pool.map(run_real_study, jobs):
        show_line(Record(outcome.title, "", "", outcome.statements), outcome.method, [outcome])
        outcomes.append(outcome)
    return outcomes


def first_of_sources(outcomes: Iterable[Outcome], method: str) -> list[Record]:
    """Return one record per source: several studies of one source are one piece of evidence."""
    found: dict[str, Record] = {}
    for one in outcomes:
        source = REAL_STUDIES[one.title].source
        if one.method == method and source not in found:
            found[source] = Record(one.title, "", "", one.statements)
    return list(found.values())


def show_real(records: Sequence[Record], method: str) -> None:
    whole = merge(f"first study of {len(records)} sources", records)
    print(f"\n{HEADING}\n{line(whole)}  {method}")
    for kind in KINDS:
        if whole.statements.of(kind):
            print("\n" + "\n".join(table(whole, kind)))


# Command


def write_files(options: argparse.Namespace, records: Mapping[str, Sequence[Record]], raw: Sequence[Outcome]) -> None:
    """Write the diagram, the figures and the statements, as far as they are asked for."""
    whole = {method: merge("all", found) for method, found in records.items()}
    if options.diagram:
        bins = {
            method: {kind: make_bins(one.statements.of(kind), LIMITS[kind]) for kind in KINDS}
            for method, one in whole.items()
        }
        Path(options.diagram).write_text(draw_diagram(bins), encoding="utf-8")
    if options.json:
        figures = {
            method: {
                "all": whole[method].as_json(),
                "families": [] if options.real else [one.as_json() for one in by_family(found)],
                "cells": [one.as_json() for one in found],
                "goals": [] if options.real else [one.as_json() for one in goals(found)],
            }
            for method, found in records.items()
        }
        document = {"seeds": None if options.real else options.seeds, "methods": figures}
        Path(options.json).write_text(json.dumps(document, indent=1), encoding="utf-8")
    if options.raw:
        with gzip.open(options.raw, "wt", encoding="utf-8") as file:
            json.dump([one.as_json() for one in raw], file)


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010", help="first:last+1 (default 1000:1010); below 1000 to choose")
    parser.add_argument("--cells", default="", help="parts of titles of cells, separated by semicolons (default: all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["evidence"])
    parser.add_argument("--real", action="store_true", help="real and published studies instead of the cells")
    parser.add_argument("--heart", action="store_true", help="only arrows into age and sex of the heart study")
    parser.add_argument("--studies", nargs="+", default=list(REAL_STUDIES), help="of the real ones (default: all)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--diagram", help="file for the reliability diagram (SVG)")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--raw", help="file for every statement (.json.gz)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    if options.heart:
        show_heart({method: METHODS[method] for method in options.methods})
        return
    cases = [] if options.real else choose_cases(options.cells)
    with ProcessPoolExecutor(options.workers) as pool:
        if options.real:
            outcomes = run_real(pool, options.studies, options.methods)
        else:
            outcomes = run_cases(pool, cases, options.methods, range(*map(int, options.seeds.split(":"))))
    records = {}
    for method in options.methods:
        if options.real:
            records[method] = first_of_sources(outcomes, method)
            show_real(records[method], method)
        else:
            records[method] = records_of(cases, outcomes, method)
            print(f"\nTotals of {method}")
            show_totals(records[method])
    write_files(options, records, outcomes)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
