"""Content of a release: its digest, its columns and its cells, as the ledger keeps them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.data.recipe_file import recipe_to_document
from fedcdh.data.recipes import Recipe
from fedcdh.privacy.ledger.record import CLIENTS_KEY, EARLIER_PLANS_KEY, RECIPES_KEY, ReleasedColumn
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


def describe_encoding(plan: StudyPlan, sketcher: RowSketcher, local_names: LocalNames) -> dict[str, Any]:
    """Return what is needed to encode rows by this plan again, with the site's own columns and hashes of the levels."""
    variables = tuple(
        replace(variable, levels=tuple(map(sketcher.hash_text, variable.levels)))
        if isinstance(variable, Categorical)
        else variable
        for variable in plan.variables
    )
    return {
        "plan": replace(plan.numbers, variables=variables).to_json(),
        "columns": {name: local_names.get(name, name) for name in plan.names},
    }


def count_prepared_levels(
    summary: Summary,
    plan: StudyPlan,
    sketcher: RowSketcher,
    local_names: LocalNames,
    values: Mapping[str, Mapping[str, int]],
) -> dict[str, dict[str, int]]:
    """Count the people with each level, or each of few values, of variables that a recipe made.

    Sketches are of the site's own values, so these counts alone show how many people have a level of the study.
    """
    found = {}
    for variable in plan.variables:
        if variable.recipe is None:
            continue
        counts = dict(values.get(variable.name, {}))
        if isinstance(variable, Categorical):
            sums = summary.moments[0, plan.layout.spans[variable.name]] // GRID**2
            counts = dict(zip(variable.levels, sums.tolist(), strict=True))
        own = local_names.get(variable.name, variable.name)
        found[repr(own)] = {sketcher.hash_text(level): count for level, count in counts.items() if count}
    return found


def recorded_recipes(recipes: Mapping[str, Recipe | None], local_names: LocalNames) -> dict[str, dict[str, Any]]:
    """Return the part of a release's details that holds the recipes of its columns, under the site's own names."""
    documents = {local_names.get(name, name): recipe_to_document(one) for name, one in recipes.items() if one}
    return {RECIPES_KEY: documents} if documents else {}


def recorded_clients(plan: StudyPlan, *, masked: bool) -> dict[str, Any]:
    """Return the part of a release's details about the clients of its plan: of what is masked, and of later plans."""
    earlier = sorted(plan.fingerprints - {plan.fingerprint})
    return {
        **({CLIENTS_KEY: hash_document(plan.clients)} if masked else {}),
        **({EARLIER_PLANS_KEY: earlier} if earlier else {}),
    }


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
    return replace(summary, plan=plan.numbers_fingerprint).digest


def hash_answer(answer: JointSummary | ResidualSums) -> str:
    """Return the SHA-256 of the numbers of an answer."""
    if isinstance(answer, ResidualSums):
        return hashlib.sha256(answer.sums.tobytes()).hexdigest()
    return hashlib.sha256(answer.own.tobytes() + answer.cross.tobytes()).hexdigest()
