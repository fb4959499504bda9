"""Causal discovery from tables or summaries: the methods, their settings and their result.

- `api`: `discover` and `discover_from`, the two functions most users need
- `algorithm`: Algorithm 1 of the paper, step by step
- `score_search`: the search by marginal likelihood instead of tests
- `one_message`: the graph of one message per client, by vote
- `residual_rounds`, `direction_evidence`: directions from residuals, and other evidence within a class
- `degenerate_search`: no more edges than copies and exact functions allow
- `methods`: the methods by name, with the features that each of them needs
- `settings`: the settings of a search and their defaults
- `hidden_causes`, `ancestral_discovery`: the search that allows for hidden common causes, and its result
- `result`: `Discovery`, the graph with the evidence behind it
- `effect`, `effect_text`: how much one variable affects another, as a record and in words
- `effect_estimation`, `effect_choices`, `effect_questions`: how that is found
- `drift`: differences between clients in the mechanisms that change
- `stability`, `stability_run`, `influence`: what other clients or other rows would change
- `estimator`: `FedCDH`, the same for scikit-learn
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.discovery.algorithm import ConstraintSearch, Search, SearchResult, algorithm_1
    from fedcdh.discovery.ancestral_discovery import AncestralDiscovery, AncestralEdge
    from fedcdh.discovery.api import discover, discover_from
    from fedcdh.discovery.drift import Drift, estimate_drift, tabulate_drift
    from fedcdh.discovery.effect import ClientEffect, Effect, PossibleEffect, ResponseCurve
    from fedcdh.discovery.effect_estimation import estimate_effect
    from fedcdh.discovery.estimator import FedCDH
    from fedcdh.discovery.hidden_causes import HiddenCauseFindings, HiddenCauseSearch
    from fedcdh.discovery.influence import Influence
    from fedcdh.discovery.methods import METHODS, Method, check_rounds, get_method
    from fedcdh.discovery.result import Discovery, Edge
    from fedcdh.discovery.score_search import ScoreSearch
    from fedcdh.discovery.settings import SearchOptions, Settings, SummaryOptions, TableOptions, default_alpha
    from fedcdh.discovery.stability import ChangeStability, EdgeStability, Stability, assess_stability
    from fedcdh.discovery.stability_run import StabilityRun

__all__ = [
    "METHODS",
    "AncestralDiscovery",
    "AncestralEdge",
    "ChangeStability",
    "ClientEffect",
    "ConstraintSearch",
    "Discovery",
    "Drift",
    "Edge",
    "EdgeStability",
    "Effect",
    "FedCDH",
    "HiddenCauseFindings",
    "HiddenCauseSearch",
    "Influence",
    "Method",
    "PossibleEffect",
    "ResponseCurve",
    "ScoreSearch",
    "Search",
    "SearchOptions",
    "SearchResult",
    "Settings",
    "Stability",
    "StabilityRun",
    "SummaryOptions",
    "TableOptions",
    "algorithm_1",
    "assess_stability",
    "check_rounds",
    "default_alpha",
    "discover",
    "discover_from",
    "estimate_drift",
    "estimate_effect",
    "get_method",
    "tabulate_drift",
]

_HOMES = {
    "METHODS": "fedcdh.discovery.methods",
    "AncestralDiscovery": "fedcdh.discovery.ancestral_discovery",
    "AncestralEdge": "fedcdh.discovery.ancestral_discovery",
    "ChangeStability": "fedcdh.discovery.stability",
    "ClientEffect": "fedcdh.discovery.effect",
    "ConstraintSearch": "fedcdh.discovery.algorithm",
    "Discovery": "fedcdh.discovery.result",
    "Drift": "fedcdh.discovery.drift",
    "Edge": "fedcdh.discovery.result",
    "EdgeStability": "fedcdh.discovery.stability",
    "Effect": "fedcdh.discovery.effect",
    "FedCDH": "fedcdh.discovery.estimator",
    "HiddenCauseFindings": "fedcdh.discovery.hidden_causes",
    "HiddenCauseSearch": "fedcdh.discovery.hidden_causes",
    "Influence": "fedcdh.discovery.influence",
    "Method": "fedcdh.discovery.methods",
    "PossibleEffect": "fedcdh.discovery.effect",
    "ResponseCurve": "fedcdh.discovery.effect",
    "ScoreSearch": "fedcdh.discovery.score_search",
    "Search": "fedcdh.discovery.algorithm",
    "SearchOptions": "fedcdh.discovery.settings",
    "SearchResult": "fedcdh.discovery.algorithm",
    "Settings": "fedcdh.discovery.settings",
    "Stability": "fedcdh.discovery.stability",
    "StabilityRun": "fedcdh.discovery.stability_run",
    "SummaryOptions": "fedcdh.discovery.settings",
    "TableOptions": "fedcdh.discovery.settings",
    "algorithm_1": "fedcdh.discovery.algorithm",
    "assess_stability": "fedcdh.discovery.stability",
    "check_rounds": "fedcdh.discovery.methods",
    "default_alpha": "fedcdh.discovery.settings",
    "discover": "fedcdh.discovery.api",
    "discover_from": "fedcdh.discovery.api",
    "estimate_drift": "fedcdh.discovery.drift",
    "estimate_effect": "fedcdh.discovery.effect_estimation",
    "get_method": "fedcdh.discovery.methods",
    "tabulate_drift": "fedcdh.discovery.drift",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
