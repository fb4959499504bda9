"""References: sorting by variance, and programs that need all rows in one place."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    ARBITRARY_FUNCTIONS,
    CONSTRAINT_BASED,
    FUNCTION_BASED,
    HETEROGENEOUS,
    HOMOGENEOUS,
    LINEAR_GAUSSIAN,
    LINEAR_NON_GAUSSIAN,
    PACKAGE,
    POOLED_ROWS,
    REGRESSION_BASED,
    SCORE_BASED,
    SUMMARY_STATISTICS,
    BaselineEntry,
    MethodAssumptions,
)

_ORDER_SEARCH = MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, POOLED_ROWS)

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "sort-by-variance",
        "Sorting by variance",
        f"{PACKAGE}.var_sort:sort_by_variance",
        MethodAssumptions(
            REGRESSION_BASED, HOMOGENEOUS, "Linear, variance grows along arrows", True, SUMMARY_STATISTICS
        ),
        "Reisach et al. 2021",
    ),
    BaselineEntry(
        "cdnod-fisherz",
        "CD-NOD with Fisher's z",
        f"{PACKAGE}.pooled_references:run_cdnod",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, LINEAR_GAUSSIAN, False, POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "fisherz"},
        "experiments",
    ),
    BaselineEntry(
        "cdnod-rcit",
        "CD-NOD with RCIT",
        f"{PACKAGE}.pooled_references:run_cdnod",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, ARBITRARY_FUNCTIONS, False, POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "rcit"},
        "experiments",
    ),
    BaselineEntry(
        "cdnod-kci",
        "CD-NOD with KCI",
        f"{PACKAGE}.pooled_references:run_cdnod",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, ARBITRARY_FUNCTIONS, False, POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "kci"},
        "experiments",
    ),
    BaselineEntry(
        "cdnod-change",
        "CD-NOD with KCI and its own direction step",
        f"{PACKAGE}.cdnod_change:run_cdnod_change",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, ARBITRARY_FUNCTIONS, False, POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "kci"},
        "experiments",
    ),
    BaselineEntry(
        "pc-fisherz",
        "PC with Fisher's z",
        f"{PACKAGE}.pooled_references:run_pc",
        MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, POOLED_ROWS),
        "Spirtes and Glymour 1991",
        {"test": "fisherz"},
        "experiments",
    ),
    BaselineEntry(
        "ges-bic",
        "GES with BIC",
        f"{PACKAGE}.ges_bic:run_ges_bic",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, POOLED_ROWS),
        "Chickering 2002",
    ),
    BaselineEntry(
        "ges-bic-centred",
        "GES with BIC, means of clients removed",
        f"{PACKAGE}.ges_bic:run_ges_bic",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, POOLED_ROWS),
        "Chickering 2002",
        {"means": "own"},
    ),
    BaselineEntry(
        "boss",
        "BOSS with BIC",
        f"{PACKAGE}.pooled_references:run_order_search",
        _ORDER_SEARCH,
        "Andrews et al. 2023",
        {"search": "boss"},
        "experiments",
    ),
    BaselineEntry(
        "grasp",
        "GRaSP with BIC",
        f"{PACKAGE}.pooled_references:run_order_search",
        _ORDER_SEARCH,
        "Lam et al. 2022",
        {"search": "grasp"},
        "experiments",
    ),
    BaselineEntry(
        "direct-lingam",
        "DirectLiNGAM",
        f"{PACKAGE}.lingam_references:run_direct_lingam",
        MethodAssumptions(FUNCTION_BASED, HOMOGENEOUS, LINEAR_NON_GAUSSIAN, True, POOLED_ROWS),
        "Shimizu et al. 2011",
        extra="peers",
    ),
    BaselineEntry(
        "multi-group-lingam",
        "MultiGroupDirectLiNGAM",
        f"{PACKAGE}.lingam_references:run_multi_group_lingam",
        MethodAssumptions(FUNCTION_BASED, HETEROGENEOUS, LINEAR_NON_GAUSSIAN, True, POOLED_ROWS),
        "Shimizu 2012",
        extra="peers",
    ),
)
