"""Studies of sites that are online: the same files as in a study by file, carried by messages instead of by mail.

A site answers bytes with bytes (`Site`), a coordinator conducts a study over anything that carries bytes (`Transport`,
`conduct`). Which network does so is for others to say: `fedcdh.federation.flower` is one, `simulate_federation` needs none.
"""

from fedcdh.federation.coordinator import Outcome, Terms, conduct
from fedcdh.federation.exchange import Transport
from fedcdh.federation.in_process import InProcess, simulate_federation
from fedcdh.federation.participation import Event, Participation
from fedcdh.federation.secure_sum import Masking
from fedcdh.federation.site import Site
from fedcdh.federation.site_config import read_site
from fedcdh.federation.site_memory import Answered

__all__ = [
    "Answered",
    "Event",
    "InProcess",
    "Masking",
    "Outcome",
    "Participation",
    "Site",
    "Terms",
    "Transport",
    "conduct",
    "read_site",
    "simulate_federation",
]
