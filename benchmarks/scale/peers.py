"""The whole way from rows to a graph, beside programs that are given all rows, in turn on the same studies.

Ours includes what every client does: profile, plan, summaries. A ratio is that program's CPU seconds over ours; what
takes less than a second is repeated, and the fastest counts, for either. Ours is measured before and after: the other
may take a minute, in which a machine that others use as well becomes faster or slower. All test at one level.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from benchmarks.scale.jobs import FIRST_SEED, LEVEL, study
from benchmarks.scale.measure import time_fastest
from fedcdh.discovery.api import discover
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.simulation import Simulation

Program = Callable[[Simulation], object]


def run_fedcdh(simulated: Simulation, method: str = "constraint") -> object:
    return discover(dict(simulated.tables), names=simulated.names, method=method, alpha=LEVEL)


def run_peer(simulated: Simulation, program: str) -> object:
    return BASELINES[program](simulated.tables, simulated.names, FIRST_SEED)


def pgmpy_pc(simulated: Simulation) -> object:
    """PC with Pearson's partial correlations, without knowledge of clients."""
    import pandas as pd
    from pgmpy.causal_discovery import PC

    rows = pd.DataFrame(np.concatenate(list(simulated.tables.values())), columns=list(simulated.names))
    search = PC(variant="stable", ci_test="pearsonr", significance_level=LEVEL, n_jobs=1, show_progress=False)
    return search.fit(rows)


PROGRAMS: Mapping[str, Program] = {
    "causal-learn cdnod fisherz": partial(run_peer, program="cdnod-fisherz"),
    "causal-learn pc fisherz": partial(run_peer, program="pc-fisherz"),
    "pgmpy pc pearsonr": pgmpy_pc,
    "causal-learn cdnod rcit": partial(run_peer, program="cdnod-rcit"),
    "causal-learn cdnod kci": partial(run_peer, program="cdnod-kci"),
}


@dataclass(frozen=True)
class Case:
    """A kind of study, its seeds, and whom we stand beside."""

    model: str
    variables: int
    clients: int
    rows: int
    programs: tuple[str, ...]
    seeds: tuple[int, ...] = (FIRST_SEED,)
    method: str = "constraint"

    def __str__(self) -> str:
        return f"{self.model}, d = {self.variables}, K = {self.clients}, n_k = {self.rows}"


LINEAR = ("causal-learn cdnod fisherz", "causal-learn pc fisherz", "pgmpy pc pearsonr")
SEEDS = tuple(range(FIRST_SEED, FIRST_SEED + 5))
CASES = (
    Case("linear", 30, 10, 100, LINEAR, SEEDS),
    Case("general", 6, 10, 100, LINEAR[:2], SEEDS[:3]),
    Case("general", 10, 10, 100, LINEAR[:2], SEEDS[:3]),
    Case("general", 30, 10, 100, LINEAR, SEEDS),
    Case("general", 100, 10, 100, LINEAR[:2], SEEDS[:2]),
    Case("general", 6, 10, 100, ("causal-learn cdnod rcit", "causal-learn cdnod kci"), SEEDS[:3]),
)
SMALL = (Case("general", 30, 10, 100, LINEAR[:1], SEEDS[:3]),)


@dataclass(frozen=True)
class PeerRatio:
    """One program beside ours on one study."""

    case: str
    program: str
    seed: int
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def compare(cases: Sequence[Case]) -> Iterator[PeerRatio]:
    """Every program in turn with ours, on every study."""
    for warm_up in (run_fedcdh, *(PROGRAMS[name] for case in cases for name in case.programs)):
        warm_up(study("linear", 2, 10, 30))  # imports and first calls are not what is measured
    for case in cases:
        for program in case.programs:
            for seed in case.seeds:
                simulated = study(case.model, case.variables, case.clients, case.rows, seed)
                own, other = partial(run_fedcdh, simulated, case.method), partial(PROGRAMS[program], simulated)
                before, long, after = map(time_fastest, (own, other, own))
                yield PeerRatio(str(case), program, seed, min(before, after), long)


def describe_faster(found: Sequence[PeerRatio]) -> str:
    """At which numbers of variables causal-learn's Fisher's z is faster than ours, and from which on ours is."""
    sizes = {str(case): case.variables for case in CASES}
    known = [one for one in found if one.program in LINEAR[:2] and one.case in sizes]
    groups = groupby(known, key=lambda one: (sizes[one.case], one.case, one.program))
    medians = [(size, statistics.median(one.ratio for one in group)) for (size, *_), group in groups]
    slower = sorted({size for size, median in medians if median < 1})
    faster = [size for size, _ in medians if size > max(slower, default=0)]
    said = []
    if slower:
        said.append(f"at d = {_join_words(slower)} causal-learn's Fisher's z is faster than ours (CD-NOD or PC)")
    if faster:
        said.append(f"from d = {min(faster)} on ours is faster than causal-learn's Fisher's z (CD-NOD and PC)")
    return f"By these medians, {'; '.join(said)}." if said else ""


def _join_words(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def format_ratio(found: Sequence[PeerRatio]) -> str:
    """Median and range of the ratios."""
    ratios = [one.ratio for one in found]
    shown = [f"{value:.2f}" if value < 10 else f"{value:,.0f}" for value in (statistics.median(ratios), *_ends(ratios))]
    return f"{shown[0]} ({shown[1]} to {shown[2]})" if len(ratios) > 1 else shown[0]


def _ends(ratios: Sequence[float]) -> tuple[float, float]:
    return min(ratios), max(ratios)
