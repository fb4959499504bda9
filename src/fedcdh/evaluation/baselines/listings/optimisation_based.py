"""Federated methods by continuous optimisation."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    NONLINEAR_ADDITIVE,
    OPTIMISATION_BASED,
    PACKAGE,
    BaselineEntry,
    MethodAssumptions,
)

_FEDDAG = MethodAssumptions(OPTIMISATION_BASED, HETEROGENEOUS, NONLINEAR_ADDITIVE, True, "FedAvg")
_ADMM = MethodAssumptions(OPTIMISATION_BASED, HOMOGENEOUS, "Linear Gaussian, EV", True, "ADMM")
_FED_CD = MethodAssumptions(OPTIMISATION_BASED, HETEROGENEOUS, NONLINEAR_ADDITIVE, True, "Belief Aggregation")
_ADMM_FIT = f"{PACKAGE}.notears_admm:fit_notears_admm"
_ADMM_MLP_FIT = f"{PACKAGE}.notears_mlp_admm:fit_notears_mlp_admm"
_ADMM_MLP = MethodAssumptions(OPTIMISATION_BASED, HOMOGENEOUS, NONLINEAR_ADDITIVE, True, "ADMM")

ENTRIES: tuple[BaselineEntry, ...] = (
    BaselineEntry(
        "notears-admm",
        "NOTEARS-ADMM, threshold 0.1",
        f"{PACKAGE}.notears_admm:run_notears_admm",
        _ADMM,
        "Ng and Zhang 2022",
        {"threshold": 0.1},
        fit_path=_ADMM_FIT,
    ),
    BaselineEntry(
        "notears-admm-0.3",
        "NOTEARS-ADMM, threshold 0.3",
        f"{PACKAGE}.notears_admm:run_notears_admm",
        _ADMM,
        "Ng and Zhang 2022",
        {"threshold": 0.3},
        fit_path=_ADMM_FIT,
    ),
    BaselineEntry(
        "notears-mlp-admm",
        "NOTEARS-MLP-ADMM, threshold 0.1",
        f"{PACKAGE}.notears_mlp_admm:run_notears_mlp_admm",
        _ADMM_MLP,
        "Ng and Zhang 2022",
        {"threshold": 0.1},
        fit_path=_ADMM_MLP_FIT,
    ),
    BaselineEntry(
        "notears-mlp-admm-0.3",
        "NOTEARS-MLP-ADMM, threshold 0.3",
        f"{PACKAGE}.notears_mlp_admm:run_notears_mlp_admm",
        _ADMM_MLP,
        "Ng and Zhang 2022",
        {"threshold": 0.3},
        fit_path=_ADMM_MLP_FIT,
    ),
    BaselineEntry(
        "feddag",
        "FedDAG, graph shared",
        f"{PACKAGE}.feddag:run_feddag",
        _FEDDAG,
        "Gao et al. 2021",
        {"sharing": "graph", "mechanism": "mlp"},
    ),
    BaselineEntry(
        "feddag-all",
        "FedDAG, all shared",
        f"{PACKAGE}.feddag:run_feddag",
        MethodAssumptions(OPTIMISATION_BASED, HOMOGENEOUS, NONLINEAR_ADDITIVE, True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "all", "mechanism": "mlp"},
    ),
    BaselineEntry(
        "feddag-linear",
        "FedDAG, linear, graph shared",
        f"{PACKAGE}.feddag:run_feddag",
        MethodAssumptions(OPTIMISATION_BASED, HETEROGENEOUS, "Linear Gaussian, EV", True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "graph", "mechanism": "linear"},
    ),
    BaselineEntry(
        "feddag-all-linear",
        "FedDAG, linear, all shared",
        f"{PACKAGE}.feddag:run_feddag",
        MethodAssumptions(OPTIMISATION_BASED, HOMOGENEOUS, "Linear Gaussian, EV", True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "all", "mechanism": "linear"},
    ),
    BaselineEntry(
        "fed-cd-naive",
        "Fed-CD, plain mean, observational",
        f"{PACKAGE}.fed_cd:run_fed_cd",
        _FED_CD,
        "Abyaneh et al. 2022",
        {"combination": "naive"},
    ),
    BaselineEntry(
        "fed-cd-proximity",
        "Fed-CD, weights by proximity, observational",
        f"{PACKAGE}.fed_cd:run_fed_cd",
        _FED_CD,
        "Abyaneh et al. 2022",
        {"combination": "proximity"},
    ),
    BaselineEntry(
        "fed-cd-targets-naive",
        "Fed-CD, plain mean, *given the targets of interventions*",
        f"{PACKAGE}.fed_cd:run_fed_cd_with_targets",
        _FED_CD,
        "Abyaneh et al. 2022",
        {"combination": "naive"},
    ),
    BaselineEntry(
        "fed-cd-targets-proximity",
        "Fed-CD, weights by proximity, *given the targets of interventions*",
        f"{PACKAGE}.fed_cd:run_fed_cd_with_targets",
        _FED_CD,
        "Abyaneh et al. 2022",
        {"combination": "proximity"},
    ),
    BaselineEntry(
        "fed-sparse-bnsl",
        "Fed-Sparse-BNSL",
        f"{PACKAGE}.sparse_bnsl:run_sparse_bnsl",
        _ADMM,
        "Fassy El Fehri et al. 2025",
    ),
    BaselineEntry(
        "fed-sparse-bnsl-dp",
        "Fed-Sparse-BNSL, (1, 10⁻⁵)-private",
        f"{PACKAGE}.private_sparse_bnsl:run_private_sparse_bnsl",
        _ADMM,
        "Fassy El Fehri et al. 2025",
        {"epsilon": 1.0, "delta": 1e-5},
    ),
)
