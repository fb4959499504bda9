"""Our own engines as methods among others: the same files travel as in a real study, and their bytes are counted.

Profiles go up, the study comes down, summaries go up; the server reads what it got from the bytes alone. Further
rounds are requests that come down and answers that go up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedcdh.data.sources import Kind
from fedcdh.data.table import as_table
from fedcdh.discovery.api import MOST_BYTES, MOST_ROUNDS, discover_from
from fedcdh.discovery.methods import engine_for
from fedcdh.evaluation.baselines.interface import Array, Found, Wire
from fedcdh.messages.profile_file import ProfileMessage, from_text, to_text
from fedcdh.messages.round_files import AnswerMessage, pack_answer, read_request, request_text, unpack_answer
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack, unpack
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import FeatureFamily
from fedcdh.summaries.joint import JointRequest, JointSummary, TablesSource
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile


def ours(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    method: str = "evidence",
    kinds: Mapping[str, Kind] | None = None,
    width: int | None = None,
    alpha: float = 0.05,
    rounds: str = "one",
) -> Found:
    """One of our engines; `width` is the number h of features per variable, `kinds` says which numbers are codes.

    >>> from fedcdh.evaluation.simulation import simulate
    >>> study = simulate(seed=1)
    >>> found = ours(study.tables, study.names)
    >>> found.changing == study.changing, found.traffic.messages_up
    (True, 20)
    """
    own = {client: as_table(table, names) for client, table in tables.items()}
    wire = Wire(len(tables))
    profiles = [
        _sent(wire, to_text(ProfileMessage(profile(table, client, kinds=kinds)))) for client, table in own.items()
    ]
    plan = StudyPlan.from_profiles([from_text(text).profile for text in profiles], family=_family(method, width, seed))
    if rounds == "adaptive":
        plan = replace(plan, most_rounds=MOST_ROUNDS, most_bytes=MOST_BYTES)
    told = Study.from_json(wire.to_clients(_bytes(Study(plan).to_json())).tobytes()).plan
    summaries = [
        _sent(wire, pack(SummaryMessage(summarize(table, told, client)), told)) for client, table in own.items()
    ]
    arrived = [unpack(blob, plan).summary for blob in summaries]
    source = _Asked(TablesSource(own, plan, add_up(arrived, plan)), plan, wire) if rounds == "adaptive" else None
    result = discover_from(arrived, plan, method=method, alpha=alpha, seed=seed, source=source)
    return Found(result.augmented, wire.traffic, result.to_dag())


class _Asked:
    """Further rounds over the wire."""

    def __init__(self, clients: TablesSource, plan: StudyPlan, wire: Wire) -> None:
        self._clients, self._plan, self._wire = clients, plan, wire

    def ask(self, request: JointRequest, /) -> dict[str, tuple[JointSummary, ...]]:
        told = read_request(self._wire.to_clients(_bytes(request_text(request))).tobytes(), self._plan)
        answers = self._clients.ask(told)
        return {client: self._sent(tuple(answer), request) for client, answer in answers.items()}

    def _sent(self, answer: tuple[JointSummary, ...], request: JointRequest) -> tuple[JointSummary, ...]:
        blob = _sent(self._wire, pack_answer(AnswerMessage(request.digest, answer), self._plan))
        return unpack_answer(blob, self._plan, request).answers


def _family(method: str, width: int | None, seed: int) -> FeatureFamily:
    usual = engine_for(method).family(seed)
    return usual if width is None else replace(usual, width=width)


def _sent(wire: Wire, content: str | bytes) -> bytes:
    return wire.to_server(_bytes(content)).tobytes()


def _bytes(content: str | bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.frombuffer(content.encode() if isinstance(content, str) else content, dtype=np.uint8)
