"""Federated studies: planning, clients, coordinator, adaptive rounds, secure sums and Flower.

The messages are the files of a study by file. A client answers bytes with bytes (`ClientNode`), and a coordinator
conducts a study over any transport (`conduct_study`). `fedcdh.federation.flower` is a transport over a network,
`simulate_federation` needs none.

Modules
-------
planning
    The plan of a study from profiles and a declaration.
coordinator, study_terms, exchange, adaptive_rounds, secure_sum
    The coordinator, its decisions and its rounds.
site, site_config
    The client and its configuration file.
journal, participation
    What the coordinator keeps of a study.
in_process
    A federation in one process.
streaming
    Aggregation of many summary files.
flower
    Studies over Flower.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.federation.coordinator import conduct_study
    from fedcdh.federation.exchange import Transport
    from fedcdh.federation.in_process import InProcessTransport, simulate_federation
    from fedcdh.federation.participation import Event, Participation
    from fedcdh.federation.planning.declaration import Declaration
    from fedcdh.federation.planning.study_from_profiles import plan_study
    from fedcdh.federation.secure_sum import SecureSumOptions
    from fedcdh.federation.site import ClientNode
    from fedcdh.federation.site_config import read_site_config
    from fedcdh.federation.streaming.aggregate_files import StreamingAggregation
    from fedcdh.federation.study_terms import StudyOutcome, StudyTerms

__all__ = [
    "ClientNode",
    "Declaration",
    "Event",
    "InProcessTransport",
    "Participation",
    "SecureSumOptions",
    "StreamingAggregation",
    "StudyOutcome",
    "StudyTerms",
    "Transport",
    "conduct_study",
    "plan_study",
    "read_site_config",
    "simulate_federation",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ClientNode": "fedcdh.federation.site",
        "Declaration": "fedcdh.federation.planning.declaration",
        "Event": "fedcdh.federation.participation",
        "InProcessTransport": "fedcdh.federation.in_process",
        "Participation": "fedcdh.federation.participation",
        "SecureSumOptions": "fedcdh.federation.secure_sum",
        "StreamingAggregation": "fedcdh.federation.streaming.aggregate_files",
        "StudyOutcome": "fedcdh.federation.study_terms",
        "StudyTerms": "fedcdh.federation.study_terms",
        "Transport": "fedcdh.federation.exchange",
        "conduct_study": "fedcdh.federation.coordinator",
        "plan_study": "fedcdh.federation.planning.study_from_profiles",
        "read_site_config": "fedcdh.federation.site_config",
        "simulate_federation": "fedcdh.federation.in_process",
    },
)
