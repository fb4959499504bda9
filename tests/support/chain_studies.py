"""Rows of a chain, split over clients, for the NOTEARS baselines."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines import notears_admm as linear
from fedcdh.evaluation.baselines.interface import CountingChannel

CHAIN = ("a", "b", "c")


def chain_rows(rows: int, seed: int = 0) -> Array:
    """a → b → c with equal noise, so that variances grow: the case NOTEARS is made for."""
    noise = np.random.default_rng(seed).standard_normal((rows, len(CHAIN)))
    for cause, effect in pairwise(range(len(CHAIN))):
        noise[:, effect] += 2 * noise[:, cause]
    return noise


def split(rows: Array, *sizes: int) -> dict[str, Array]:
    """Rows handed out to clients, centred at each, which is what they do first anyway."""
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    return {f"client{k}": part - part.mean(axis=0) for k, part in enumerate(parts)}


def weights_of(tables: dict[str, Array], rounds: int = 45) -> Array:
    return linear.fit_shared_weights(tables, CountingChannel(len(tables)), l1=0.01, rounds=rounds)
