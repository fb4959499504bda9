"""Tables, plans and gates for tests of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import required_rows
from fedcdh.privacy.ledger import (
    ReleaseLedger,
)
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

ROWS = 900


CLIENTS = ("north", "south")


PLAN = StudyPlan((Continuous("a"), Continuous("b"), Continuous("age", 50, 12), Categorical("g", ("x", "y"))), CLIENTS)


NEEDED = required_rows(PLAN)


Columns = dict[str, np.ndarray]


def table(rows: int = ROWS, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    return {
        "a": rng.standard_normal(rows),
        "b": rng.standard_normal(rows),
        "age": np.round(rng.normal(50, 12, rows)),
        "g": rng.choice(["x", "y"], rows),
    }


def at(rows: Mapping[str, np.ndarray], places: object) -> Columns:
    return {name: column[places] for name, column in rows.items()}


def gate_in(folder: Path) -> ReleaseGate:
    return ReleaseGate(ReleaseLedger(folder / "releases.jsonl"))


def sent(rows: object, gate: ReleaseGate, plan: StudyPlan = PLAN, policy: Policy | None = None, **more: object) -> str:
    """What the refusal says; nothing if the summary may leave."""
    try:
        release_summary(rows, plan, ReleaseContext("north", policy or Policy(), gate=gate), **more)
    except DisclosureError as refused:
        return str(refused)
    return ""


def other(turn: int) -> StudyPlan:
    """The same variables seen in another way."""
    return replace(PLAN, variables=(Continuous("a", scale=1 + turn / 50), *PLAN.variables[1:]))


def count(gate: ReleaseGate) -> int:
    return len(gate.ledger.entries())


def told_by(gate: ReleaseGate, plan: StudyPlan) -> RoundBudget:
    return spent_round_budget(gate.ledger.entries(), plan)
