"""Simulated studies that do not share the assumptions of any engine: noise × mechanism × clients, and special cases.

Every variable is standardised over all rows, so the scale does not give the order away. The generator was written
before any engine was tuned on it, and is not the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array

Sampler = Callable[[np.random.Generator, int], Array]
VARIABLES = EDGES = 6
"""Number of variables of a study, and of its edges, unless a cell says otherwise."""

NOISES: Mapping[str, Sampler] = {
    "gaussian": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "gumbel": lambda rng, n: (rng.gumbel(size=n) - np.euler_gamma) * np.sqrt(6) / np.pi,
    "lognormal": lambda rng, n: _standardised(np.exp(0.65 * rng.normal(size=n)), np.exp(0.65**2 / 2), 0.65),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "laplace": lambda rng, n: rng.laplace(size=n) / np.sqrt(2),
    "t5": lambda rng, n: rng.standard_t(5, n) * np.sqrt(3 / 5),
    "two bumps": lambda rng, n: rng.choice([-0.9, 0.9], n) + rng.normal(size=n) * np.sqrt(1 - 0.81),
}
"""Samplers of noise with mean 0 and variance 1."""

MECHANISMS = ("linear", "curved", "quadratic", "size", "post-nonlinear", "interaction")
SIZES = {
    "10 x 100": (10, 100),
    "10 x 300": (10, 300),
    "10 x 500": (10, 500),
    "10 x 1000": (10, 1000),
    "5 x 400": (5, 400),
    "8 x 200": (8, 200),
    "1 x 1000": (1, 1000),
    "2 x 500": (2, 500),
    "3 x 300": (3, 300),
    "30 x 50": (30, 50),
}
SPECIAL_CASES = (
    "integers",
    "counts",
    "zero-inflated",
    "autocorrelated",
    "outliers",
    "hidden cause",
    "labels",
    "missing",
    "nothing changes",
    "everything changes",
)
"""Values of these are standardised at each client, which takes the change of a variable without parents away."""
FURTHER_CASES = ("three levels", "more labels", "missing 10 %")
"""As in the grid, only pooled rows are standardised. `special_cells` leaves these out: its figures are published."""
LABEL_SCORES = np.array([-1.3, -0.2, 0.5, 1.2])
"""The size of the effect of a label: in "more labels" the label acts, not a number behind it."""


def _standardised(values: Array, mean: float, sigma: float) -> Array:
    spread = mean * np.sqrt(np.exp(sigma**2) - 1)
    return np.asarray((values - mean) / spread)


@dataclass(frozen=True)
class Cell:
    """One setting of the grid.

    `mechanism` is one of `MECHANISMS`, `size` a key of `SIZES`, and `special` empty, one of `SPECIAL_CASES` or one of
    `FURTHER_CASES`. A study has as many edges as variables.
    """

    noise: str = "gaussian"
    mechanism: str = "linear"
    size: str = "10 x 100"
    special: str = ""
    variables: int = VARIABLES

    def __str__(self) -> str:
        variables = f"{self.variables} variables" if self.variables != VARIABLES else ""
        return ", ".join(filter(None, (self.mechanism, self.noise, self.size, self.special, variables)))


def grid(sizes: tuple[str, ...] = ("10 x 100", "5 x 400")) -> list[Cell]:
    """Return every combination of noise, mechanism and size."""
    return [Cell(noise, mechanism, size) for size in sizes for mechanism in MECHANISMS for noise in NOISES]


def special_cells() -> list[Cell]:
    """Return the special cases, each with Gaussian and with exponential noise and linear mechanisms."""
    return [Cell(noise, special=special) for special in SPECIAL_CASES for noise in ("gaussian", "exponential")]


def further_cells() -> list[Cell]:
    """Return the further cases and studies of 2, 3 and 30 clients, with Gaussian and with exponential noise."""
    noises = ("gaussian", "exponential")
    cases = [Cell(noise, special=special) for special in FURTHER_CASES for noise in noises]
    return cases + [Cell(noise, size=size) for size in ("2 x 500", "3 x 300", "30 x 50") for noise in noises]


@dataclass(frozen=True, eq=False)
class GridStudy:
    """A study with its truth: tables by client, arrows, and the variables whose mechanism differs between clients."""

    tables: Mapping[str, Mapping[str, Any]]
    names: tuple[str, ...]
    arrows: frozenset[tuple[str, str]]
    changing: frozenset[str]

    def matrices(self) -> dict[str, Array]:
        """Return each client's complete rows as a matrix, for programs that take numbers only."""
        found = {}
        for client, table in self.tables.items():
            rows = np.column_stack([_as_numbers(table[name]) for name in self.names])
            found[client] = rows[np.isfinite(rows).all(1)]
        return found


