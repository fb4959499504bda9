"""A laboratory value that nobody logged, before and after: python -m benchmarks.bench_unlogged --help

Three sites, six numbers and two labels, normal noise; two mechanisms differ between sites. Effects bend mildly (many
are linear, so that nothing tells their direction) or clearly. One number is a laboratory value whose logarithm follows
the model. It is given once logged and once as measured: exp(0.65 z), z being the standardised logarithm. The graph is
the same, so every difference is due to the unit.
Choose settings on seeds below 1000; report on others.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.bench_noise_shapes import add_up, judge, show
from benchmarks.noise_shapes.programs import PROGRAMS
from fedcdh.evaluation.experiments.noise_shape_data import GridStudy

Array = np.ndarray[Any, np.dtype[np.float64]]
SITES: Mapping[str, int] = {"north": 400, "south": 700, "west": 350}
NAMES = ("sex", "age", "weight", "crp", "pressure", "ferritin", "glucose", "outcome")
"""In causal order; the first and the last are labels."""
LABELS = frozenset({"sex", "outcome"})
EDGES = 6
CHANGING = 2
LOG_SPREAD = 0.65
"""Standard deviation of the logarithm: skewness 2.7, as of many laboratory values."""
OURS = ("evidence", "constraint")
BENDS: Mapping[str, tuple[float, ...]] = {"mild": (0.0, 0.2), "clear": (-0.6, -0.4, 0.4, 0.6)}
"""Coefficients of x² − 1 beside x, from which each effect draws one."""


@dataclass(frozen=True, eq=False)
class UnloggedStudy:
    """A study with a logged laboratory value, and the same study with the value as it was measured."""

    logged: GridStudy
    unlogged: GridStudy
    laboratory: str


@dataclass(frozen=True, eq=False)
class _Mechanism:
    """How a variable follows from its parents at one site."""

    parents: tuple[int, ...]
    weights: Array
    bends: Array
    level: float = 0.0
    noise: float = 1.0

    def with_change(self, rng: np.random.Generator) -> _Mechanism:
        """Return the mechanism of another site."""
        factors, level = rng.uniform(0.3, 1.7, len(self.weights)), float(rng.normal(scale=0.7))
        return replace(self, weights=self.weights * factors, level=level, noise=float(np.exp(rng.uniform(-0.5, 0.5))))

    def __call__(self, values: Array, noise: Array) -> Array:
        """Return Σ w (x + b (x² − 1)) + level + noise, squares being limited."""
        causes = values[:, list(self.parents)]
        bent = causes + self.bends * (np.minimum(causes**2, 9.0) - 1)
        return np.asarray(bent @ self.weights + self.level + self.noise * noise)


def draw(seed: int, bends: str = "mild") -> UnloggedStudy:
    """Draw the study of a seed."""
    shape, own = np.random.default_rng([seed, 11]), np.random.default_rng([seed, 12])
    arrows = _draw_arrows(shape)
    mechanisms = [
        _draw_mechanism(shape, [i for i, j in arrows if j == node], BENDS[bends]) for node in range(len(NAMES))
    ]
    numbers = [k for k, name in enumerate(NAMES) if name not in LABELS]
    changing = {int(k) for k in shape.choice(numbers, CHANGING, replace=False)}
    linked = [k for k in numbers if any(k in arrow for arrow in arrows)]
    laboratory = NAMES[int(shape.choice(linked))]
    tables = {}
    for site, rows in SITES.items():
        here = [m.with_change(own) if node in changing else m for node, m in enumerate(mechanisms)]
        tables[site] = _draw_rows(own, here, rows)
    logged = GridStudy(
        {site: {name: _column(name, rows[:, k]) for k, name in enumerate(NAMES)} for site, rows in tables.items()},
        NAMES,
        frozenset((NAMES[i], NAMES[j]) for i, j in arrows),
        frozenset(NAMES[k] for k in changing),
    )
    return UnloggedStudy(logged, replace(logged, tables=unlog(logged.tables, laboratory)), laboratory)


def unlog(tables: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    """Return the tables with exp(0.65 z) in place of a variable, z being standardised over all sites."""
    pooled = np.concatenate([table[name] for table in tables.values()])
    return {
        site: {**table, name: np.exp(LOG_SPREAD * (table[name] - pooled.mean()) / pooled.std())}
        for site, table in tables.items()
    }


def _draw_arrows(rng: np.random.Generator) -> list[tuple[int, int]]:
    """Draw the arrows: two of them leave or reach a label, the others join numbers."""
    pairs = [(i, j) for j in range(len(NAMES)) for i in range(j) if (i, j) != (0, len(NAMES) - 1)]
    mixed = [pair for pair in pairs if LABELS & {NAMES[k] for k in pair}]
    plain = [pair for pair in pairs if pair not in mixed]
    chosen = [mixed[k] for k in rng.choice(len(mixed), 2, replace=False)]
    return sorted(chosen + [plain[k] for k in rng.choice(len(plain), EDGES - 2, replace=False)])


def _draw_mechanism(rng: np.random.Generator, parents: list[int], choices: tuple[float, ...]) -> _Mechanism:
    weights = rng.uniform(0.4, 0.9, len(NAMES)) * rng.choice([-1, 1], len(NAMES))
    bends = rng.choice(choices, len(NAMES))
    return _Mechanism(tuple(parents), weights[: len(parents)], bends[: len(parents)])


def _draw_rows(rng: np.random.Generator, mechanisms: list[_Mechanism], rows: int) -> Array:
    """Draw the rows of a site; a label is 1 or −1, with log odds that follow its mechanism without noise."""
    values = np.zeros((rows, len(NAMES)))
    for node, mechanism in enumerate(mechanisms):
        if NAMES[node] in LABELS:
            odds = 2 * mechanism(values, np.zeros(rows))
            values[:, node] = np.where(rng.logistic(size=rows) < odds, 1.0, -1.0)
        else:
            values[:, node] = mechanism(values, rng.normal(size=rows))
    return values


def _column(name: str, values: Array) -> Any:
    return np.where(values > 0, "yes", "no") if name in LABELS else values


def run(programs: tuple[str, ...], bends: str, seed: int) -> dict[str, Counter[str]]:
    """Run every program on both forms of one study."""
    study = draw(seed, bends)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            f"{name}, {form}": judge(one, PROGRAMS[name](one))
            for name in programs
            for form, one in (("logged", study.logged), ("unlogged", study.unlogged))
        }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1012", help="first:last+1 (default 1000:1012)")
    parser.add_argument("--programs", default=",".join(OURS), help=", ".join(PROGRAMS))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    first, last = map(int, options.seeds.split(":"))
    programs, edges = tuple(options.programs.split(",")), EDGES * (last - first)
    with ProcessPoolExecutor(options.workers) as pool:
        for bends in BENDS:
            found = add_up(pool.map(partial(run, programs, bends), range(first, last)))
            show(f"A laboratory value logged and unlogged, {bends} bends, {edges} edges, seeds {options.seeds}", found)


if __name__ == "__main__":
    main()
