"""The synthetic studies of the paper: a random graph, a few mechanisms that change, one table per client.

The paper's text and its authors' program describe two slightly different recipes. Both are here as values, `PAPER` and
`AUTHORS`, so that a figure can be reproduced either way and nobody has to guess which one was meant.

Every draw has its own generator, keyed by what it is for. More rows for one client, one more client, or a denser graph
leave all other draws as they were, and instances differ only in what was asked to differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedcdh._runtime.array_types import Array
from fedcdh.protocols import DOMAIN

Function = Callable[[Array], Array]
FunctionKey = tuple[str, ...]
NoiseSampler = Callable[[np.random.Generator, int], Array]
MechanismModel = Literal["linear", "general"]


@dataclass(frozen=True)
class Dialect:
    """One reading of the recipe: where the paper's text and its authors' program part ways."""

    functions: tuple[Function, ...]  # what f_i is chosen from in the general model
    deviation: Callable[[float], float]  # from the number drawn from U(1, 2) to the noise's standard deviation
    function_key: Callable[
        [FunctionKey], FunctionKey
    ]  # what keeps one function: the variable, or the variable at one client


@dataclass(frozen=True, eq=False)
class Simulation:
    """Tables of all clients, and the truth behind them."""

    tables: Mapping[str, Array]  # client → rows × variables, read-only, columns in the order of `names`
    names: tuple[str, ...]
    arrows: frozenset[tuple[str, str]]  # (cause, effect)
    changing: frozenset[str]  # variables whose mechanism differs between clients

    @property
    def augmented(self) -> frozenset[tuple[str, str]]:
        """The arrows, and one from the domain to every variable whose mechanism changes."""
        return self.arrows | {(DOMAIN, name) for name in self.changing}

    def columns(self, client_column: str = "site") -> dict[str, NDArray[Any]]:
        """All rows in one table, as columns a data frame accepts; the column `client_column` says where a row comes from."""
        if client_column in self.names:
            raise ValueError(
                f"a variable is already called {client_column!r}; choose another name for the column of clients"
            )
        pooled = np.concatenate(list(self.tables.values()))
        clients = np.repeat(list(self.tables), [len(table) for table in self.tables.values()])
        return {client_column: clients, **{name: pooled[:, i] for i, name in enumerate(self.names)}}

    def standardised(self) -> Simulation:
        """The same study with every variable at mean 0 and variance 1 over the rows of all clients.

        In the paper's recipe effects nearly always vary more than their causes, so that sorting by variance finds
        directions without any causal reasoning. Common location and scale take that away and keep all differences
        between clients.
        """
        pooled = np.concatenate(list(self.tables.values()))
        location, scale = pooled.mean(axis=0), pooled.std(axis=0)
        constant = [name for name, spread in zip(self.names, scale, strict=True) if spread == 0]
        if constant:
            raise ValueError(f"{', '.join(constant)} does not vary and has no scale; simulate at least two rows")
        tables = {client: make_read_only((table - location) / scale) for client, table in self.tables.items()}
        return replace(self, tables=tables)


def identity(x: Array) -> Array:
    """f(x) = x."""
    return x


def sinc(x: Array) -> Array:
    """f(x) = sin(x) / x, as in analysis; NumPy's own sinc is the one of signal processing, sin(πx) / (πx)."""
    return np.asarray(np.sinc(x / np.pi))


def interpret_as_variance(drawn: float) -> float:
    """The number drawn is a variance."""
    return float(np.sqrt(drawn))


def interpret_as_deviation(drawn: float) -> float:
    """The number drawn is a standard deviation already."""
    return drawn


def key_by_variable(owner: FunctionKey) -> FunctionKey:
    """One function for a variable at all clients."""
    return owner[:1]


def key_by_mechanism(owner: FunctionKey) -> FunctionKey:
    """One function for a mechanism: a variable that changes gets another function at every client."""
    return owner


PAPER = Dialect((identity, np.square, sinc, np.tanh), interpret_as_variance, key_by_variable)
"""The paper's text: linear, square, sinc, tanh; U(1, 2) is a variance; a change alters strengths and noise only."""

