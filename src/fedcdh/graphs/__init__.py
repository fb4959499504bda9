"""Partially directed graphs, and what can be said about them without data.

- `admissible_arrows`: the arrows that a graph can take
- `ancestral_graph`: graphs with a mark at either end of an edge, for hidden common causes
- `ancestral_metrics`: distances between two of them
- `convert`: conversions to the formats of other libraries, and back
- `d_separation`: d-separation, and the perfect independence test based on it
- `equivalence`: from a DAG to its class, and from a class to a DAG
- `knowledge`: background knowledge about directions
- `latent_projection`: from a DAG with hidden nodes to the ancestral graph of the others
- `meek_rules`: Meek's four rules
- `metrics`: distances between an estimated and a true graph
- `partial_graph`: graphs of arrows and lines
"""

from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark
from fedcdh.graphs.ancestral_metrics import AncestralComparison, compare_ancestral
from fedcdh.graphs.d_separation import is_d_separated, make_d_separation_test
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension, to_cpdag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.latent_projection import project_to_mag
from fedcdh.graphs.meek_rules import apply_meek_rules
from fedcdh.graphs.metrics import (
    GraphComparison,
    GraphLike,
    Score,
    compare,
    compare_changing,
    compare_graph,
    cpdag_shd,
)
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph

__all__ = [
    "NO_KNOWLEDGE",
    "AncestralComparison",
    "AncestralGraph",
    "Arrow",
    "GraphComparison",
    "GraphLike",
    "Knowledge",
    "Mark",
    "Pair",
    "PartialGraph",
    "Score",
    "apply_meek_rules",
    "compare",
    "compare_ancestral",
    "compare_changing",
    "compare_graph",
    "cpdag_shd",
    "extend_to_dag",
    "find_consistent_extension",
    "is_d_separated",
    "make_d_separation_test",
    "project_to_mag",
    "to_cpdag",
]
