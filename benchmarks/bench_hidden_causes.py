"""Graphs where two causes are unmeasured: python -m benchmarks.bench_hidden_causes --help

Ten variables of which two, roots with at least two children, are hidden from every program. Eight clients have 200 rows
each. Where two mechanisms change between clients, these are mechanisms of observed variables. The truth is the maximal
ancestral graph of the simulated graph; the oracle has a perfect test. Choose settings on seeds below 1000; report on
others. FCI of causal-learn needs `pip install 'fedcdh[experiments]'`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from itertools import combinations, count

import numpy as np
from numpy.typing import NDArray

import fedcdh
from fedcdh.discovery import METHODS, Settings
from fedcdh.evaluation.experiments.noise_shape_data import Cell, GridStudy, draw
from fedcdh.graphs import AncestralGraph, PartialGraph, make_d_separation_test, project_to_mag
from fedcdh.graphs.ancestral_metrics import compare_ancestral
from fedcdh.graphs.convert import pag_from_causal_learn
from fedcdh.protocols import DOMAIN
from fedcdh.search import (
    CachedTest,
    HiddenCauseRules,
    SkeletonRules,
    make_largest_p_rule,
    remove_all,
    remove_consistent,
    search_pag,
    separating_set_rule,
)
from fedcdh.search.colliders import decide_by_separator, make_largest_p_decision

HIDDEN = 2
NOISES = ("gaussian", "exponential", "two bumps")
KINDS: Mapping[str, Cell] = {
    "alike": Cell(size="8 x 200", special="nothing changes", variables=8 + HIDDEN),
    "shifted": Cell(size="8 x 200", variables=8 + HIDDEN),
    "curved": Cell(mechanism="curved", size="8 x 200", variables=8 + HIDDEN),
}


@dataclass(frozen=True, eq=False)
class HiddenStudy:
    """Tables without the hidden variables, and the truth."""

    tables: Mapping[str, Mapping[str, NDArray[np.float64]]]
    names: tuple[str, ...]
    dag: PartialGraph
    mag: AncestralGraph
    confounded: frozenset[frozenset[str]]


def draw_hidden(cell: Cell, seed: int) -> HiddenStudy:
    """Draw studies until one has two roots to hide that do not change; the same seed tries the same graphs."""
    for attempt in count():
        study = draw(cell, 10_000 * seed + attempt)
        roots = [name for name in study.names if _can_hide(study, name)]
        if len(roots) >= HIDDEN:
            return hide(study, roots[:HIDDEN])
    raise AssertionError


def _can_hide(study: GridStudy, name: str) -> bool:
    is_root = not any(head == name for _, head in study.arrows)
    return is_root and name not in study.changing and sum(tail == name for tail, _ in study.arrows) >= 2


def hide(study: GridStudy, hidden: list[str]) -> HiddenStudy:
    """Return the study without some of its variables."""
    names = tuple(name for name in study.names if name not in hidden)
    dag = PartialGraph.from_dag(
        (DOMAIN, *study.names), [*study.arrows, *((DOMAIN, name) for name in sorted(study.changing))]
    )
    mag = project_to_mag(dag, hidden)
    pairs = {frozenset(pair) for root in hidden for pair in combinations(sorted(dag.children(root)), 2)}
    confounded = frozenset(pair for pair in pairs if mag.marks(*sorted(pair)) == ("arrow", "arrow"))
    tables = {
        client: {name: np.asarray(table[name], dtype=float) for name in names} for client, table in study.tables.items()
    }
    return HiddenStudy(tables, names, dag, mag, confounded)


def find_oracle(study: HiddenStudy) -> AncestralGraph:
    """Return what a perfect test finds."""
    rules = HiddenCauseRules(SkeletonRules(frozenset({DOMAIN})))
    return search_pag(study.mag.nodes, make_d_separation_test(study.dag), 0.05, rules=rules).graph


def find_hidden(study: HiddenStudy, *, alpha: float | None = None) -> AncestralGraph:
    return fedcdh.discover(study.tables, hidden=True, alpha=alpha).graph


def find_with(study: HiddenStudy, *, largest_p: str) -> AncestralGraph:
    """Return what FCI finds with our test, and the rule of the largest p-value for some decisions or none."""
    plan = fedcdh.StudyPlan.from_tables(study.tables)
    cohort = fedcdh.add_up([fedcdh.summarize(table, plan, name) for name, table in study.tables.items()], plan)
    statistics = METHODS["constraint"].search.statistics
    test = CachedTest(statistics(cohort, Settings("constraint"))[0])
    rules = HiddenCauseRules(
        SkeletonRules(frozenset({DOMAIN}), remove_consistent if largest_p else remove_all),
        make_largest_p_rule(test) if "triples" in largest_p else separating_set_rule,
        make_largest_p_decision(test) if "paths" in largest_p else decide_by_separator,
    )
    return search_pag((DOMAIN, *study.names), test, 0.05, rules=rules).graph


def find_default(study: HiddenStudy, *, method: str = "auto") -> AncestralGraph:
    return AncestralGraph.from_partial_graph(fedcdh.discover(study.tables, method=method).graph)


def find_causal_learn(study: HiddenStudy, *, centred: bool) -> AncestralGraph:
    """Run FCI with Fisher's z on the rows of all clients, as they are or with the mean of each client at 0."""
    from causallearn.search.ConstraintBased.FCI import fci

    parts = [np.column_stack([table[name] for name in study.names]) for table in study.tables.values()]
    rows = np.concatenate([part - part.mean(0) if centred else part for part in parts])
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        found, _ = fci(rows, "fisherz", 0.05, node_names=list(study.names), show_progress=False, verbose=False)
    return pag_from_causal_learn(found)