def _as_numbers(column: Any) -> Array:
    values = np.asarray(column)
    if values.dtype.kind in "OUS":
        return np.unique(values.astype(str), return_inverse=True)[1].astype(float)
    return values.astype(float)


@dataclass(frozen=True, eq=False)
class _Mechanism:
    """How a variable follows from its parents; the same at all clients unless `with_change` draws another."""

    parents: tuple[int, ...]
    weights: Array
    bends: tuple[Callable[[Array], Array], ...]
    size_slopes: Array
    product: float
    noise_scale: float = 1.0
    shift: float = 0.0

    def with_change(self, rng: np.random.Generator) -> _Mechanism:
        factors = rng.uniform(0.3, 1.7, len(self.weights))
        scale = float(np.exp(rng.uniform(-0.6, 0.6)))
        return replace(self, weights=self.weights * factors, noise_scale=scale, shift=float(rng.normal(scale=0.7)))


_BENDS: tuple[Callable[[Array], Array], ...] = (
    lambda x: 1.25 * np.tanh(2 * x),
    lambda x: 1.4 * np.sin(1.5 * x),
    lambda x: np.log1p(np.exp(3 * x)) - 1.2,
    lambda x: np.sign(x) * np.abs(x) ** 1.6,
)


def _straight(x: Array) -> Array:
    return x


def _square(x: Array) -> Array:
    return np.asarray((np.minimum(x**2, 16) - 1) / np.sqrt(2))


def draw(cell: Cell, seed: int) -> GridStudy:
    """Draw the study of a cell and a seed; the same seed gives the same graph in every cell."""
    shape, own = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    arrows = _draw_arrows(shape, cell.variables)
    mechanisms = [_draw_mechanism(cell, shape, [i for i, j in arrows if j == node]) for node in range(cell.variables)]
    changing = _draw_changing(cell, shape)
    clients, rows = SIZES[cell.size]
    tables = []
    for _ in range(clients):
        here = [m.with_change(own) if node in changing else m for node, m in enumerate(mechanisms)]
        tables.append(_draw_rows(cell, own, here, rows))
    names = [f"v{k + 1}" for k in shape.permutation(cell.variables)]
    return _finish(cell, own, tables, names, arrows, changing)


def _draw_arrows(rng: np.random.Generator, variables: int) -> list[tuple[int, int]]:
    pairs = [(i, j) for j in range(variables) for i in range(j)]
    return sorted(pairs[k] for k in rng.choice(len(pairs), variables, replace=False))


def _draw_mechanism(cell: Cell, rng: np.random.Generator, parents: list[int]) -> _Mechanism:
    most, used = cell.variables, slice(len(parents))
    weights = rng.uniform(0.5, 1.1, most)[used] * rng.choice([-1, 1], most)[used]
    chosen = rng.integers(len(_BENDS), size=most)[used]
    slopes = rng.uniform(0.5, 0.9, most)[used] * rng.choice([-1, 1], most)[used]
    product = float(rng.uniform(0.6, 1.0))
    bends: tuple[Callable[[Array], Array], ...] = (_straight,) * len(parents)
    if cell.mechanism == "curved":
        bends = tuple(_BENDS[k] for k in chosen)
    elif cell.mechanism == "quadratic":
        bends = (_square,) * len(parents)
    return _Mechanism(
        tuple(parents),
        weights,
        bends,
        slopes if cell.mechanism == "size" else np.zeros(len(parents)),
        product if cell.mechanism == "interaction" and len(parents) > 1 else 0.0,
    )


