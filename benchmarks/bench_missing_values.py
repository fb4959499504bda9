"""Missing values, left out or imputed at the sites: python -m benchmarks.bench_missing_values --help

Eight variables, ten clients; of the paper's two models they have 100 to 200 rows, of the others 100. Values are lost
completely at random (MCAR), or at random given the first variable, which is always there (MAR). Prints F1 of skeleton
and directions, false edges and false changes per study, and the level of tests at 5 %: how often a pair without an edge
is called dependent given the causes of the later of the two, and the domain. `--methods tests` prints levels only, and
takes a tenth of the time. `--real` prints the graphs of four hospitals with the gaps that their tables have. Choose
settings on seeds below 1000; report on others.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fedcdh
from fedcdh.discovery.result import Discovery
from fedcdh.evaluation.experiments.noise_shape_data import Cell, draw
from fedcdh.evaluation.experiments.real_data import data_folder
from fedcdh.inference.counted_rows import observed_shares
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up

CELLS = {
    "exponential": Cell("exponential", variables=8),
    "curved": Cell("laplace", "curved", variables=8),
    "size": Cell("gumbel", "size", variables=8),
    "labels": Cell("gaussian", special="more labels", variables=8),
}
TREATMENTS = ("complete data", "complete rows", "impute")
Columns = Mapping[str, Any]


class Study(NamedTuple):
    """A simulated study and its truth."""

    tables: Mapping[str, Columns]
    names: tuple[str, ...]
    arrows: frozenset[tuple[str, str]]
    changing: frozenset[str]


def draw_study(kind: str, seed: int) -> Study:
    """Draw a study of the paper's two models, or of a cell of noise shapes; clients have 100 to 200 rows."""
    rows = np.random.default_rng([seed, 9]).integers(100, 201, 10).tolist()
    if kind in ("linear", "general"):
        found = fedcdh.simulate(kind, variables=8, clients=10, rows=rows, seed=seed)  # type: ignore[arg-type]
        pooled = np.concatenate(list(found.tables.values()))
        tables = {
            client: dict(zip(found.names, ((table - pooled.mean(0)) / pooled.std(0)).T, strict=True))
            for client, table in found.tables.items()
        }
        return Study(tables, tuple(found.names), found.arrows, found.changing)
    cell = draw(CELLS[kind], seed)
    return Study(cell.tables, cell.names, cell.arrows, cell.changing)


def lose_values(study: Study, share: float, mechanism: str, seed: int) -> dict[str, dict[str, Any]]:
    """Return the tables with gaps in every variable, or in all but the first, whose value says how many there are."""
    rng, first = np.random.default_rng([seed, 77]), study.names[0]
    tables: dict[str, dict[str, Any]] = {}
    for client, table in study.tables.items():
        size = np.unique(np.asarray(table[first]), return_inverse=True)[1]
        chance = 2 * share / (1 + np.exp(-6 * (size / size.max() - 0.5))) if mechanism == "MAR" else share
        tables[client] = {}
        for name in study.names:
            lost = rng.uniform(size=len(size)) < chance
            if mechanism == "MAR" and name == first:
                lost[:] = False
            column = np.asarray(table[name])
            words = column.dtype.kind == "U"
            tables[client][name] = (
                np.where(lost, None, column.astype(object)) if words else np.where(lost, np.nan, column)
            )
    return tables


def judge(study: Study, found: Discovery) -> Counter[str]:
    """Count what is right and wrong in a graph, and how many tests of independence reject a true one."""
    true = {frozenset(arrow) for arrow in study.arrows}
    pairs = {frozenset(arrow) for arrow in found.graph.arrows} | set(found.graph.lines)
    counts: Counter[str] = Counter(studies=1, edges=len(true), drawn=len(pairs))
    counts.update(right_pairs=len(pairs & true), right=len(found.graph.arrows & study.arrows), extra=len(pairs - true))
    counts["false changes"] = len(found.changing - study.changing)
    return counts + count_rejections(study, found.cohort)


def count_rejections(study: Study, known: Cohort | Aggregate) -> Counter[str]:
    """Count tests of true independences, and how many reject at 5 %."""
    queries = independences(study)
    answers = RegressionTest(Basis.of(known), observed=observed_shares(known))(queries)
    return Counter(tests=len(queries), rejected=sum(answer.p_value < 0.05 for answer in answers))


def summarize_all(tables: Mapping[str, Columns], treatment: str) -> Cohort:
    """Return the summaries of all clients."""
    plan = fedcdh.StudyPlan.from_tables(tables, missing="impute" if treatment == "impute" else "complete")
    summaries = [fedcdh.summarize(table, plan, client, max_missing_share=1.0) for client, table in tables.items()]
    return add_up(summaries, plan)


