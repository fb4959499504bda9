"""Federated methods by independence tests."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    ARBITRARY_FUNCTIONS,
    CONSTRAINT_BASED,
    HOMOGENEOUS,
    LINEAR_GAUSSIAN,
    PACKAGE,
    BaselineEntry,
    MethodAssumptions,
)

_FEDPC = MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Voting")
_FEDPC_ANY = MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, ARBITRARY_FUNCTIONS, False, "Voting")

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry("fedpc", "FedPC", f"{PACKAGE}.fedpc:run_fedpc", _FEDPC, "Huang et al. 2022"),
    BaselineEntry(
        "fedpc-veto",
        "FedPC, 30 % remove an edge",
        f"{PACKAGE}.fedpc:run_fedpc",
        _FEDPC,
        "Huang et al. 2022",
        {"voting": "veto"},
    ),
    BaselineEntry(
        "fedpc-kernel",
        "FedPC with FCIT at the clients",
        f"{PACKAGE}.fedpc:run_fedpc",
        _FEDPC_ANY,
        "Huang et al. 2022",
        {"test": "kernel"},
    ),
    BaselineEntry(
        "fedpc-regression",
        "FedPC with our F tests at the clients",
        f"{PACKAGE}.fedpc:run_fedpc",
        MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, "Additive Functions", False, "Voting"),
        "Huang et al. 2022",
        {"test": "regression"},
    ),
    BaselineEntry(
        "fedpc-kci",
        "FedPC with KCI at the clients",
        f"{PACKAGE}.fedpc:run_fedpc",
        _FEDPC_ANY,
        "Huang et al. 2022",
        {"test": "kci"},
        "experiments",
    ),
    BaselineEntry(
        "fedci-pc",
        "PC with the fedCI test",
        f"{PACKAGE}.fedci_pc:run_fedci_pc",
        MethodAssumptions(
            CONSTRAINT_BASED, "Intercepts per client", "Generalised Linear", False, "Federated Regressions"
        ),
        "Hahn et al. 2026",
    ),
)
