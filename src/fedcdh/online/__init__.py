"""Studies of sites that are online: the same files as in a study by file, carried by messages instead of by mail.

A site answers bytes with bytes (`Site`), a coordinator conducts a study over anything that carries bytes (`Transport`,
`conduct`). Which network does so is for others to say: `fedcdh.flower` is one, `simulate_federation` needs none.
"""

from fedcdh.online.answered import Answered
from fedcdh.online.coordinator import Outcome, Terms, conduct
from fedcdh.online.exchange import Transport
from fedcdh.online.federation import InProcess, simulate_federation
from fedcdh.online.masked import Masking
from fedcdh.online.participation import Event, Participation
from fedcdh.online.site import Site
from fedcdh.online.site_settings import read_site

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
