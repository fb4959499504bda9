"""Content of a release: its digest, its columns and its cells, as the ledger keeps them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.privacy.ledger.record import ReleasedColumn
from fedcdh.privacy.ledger.row_sketches import RowSketcher, ValueSketch
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import JointSummary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import ResidualSums
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical

LocalNames = Mapping[str, str]
"""From the study's names of variables to the site's own column names, where these differ."""


def released_columns(
    sketches: Mapping[str, ValueSketch],
    local_names: LocalNames,
    loads: Mapping[str, float],
    categorical: Collection[str],
) -> dict[str, ReleasedColumn]:
    """Return the columns of a release under the site's own names."""
    return {
        local_names.get(name, name): ReleasedColumn(sketch, loads.get(name, 0.0), name in categorical)
        for name, sketch in sketches.items()
    }


def count_level_pairs(
    summary: Summary, plan: StudyPlan, sketcher: RowSketcher, local_names: LocalNames
) -> dict[str, dict[str, int]]:
    """Count the people with each pair of levels, under keyed hashes of the levels."""
    spans, found = plan.layout.spans, {}
    variables = [(local_names.get(v.name, v.name), v) for v in plan.variables if isinstance(v, Categorical)]
    variables.sort(key=lambda named: named[0])
    for (one, first), (other, second) in combinations(variables, 2):
        counts = summary.moments[spans[first.name], spans[second.name]] // GRID**2
        found[f"{one!r} and {other!r}"] = {
            sketcher.hash_text(to_canonical_json([first.levels[i], second.levels[j]])): int(counts[i, j])
            for i, j in zip(*counts.nonzero(), strict=True)
        }
    return found


def list_coarsened(summary: Summary, local_names: LocalNames) -> list[list[Any]]:
    """List what is coarser in a summary: variables under the site's own names, and the number of levels or counts."""
    return [[[local_names.get(name, name) for name in names], cells] for names, cells in summary.coarsened.items()]


def categorical_names(plan: StudyPlan) -> frozenset[str]:
    """Return the names of the categorical variables."""
    return frozenset(name for name, kind in plan.kinds.items() if kind == "categorical")


def hash_document(document: Any) -> str:
    """Return the SHA-256 of a document in canonical JSON."""
    return hashlib.sha256(to_canonical_json(document).encode("utf-8")).hexdigest()


def hash_summary(summary: Summary, plan: StudyPlan) -> str:
    """Return a digest that is the same for all plans that look at rows in the same way."""
    canonical_plan = replace(plan, clients=("one",), study="", max_rounds=0, max_bytes=0).fingerprint
    return replace(summary, plan=canonical_plan).digest


def hash_answer(answer: JointSummary | ResidualSums) -> str:
    """Return the SHA-256 of the numbers of an answer."""
    if isinstance(answer, ResidualSums):
        return hashlib.sha256(answer.sums.tobytes()).hexdigest()
    return hashlib.sha256(answer.own.tobytes() + answer.cross.tobytes()).hexdigest()
