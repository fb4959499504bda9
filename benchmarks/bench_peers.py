"""Other programs beside ours on the same small studies: python -m benchmarks.bench_peers --help

The settings are those where rows are few: two clients, or many with few rows each. Every program sees the same
standardised instances (`bench_graphs`); lines are extended to a DAG by the same rule for all. The oracle is what
perfect tests and rules could give. A row says on how many seeds it rests; where a slow program runs on fewer of them
(--fewer), ours follow on the same ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import get_args

import numpy as np

from benchmarks.bench_graphs import DIALECTS, Setting, make_instance
from benchmarks.bench_real_data import (
    ORACLE,
    Figures,
    Record,
    failure_record,
    mean_record,
    oracle_record,
    run_fedcdh,
    score,
    study_title,
)
from fedcdh.errors import MissingDependencyError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.pooled_references import import_causal_learn
from fedcdh.evaluation.experiments.real_data import RealStudy
from fedcdh.evaluation.simulation import MechanismModel, Simulation

PEERS = {
    "fisherz": BASELINES["cdnod-fisherz"],
    "rcit": BASELINES["cdnod-rcit"],
    "kci": BASELINES["cdnod-kci"],
    "fedpc": BASELINES["fedpc"],
    "fedpc_veto": BASELINES["fedpc-veto"],
}

SMALL = ("linear:6:2:100", "linear:6:10:25")
STANDARD = ("linear:6:10:100", "general:6:10:100")


def setting_of(text: str, dialect: str) -> Setting:
    """From model:variables:clients:rows."""
    model, *sizes = text.split(":")
    if model not in get_args(MechanismModel) or len(sizes) != 3 or not all(size.isdigit() for size in sizes):
        raise SystemExit(f"found setting {text!r}; expected model:variables:clients:rows, like linear:6:2:100")
    variables, clients, rows = map(int, sizes)
    return Setting(model, variables, clients, rows, 1, dialect)


def score_peer(simulated: Simulation, study: RealStudy, peer: str, seed: int) -> Figures:
    """One of the peers; what it raises is its result."""
    start = time.perf_counter()
    try:
        result = PEERS[peer](simulated.tables, simulated.names, seed)
    except Exception as reason:  # whatever it is: the others go on
        return failure_record(reason, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    return score(study, result.graph, result.directed, result.changing, seconds)


def is_ready(peers: Sequence[str]) -> None:
    """Imports what these peers need, so that it is missed before any work is done, and not on the clock."""
    for peer in peers:
        PEERS[peer].load()
        if PEERS[peer].extra:
            import_causal_learn("search.ConstraintBased.CDNOD", "cdnod")


def score_instance(setting: Setting, methods: Sequence[str], peers: Sequence[str], fewer: range, seed: int) -> Record:
    """All programs on one instance, the slow ones only on the fewer seeds."""
    simulated = make_instance(setting, seed)
    study = RealStudy.of(simulated, study_title(setting))
    found = {**oracle_record(study), **{method: run_fedcdh(study, method, seed) for method in methods}}
    return found | {
        peer: score_peer(simulated, study, peer, seed) for peer in peers if seed in fewer or peer not in SLOW
    }


SLOW = ("kci",)


def score_rows(
    records: Mapping[int, Record], methods: Sequence[str], peers: Sequence[str]
) -> Iterator[tuple[str, Record]]:
    """Lines of the table, groups of equal seeds together: for each group the oracle, ours, and the peers run on it."""
    groups: dict[frozenset[int], list[str]] = {frozenset(records): []}
    for peer in peers:
        groups.setdefault(frozenset(seed for seed, record in records.items() if peer in record), []).append(peer)
    for seeds, members in groups.items():
        if seeds:
            chosen = (ORACLE, *methods, *members)
            yield (
                str(len(seeds)),
                mean_record([{name: records[seed][name] for name in chosen} for seed in sorted(seeds)]),
            )


def print_table(records: Mapping[int, Record], setting: Setting, methods: Sequence[str], peers: Sequence[str]) -> None:
    print(f"\n{study_title(setting)} dialect, seeds {min(records)}..{max(records)}")
    print(
        f"{'program':12}{'seeds':>7}{'skel F1':>9}{'dir F1':>9}{'of oracle':>10}{'dir SHD':>9}"
        f"{'chg rec':>9}{'chg prec':>9}{'seconds':>9}"
    )
    for seeds, group in score_rows(records, methods, peers):
        for program, figures in group.items():
            share = figures.direction / group[ORACLE].direction
            cells = [figures.skeleton, figures.direction, share, figures.shd, *figures[3:6]]
            widths = zip(cells, (9, 9, 10, 9, 9, 9, 9), (3, 3, 3, 2, 3, 3, 3), strict=True)
            line = "".join(
                f"{'–':>{w}}" if np.isnan(value) else f"{value:{w}.{digits}f}" for value, w, digits in widths
            )
            print(f"{program:12}{seeds:>7}{line}" + (f"  failed {figures.failure[:60]}" if figures.failure else ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["constraint"], help="ours (default: constraint)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=["fisherz", "rcit", "kci", "fedpc"])
    parser.add_argument("--settings", nargs="+", default=list(SMALL), help=f"default: {' '.join(SMALL)}")
    parser.add_argument("--standard", action="store_true", help=f"also {' '.join(STANDARD)} (kci: minutes a seed)")
    parser.add_argument("--dialect", choices=DIALECTS, default="paper")
    parser.add_argument("--seeds", default="1000:1060", help="first:last+1 (default 1000:1060)")
    parser.add_argument("--fewer", type=int, help="number of seeds for kci (default: on all)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    try:
        is_ready(options.peers)
    except MissingDependencyError as missing:
        raise SystemExit(f"{missing}; or choose --peers fedpc") from missing
    first, last = map(int, options.seeds.split(":"))
    seeds = range(first, last)
    fewer = seeds if options.fewer is None else seeds[: options.fewer]
    for text in (*options.settings, *(STANDARD if options.standard else ())):
        setting = setting_of(text, options.dialect)
        job = partial(score_instance, setting, options.methods, options.peers, fewer)
        with ProcessPoolExecutor(options.workers, initializer=is_ready, initargs=(options.peers,)) as pool:
            records = dict(zip(seeds, pool.map(job, seeds), strict=True))
        print_table(records, setting, options.methods, options.peers)


if __name__ == "__main__":
    main()
