"""Clients, transports and requests of federated studies in one process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fedcdh.discovery.api import discover_from
from fedcdh.federation import (
    ClientNode,
    InProcessTransport,
    read_site_config,
)
from fedcdh.messages.envelope import (
    PROFILE,
    SUMMARY,
    Envelope,
    ProfileRequest,
    RoundRequest,
    describe_round,
)
from fedcdh.messages.round_files import read_requests, request_to_json
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.joint import JointRequest, LocalAnswerSource
from fedcdh.summaries.joint.round_budget import sets_of
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

UNCONTROLLED = Policy(disclosure_control=False)


HARMLESS = ("repeated",)


ADAPTIVE = {"method": "constraint", "rounds": "adaptive"}


def make_nodes(tables, **given) -> dict[str, ClientNode]:
    return {
        client: ClientNode(client, lambda table=table: table, UNCONTROLLED, **given) for client, table in tables.items()
    }


def ask(site: ClientNode, kind: str, content: bytes, signature: bytes = b"") -> Envelope:
    return Envelope.from_bytes(site.answer(Envelope(kind, content, signature).to_bytes()))


def written(folder: Path) -> str:
    return (folder / "result.json").read_text(encoding="utf-8")


def study_bytes(tables, **given) -> bytes:
    return Study(StudyPlan.from_tables(tables), **given).to_json().encode()


@dataclass
class Breaking(InProcessTransport):
    """A server that is gone when so many replies have come."""

    replies: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)

    def exchange(self, requests, timeout):
        self.asked += [(site, describe_round(Envelope.from_bytes(request))) for site, request in requests.items()]
        for answer in super().exchange(requests, timeout):
            if self.replies == 0:
                raise KeyboardInterrupt
            self.replies -= 1
            yield answer


def result_without(tables, *gone: str) -> str:
    """What tests that ask again find in process, by the plan of all sites, without some of them."""
    plan = replace(StudyPlan.from_tables(tables), max_rounds=20, max_bytes=10_000_000)
    rest = {client: table for client, table in tables.items() if client not in gone}
    cohort = add_up([summarize(table, plan, client) for client, table in rest.items()], plan, without=gone)
    source = LocalAnswerSource(rest, plan, cohort)
    return render_result_json(discover_from(cohort, plan, method="constraint", source=source, rounds="adaptive"))


def requested_sets(folder: Path) -> list[tuple[str, ...]]:
    """Every set that was asked about, as often as it was."""
    plan = Study.from_json((folder / "journal" / "study.plan.json").read_bytes()).plan
    return [names for request in read_requests(folder / "journal" / "rounds", plan) for names in sets_of(request)]


CANARY = "canary-7f3a"


def canary_node(
    tmp_path: Path, cells: str = "1", policy: str = "disclosure_control = false", **more: str
) -> ClientNode:
    """A site whose folder, column names, labels and settings hold what must not leave."""
    folder = tmp_path / f"{CANARY} folder"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    rows = "\n".join(f"{a},{b},{cells},{CANARY}" for a, b in rng.standard_normal((120, 2)))
    (folder / f"{CANARY}.csv").write_text(f"{CANARY} a,b,c,{CANARY} d\n{rows}\n", encoding="utf-8")
    (folder / "names.toml").write_text(f'"{CANARY} a" = "a"\n', encoding="utf-8")
    (folder / "policy.toml").write_text(policy, encoding="utf-8")
    lines = {
        "client": '"north"',
        "data": f'"{CANARY}.csv"',
        "column_map": '"names.toml"',
        "policy": '"policy.toml"',
        **more,
    }
    (folder / "site.toml").write_text("\n".join(f"{k} = {v}" for k, v in lines.items()), encoding="utf-8")
    return read_site_config(folder / "site.toml")


def plan_ab(**given) -> bytes:
    return Study(StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), **given)).to_json().encode()


def requests(names: list[str]) -> list[tuple[str, bytes]]:
    return [(PROFILE, ProfileRequest(tuple(names)).to_bytes()), (SUMMARY, plan_ab())]


BUDGET = {"max_rounds": 1, "max_bytes": 10**6}


def round_request(plan: bytes, number: int = 1, sets=(("a", "b"),)) -> bytes:
    request = JointRequest(Study.from_json(plan).plan.fingerprint, number, sets)
    return RoundRequest(request_to_json(request).encode(), plan).to_bytes()


def plan_abc(**given) -> bytes:
    return Study(StudyPlan(tuple(map(Continuous, "abc")), ("north", "south"), **given)).to_json().encode()
