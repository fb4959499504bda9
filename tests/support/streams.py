"""Summary files of seven clients to add up, and the sum to compare with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fedcdh.cli import main
from fedcdh.cli._summaries import SummaryReader
from fedcdh.federation.streaming.aggregate_files import AggregationReport, StreamingAggregation
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, pack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries
from fedcdh.summaries.variables import Categorical, Continuous

CLIENTS = tuple(f"site {letter}" for letter in "abcdefg")


PLAN = StudyPlan((Continuous("x"), Categorical("g", ("no", "yes")), Continuous("y", 0.0, 2.0)), CLIENTS)


KEYS = {client: SigningKey.generate() for client in CLIENTS[:3]}


STUDY = Study(PLAN, keys={client: key.public for client, key in KEYS.items()})


def summary_of(client: str, plan: StudyPlan = PLAN, seed: int = 0, rows: int = 60) -> Summary:
    rng = np.random.default_rng([seed, CLIENTS.index(client)])
    x = rng.standard_normal(rows)
    table = {"x": x, "g": np.where(rng.random(rows) < 0.4, "yes", "no"), "y": np.sin(x) + rng.standard_normal(rows)}
    table["y"][rng.random(rows) < 0.1] = np.nan
    return summarize(table, plan, client)


SUMMARIES = {client: summary_of(client) for client in CLIENTS}


def write(folder: Path, client: str, summary: Summary | None = None, name: str = "", **said: object) -> Path:
    """The file of a client's summary, and its signature where the plan asks for one."""
    content = pack_summary(SummaryMessage(summary or SUMMARIES[client], **said), PLAN)
    folder.mkdir(exist_ok=True)
    path = folder / f"{name or client}.summary"
    path.write_bytes(content)
    if client in KEYS:
        path.with_name(f"{path.name}.sig").write_text(sign(KEYS[client], "summary", content), encoding="utf-8")
    return path


def more_rows(summary: Summary) -> Summary:
    """Half as many rows again as there are, which no values in the plan's range explain."""
    moments = summary.moments.copy()
    moments[0, 0] += summary.rows // 2 * GRID**2
    return replace(summary, moments=moments, rows_read=summary.rows_read + summary.rows // 2)


def files(inbox: Path) -> list[Path]:
    return sorted((inbox / "sent").glob("*.summary"))


def take(adding: StreamingAggregation, paths: list[Path]) -> AggregationReport:
    return adding.add_files(paths, max_summary_bytes(PLAN), SummaryReader(STUDY).unpack)


def all_at_once(groups: dict[str, str] | None = None) -> Aggregate:
    return Aggregate.of(admit_summaries(SUMMARIES.values(), PLAN), groups)


def same(first: Aggregate, second: Aggregate) -> bool:
    return (
        first.total == second.total
        and first.groups == second.groups
        and np.array_equal(first.first_moments, second.first_moments)
    )


def add(inbox: Path, target: Path, *more: object) -> int:
    sent = () if more and isinstance(more[0], Path) else (inbox / "sent",)
    return main(["aggregate", str(inbox / "study.plan.json"), *map(str, (*sent, *more)), "-o", str(target)])
