"""Federated methods by scores."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    HOMOGENEOUS,
    PACKAGE,
    SCORE_BASED,
    BaselineEntry,
    MethodAssumptions,
)

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "darlis",
        "DARLIS",
        f"{PACKAGE}.darlis:run_darlis",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, "Generalized Linear", False, "Distributed Annealing"),
        "Ye et al. 2022",
    ),
)
