"""Federated methods by properties of the functions and the noise."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    FUNCTION_BASED,
    HOMOGENEOUS,
    LINEAR_NON_GAUSSIAN,
    PACKAGE,
    SUMMARY_STATISTICS,
    BaselineEntry,
    MethodAssumptions,
)

_CUMULANTS = MethodAssumptions(FUNCTION_BASED, HOMOGENEOUS, LINEAR_NON_GAUSSIAN, True, SUMMARY_STATISTICS)

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "lingam-cumulants",
        "LiNGAM from cumulants of order 4",
        f"{PACKAGE}.lingam_cumulants:run_lingam_cumulants",
        _CUMULANTS,
        "Chen et al. 2025",
        {"order": 4},
    ),
    BaselineEntry(
        "lingam-cumulants-3",
        "LiNGAM from cumulants of order 3",
        f"{PACKAGE}.lingam_cumulants:run_lingam_cumulants",
        _CUMULANTS,
        "Chen et al. 2025",
        {"order": 3},
    ),
)
