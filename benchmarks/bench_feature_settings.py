"""Graphs with other values of our constants: python -m benchmarks.bench_feature_settings --help

One constant is changed at a time, on seeds below 1000: numbers are chosen here and shown on others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.bench_graphs import Setting, score_instance
from fedcdh.discovery import methods
from fedcdh.inference import orthonormal_basis
from fedcdh.search import edge_removal
from fedcdh.summaries.features import Hermite

SETTINGS = [Setting(model, d, 10, 100, 1, "authors") for d in (6, 12) for model in ("linear", "general")]


def simulate_curved(value: float) -> None:
    orthonormal_basis.CURVATURE_ALPHA = value


def simulate_clear(value: float) -> None:
    edge_removal.CLEAR_P_VALUE = value


def set_width(value: float) -> None:
    changed = replace(methods.METHODS["constraint"], family=lambda seed: Hermite(int(value)))
    methods.METHODS = {**methods.METHODS, "constraint": changed}


CHOICES: dict[str, tuple[Callable[[float], None], tuple[float, ...]]] = {
    "basis.CURVED (1e9: all columns)": (simulate_curved, (0.05, 0.5, 1e9)),
    "removal.CLEAR (0: every separation)": (simulate_clear, (0.01, 0.0, 1e-3, 1.0)),
    "Hermite.width": (set_width, (4, 3, 6)),
}


def score_settings(choose: Callable[[float], None], value: float, setting: Setting, seed: int) -> list[float]:
    choose(value)  # in a process of its own: it touches nothing else
    return score_instance(setting, ("constraint",), seed)["constraint"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0:60", help="first:last+1 (default 0:60)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    print(f"skeleton F1 / direction F1 (changing: recall / precision), seeds {seeds.start}..{seeds.stop - 1}")
    print(f"{'':44}" + "".join(f"{f'{s.model} d={s.variables}':>28}" for s in SETTINGS))
    for name, (choose, values) in CHOICES.items():
        for value in values:
            with ProcessPoolExecutor(options.workers) as pool:  # new processes: the choice before is forgotten
                means = [
                    np.mean(list(pool.map(partial(score_settings, choose, value, s), seeds)), axis=0) for s in SETTINGS
                ]
            cells = (f"{m[0]:.3f} / {m[1]:.3f} ({m[4]:.2f} / {m[5]:.2f})" for m in means)
            print(f"{f'{name} = {value:g}':44}" + "".join(f"{cell:>28}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
