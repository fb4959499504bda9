"""Sessions that add answers about residuals, by value: all sites of a room and an honest server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import residual_studies
import studies
from masked_studies import Room

from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.client import ResidualPart, SecAggClient, SecAggMember
from fedcdh.privacy.secure_aggregation.messages import Roster, SecAggTerms, SurvivorList
from fedcdh.summaries.residuals import ResidualRequest, ResidualSums, add_answers, answer_residuals


@lru_cache
def a_residual_study(sites: int) -> tuple[Study, dict[str, SigningKey], Any, studies.Tables]:
    tables = residual_studies.tables([60 + k for k in range(sites)])
    cohort = residual_studies.cohort_of(tables, residual_studies.plan_of(tables))
    keys = {client: SigningKey.generate() for client in cohort.clients}
    return Study(cohort.plan, keys={client: key.public for client, key in keys.items()}), keys, cohort, tables


@dataclass
class AnswerRoom(Room):
    """A room after its sum of summaries, in which answers to one request are added."""

    tables: studies.Tables | None = None
    before: Mapping[str, SecAggMember | None] | None = None

    @classmethod
    def after_sum(cls, sites: int, **settings: Any) -> AnswerRoom:
        study, keys, cohort, tables = a_residual_study(sites)
        first = Room(study, keys, cohort)
        first.run()
        return cls(study, keys, cohort, tables=tables, before=first.states, **settings)

    @property
    def request(self) -> ResidualRequest:
        return residual_studies.request_for(self.cohort)

    def answers_of(self, client: str) -> tuple[ResidualSums, ...]:
        summary = self.cohort.summaries[self.cohort.clients.index(client)]
        return answer_residuals(self.tables[client], self.cohort.plan, client, self.request, summary)

    def site(self, client: str) -> SecAggClient:
        part = ResidualPart(self.before.get(client), lambda terms: (self.answers_of(client), True))
        return replace(super().site(client), residuals=part)

    def terms(self) -> SecAggTerms:
        return SecAggTerms.of(self.study, threshold=self.threshold, request=self.request)

    def sum(self, roster: Roster, present: SurvivorList) -> Any:
        masked, shares, opened = (self.replies[round_] for round_ in ("masked", "shares", "opened"))
        return self.server.unmask_answers(roster, shares, masked.values(), present, list(opened.values()))

    def plain_answers(self, clients: Any) -> tuple[ResidualSums, ...]:
        return tuple(add_answers(parts) for parts in zip(*map(self.answers_of, clients), strict=True))
