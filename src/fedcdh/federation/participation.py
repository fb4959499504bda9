"""Who took part in an online study, who did not and why, and every message with its size.

Sites are known by their address on the network, and by the name of the client once they have said it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Literal

from fedcdh._io.text import to_readable_json

FORMAT = "fedcdh-participation-1"
EventKind = Literal["sent", "accepted", "ignored", "refused", "missing", "stored"]


@dataclass(frozen=True)
class Event:
    """Something that happened with one site in one round, as the coordinator saw it."""

    time: str
    round: str
    site: str
    client: str  # empty until it is known
    what: EventKind
    bytes: int = 0
    reason: str = ""


@dataclass
class Participation:
    """The record of one run of a study, in the order in which things happened."""

    events: list[Event] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)  # by address

    def note(self, round_: str, site: str, what: EventKind, size: int = 0, reason: str = "") -> None:
        """Adds what happened, with the time of day."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.events.append(Event(time, round_, site, self.clients.get(site, ""), what, size, reason))

    def named(self, site: str) -> str:
        """The client at an address, or the address."""
        return self.clients.get(site, site)

    @property
    def missing(self) -> Mapping[str, str]:
        """Who is not in the result, and why: the last that was said of them, unless all ended well."""
        last: dict[str, Event] = {}
        for event in self.events:
            if event.what not in ("sent", "ignored"):
                last[self.named(event.site)] = event
        return {
            name: f"{event.round}: {event.reason}"
            for name, event in last.items()
            if event.what in ("refused", "missing")
        }

    @property
    def bytes_sent(self) -> int:
        """To all sites."""
        return sum(event.bytes for event in self.events if event.what == "sent")

    @property
    def bytes_received(self) -> int:
        """From all sites, whatever became of it."""
        return sum(event.bytes for event in self.events if event.what in ("accepted", "ignored", "refused"))

    def to_json(self) -> str:
        """For the file beside the result."""
        return to_readable_json(
            {"format": FORMAT, "missing": dict(self.missing), "events": [asdict(event) for event in self.events]}
        )
