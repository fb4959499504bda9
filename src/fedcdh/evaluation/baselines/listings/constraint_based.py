"""Federated methods by independence tests."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    ARBITRARY_FUNCTIONS,
    CONSTRAINT_BASED,
    DISCRETE,
    GAUSSIAN_OR_DISCRETE,
    HOMOGENEOUS,
    HYBRID,
    LINEAR_GAUSSIAN,
    PACKAGE,
    BaselineEntry,
    MethodAssumptions,
)

_FEDPC = MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Voting")
_FEDPC_ANY = MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, ARBITRARY_FUNCTIONS, False, "Voting")
_FEDC2SL = MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, DISCRETE, False, "Secure chi-square")
_CHI_SQUARE_VOTES = MethodAssumptions(CONSTRAINT_BASED, HOMOGENEOUS, DISCRETE, False, "Voting")

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
        "fedc2sl",
        "FedC2SL, sketch of 50",
        f"{PACKAGE}.fedc2sl:run_fedc2sl",
        _FEDC2SL,
        "Wang et al. 2023",
        data="labels",
    ),
    BaselineEntry(
        "fedc2sl-exact",
        "FedC2SL without a sketch",
        f"{PACKAGE}.fedc2sl:run_fedc2sl",
        _FEDC2SL,
        "Wang et al. 2023",
        {"sketch_size": None},
        data="labels",
    ),
    BaselineEntry(
        "fedc2sl-binned",
        "FedC2SL, sketch of 50, numbers binned",
        f"{PACKAGE}.fedc2sl:run_fedc2sl",
        _FEDC2SL,
        "Wang et al. 2023",
        {"binned": True},
    ),
    BaselineEntry(
        "fedc2sl-exact-binned",
        "FedC2SL without a sketch, numbers binned",
        f"{PACKAGE}.fedc2sl:run_fedc2sl",
        _FEDC2SL,
        "Wang et al. 2023",
        {"sketch_size": None, "binned": True},
    ),
    BaselineEntry(
        "chi-square-votes",
        "PC, clients vote on each chi-square test",
        f"{PACKAGE}.fedc2sl:run_chi_square_votes",
        _CHI_SQUARE_VOTES,
        "Wang et al. 2023",
        {"voting": "questions"},
        data="labels",
    ),
    BaselineEntry(
        "chi-square-graph-votes",
        "PC with chi-square at the clients, vote on graphs",
        f"{PACKAGE}.fedc2sl:run_chi_square_votes",
        _CHI_SQUARE_VOTES,
        "Wang et al. 2023",
        {"voting": "graphs"},
        data="labels",
    ),
    BaselineEntry(
        "fedcsl",
        "FedCSL",
        f"{PACKAGE}.fedcsl:run_fedcsl",
        MethodAssumptions(HYBRID, HOMOGENEOUS, GAUSSIAN_OR_DISCRETE, False, "Weighted votes"),
        "Guo et al. 2024a",
        data="either",
    ),
    BaselineEntry(
        "fedacd",
        "FedACD",
        f"{PACKAGE}.fedacd:run_fedacd",
        MethodAssumptions(HYBRID, HOMOGENEOUS, GAUSSIAN_OR_DISCRETE, False, "Masked votes"),
        "Guo et al. 2024b",
        data="either",
    ),
    BaselineEntry(
        "fedecd",
        "FedECD",
        f"{PACKAGE}.fedacd:run_fedecd",
        MethodAssumptions(HYBRID, HOMOGENEOUS, GAUSSIAN_OR_DISCRETE, False, "Votes on redrawn rows"),
        "Guo et al. 2024c",
        data="either",
    ),
    BaselineEntry(
        "fedci-pc",
        "PC with the fedCI test",
        f"{PACKAGE}.fedci_pc:run_fedci_pc",
        MethodAssumptions(
            CONSTRAINT_BASED, "Intercepts per client", "Generalised Linear", False, "Federated Regressions"
        ),
        "Hahn et al. 2026",
        data="mixed",
    ),
)
