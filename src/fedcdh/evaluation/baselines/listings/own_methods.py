"""Our own methods, and FedCDH as its paper and as its authors' program have it."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    ARBITRARY_FUNCTIONS,
    CONSTRAINT_BASED,
    HETEROGENEOUS,
    PACKAGE,
    POOLED_ROWS,
    SCORE_BASED,
    SUMMARY_STATISTICS,
    BaselineEntry,
    MethodAssumptions,
)

_PROGRAM = MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, ARBITRARY_FUNCTIONS, False, POOLED_ROWS)

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "fedcdh-evidence",
        "our `evidence`",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(SCORE_BASED, HETEROGENEOUS, "Additive Functions", False, SUMMARY_STATISTICS),
        "`fedcdh.discover`, its default",
        {"method": "evidence"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-constraint",
        "our `constraint`",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, "Additive Functions", False, SUMMARY_STATISTICS),
        "`fedcdh.discover`",
        {"method": "constraint"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-rounds",
        "our `constraint`, with adaptive rounds",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, "Additive Noise", False, SUMMARY_STATISTICS),
        '`fedcdh.discover(..., rounds="adaptive")`',
        {"method": "constraint", "rounds": "adaptive"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-paper",
        "FedCDH",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, ARBITRARY_FUNCTIONS, False, SUMMARY_STATISTICS),
        "Li et al. 2024",
        {"method": "paper"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-program",
        "FedCDH, the authors' program",
        f"{PACKAGE}.fedcdh_program:run_fedcdh_program",
        _PROGRAM,
        "Li et al. 2024",
    ),
    BaselineEntry(
        "fedcdh-program-pc",
        "FedCDH, the authors' program without its direction step",
        f"{PACKAGE}.fedcdh_program:run_fedcdh_program",
        _PROGRAM,
        "Li et al. 2024",
        {"direction_step": "none"},
    ),
)
