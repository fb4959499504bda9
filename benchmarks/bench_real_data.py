"""Which method has the best record, on simulated and on real studies: python -m benchmarks.bench_real_data --help

Every method sees the same tables with the same settings. Simulated studies are the paper's, and two with few
clients or few rows.

Summaries weigh every setting, and every source of real data, alike: several studies of one source are averaged first.
Ranks are by F1 among the methods run, ties share theirs; a win is an F1 that no other method exceeds. A method that
fails on a study has an F1 of 0 there, as it returns no graph. `--parts reasons` counts the arrows of one method on the
real studies by what directed them; of several studies of one source, only the first is counted.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.bench_graphs import DIALECTS, Setting, make_instance
from fedcdh.discovery.api import discover
from fedcdh.discovery.methods import METHODS
from fedcdh.evaluation import baselines
from fedcdh.evaluation.experiments.real_data import (
    DOMAIN_COLUMN,
    REAL_STUDIES,
    RealStudy,
    available_studies,
    load_study,
)
from fedcdh.graphs.metrics import compare, compare_changing
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.protocols import DOMAIN

ORACLE = "oracle"


class Figures(NamedTuple):
    """What one method reached on one study, or the mean over several; nan where there is no truth to compare with."""

    skeleton: float
    direction: float
    shd: float
    recall: float
    precision: float
    seconds: float
    failure: str = ""


Record = Mapping[str, Figures]  # method → figures


def score(
    study: RealStudy, graph: PartialGraph, directed: Iterable[Arrow], changing: frozenset[str] | None, seconds: float
) -> Figures:
    """A graph over the variables, the arrows of a DAG that extends it, and the changing variables against the truth."""
    directed = frozenset(directed)
    truth = study.truth_given(directed)
    skeleton = compare(graph.arrows, study.truth_given(graph.arrows), graph.lines).skeleton
    direction = compare(directed, truth).direction
    change = (np.nan, np.nan)
    if study.changing is not None and changing is not None:
        compared = compare_changing(changing, study.changing)
        change = (compared.recall, compared.precision)
    return Figures(skeleton.f1, direction.f1, direction.shd, *change, seconds)


def run_fedcdh(study: RealStudy, method: str, seed: int = 0, max_conditioning_size: int | None = None) -> Figures:
    """One of our methods; what it raises is its result."""
    start = time.perf_counter()
    try:
        result = discover(
            study.columns,
            domain=DOMAIN_COLUMN,
            kinds=study.kinds,
            method=method,
            max_conditioning_size=max_conditioning_size,
            seed=seed,
        )
        directed = result.to_dag().arrows
    except Exception as reason:  # whatever it is: the others go on
        return failure_record(reason, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    return score(study, result.graph, directed, result.changing, seconds)


def failure_record(reason: Exception, seconds: float) -> Figures:
    nothing = (np.nan, np.nan, np.nan)
    said = " ".join(str(reason).split())
    return Figures(0.0, 0.0, *nothing, seconds, f"{type(reason).__name__}: {said}")


def oracle_record(study: RealStudy) -> Record:
    """The best a search can do: the class of the true augmented graph, extended to a DAG; nothing without a truth."""
    if study.changing is None or not study.has_acyclic_truth:
        return {}
    best = baselines.oracle_result(study.names, study.arrows | {(DOMAIN, name) for name in study.changing})
    return {ORACLE: score(study, best.graph, best.directed, best.changing, 0.0)}


# Studies


def score_simulation(setting: Setting, methods: Sequence[str], seed: int) -> Record:
    study = RealStudy.of(make_instance(setting, seed), study_title(setting))
    return {**oracle_record(study), **{method: run_fedcdh(study, method, seed) for method in methods}}


def study_title(setting: Setting) -> str:
    return f"{setting.model} d={setting.variables} K={setting.clients} n_k={setting.rows} {setting.dialect}"


loaded = lru_cache(maxsize=1)(load_study)


def score_real_data(max_conditioning_size: int | None, job: tuple[str, str]) -> Record:
    name, method = job
    study = loaded(name)
    return oracle_record(study) if method == ORACLE else {method: run_fedcdh(study, method, 0, max_conditioning_size)}


# Tables


def mean_record(records: Sequence[Record]) -> Record:
    """Over seeds, or studies of one source; what is nan in some is averaged over the others."""
    return {method: _mean([record[method] for record in records]) for method in records[0]}


def _mean(several: Sequence[Figures]) -> Figures:
    values = np.array([figures[:-1] for figures in several], dtype=float)
    known = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    averages = np.where(np.isnan(values).all(axis=0), np.nan, np.nansum(values, axis=0) / known)
    reasons = [figures.failure for figures in several if figures.failure]
    said = f"{len(reasons)} of {len(several)}: {reasons[0]}" if reasons and len(several) > 1 else "".join(reasons)
    return Figures._make([*averages.tolist(), said])


HEADER = (
    f"{'study':38}{'method':12}{'skel F1':>9}{'dir F1':>9}{'dir SHD':>9}{'chg rec':>9}{'chg prec':>9}{'seconds':>9}"
)


def print_record(name: str, record: Record) -> None:
    for method, figures in record.items():
        line = f"{name:38}{method:12}"
        if figures.failure and np.isnan(figures.shd):
            print(f"{line}  failed: {figures.failure[:90]}", flush=True)
            continue
        cells = [_cell(value, digits) for value, digits in zip(figures[:-1], (3, 3, 2, 3, 3, 2), strict=True)]
        print(line + "".join(cells) + (f"  failed: {figures.failure[:60]}" if figures.failure else ""), flush=True)


def _cell(value: float, digits: int) -> str:
    return f"{'–':>9}" if np.isnan(value) else f"{value:9.{digits}f}"


def print_means(what: str, records: Sequence[Record], methods: Sequence[str]) -> None:
    """Mean F1, mean rank, wins: skeleton and direction."""
    if not records:
        return
    print(f"\n{what} ({len(records)})")
    print(f"{'method':12}{'skel F1':>9}{'dir F1':>9}{'skel rank':>10}{'dir rank':>9}{'skel wins':>10}{'dir wins':>9}")
    values = np.array([[record[method][:2] for method in methods] for record in records]).round(9)
    ranks = stats.rankdata(-values, axis=1)
    wins = (values == values.max(axis=1, keepdims=True)).sum(axis=0)
    for number, method in enumerate(methods):
        f1, rank, won = values.mean(axis=0)[number], ranks.mean(axis=0)[number], wins[number]
        print(f"{method:12}{f1[0]:9.3f}{f1[1]:9.3f}{rank[0]:10.2f}{rank[1]:9.2f}{won[0]:10d}{won[1]:9d}")


def run_synthetic(pool: ProcessPoolExecutor, methods: Sequence[str], seeds: range) -> list[Record]:
    print(f"simulated studies, seeds {seeds.start}..{seeds.stop - 1}, means\n{HEADER}")
    records = []
    usual = [
        Setting(model, variables, 10, 100, 1, dialect)
        for variables, model, dialect in product((6, 12), ("linear", "general"), DIALECTS)
    ]
    for setting in [*usual, Setting("linear", 6, 2, 100, 1, "paper"), Setting("linear", 6, 10, 25, 1, "paper")]:
        records.append(mean_record(list(pool.map(partial(score_simulation, setting, methods), seeds, chunksize=2))))
        print_record(study_title(setting), records[-1])
    return records


def run_real(
    pool: ProcessPoolExecutor, methods: Sequence[str], names: Sequence[str], max_conditioning_size: int | None
) -> list[Record]:
    """One record per source."""
    print("\nreal and published studies, one run each")
    jobs = [(name, method) for name in available_studies(names) for method in (ORACLE, *methods)]
    if not jobs:
        return []
    print(HEADER)
    sources: dict[str, dict[str, Record]] = {}
    for (name, _), record in zip(jobs, pool.map(partial(score_real_data, max_conditioning_size), jobs), strict=True):
        print_record(name, record)
        studies = sources.setdefault(REAL_STUDIES[name].source, {})
        studies[name] = {**studies.get(name, {}), **record}
    ranked = [[{m: record[m] for m in methods} for record in studies.values()] for studies in sources.values()]
    return [mean_record(records) for records in ranked]


def judge_arrows(study: RealStudy, reasons: Iterable[tuple[Arrow, str]]) -> Counter[tuple[str, str]]:
    """Count arrows by reason and outcome; between two variables that cause each other, both directions are right."""

    def outcome(arrow: Arrow) -> str:
        return "right" if arrow in study.arrows else "reversed" if arrow[::-1] in study.arrows else "no edge"

    return Counter((reason, outcome(arrow)) for arrow, reason in reasons)


def count_arrows(method: str, name: str) -> Counter[tuple[str, str]]:
    """Count the arrows of one method on one study."""
    study = loaded(name)
    result = discover(study.columns, domain=DOMAIN_COLUMN, kinds=study.kinds, method=method)
    arrows = {(edge.source, edge.target): edge.oriented_by or "" for edge in result.edges() if edge.mark == "→"}
    return judge_arrows(study, ((arrow, reason) for arrow, reason in arrows.items() if DOMAIN not in arrow))


def run_reasons(pool: ProcessPoolExecutor, method: str, names: Sequence[str]) -> None:
    """Print how often arrows are right on real data, by what directed them."""
    by_source = {
        REAL_STUDIES[name].source: name for name in reversed(list(available_studies(names, lambda text: None)))
    }
    total: Counter[tuple[str, str]] = Counter()
    for found in pool.map(partial(count_arrows, method), sorted(by_source.values())):
        total.update(found)
    print(f"\narrows of {method} on real and published data, {len(by_source)} sources, by what directed them")
    print(f"{'':24}{'right':>8}{'reversed':>10}{'no edge':>9}{'right among edges':>19}")
    reasons = sorted({reason for reason, _ in total})
    groups = {reason: [reason] for reason in reasons} | {"noise or curvature": ["noise", "evidence"]}
    for title, members in groups.items():
        right, wrong, extra = (sum(total[one, what] for one in members) for what in ("right", "reversed", "no edge"))
        print(f"{title:24}{right:8d}{wrong:10d}{extra:9d}{right / max(1, right + wrong):19.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="default: all that the package knows")
    parser.add_argument("--parts", nargs="+", choices=["simulated", "real", "reasons"], default=["simulated", "real"])
    parser.add_argument("--seeds", default="1000:1060", help="first:last+1 (default 1000:1060)")
    parser.add_argument("--quick", action="store_true", help="the first 6 seeds only")
    parser.add_argument("--studies", nargs="+", default=list(REAL_STUDIES), help="of the real ones (default: all)")
    parser.add_argument("--max-conditioning-size", type=int, help="on real studies (default: no limit)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    seeds = range(first, min(last, first + 6) if options.quick else last)
    with ProcessPoolExecutor(options.workers) as pool:
        simulated = run_synthetic(pool, options.methods, seeds) if "simulated" in options.parts else []
        sources = (
            run_real(pool, options.methods, options.studies, options.max_conditioning_size)
            if "real" in options.parts
            else []
        )
        if "reasons" in options.parts:
            run_reasons(pool, options.methods[0], options.studies)
    print_means("simulated settings", simulated, options.methods)
    print_means("sources of real and published data", sources, options.methods)


if __name__ == "__main__":
    main()
