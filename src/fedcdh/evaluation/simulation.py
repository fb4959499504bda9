"""The synthetic studies of the paper: a random graph, mechanisms of which a few change, and one table per client.

The paper's text and its authors' program describe slightly different recipes. Both are here, as the values `PAPER` and
`AUTHORS`, so that a figure can be reproduced either way.

Every random draw has its own generator, keyed by its purpose. More rows for one client, one more client or a denser
graph therefore leave all other draws unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedcdh._runtime.array_types import Array
from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation._simulation_sizes import check_finite, check_sizes, count_rows, max_edges, name_variables
from fedcdh.evaluation._simulation_sizes import name_clients as name_clients
from fedcdh.evaluation.pseudo_confounders import (
    PseudoConfounder,
    SharedChange,
    check_confounders,
    combine_confounders,
)
from fedcdh.evaluation.simulated_effects import Mechanisms
from fedcdh.protocols import DOMAIN

Function = Callable[[Array], Array]
FunctionKey = tuple[str, ...]
NoiseSampler = Callable[[np.random.Generator, int], Array]
MechanismModel = Literal["linear", "general"]


@dataclass(frozen=True)
class Dialect:
    """One reading of the paper's recipe, where its text and the authors' program differ.

    Parameters
    ----------
    functions : tuple of callable
        Functions from which f_i is chosen in the general model.
    deviation : callable
        Maps the number drawn from U(1, 2) to the standard deviation of the noise.
    function_key : callable
        Maps the key of a mechanism to the key of its function: the variable alone, or the variable at one client.

    Examples
    --------
    >>> from fedcdh.evaluation import AUTHORS, PAPER
    >>> PAPER.deviation(1.44), AUTHORS.deviation(1.44)
    (1.2, 1.44)
    """

    functions: tuple[Function, ...]  # what f_i is chosen from in the general model
    deviation: Callable[[float], float]  # from the number drawn from U(1, 2) to the noise's standard deviation
    function_key: Callable[
        [FunctionKey], FunctionKey
    ]  # what keeps one function: the variable, or the variable at one client


@dataclass(frozen=True, eq=False)
class Simulation:
    """The tables of all clients, and the truth behind them.

    Parameters
    ----------
    tables : mapping from str to array
        For each client its rows, read-only, with columns in the order of `names`.
    names : tuple of str
        Names of the variables.
    arrows : frozenset of (str, str)
        True arrows as (cause, effect).
    changing : frozenset of str
        Variables whose mechanism differs between clients.
    targets : mapping from str to str, optional
        For each client with a structural intervention, the variable that has no causes there.
    confounders : tuple of PseudoConfounder, default ()
        What some of the changing mechanisms have in common. Their variables are among those that change.
    mechanisms : Mechanisms, optional
        The mechanisms, from which true effects are computed.

    Examples
    --------
    >>> from fedcdh import simulate
    >>> study = simulate(variables=3, clients=2, rows=5, changing=1, seed=1)
    >>> study.names, [table.shape for table in study.tables.values()]
    (('v1', 'v2', 'v3'), [(5, 3), (5, 3)])
    """

    tables: Mapping[str, Array]  # client → rows × variables, read-only, columns in the order of `names`
    names: tuple[str, ...]
    arrows: frozenset[tuple[str, str]]  # (cause, effect)
    changing: frozenset[str]  # variables whose mechanism differs between clients
    targets: Mapping[str, str] = field(default_factory=dict)  # client → the variable that has no causes there
    confounders: tuple[PseudoConfounder, ...] = ()
    mechanisms: Mechanisms | None = field(default=None, repr=False)

    def effect(self, cause: str, outcome: str) -> float:
        """Return the true total effect of a variable on another: the mean over clients.

        Parameters
        ----------
        cause, outcome : str
            Two variables.

        Returns
        -------
        float
            See `client_effects`.

        Raises
        ------
        SettingsError
            If the mechanisms are not known, or there is no such variable.
        """
        found = self.client_effects(cause, outcome)
        return sum(found.values()) / len(found)

    def client_effects(self, cause: str, outcome: str) -> dict[str, float]:
        """Return the true total effect of a variable on another at every client.

        Parameters
        ----------
        cause, outcome : str
            Two variables.

        Returns
        -------
        dict from str to float
            The mean change of the outcome if the cause of every row is one unit larger. It is exact where all functions
            are linear: the sum over directed paths of the products of strengths. Elsewhere it is the mean over many
            rows of the same simulation.

        Raises
        ------
        SettingsError
            If the mechanisms are not known, or there is no such variable.
        """
        if self.mechanisms is None:
            raise SettingsError("the mechanisms of this study are not known; expected those of `simulate`; use it")
        for name in (cause, outcome):
            if name not in self.names:
                raise SettingsError(f"there is no variable {name!r}; choose among {', '.join(self.names)}")
        places = self.names.index(cause), self.names.index(outcome)
        return {client: self.mechanisms.effect(client, *places) for client in self.tables}

    @property
    def augmented(self) -> frozenset[tuple[str, str]]:
        """Return the arrows, and one from the domain to every variable whose mechanism changes."""
        return self.arrows | {(DOMAIN, name) for name in self.changing}

    def columns(self, client_column: str = "site") -> dict[str, NDArray[Any]]:
        """Put all rows into one table, as columns that a data frame accepts.

        Parameters
        ----------
        client_column : str, default "site"
            Name of the column that says which client a row comes from.

        Returns
        -------
        dict of str to array
            The column of clients, and one column for every variable.

        Raises
        ------
        SettingsError
            If a variable has the name of the column of clients.
        """
        if client_column in self.names:
            raise SettingsError(
                f"a variable is already called {client_column!r}; expected another name for the column of clients; "
                "choose one",
                parameter="client_column",
            )
        pooled = np.concatenate(list(self.tables.values()))
        clients = np.repeat(list(self.tables), [len(table) for table in self.tables.values()])
        return {client_column: clients, **{name: pooled[:, i] for i, name in enumerate(self.names)}}

    def standardised(self) -> Simulation:
        """Scale every variable to mean 0 and variance 1 over the rows of all clients.

        In the paper's recipe effects nearly always vary more than their causes, so that sorting by variance finds
        directions without any causal reasoning. A common location and scale take this away and keep all differences
        between clients.

        Returns
        -------
        Simulation
            The same study with scaled tables.

        Raises
        ------
        DataError
            If a variable does not vary, so that it has no scale.
        """
        pooled = np.concatenate(list(self.tables.values()))
        location, scale = pooled.mean(axis=0), pooled.std(axis=0)
        constant = [name for name, spread in zip(self.names, scale, strict=True) if spread == 0]
        if constant:
            raise DataError(
                f"{', '.join(constant)} does not vary; expected variables that have a scale; simulate at least two rows"
            )
        tables = {client: make_read_only((table - location) / scale) for client, table in self.tables.items()}
        known = None if self.mechanisms is None else self.mechanisms.rescale(scale)
        return replace(self, tables=tables, mechanisms=known)


def identity(x: Array) -> Array:
    """Return x itself: f(x) = x."""
    return x


def sinc(x: Array) -> Array:
    """Return sin(x) / x, as in analysis; `numpy.sinc` is sin(πx) / (πx)."""
    return np.asarray(np.sinc(x / np.pi))


def interpret_as_variance(drawn: float) -> float:
    """Return the standard deviation if the number drawn is a variance."""
    return float(np.sqrt(drawn))


def interpret_as_deviation(drawn: float) -> float:
    """Return the number drawn, which is a standard deviation already."""
    return drawn


def key_by_variable(owner: FunctionKey) -> FunctionKey:
    """Return a key that gives a variable one function at all clients."""
    return owner[:1]


def key_by_mechanism(owner: FunctionKey) -> FunctionKey:
    """Return the key of the mechanism, so that a changing variable has another function at every client."""
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
    interventions: int = 0,
    confounders: Sequence[PseudoConfounder] = (),
) -> Simulation:
    """Draw a study at random: a graph, mechanisms of which some change, and one table per client.

    Parameters
    ----------
    model : {"linear", "general"}, default "linear"
        "linear" has linear functions and Gaussian noise, "general" functions and noise of several kinds.
    variables : int, default 6
        Number of variables.
    clients : int, default 10
        Number of clients.
    rows : int or sequence of int, default 100
        Rows of every client, or one number for each client.
    edges : int, optional
        Number of edges. The default is the number of variables, or fewer where fewer fit.
    changing : int, default 2
        Number of variables whose mechanism differs between clients.
    seed : int, default 0
        Seed of all draws. Seed and sizes fix the graph, whatever the model.
    names : sequence of str, optional
        Names of the variables. The default is v1, v2 and so on; names do not change any draw.
    dialect : Dialect, default PAPER
        Reading of the recipe: `PAPER` or `AUTHORS`.
    interventions : int, default 0
        Number of clients at which one effect loses all arrows from its causes. It is fewer than all clients, so that
        every arrow exists somewhere. The mechanism of such a variable counts as changing.
    confounders : sequence of PseudoConfounder, default ()
        Functions ψ of the client that several mechanisms have in common, so that they change together. Their variables
        count as changing, besides those of `changing`; no other draw depends on them.

    Returns
    -------
    Simulation
        Tables of all clients, and the truth behind them.

    Raises
    ------
    SettingsError
        If sizes or names contradict each other, or if the values become too large to represent.

    Notes
    -----
    A variable is V_i = Σ_j σ_ij f_i(V_j) + ε_i. If its mechanism changes, it is Σ_j σ^k_ij f_i(V_j) + γ^k ε_i at
    client k. Strengths σ are drawn from U(0.5, 2.5) and noise scales γ from U(1, 3). A changing variable without
    causes is γ^k ε. A pseudo-confounder adds its level to each of its variables, and scales their noise.

    Examples
    --------
    >>> from fedcdh import simulate
    >>> study = simulate("general", variables=4, clients=3, rows=[50, 60, 70], seed=7)
    >>> len(study.arrows), len(study.changing), [len(table) for table in study.tables.values()]
    (4, 2, [50, 60, 70])
    """
    counts = count_rows(rows, clients)
    labels = name_variables(names, variables)
    edges = min(variables, max_edges(variables)) if edges is None else edges
    if model not in get_args(MechanismModel):
        raise SettingsError(
            f"found model {model!r}; expected one of {', '.join(get_args(MechanismModel))}; choose one of these",
            parameter="model",
        )
    check_sizes(variables, clients, edges, changing, seed)
    check_confounders(confounders, labels, clients)

    order, pairs = _draw_dag(variables, edges, seed)
    chosen = frozenset(keyed_generator(seed, "changing").permutation(variables)[:changing].tolist())
    targets = _draw_targets(interventions, tuple(counts), pairs, seed)
    shared = _draw_shared_changes(tuple(confounders), labels, tuple(counts), seed)
    recipe = _StructuralModel(model, dialect, seed, order, pairs, chosen, shared, targets)
    tables = {name: recipe.table(name, count) for name, count in counts.items()}
    check_finite(tables, seed)
    return Simulation(
        tables=tables,
        names=labels,
        arrows=frozenset((labels[tail], labels[head]) for tail, head in pairs),
        changing=frozenset(labels[i] for i in chosen.union(targets.values())).union(
            *(one.variables for one in confounders)
        ),
        targets={client: labels[target] for client, target in targets.items()},
        confounders=tuple(confounders),
        mechanisms=Mechanisms(recipe, np.ones(variables)),
    )


def _draw_shared_changes(
    confounders: tuple[PseudoConfounder, ...], labels: Sequence[str], clients: Sequence[str], seed: int
) -> dict[tuple[int, str], SharedChange]:
    """Draw ψ of every pseudo-confounder at every client, and return their effects by variable and client."""
    found = {}
    for client in clients:
        values = [
            float(keyed_generator(seed, "pseudo-confounder", str(number), client).standard_normal())
            for number in range(len(confounders))
        ]
        for variable, label in enumerate(labels):
            if (change := combine_confounders(confounders, values, label)) != SharedChange():
                found[variable, client] = change
    return found


@dataclass(frozen=True)
class _StructuralModel:
    """All that is fixed before the first row is drawn.

    Variables are numbers here, so that their names cannot affect the draws.
    """

    model: MechanismModel
    dialect: Dialect
    seed: int
    order: tuple[int, ...]
    pairs: frozenset[tuple[int, int]]
    changing: frozenset[int]
    shared: Mapping[tuple[int, str], SharedChange]
    targets: Mapping[str, int] = field(default_factory=dict)

    def table(self, client: str, rows: int) -> Array:
        return self.shifted_table(client, rows, -1, 0.0)

    def shifted_table(self, client: str, rows: int, shifted: int, by: float) -> Array:
        """Return rows in which one variable is larger by some number, whatever its causes say."""
        table = np.empty((rows, len(self.order)))
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # squares of squares may overflow; `check_finite` refuses them
            for variable in self.order:
                table[:, variable] = self._column(variable, client, table) + (by if variable == shifted else 0.0)
        return make_read_only(table)

    def weights(self, client: str) -> Array | None:
        """Return the strengths of all arrows at a client, (from, to); None where functions are not linear."""
        if self.model != "linear":
            return None
        found = np.zeros((len(self.order), len(self.order)))
        for tail, head in self.pairs:
            if self.targets.get(client) != head:
                found[tail, head] = self._strength(tail, self._owner(head, client))
        return found

    def _owner(self, variable: int, client: str) -> FunctionKey:
        return (str(variable), client) if variable in self.changing else (str(variable),)

    def _strength(self, parent: int, owner: FunctionKey) -> float:
        return keyed_generator(self.seed, "strength", str(parent), *owner).uniform(0.5, 2.5)

    def _column(self, variable: int, client: str, table: Array) -> Array:
        """Return Σ_j σ_ij f_i(V_j) + γ ε_i for one variable at one client."""
        owner = self._owner(variable, client)
        function = self._function(owner)
        noise = self._noise(variable)(keyed_generator(self.seed, "noise", str(variable), client), len(table))
        shared = self.shared.get((variable, client), SharedChange())
        column = self._noise_scale(owner) * shared.noise_factor * noise + shared.level
        if self.targets.get(client) == variable:
            return column
        for parent in sorted(tail for tail, head in self.pairs if head == variable):
            column = column + self._strength(parent, owner) * function(table[:, parent])
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
    """Return a sampler of Gaussian noise; the dialect says whether U(1, 2) is its variance or its deviation."""
    deviation = dialect.deviation(choose.uniform(1, 2))
    return lambda draw, rows: deviation * draw.standard_normal(rows)


def _make_mixed_noise(choose: np.random.Generator, _: Dialect) -> NoiseSampler:
    """Return a sampler of U(−0.5, 0.5) or N(0, 1), each with probability 1/2."""
    samplers: tuple[NoiseSampler, NoiseSampler] = (
        lambda draw, rows: draw.uniform(-0.5, 0.5, rows),
        lambda draw, rows: draw.standard_normal(rows),
    )
    return samplers[choose.integers(2)]


def _draw_dag(variables: int, edges: int, seed: int) -> tuple[tuple[int, ...], frozenset[tuple[int, int]]]:
    """Draw an order of the variables, and exactly `edges` of its pairs as arrows."""
    order = tuple(keyed_generator(seed, "order").permutation(variables).tolist())
    pairs = list(combinations(order, 2))
    drawn = keyed_generator(seed, "pairs").permutation(len(pairs))[:edges]
    return order, frozenset(pairs[i] for i in drawn)


def _draw_targets(
    interventions: int, clients: Sequence[str], pairs: frozenset[tuple[int, int]], seed: int
) -> dict[str, int]:
    """Draw the clients with an intervention and, for each of them, a variable that has causes."""
    if not 0 <= interventions < len(clients) or (interventions and not pairs):
        raise SettingsError(
            f"found {interventions} interventions with {len(clients)} clients and {len(pairs)} edges; expected fewer "
            "interventions than clients, and an edge that can be removed; choose other numbers",
            parameter="interventions",
        )
    effects = sorted({head for _, head in pairs})
    draws = {client: keyed_generator(seed, "intervention", client) for client in clients}
    ranks = {client: float(draw.random()) for client, draw in draws.items()}
    chosen = sorted(clients, key=ranks.__getitem__)[:interventions]
    return {client: effects[int(draws[client].integers(len(effects)))] for client in sorted(chosen)}


def keyed_generator(seed: int, *purpose: str) -> np.random.Generator:
    """Return a generator keyed by seed and purpose, so that the order of draws never changes a number."""
    digest = hashlib.sha256("\0".join(purpose).encode()).digest()
    return np.random.default_rng([seed, *digest])


def make_read_only(table: Array) -> Array:
    """Close an array to writing, and return it."""
    table.setflags(write=False)
    return table
