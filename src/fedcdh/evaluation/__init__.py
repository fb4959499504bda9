"""Simulated studies, published methods to compare with, and the paper's experiments.

- `simulation`: the synthetic studies of the paper
- `demo`: a simulated study of five hospitals
- `baselines`: FedPC, FedDAG, NOTEARS-ADMM and other methods, with all that they send counted
- `experiments`: the paper's tables and figures, each a TOML file
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.evaluation.demo import HospitalStudy, hospital_study
    from fedcdh.evaluation.pseudo_confounders import PseudoConfounder
    from fedcdh.evaluation.simulation import AUTHORS, PAPER, Dialect, Simulation, simulate

__all__ = [
    "AUTHORS",
    "PAPER",
    "Dialect",
    "HospitalStudy",
    "PseudoConfounder",
    "Simulation",
    "hospital_study",
    "simulate",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AUTHORS": "fedcdh.evaluation.simulation",
        "PAPER": "fedcdh.evaluation.simulation",
        "Dialect": "fedcdh.evaluation.simulation",
        "HospitalStudy": "fedcdh.evaluation.demo",
        "PseudoConfounder": "fedcdh.evaluation.pseudo_confounders",
        "Simulation": "fedcdh.evaluation.simulation",
        "hospital_study": "fedcdh.evaluation.demo",
        "simulate": "fedcdh.evaluation.simulation",
    },
)
