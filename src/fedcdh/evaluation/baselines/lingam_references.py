"""Central references for linear models with noise that is not Gaussian: DirectLiNGAM, of all rows and by client.

Both are those of the library lingam (MIT), which needs an older SciPy than other extras: install it in an environment
of its own, with the extra "peers". Weights are those between variables of variance 1 over all rows, so that the least
weight of an edge does not depend on units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.evaluation.baselines.interface import BaselineResult, dag_of_weights
from fedcdh.evaluation.baselines.pooled_references import pool_rows, wrap_library

MIN_WEIGHT = 0.1
"""A smaller weight between standardised variables is no edge; the library itself prunes by the lasso."""


def run_direct_lingam(tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
    """Run DirectLiNGAM on all rows; it does not know of clients, so that their differences distort its graph."""
    library = import_lingam()
    pooled, channel = pool_rows(tables)
    with wrap_library("lingam", "DirectLiNGAM", seed):
        model = library.DirectLiNGAM(random_state=seed)
        model.fit(_standardise(pooled, pooled))
    dag = dag_of_weights(np.asarray(model.adjacency_matrix_).T, names, MIN_WEIGHT)
    return BaselineResult(dag, channel.traffic, dag)


def run_multi_group_lingam(tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
    """Run DirectLiNGAM with one order for all clients and weights of their own, of which the mean counts."""
    if len(tables) == 1:  # the library wants two groups
        return run_direct_lingam(tables, names, seed)
    library = import_lingam()
    pooled, channel = pool_rows(tables)
    groups = [_standardise(tables[client], pooled) for client in sorted(tables)]
    with wrap_library("lingam", "MultiGroupDirectLiNGAM", seed):
        model = library.MultiGroupDirectLiNGAM(random_state=seed)
        model.fit(groups)
    dag = dag_of_weights(np.mean(model.adjacency_matrices_, axis=0).T, names, MIN_WEIGHT)
    return BaselineResult(dag, channel.traffic, dag)


def _standardise(rows: Array, pooled: Array) -> Array:
    spread = pooled.std(axis=0)
    return np.asarray((rows - pooled.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def import_lingam() -> Any:
    """Import lingam when it is needed; everything else does without this library."""
    with optional_import("lingam", extra="peers"):
        return import_module("lingam")
