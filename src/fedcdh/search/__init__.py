"""Searches for graphs, by independence tests or by scores; they see names and answers, never data.

- `class_operators`: insertions, deletions and turns of single edges in equivalence classes
- `colliders`: rules that decide which unshielded triples are colliders
- `conditioning_sets`: the conditioning sets that may separate a pair
- `edge_removal`: rules that decide which separations remove an edge
- `edge_support`: the support of single edges by the score
- `exact_search`: the best DAG by dynamic programming
- `fci`, `ancestral_rules`: the search that allows for hidden common causes, and Zhang's rules
- `greedy_equivalence_search`: an equivalence class with a high score, by single edges
- `hill_climbing`: a DAG with a higher score, by single edges
- `order_search`: the best DAG by a search over orders
- `orientation`: the direction of the edges of a skeleton
- `parent_sets`: parent sets and their scores
- `skeleton`: the PC-stable search for adjacent pairs
"""

from fedcdh.search.colliders import ColliderRule, TripleDecision, make_largest_p_rule, separating_set_rule
from fedcdh.search.conditioning_sets import CachedTest
from fedcdh.search.edge_removal import RemovalRule, remove_all, remove_consistent
from fedcdh.search.edge_support import EdgeSupport, edge_supports, measure_directions
from fedcdh.search.fci import AncestralSearchResult, HiddenCauseRules, search_pag
from fedcdh.search.greedy_equivalence_search import Phase, ScoredClass, find_equivalence_class
from fedcdh.search.hill_climbing import AskingScore, BatchScore, Climb, climb
from fedcdh.search.order_search import SearchEffort, best_dag
from fedcdh.search.orientation import Conflict, DirectionEvidence, Orientation, orient_skeleton
from fedcdh.search.parent_sets import ScoredDag
from fedcdh.search.skeleton import Skeleton, SkeletonRules, find_skeleton

__all__ = [
    "AncestralSearchResult",
    "AskingScore",
    "BatchScore",
    "CachedTest",
    "Climb",
    "ColliderRule",
    "Conflict",
    "DirectionEvidence",
    "EdgeSupport",
    "HiddenCauseRules",
    "Orientation",
    "Phase",
    "RemovalRule",
    "ScoredClass",
    "ScoredDag",
    "SearchEffort",
    "Skeleton",
    "SkeletonRules",
    "TripleDecision",
    "best_dag",
    "climb",
    "edge_supports",
    "find_equivalence_class",
    "find_skeleton",
    "make_largest_p_rule",
    "measure_directions",
    "orient_skeleton",
    "remove_all",
    "remove_consistent",
    "search_pag",
    "separating_set_rule",
]
