"""Simulated tables of numbers and labels, one of which has a rare level.

The graph and its mechanisms are those of `fedcdh.simulate` ("linear"), with ten variables. Four of them are cut into
labels at quantiles over all clients: the first into a level that 5 % of the people have and another, the second and the
third into two levels of similar size, the fourth into three. Labels are thus effects, and causes of what was drawn from
the values before they were cut.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh.evaluation.simulation import keyed_generator, simulate

Table = dict[str, npt.NDArray[Any]]
RARE_SHARE = 0.05
NUMBERS, LABELS, CLIENTS = 6, 4, 4
_CUTS = ((1 - RARE_SHARE,), (0.5,), (0.4,), (0.3, 0.65))
_LEVELS = np.array(["low", "middle", "high"])


class LabelledStudy(NamedTuple):
    """One table per client, and the arrows of the graph they were drawn from."""

    tables: dict[str, Table]
    arrows: frozenset[tuple[str, str]]


def simulate_labelled(rows: int, seed: int, clients: int = CLIENTS) -> LabelledStudy:
    """Draw a study of six numbers and four labels, with as many rows at every client."""
    drawn = simulate(
        "linear",
        variables=NUMBERS + LABELS,
        clients=clients,
        rows=rows,
        edges=10,
        changing=min(1, clients - 1),
        seed=seed,
    )
    chosen = keyed_generator(seed, "labels").permutation(NUMBERS + LABELS)[:LABELS].tolist()
    pooled = np.concatenate(list(drawn.tables.values()))
    tables = {}
    for client, values in drawn.tables.items():
        table: Table = {name: values[:, i] for i, name in enumerate(drawn.names)}
        for i, cuts in zip(chosen, _CUTS, strict=True):
            levels = _LEVELS if len(cuts) == 2 else _LEVELS[[0, 2]]
            table[drawn.names[i]] = levels[np.digitize(values[:, i], np.quantile(pooled[:, i], cuts))]
        tables[client] = table
    return LabelledStudy(tables, drawn.arrows)