AUTHORS = Dialect((identity, np.square, np.sin, np.tanh), interpret_as_deviation, key_by_mechanism)
"""The authors' program: sin for sinc; U(1, 2) is a standard deviation; a change alters the function, too."""


def simulate(
    model: MechanismModel = "linear",
    *,
    variables: int = 6,
    clients: int = 10,
    rows: int | Sequence[int] = 100,
    edges: int | None = None,
    changing: int = 2,
    seed: int = 0,
    names: Sequence[str] | None = None,
    dialect: Dialect = PAPER,
) -> Simulation:
    """A study drawn at random: V_i = Σ_j σ_ij f_i(V_j) + ε_i, or Σ_j σ^k_ij f_i(V_j) + γ^k ε_i where it changes.

    Strengths σ come from U(0.5, 2.5) and noise scales γ from U(1, 3). `rows` is one number for all clients or one for
    each; `edges` is the number of variables unless given (fewer where fewer fit); `names` only renames. A variable
    without causes that changes is γ^k ε: its noise scale differs between clients. Seed and sizes fix the graph,
    whatever the model.

    >>> study = simulate("general", variables=4, clients=3, rows=[50, 60, 70], seed=7)
    >>> len(study.arrows), len(study.changing), [len(table) for table in study.tables.values()]
    (4, 2, [50, 60, 70])
    """
    counts = _count_rows(rows, clients)
    labels = _name_variables(names, variables)
    edges = min(variables, _max_edges(variables)) if edges is None else edges
    if model not in get_args(MechanismModel):
        raise ValueError(f"found model {model!r}, expected one of {', '.join(get_args(MechanismModel))}")
    _check_sizes(variables, clients, edges, changing, seed)

    order, pairs = _draw_dag(variables, edges, seed)
    chosen = frozenset(keyed_generator(seed, "changing").permutation(variables)[:changing].tolist())
    recipe = _StructuralModel(model, dialect, seed, order, pairs, chosen)
    tables = {name: recipe.table(name, count) for name, count in counts.items()}
    _check_finite(tables, seed)
    return Simulation(
        tables=tables,
        names=labels,
        arrows=frozenset((labels[tail], labels[head]) for tail, head in pairs),
        changing=frozenset(labels[i] for i in chosen),
    )


@dataclass(frozen=True)
class _StructuralModel:
    """All that is fixed before the first row is drawn. Variables are numbers here: names never touch the draws."""

    model: MechanismModel
    dialect: Dialect
    seed: int
    order: tuple[int, ...]
    pairs: frozenset[tuple[int, int]]
    changing: frozenset[int]

    def table(self, client: str, rows: int) -> Array:
        table = np.empty((rows, len(self.order)))
        with np.errstate(over="ignore", invalid="ignore"):  # squares of squares; refused by `_check_finite`
            for variable in self.order:
                table[:, variable] = self._column(variable, client, table)
        return make_read_only(table)

    def _column(self, variable: int, client: str, table: Array) -> Array:
        """Σ_j σ_ij f_i(V_j) + γ ε_i for one variable at one client."""
        owner: FunctionKey = (str(variable), client) if variable in self.changing else (str(variable),)
        function = self._function(owner)
        noise = self._noise(variable)(keyed_generator(self.seed, "noise", str(variable), client), len(table))
        column = self._noise_scale(owner) * noise
        for parent in sorted(tail for tail, head in self.pairs if head == variable):
            strength = keyed_generator(self.seed, "strength", str(parent), *owner).uniform(0.5, 2.5)
            column = column + strength * function(table[:, parent])
        return column

    def _function(self, owner: FunctionKey) -> Function:
        choices = {"linear": (identity,), "general": self.dialect.functions}[self.model]
        drawn = keyed_generator(self.seed, "function", *self.dialect.function_key(owner)).integers(len(choices))
        return choices[drawn]

    def _noise_scale(self, owner: FunctionKey) -> float:
        at_one_client = len(owner) > 1
        return keyed_generator(self.seed, "noise scale", *owner).uniform(1, 3) if at_one_client else 1.0

    def _noise(self, variable: int) -> NoiseSampler:
        choose = keyed_generator(self.seed, "noise kind", str(variable))
        return {"linear": _make_gaussian_noise, "general": _make_mixed_noise}[self.model](choose, self.dialect)