PROGRAMS: Mapping[str, Callable[[HiddenStudy], AncestralGraph]] = {
    "oracle": find_oracle,
    "hidden": find_hidden,
    "hidden, alpha 0.01": partial(find_hidden, alpha=0.01),
    "hidden, alpha 0.1": partial(find_hidden, alpha=0.1),
    "our test, plain FCI": partial(find_with, largest_p=""),
    "largest p of triples": partial(find_with, largest_p="triples"),
    "largest p of paths": partial(find_with, largest_p="paths"),
    "FCI, pooled": partial(find_causal_learn, centred=False),
    "FCI, centred": partial(find_causal_learn, centred=True),
    "default": find_default,
    "constraint": partial(find_default, method="constraint"),
}
REPORTED = "oracle;hidden;our test, plain FCI;FCI, pooled;FCI, centred;default"


def judge(study: HiddenStudy, found: AncestralGraph) -> Counter[str]:
    """Count adjacencies, marks, and confounded pairs that are drawn as if one caused the other."""
    scores = compare_ancestral(found, study.mag)
    counts: Counter[str] = Counter()
    for name in ("adjacency", "arrowheads", "tails"):
        score = getattr(scores, name)
        counts.update({f"{name} right": score.correct, f"{name} found": score.claimed, f"{name} true": score.true})
    counts["confounded"] = len(study.confounded)
    counts["false direct"] = sum(_is_direct(found, *sorted(pair)) for pair in study.confounded)
    return counts


def _is_direct(found: AncestralGraph, a: str, b: str) -> bool:
    """Return whether an edge says that one of the two causes the other."""
    return "tail" in (found.marks(a, b) or ())


def _is_line(found: AncestralGraph, a: str, b: str) -> bool:
    return found.marks(a, b) == ("circle", "circle")


def figures(counts: Counter[str]) -> str:
    right, drawn, true = (counts[f"adjacency {what}"] for what in ("right", "found", "true"))
    parts = [
        2 * right / max(1, drawn + true),
        right / max(1, true),
        counts["false direct"] / max(1, counts["confounded"]),
        *(counts[f"{mark} right"] / max(1, counts[f"{mark} found"]) for mark in ("arrowheads", "tails")),
    ]
    shown = "".join(f"{part:11.2f}" for part in parts)
    marks = f"{counts['arrowheads found']:10d}{counts['tails found']:8d}"
    return f"{shown}{marks}{counts['milliseconds'] / 1000 / max(1, counts['studies']):10.2f}"


HEADING = (
    f"{'':24}{'adj. F1':>11}{'recall':>11}{'false dir.':>11}{'heads ok':>11}{'tails ok':>11}{'heads':>10}{'tails':>8}"
    f"{'seconds':>10}"
)


def run(cell: Cell, program: str, seed: int) -> Counter[str]:
    study = draw_hidden(cell, seed)
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = PROGRAMS[program](study)
    counts = judge(study, found)
    if program in ("default", "constraint"):  # a line of these says that one of the two causes the other
        counts["false direct"] += sum(_is_line(found, *sorted(pair)) for pair in study.confounded)
    counts["studies"], counts["milliseconds"] = 1, round(1000 * (time.process_time() - before))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010", help="first:last+1 (default 1000:1010)")
    parser.add_argument("--kinds", default="alike;shifted;curved", help="clients alike, shifted or curved")
    parser.add_argument("--noises", default=";".join(NOISES), help="; ".join(NOISES))
    parser.add_argument("--programs", default=REPORTED, help="; ".join(PROGRAMS))
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    for kind in options.kinds.split(";"):
        cells = [replace(KINDS[kind], noise=noise.strip()) for noise in options.noises.split(";")]
        print(f"\n{kind}, noise {options.noises}, seeds {first}..{last - 1}\n{HEADING}")
        for program in map(str.strip, options.programs.split(";")):
            total: Counter[str] = Counter()
            for cell in cells:
                for seed in range(first, last):
                    total.update(run(cell, program, seed))
            print(f"{program:24}{figures(total)}", flush=True)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
