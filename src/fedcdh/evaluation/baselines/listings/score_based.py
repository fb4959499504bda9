"""Federated methods by scores."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    DISCRETE,
    HOMOGENEOUS,
    PACKAGE,
    SCORE_BASED,
    BaselineEntry,
    MethodAssumptions,
)

_SUMMED_COUNTS = MethodAssumptions(SCORE_BASED, HOMOGENEOUS, DISCRETE, False, "Summed counts")

ENTRIES: tuple[BaselineEntry, ...] = (
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
)
