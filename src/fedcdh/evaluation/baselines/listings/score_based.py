"""Federated methods by scores: sums of BICs first, then worst cases, then graphs that clients send."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    DISCRETE,
    HETEROGENEOUS,
    HOMOGENEOUS,
    LINEAR_GAUSSIAN,
    PACKAGE,
    SCORE_BASED,
    SUMMARY_STATISTICS,
    BaselineEntry,
    MethodAssumptions,
)

_SUMMED_COUNTS = MethodAssumptions(SCORE_BASED, HOMOGENEOUS, DISCRETE, False, "Summed counts")
_REGRETS = MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Voting")

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "bic-pooled",
        "Federated BIC, common weights",
        f"{PACKAGE}.federated_bic:run_federated_bic",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, SUMMARY_STATISTICS),
        "Schwarz 1978",
        {"scoring": "pooled"},
    ),
    BaselineEntry(
        "bic-sum",
        "Federated BIC, weights per client",
        f"{PACKAGE}.federated_bic:run_federated_bic",
        MethodAssumptions(SCORE_BASED, HETEROGENEOUS, LINEAR_GAUSSIAN, False, SUMMARY_STATISTICS),
        "Schwarz 1978",
        {"scoring": "sum"},
    ),
    BaselineEntry(
        "bic-context",
        "Federated BIC, the domain as a parent",
        f"{PACKAGE}.federated_bic:run_federated_bic",
        MethodAssumptions(SCORE_BASED, HETEROGENEOUS, LINEAR_GAUSSIAN, False, SUMMARY_STATISTICS),
        "Schwarz 1978",
        {"scoring": "context"},
    ),
    BaselineEntry("peri", "PERI", f"{PACKAGE}.peri:run_peri", _REGRETS, "Mian et al. 2023"),
    BaselineEntry(
        "peri-whole",
        "PERI, regrets of whole graphs",
        f"{PACKAGE}.peri:run_peri_whole",
        _REGRETS,
        "Mian et al. 2023",
    ),
    BaselineEntry(
        "rfcd",
        "RFCD, the worst score",
        f"{PACKAGE}.peri:run_peri",
        _REGRETS,
        "Mian et al. 2022",
        {"reference": "none"},
    ),
    BaselineEntry(
        "i-peri",
        "I-PERI",
        f"{PACKAGE}.iperi:run_iperi",
        MethodAssumptions(SCORE_BASED, "Unknown structural interventions", LINEAR_GAUSSIAN, False, "Regrets"),
        "Baldo and Assaad 2026",
    ),
    BaselineEntry(
        "na-yang",
        "Majority of local graphs",
        f"{PACKAGE}.graph_votes:run_na_yang",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Voting"),
        "Na and Yang 2010",
    ),
    BaselineEntry(
        "gou",
        "Union of local graphs, tested",
        f"{PACKAGE}.graph_votes:run_gou",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Graphs and Summary Statistics"),
        "Gou et al. 2007",
    ),
    BaselineEntry(
        "fedges",
        "FedGES, arcs of half the clients",
        f"{PACKAGE}.fedges:run_fedges",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Fusion of graphs"),
        "Torrijos et al. 2024",
    ),
    BaselineEntry(
        "fedges-union",
        "FedGES, union of arcs",
        f"{PACKAGE}.fedges:run_fedges",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, LINEAR_GAUSSIAN, False, "Fusion of graphs"),
        "Torrijos et al. 2024",
        {"fusion": "union"},
    ),
    BaselineEntry(
        "k2-counts",
        "K2, order found by PC",
        f"{PACKAGE}.label_search:run_k2",
        _SUMMED_COUNTS,
        "Samet and Miri 2009",
        data="labels",
    ),
    BaselineEntry(
        "k2-counts-true-order",
        "K2, order from the truth",
        f"{PACKAGE}.label_search:run_k2",
        _SUMMED_COUNTS,
        "Samet and Miri 2009",
        {"find_order": False},
        data="labels",
        truth="order",
    ),
    BaselineEntry(
        "bdeu-counts",
        "Hill climbing, BDeu of summed counts",
        f"{PACKAGE}.label_search:run_bdeu_climb",
        _SUMMED_COUNTS,
        "Heckerman et al. 1995",
        data="labels",
    ),
    BaselineEntry(
        "darlis",
        "DARLIS",
        f"{PACKAGE}.darlis:run_darlis",
        MethodAssumptions(SCORE_BASED, HOMOGENEOUS, "Generalised Linear", False, "Distributed Annealing"),
        "Ye et al. 2022",
        data="mixed",
    ),
)