def independences(study: Study) -> list[Query]:
    """Return pairs without an edge, given the causes of both and the domain, where that separates them."""
    parents = {name: frozenset(tail for tail, head in study.arrows if head == name) for name in study.names}
    above: dict[str, frozenset[str]] = {}

    def ancestors(name: str) -> frozenset[str]:
        if name not in above:
            above[name] = parents[name].union(*(ancestors(one) for one in parents[name]))
        return above[name]

    pairs = [(a, b) for place, a in enumerate(study.names) for b in study.names[:place]]
    return [
        Query(a, b, frozenset((parents[b] if b not in ancestors(a) else parents[a]) | {DOMAIN}))
        for a, b in pairs
        if a not in parents[b] and b not in parents[a]
    ]


def run(job: tuple[str, str, float], methods: tuple[str, ...], seed: int) -> dict[tuple[str, str], Counter[str]]:
    """Find the graph of one study by every method under every treatment of its gaps."""
    kind, mechanism, share = job
    study = draw_study(kind, seed)
    gaps = lose_values(study, share, mechanism, seed)
    found = {}
    for treatment in TREATMENTS if share else TREATMENTS[:1]:
        if share and treatment == "complete data":
            continue
        for method in methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if method == "tests":
                    found[method, treatment] = count_rejections(study, summarize_all(gaps, treatment))
                    continue
                result = fedcdh.discover(
                    gaps if share else study.tables,
                    method=method,
                    max_missing_share=1.0,
                    missing="impute" if treatment == "impute" else "complete",
                )
            found[method, treatment] = judge(study, result)
    return found


def show(title: str, counts: Mapping[tuple[str, str], Counter[str]]) -> None:
    """Print one line per method and treatment."""
    for (method, treatment), one in sorted(counts.items()):
        both, studies = max(1, one["drawn"] + one["edges"]), max(1, one["studies"])
        print(
            f"{title:24}{method:12}{treatment:15}{2 * one['right_pairs'] / both:9.3f}{2 * one['right'] / both:9.3f}"
            f"{one['extra'] / studies:8.2f}{one['false changes'] / studies:8.2f}{one['rejected'] / one['tests']:8.3f}",
            flush=True,
        )


def show_hospitals() -> None:
    """Print the graph of four hospitals, from complete rows and from imputed ones."""
    path = data_folder() / "heart_4hospitals" / "data.csv"
    if not path.exists():
        raise SystemExit(f"{path} not found (FEDCDH_SHARED names the folder that holds data/)")
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    names = [name for name in rows[0] if name not in ("chol", "domain")]  # Switzerland has no value of chol
    tables = {
        hospital: {name: _read_column([row[name] for row in rows if row["domain"] == hospital], name) for name in names}
        for hospital in sorted({row["domain"] for row in rows})
    }
    for missing in ("complete", "impute"):
        result = fedcdh.discover(tables, missing=missing, max_missing_share=0.7)
        used = ", ".join(f"{one.clients[0]} {one.rows} of {one.rows_read}" for one in result.cohort.summaries)
        print(f"\nmissing={missing!r}; rows: {used}\n{result}")


def _read_column(cells: list[str], name: str) -> Any:
    """Return a column of the hospitals' tables: numbers, or codes as labels; an empty cell is missing."""
    if name in ("age", "trestbps", "thalach", "oldpeak"):
        return np.array([float(cell) if cell else np.nan for cell in cells])
    return [cell or None for cell in cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010", help="first:last+1 (default 1000:1010)")
    parser.add_argument("--kinds", default="linear,general," + ",".join(CELLS))
    parser.add_argument("--mechanisms", default="MCAR,MAR")
    parser.add_argument("--shares", default="0.05,0.1,0.2")
    parser.add_argument("--methods", default="evidence,constraint", help="also: tests, for their level only")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="the four hospitals instead of simulated studies")
    options = parser.parse_args()
    if options.real:
        show_hospitals()
        return
    first, last = map(int, options.seeds.split(":"))
    methods = tuple(options.methods.split(","))
    print(f"{'':24}{'method':12}{'rows':15}{'skel F1':>9}{'dir F1':>9}{'extra':>8}{'changes':>8}{'level':>8}")
    with ProcessPoolExecutor(options.workers) as pool:
        for kind in options.kinds.split(","):
            jobs = [(kind, "", 0.0)] + [
                (kind, mechanism, float(share))
                for mechanism in options.mechanisms.split(",")
                for share in options.shares.split(",")
            ]
            for job in jobs:
                work: Callable[[int], Any] = partial(run, job, methods)
                total: dict[tuple[str, str], Counter[str]] = {}
                for found in pool.map(work, range(first, last)):
                    for key, counts in found.items():
                        total.setdefault(key, Counter()).update(counts)
                title = f"{kind} {job[1]} {job[2]:.0%}" if job[2] else kind
                show(title, total)


if __name__ == "__main__":
    main()
