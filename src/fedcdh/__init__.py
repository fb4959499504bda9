"""Federated causal discovery from heterogeneous data.

`discover` finds a causal graph from tables. `profile`, `StudyPlan`, `summarize` and `discover_from` are its steps in a
federated study; `release` makes a summary that may leave a site. `Knowledge` holds what is known beforehand, and
`simulate` and `demo` make studies to try it with. All public names are in ``fedcdh.__all__``.

>>> import fedcdh
>>> study = fedcdh.demo.hospital_study()
>>> result = fedcdh.discover(study.columns(), domain="hospital")
>>> sorted(result.changing)
['medication', 'systolic_pressure']
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.data.readers import CsvStyle, open_tables
    from fedcdh.discovery.ancestral_discovery import AncestralDiscovery
    from fedcdh.discovery.api import discover, discover_from
    from fedcdh.discovery.drift import Drift
    from fedcdh.discovery.effect import Effect
    from fedcdh.discovery.estimator import FedCDH
    from fedcdh.discovery.result import Discovery, Edge
    from fedcdh.discovery.stability import Stability
    from fedcdh.errors import FedCDHError
    from fedcdh.evaluation import demo
    from fedcdh.evaluation.simulation import simulate
    from fedcdh.federation.in_process import simulate_federation
    from fedcdh.graphs.knowledge import Knowledge
    from fedcdh.graphs.metrics import compare
    from fedcdh.graphs.partial_graph import PartialGraph
    from fedcdh.privacy.releases import release
    from fedcdh.protocols import DOMAIN
    from fedcdh.reporting.result_files import write_result
    from fedcdh.reporting.result_reading import read_result
    from fedcdh.reporting.saved_discovery import SavedDiscovery
    from fedcdh.summaries.accumulator import summarize
    from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
    from fedcdh.summaries.features import Fourier, Hermite
    from fedcdh.summaries.plan import StudyPlan
    from fedcdh.summaries.profiles import Profile, profile
    from fedcdh.summaries.summary import Summary
    from fedcdh.summaries.variables import Categorical, Continuous

    __version__: str

__all__ = [
    "DOMAIN",
    "Aggregate",
    "AncestralDiscovery",
    "Categorical",
    "Cohort",
    "Continuous",
    "CsvStyle",
    "Discovery",
    "Drift",
    "Edge",
    "Effect",
    "FedCDH",
    "FedCDHError",
    "Fourier",
    "Hermite",
    "Knowledge",
    "PartialGraph",
    "Profile",
    "SavedDiscovery",
    "Stability",
    "StudyPlan",
    "Summary",
    "add_up",
    "compare",
    "demo",
    "discover",
    "discover_from",
    "open_tables",
    "profile",
    "read_result",
    "release",
    "simulate",
    "simulate_federation",
    "summarize",
    "write_result",
]

_HOMES = {
    "DOMAIN": "fedcdh.protocols",
    "Aggregate": "fedcdh.summaries.aggregation",
    "AncestralDiscovery": "fedcdh.discovery.ancestral_discovery",
    "Categorical": "fedcdh.summaries.variables",
    "Cohort": "fedcdh.summaries.aggregation",
    "Continuous": "fedcdh.summaries.variables",
    "CsvStyle": "fedcdh.data.readers",
    "Discovery": "fedcdh.discovery.result",
    "Drift": "fedcdh.discovery.drift",
    "Edge": "fedcdh.discovery.result",
    "Effect": "fedcdh.discovery.effect",
    "FedCDH": "fedcdh.discovery.estimator",
    "FedCDHError": "fedcdh.errors",
    "Fourier": "fedcdh.summaries.features",
    "Hermite": "fedcdh.summaries.features",
    "Knowledge": "fedcdh.graphs.knowledge",
    "PartialGraph": "fedcdh.graphs.partial_graph",
    "Profile": "fedcdh.summaries.profiles",
    "SavedDiscovery": "fedcdh.reporting.saved_discovery",
    "Stability": "fedcdh.discovery.stability",
    "StudyPlan": "fedcdh.summaries.plan",
    "Summary": "fedcdh.summaries.summary",
    "add_up": "fedcdh.summaries.aggregation",
    "compare": "fedcdh.graphs.metrics",
    "demo": "fedcdh.evaluation.demo",
    "discover": "fedcdh.discovery.api",
    "discover_from": "fedcdh.discovery.api",
    "open_tables": "fedcdh.data.readers",
    "profile": "fedcdh.summaries.profiles",
    "read_result": "fedcdh.reporting.result_reading",
    "release": "fedcdh.privacy.releases",
    "simulate": "fedcdh.evaluation.simulation",
    "simulate_federation": "fedcdh.federation.in_process",
    "summarize": "fedcdh.summaries.accumulator",
    "write_result": "fedcdh.reporting.result_files",
}
_load, __dir__ = attach(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("fedcdh")
    return _load(name)
