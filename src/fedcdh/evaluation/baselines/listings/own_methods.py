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
_EVIDENCE = MethodAssumptions(SCORE_BASED, HETEROGENEOUS, "Additive Functions", False, SUMMARY_STATISTICS)
_CONSTRAINT = MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, "Additive Functions", False, SUMMARY_STATISTICS)

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "fedcdh",
        "our `evidence`",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        _EVIDENCE,
        "`fedcdh.discover`, its default",
        {"method": "evidence"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-one-message",
        "our `evidence`, one message per client",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        _EVIDENCE,
        '`fedcdh.discover(..., rounds="one")`',
        {"method": "evidence", "rounds": "one"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-constraint",
        "our `constraint`",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        _CONSTRAINT,
        '`fedcdh.discover(..., method="constraint")`',
        {"method": "constraint"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-constraint-one-message",
        "our `constraint`, one message per client",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        _CONSTRAINT,
        '`fedcdh.discover(..., method="constraint", rounds="one")`',
        {"method": "constraint", "rounds": "one"},
        data="mixed",
    ),
    BaselineEntry(
        "fedcdh-rounds",
        "our `constraint`, with adaptive rounds",
        f"{PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(CONSTRAINT_BASED, HETEROGENEOUS, "Additive Noise", False, SUMMARY_STATISTICS),
        '`fedcdh.discover(..., method="constraint", rounds="adaptive")`',
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
