"""The record of a federated study: which clients took part, which did not and why, and the size of every message.

A client is known by its address on the network, and by its name once it has sent a profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Literal

from fedcdh._io.text import to_readable_json

FORMAT = "fedcdh-participation-2"
"""Version 2 says whether there is a result, for scripts: `flwr run` ends with 0 also if there is none."""
EventKind = Literal["sent", "accepted", "ignored", "refused", "missing", "stored"]


@dataclass(frozen=True)
class Event:
    """One event with one client in one round, as the coordinator saw it.

    Parameters
    ----------
    time : str
        Time of day in UTC, in ISO 8601.
    round : str
        Name of the round: "profile", "summary", "answer 1", ...
    site : str
        Address of the client.
    client : str
        Name of the client; empty until it is known.
    what : str
        "sent", "accepted", "ignored", "refused", "missing" or "stored".
    bytes : int
        Size of the message.
    reason : str
        Why a message was refused or is missing.

    Examples
    --------
    >>> Event("2030-01-01T12:00:00.000+00:00", "summary", "7", "north", "accepted", 4096).round
    'summary'
    """

    time: str
    round: str
    site: str
    client: str
    what: EventKind
    bytes: int = 0
    reason: str = ""


@dataclass
class Participation:
    """The events of one run of a study, in their order.

    Parameters
    ----------
    events : list of Event
        All events so far.
    clients : dict of str
        Names of clients by address.
    has_result : bool, default False
        Whether the run ended with a result, which is in the same folder.

    Examples
    --------
    >>> participation = Participation(clients={"7": "north"})
    >>> participation.add("summary", "7", "missing", reason="no reply in time")
    >>> participation.missing
    {'north': 'summary: no reply in time'}
    """

    events: list[Event] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)
    has_result: bool = False

    def add(self, round_: str, address: str, what: EventKind, size: int = 0, reason: str = "") -> None:
        """Add an event with the present time.

        Parameters
        ----------
        round_ : str
            Name of the round.
        address : str
            Address of the client.
        what : str
            Kind of the event.
        size : int, default 0
            Size of the message in bytes.
        reason : str, optional
            Why a message was refused or is missing.
        """
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.events.append(Event(time, round_, address, self.clients.get(address, ""), what, size, reason))

    @property
    def missing(self) -> Mapping[str, str]:
        """Return the clients that are not in the result, with the reason."""
        last: dict[str, Event] = {}
        for event in self.events:
            if event.what not in ("sent", "ignored"):
                last[self.clients.get(event.site, event.site)] = event
        return {
            name: f"{event.round}: {event.reason}"
            for name, event in last.items()
            if event.what in ("refused", "missing")
        }

    @property
    def bytes_sent(self) -> int:
        """Return the bytes sent to all clients."""
        return sum(event.bytes for event in self.events if event.what == "sent")

    @property
    def bytes_received(self) -> int:
        """Return the bytes received from all clients, refused messages included."""
        return sum(event.bytes for event in self.events if event.what in ("accepted", "ignored", "refused"))

    def to_json(self) -> str:
        """Return the text of participation.json.

        Returns
        -------
        str
            Whether there is a result, the missing clients, and all events.
        """
        return to_readable_json(
            {
                "format": FORMAT,
                "has_result": self.has_result,
                "missing": dict(self.missing),
                "events": [asdict(event) for event in self.events],
            }
        )