def _draw_changing(cell: Cell, rng: np.random.Generator) -> set[int]:
    two = {int(k) for k in rng.choice(cell.variables, 2, replace=False)}
    if cell.special == "nothing changes" or SIZES[cell.size][0] == 1:
        return set()
    return set(range(cell.variables)) if cell.special == "everything changes" else two


def _draw_noise(cell: Cell, rng: np.random.Generator, rows: int) -> Array:
    noise = NOISES[cell.noise](rng, rows)
    if cell.special == "autocorrelated":
        for row in range(1, rows):
            noise[row] = 0.8 * noise[row - 1] + 0.6 * noise[row]
    if cell.special == "outliers":
        noise = np.where(rng.uniform(size=rows) < 0.01, noise + rng.choice([-8, 8], rows), noise)
    return noise


def _draw_rows(cell: Cell, rng: np.random.Generator, mechanisms: list[_Mechanism], rows: int) -> Array:
    found = np.zeros((rows, cell.variables))
    hidden = NOISES[cell.noise](rng, rows) if cell.special == "hidden cause" else np.zeros(rows)
    for node, one in enumerate(mechanisms):
        size = np.exp(np.clip(found[:, list(one.parents)] @ one.size_slopes, -2, 2) / 2)
        noise = _draw_noise(cell, rng, rows) * size * one.noise_scale
        causes = [w * f(found[:, p]) for p, w, f in zip(one.parents, one.weights, one.bends, strict=True)]
        value = one.shift + noise + sum(causes, np.zeros(rows))
        if one.product:
            value = value + one.product * found[:, one.parents[0]] * found[:, one.parents[1]]
        if node in (1, 4):
            value = value + hidden
        if cell.mechanism == "post-nonlinear" and one.parents:
            value = np.sinh(np.clip(value, -3, 3)) if node % 2 else np.cbrt(value)
        if cell.special == "counts":
            value = rng.poisson(np.exp(np.clip(0.5 * value + 0.5, -3, 4))).astype(float)
        if _is_label(cell, node):
            value = 1.3 * LABEL_SCORES[np.digitize(value, (-0.7, 0.0, 0.7))]
        # Effects keep their size along a path: a parent acts in its own standard deviations.
        own_scale = cell.special in SPECIAL_CASES
        found[:, node] = (value - value.mean()) / max(float(value.std()), 1e-9) if own_scale else value / 1.3
    return found


def _is_label(cell: Cell, node: int) -> bool:
    return cell.special == "more labels" and node % 3 != 1


def _finish(
    cell: Cell,
    rng: np.random.Generator,
    tables: list[Array],
    names: list[str],
    arrows: list[tuple[int, int]],
    changing: set[int],
) -> GridStudy:
    pooled = np.concatenate(tables)
    mean, spread = pooled.mean(0), pooled.std(0)
    found: dict[str, dict[str, Any]] = {}
    for number, table in enumerate(tables):
        columns = {
            name: _labels(table[:, k])
            if _is_label(cell, k)
            else _column(cell, rng, (table[:, k] - mean[k]) / spread[k], k)
            for k, name in enumerate(names)
        }
        found[f"c{number:02d}"] = {name: columns[name] for name in sorted(names)}
    return GridStudy(
        found,
        tuple(sorted(names)),
        frozenset((names[i], names[j]) for i, j in arrows),
        frozenset(names[k] for k in changing),
    )


def _column(cell: Cell, rng: np.random.Generator, values: Array, node: int) -> Any:
    if cell.special == "integers":
        return np.clip(np.round(1.5 * values + 2.5), 0, 5)
    if cell.special == "zero-inflated" and node % 2:
        return np.where(values < 0, 0.0, values)
    if cell.special == "labels" and node % 3 == 0:
        return np.where(values > 0, "high", "low")
    if cell.special == "three levels":
        return np.digitize(values, (-0.5, 0.5)).astype(float)
    if cell.special in ("missing", "missing 10 %"):
        return np.where(rng.uniform(size=len(values)) < (0.02 if cell.special == "missing" else 0.1), np.nan, values)
    return values


def _labels(scores: Array) -> Any:
    """Return the label of each score: "a" to "d"."""
    nearest = np.abs(scores[:, np.newaxis] - LABEL_SCORES).argmin(axis=1)
    return np.array(["a", "b", "c", "d"])[nearest]
