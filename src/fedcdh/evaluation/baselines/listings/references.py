"""References: sorting by variance, and programs that need all rows in one place."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    ARBITRARY_FUNCTIONS,
    CONSTRAINT_BASED,
    HETEROGENEOUS,
    HOMOGENEOUS,
    LINEAR_GAUSSIAN,
    PACKAGE,
    POOLED_ROWS,
    REGRESSION_BASED,
    SCORE_BASED,
    SUMMARY_STATISTICS,
    BaselineEntry,
    MethodAssumptions,
)

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
)
