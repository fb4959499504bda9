"""Our own methods in the form of baselines: the same files travel as in a real study, and their bytes are counted.

Profiles go up, the study comes down, and summaries go up. The server reads what it received from the bytes alone. In
further rounds, requests come down and answers go up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import to_table
from fedcdh.discovery.api import MAX_BYTES, MAX_ROUNDS, discover_from
from fedcdh.discovery.methods import get_method, resolve_rounds
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.messages.answer_file import AnswerMessage, pack_answer, unpack_answer
from fedcdh.messages.profile_file import ProfileMessage, profile_from_json, profile_to_json
from fedcdh.messages.round_files import request_from_json, request_to_json
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import FeatureFamily
from fedcdh.summaries.joint import JointRequest, JointSummary, LocalAnswerSource
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums, restrict_request


def run_fedcdh(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    method: str = "evidence",
    kinds: Mapping[str, ColumnKind] | None = None,
    width: int | None = None,
    alpha: float = 0.05,
    rounds: str = "auto",
) -> BaselineResult:
    """Run one of our methods as `discover` does; other settings hold where they are given.

    `width` is the number h of features per variable, and `kinds` says which numbers are codes.

    >>> from fedcdh.evaluation.simulation import simulate
    >>> study = simulate(seed=1)
    >>> found = run_fedcdh(study.tables, study.names)
    >>> found.changing == study.changing, found.traffic.messages_up
    (True, 40)
    """
    rounds = resolve_rounds(rounds, method, variables=len(names))
    own = {client: to_table(table, names) for client, table in tables.items()}
    channel = CountingChannel(len(tables))
    profiles = [
        _send(channel, profile_to_json(ProfileMessage(profile(table, client, kinds=kinds))))
        for client, table in own.items()
    ]
    plan = StudyPlan.from_profiles(
        [profile_from_json(text).profile for text in profiles],
        family=_choose_family(method, width, seed),
        accept_differences=names,
    )
    if rounds != "one":
        plan = replace(plan, max_rounds=MAX_ROUNDS, max_bytes=MAX_BYTES)
    received = Study.from_json(channel.to_clients(_to_bytes(Study(plan).to_json())).tobytes()).plan
    summaries = [
        _send(channel, pack_summary(SummaryMessage(summarize(table, received, client)), received))
        for client, table in own.items()
    ]
    arrived = [unpack_summary(blob, plan).summary for blob in summaries]
    source = (
        _CountedRounds(LocalAnswerSource(own, plan, add_up(arrived, plan)), plan, channel) if rounds != "one" else None
    )
    result = discover_from(arrived, plan, method=method, alpha=alpha, seed=seed, source=source, rounds=rounds)
    return BaselineResult(result.augmented, channel.traffic, result.to_dag())


class _CountedRounds:
    """Further rounds over the channel that counts."""

    def __init__(self, clients: LocalAnswerSource, plan: StudyPlan, channel: CountingChannel) -> None:
        self._clients, self._plan, self._channel = clients, plan, channel

    def ask(self, request: JointRequest, /) -> dict[str, tuple[JointSummary, ...]]:
        """Return the answers of all clients about joint features."""
        self._send_request(request)
        answers = self._clients.ask(request)
        return {client: self._sent(client, tuple(answer), request) for client, answer in answers.items()}

    def ask_residuals(self, request: ResidualRequest, /) -> dict[str, tuple[ResidualSums, ...]]:
        """Return the answers of all clients about residuals."""
        self._send_request(request)
        answers = self._clients.ask_residuals(request)
        return {client: self._sent(client, tuple(answer), request) for client, answer in answers.items()}

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that the plan allows, in the order of priority."""
        return self._clients.select_affordable(queries, coordinates)

    def _send_request(self, request: FurtherRequest) -> None:
        text = self._channel.to_clients(_to_bytes(request_to_json(request))).tobytes()
        assert request_from_json(text, self._plan) == request

    def _sent(self, client: str, answer: tuple[Any, ...], request: FurtherRequest) -> tuple[Any, ...]:
        """Return the answers as they arrive; queries beyond the limits of the plan are left out of both files."""
        if not answer:
            return ()
        if isinstance(request, ResidualRequest):
            request = restrict_request(request, [one.query for one in answer], request.number)
        blob = _send(self._channel, pack_answer(AnswerMessage(request.digest, client, answer), self._plan))
        return unpack_answer(blob, self._plan, request).answers


def _choose_family(method: str, width: int | None, seed: int) -> FeatureFamily:
    usual = get_method(method).family(seed)
    return usual if width is None else replace(usual, width=width)


def _send(channel: CountingChannel, content: str | bytes) -> bytes:
    return channel.to_server(_to_bytes(content)).tobytes()


def _to_bytes(content: str | bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.frombuffer(content.encode() if isinstance(content, str) else content, dtype=np.uint8)
