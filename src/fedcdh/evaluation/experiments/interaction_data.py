"""Studies in which causes interact: summaries cannot show this, and adaptive rounds can (docs/rounds.md)."""

from __future__ import annotations

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.simulation import Simulation, keyed_generator, make_read_only, name_clients, simulate


def simulate_interactions(
    *, variables: int = 6, edges: int = 8, rows: int = 100, clients: int = 10, changing: int = 2, seed: int = 0
) -> Simulation:
    """Simulate a study in which causes interact: V_i ∝ Σ_j V_j + 1.5 Σ_{j<l} V_j V_l, then noise.

    The means of changing variables differ between clients. The graph is that of `simulate`; effects are standardised
    over all rows before noise of variance 1/2 is added.

    Parameters
    ----------
    variables : int, default 6
        Number of variables.
    edges : int, default 8
        Number of edges.
    rows : int, default 100
        Rows of every client.
    clients : int, default 10
        Number of clients.
    changing : int, default 2
        Number of variables whose mean differs between clients.
    seed : int, default 0
        Seed of all draws.

    Returns
    -------
    Simulation
        Tables of all clients, and the truth behind them.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments import simulate_interactions
    >>> study = simulate_interactions(variables=4, edges=4, rows=50, clients=3, changing=1, seed=2)
    >>> len(study.arrows), len(study.changing)
    (4, 1)
    """
    frame = simulate("linear", variables=variables, clients=clients, edges=edges, changing=changing, rows=2, seed=seed)
    parents = {name: sorted(tail for tail, head in frame.arrows if head == name) for name in frame.names}
    places = list(name_clients(clients))
    columns: dict[str, Array] = {}
    while len(columns) < variables:
        name = next(n for n in frame.names if n not in columns and columns.keys() >= set(parents[n]))
        draw = keyed_generator(seed, "products", name)
        noise = draw.standard_normal((clients, rows))
        if name in frame.changing:
            noise = noise + draw.standard_normal((clients, 1))
        causes = [columns[parent] for parent in parents[name]]
        effect = sum(causes, np.zeros((clients, rows)))
        for i, first in enumerate(causes):
            for second in causes[i + 1 :]:
                effect = effect + 1.5 * first * second
        columns[name] = effect / effect.std() + np.sqrt(0.5) * noise if causes else noise
    tables = {
        place: make_read_only(np.column_stack([columns[n][k] for n in frame.names])) for k, place in enumerate(places)
    }
    return Simulation(tables, frame.names, frame.arrows, frame.changing)
