"""Studies of sites that are online: the same files as in a study by file, carried by messages instead of by mail.

A site answers bytes with bytes (`ClientNode`), a coordinator conducts a study over anything that carries bytes (`Transport`,
`conduct_study`). Which network does so is for others to say: `fedcdh.federation.flower` is one, `simulate_federation` needs none.
"""

from fedcdh.federation.coordinator import StudyOutcome, StudyTerms, conduct_study
from fedcdh.federation.exchange import Transport
from fedcdh.federation.in_process import InProcessTransport, simulate_federation
from fedcdh.federation.participation import Event, Participation
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.federation.site import ClientNode
from fedcdh.federation.site_config import read_site_config
from fedcdh.federation.site_memory import Answered

__all__ = [
    "Answered",
    "ClientNode",
    "Event",
    "InProcessTransport",
    "Participation",
    "SecureSumOptions",
    "StudyOutcome",
    "StudyTerms",
    "Transport",
    "conduct_study",
    "read_site_config",
    "simulate_federation",
]
