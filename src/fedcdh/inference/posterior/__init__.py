"""Posterior distributions over DAGs, from the weights of families.

- `family_table`: parent sets with their log weights
- `exact_posterior`: probabilities of arrows by sums over all DAGs
- `dag_sampling`: chains that sample DAGs, for many variables
- `graph_posterior`: the mean of several such distributions
"""

from fedcdh.inference.posterior.dag_sampling import DagChain, estimate_arrows
from fedcdh.inference.posterior.exact_posterior import ArrowProbabilities, sum_over_dags
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.inference.posterior.graph_posterior import GraphPosterior

__all__ = ["ArrowProbabilities", "DagChain", "FamilyTable", "GraphPosterior", "estimate_arrows", "sum_over_dags"]
