"""Studies in which every site lacks variables: python -m benchmarks.bench_absent_columns --help

Each of six sites lacks two of ten variables, chosen at random. Beside the study with all columns, it prints what is
found without the absent ones, with only the variables that all sites have, and with the mean of all other sites in
their place. F1 is about all true edges, also those of variables that were left out. Settings were chosen on seeds
below 1000; report on others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.discovery.api import discover
from fedcdh.evaluation.experiments.noise_shape_data import SIZES, Cell, draw
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare

Tables = Mapping[str, Mapping[str, Array]]
STUDIES = ("linear", "general", "exponential/linear", "laplace/curved")
"""The models of the paper, and cells of the grid of noise shapes: noise and mechanism."""
WAYS = ("all columns", "absent columns", "common variables", "mean imputed")


class Study(NamedTuple):
    names: tuple[str, ...]
    arrows: frozenset[tuple[str, str]]
    changing: frozenset[str]
    tables: Tables


def make_study(kind: str, variables: int, sites: int, rows: int, seed: int) -> Study:
    """One standardised study with as many edges as variables."""
    if "/" in kind:
        noise, mechanism = kind.split("/")
        SIZES[f"{sites} x {rows}"] = (sites, rows)  # type: ignore[index]
        drawn = draw(Cell(noise, mechanism, f"{sites} x {rows}", "", variables), seed)
        return Study(tuple(drawn.names), frozenset(drawn.arrows), frozenset(drawn.changing), drawn.tables)
    made = simulate(kind, variables=variables, clients=sites, rows=rows, edges=variables, seed=seed).standardised()  # type: ignore[arg-type]
    tables = {
        client: {name: np.asarray(table)[:, place] for place, name in enumerate(made.names)}
        for client, table in made.tables.items()
    }
    return Study(tuple(made.names), frozenset(made.arrows), frozenset(made.changing), tables)


def choose_absent(study: Study, count: int, seed: int) -> dict[str, frozenset[str]]:
    """The variables that each site lacks; every variable stays at one site at least."""
    rng = np.random.default_rng([seed, 23])
    while True:
        found = {
            client: frozenset(map(str, rng.choice(study.names, count, replace=False)))
            for client in sorted(study.tables)
        }
        if not frozenset.intersection(*found.values()):
            return found


def with_way(study: Study, absent: Mapping[str, frozenset[str]], way: str) -> dict[str, dict[str, Array]]:
    """The tables that the sites have, in one way to deal with what they lack."""
    if way == "all columns":
        return {client: dict(table) for client, table in study.tables.items()}
    if way == "common variables":
        lacked = frozenset.union(*absent.values())
        return {c: {n: v for n, v in table.items() if n not in lacked} for c, table in study.tables.items()}
    if way == "absent columns":
        return {c: {n: v for n, v in table.items() if n not in absent[c]} for c, table in study.tables.items()}
    means = {
        name: np.mean(np.concatenate([study.tables[c][name] for c in study.tables if name not in absent[c]]))
        for name in study.names
    }
    return {
        c: {n: np.full_like(v, means[n]) if n in absent[c] else v for n, v in table.items()}
        for c, table in study.tables.items()
    }


def measure(study: Study, tables: dict[str, dict[str, Array]], method: str, rounds: str, way: str) -> list[float]:
    """Skeleton F1, direction F1, false edges, reversed arrows, found and false changes."""
    if len(next(iter(tables.values()))) < 2 and way == "common variables":
        return [0.0, 0.0, 0, 0, 0, 0]
    found = discover(tables, method=method, rounds=rounds, absent="allow" if way == "absent columns" else "refuse")
    skeleton = compare(found.graph.arrows, study.arrows, found.graph.lines).skeleton
    direction = compare(found.to_dag().arrows, study.arrows).direction
    true = {frozenset(arrow) for arrow in study.arrows}
    drawn = {frozenset(arrow) for arrow in found.graph.arrows} | set(found.graph.lines)
    reversed_arrows = sum(arrow[::-1] in study.arrows for arrow in found.graph.arrows)
    right, wrong = len(found.changing & study.changing), len(found.changing - study.changing)
    return [skeleton.f1, direction.f1, len(drawn - true), reversed_arrows, right, wrong]


def share_never_together(study: Study, absent: Mapping[str, frozenset[str]]) -> float:
    """Share of pairs that no site has both of."""
    pairs = list(combinations(study.names, 2))
    return sum(all({*pair} & lacked for lacked in absent.values()) for pair in pairs) / len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010", help="first:last+1 (default 1000:1010)")
    parser.add_argument("--studies", default=";".join(STUDIES), help="names, separated by semicolons")
    parser.add_argument("--ways", default=";".join(WAYS), help="; ".join(WAYS))
    parser.add_argument("--method", default="evidence")
    parser.add_argument("--rounds", default="auto")
    parser.add_argument("--sites", type=int, default=6)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--lacking", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(*map(int, options.seeds.split(":")))
    heads = f"{'skel F1':>9}{'ratio':>7}{'dir F1':>8}{'false':>7}{'rev.':>6}{'changes':>9}{'false':>7}"
    for kind in options.studies.split(";"):
        studies = [make_study(kind, options.variables, options.sites, options.rows, seed) for seed in seeds]
        absent = [choose_absent(study, options.lacking, seed) for study, seed in zip(studies, seeds, strict=True)]
        never = np.mean([share_never_together(*one) for one in zip(studies, absent, strict=True)])
        size = f"{options.sites} x {options.rows}"
        print(f"\n{kind}, {size}, {options.method}, rounds {options.rounds}, seeds {options.seeds}")
        print(f"pairs never measured together: {100 * never:.1f} %\n{'':18}{heads}")
        whole = None
        for way in options.ways.split(";"):
            rows = [
                measure(study, with_way(study, lacks, way), options.method, options.rounds, way)
                for study, lacks in zip(studies, absent, strict=True)
            ]
            mean = np.mean(rows, axis=0)
            whole = mean[0] if way == "all columns" else whole
            ratio = f"{mean[0] / whole:7.2f}" if whole else f"{'':7}"
            print(
                f"{way:18}{mean[0]:9.3f}{ratio}{mean[1]:8.3f}{mean[2]:7.1f}{mean[3]:6.1f}{mean[4]:9.1f}{mean[5]:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