def _make_gaussian_noise(choose: np.random.Generator, dialect: Dialect) -> NoiseSampler:
    """Gaussian noise of a variance (or deviation: ask the dialect) drawn from U(1, 2)."""
    deviation = dialect.deviation(choose.uniform(1, 2))
    return lambda draw, rows: deviation * draw.standard_normal(rows)


def _make_mixed_noise(choose: np.random.Generator, _: Dialect) -> NoiseSampler:
    """U(−0.5, 0.5) or N(0, 1), by the toss of a coin."""
    samplers: tuple[NoiseSampler, NoiseSampler] = (
        lambda draw, rows: draw.uniform(-0.5, 0.5, rows),
        lambda draw, rows: draw.standard_normal(rows),
    )
    return samplers[choose.integers(2)]


def _draw_dag(variables: int, edges: int, seed: int) -> tuple[tuple[int, ...], frozenset[tuple[int, int]]]:
    """Exactly `edges` arrows, drawn evenly from all pairs, each pointing down a random order of the variables."""
    order = tuple(keyed_generator(seed, "order").permutation(variables).tolist())
    pairs = list(combinations(order, 2))
    drawn = keyed_generator(seed, "pairs").permutation(len(pairs))[:edges]
    return order, frozenset(pairs[i] for i in drawn)


def keyed_generator(seed: int, *purpose: str) -> np.random.Generator:
    """A generator keyed by what it is for, so that the order of draws never changes a number."""
    digest = hashlib.sha256("\0".join(purpose).encode()).digest()
    return np.random.default_rng([seed, *digest])


def make_read_only(table: Array) -> Array:
    """The same array, closed to writing: a simulation is a value."""
    table.setflags(write=False)
    return table


def name_clients(clients: int) -> tuple[str, ...]:
    """client01, client02, …; a client keeps its name, and so its draws, when others join."""
    return tuple(f"client{k:02d}" for k in range(1, clients + 1))


def _count_rows(rows: int | Sequence[int], clients: int) -> dict[str, int]:
    if clients < 1:
        raise ValueError(f"found {clients} clients, expected at least 1")
    counts = [int(rows)] * clients if isinstance(rows, int | np.integer) else list(rows)
    if len(counts) != clients:
        raise ValueError(f"found {len(counts)} row counts for {clients} clients; give one number, or one per client")
    if min(counts) < 1:
        raise ValueError(f"found a client with {min(counts)} rows; every client needs at least 1")
    return dict(zip(name_clients(clients), counts, strict=True))


def _name_variables(names: Sequence[str] | None, variables: int) -> tuple[str, ...]:
    labels = tuple(f"v{i}" for i in range(1, variables + 1)) if names is None else tuple(names)
    if len(labels) != variables:
        raise ValueError(f"found {len(labels)} names for {variables} variables; give one name for each")
    if len(set(labels)) < len(labels) or DOMAIN in labels:
        raise ValueError(f"names must differ from one another and from {DOMAIN!r}; found {', '.join(labels)}")
    return labels


def _max_edges(variables: int) -> int:
    return variables * (variables - 1) // 2


def _check_sizes(variables: int, clients: int, edges: int, changing: int, seed: int) -> None:
    most = _max_edges(variables)
    if variables < 1:
        raise ValueError(f"found {variables} variables, expected at least 1")
    if not 0 <= edges <= most:
        raise ValueError(f"{variables} variables have room for 0 to {most} edges, found {edges}; set `edges`")
    if not 0 <= changing <= variables:
        raise ValueError(f"found {changing} changing variables, expected 0 to {variables}; set `changing`")
    if changing and clients < 2:
        raise ValueError("nothing can change within a single client; set changing=0 or simulate at least 2 clients")
    if seed < 0:
        raise ValueError(f"found seed {seed}, expected a whole number from 0 upwards")


def _check_finite(tables: Mapping[str, Array], seed: int) -> None:
    if not all(np.isfinite(table).all() for table in tables.values()):
        raise ValueError(f"with seed {seed} squares of squares outgrow the numbers; take another seed or fewer edges")
