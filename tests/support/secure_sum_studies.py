"""Sessions of secure aggregation for tests."""

from __future__ import annotations

from dataclasses import dataclass

from masked_studies import ROUNDS, Room

from fedcdh.privacy.secure_aggregation.messages import (
    ConfirmedSurvivors,
    Roster,
    ShareDelivery,
    SurvivorList,
)

CLIENTS = tuple(f"site{k}" for k in range(10))


@dataclass
class Course:
    """An honest course of five sites, with all that was said, for a server that says something else to one of them."""

    room: Room
    roster: Roster
    delivery: ShareDelivery | None = None
    present: SurvivorList | None = None
    confirmations: ConfirmedSurvivors | None = None

    @classmethod
    def until(cls, stage: str, sites: int = 5, **settings: object) -> Course:
        room = Room.of(sites, **settings)
        course = cls(room, room.roster())
        if stage in ROUNDS[2:]:
            course.delivery = room.delivery(course.roster)
        if stage in ROUNDS[3:]:
            course.present = room.present(course.roster, course.delivery)
        if stage in ROUNDS[4:]:
            course.confirmations = room.confirmations(course.roster, course.present)
        return course


VICTIM, PEER = "site0", "site3"


def said(course: Course) -> list[object]:
    room = course.room
    course.room.opened(course.roster, course.delivery, course.confirmations)
    replies = [next(iter(room.replies[round_].values())) for round_ in ROUNDS]
    return [course.roster.terms, course.roster, course.delivery, course.present, course.confirmations, *replies]
