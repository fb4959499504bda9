"""What can be wrong, for the people in the rows, with a plan, a profile or a summary: one sentence for each finding.

A sentence says what was found, what is expected, and what can be done. Which figures are expected is up to the policy
of the site (`policy`), which also decides what follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

MAX_SCALE_TO_SPREAD = 20.0
"""Spread may be so many times smaller than scale; plans made from profiles stay below 10 by construction."""
MIN_BANDWIDTH = 0.25
"""Bandwidth, in spreads, below which features single out values: Hermite ones near the centre, others anywhere."""
MAX_FEATURE_SEED = 100
"""Of random features: who may choose among a hundred draws cannot look for one that shows somebody."""
_ASK_FIRST = "after asking who is responsible for data protection"


def check_feature_resolution(plan: StudyPlan, max_feature_columns: int) -> Iterator[str]:
    """Features that are sharp at one place tell who is there: a plan can be a magnifying glass on one person."""
    for variable in plan.variables:
        if isinstance(variable, Continuous) and plan.family.compresses_tails:
            centre, spread = variable.centre_and_spread
            if spread * MAX_SCALE_TO_SPREAD < variable.scale or abs(centre - variable.location) > 3 * variable.scale:
                yield (
                    f"the plan looks closely at {variable.name!r} around {centre:g} (spread {spread:g}, scale "
                    f"{variable.scale:g}; expected a spread of at least scale/{MAX_SCALE_TO_SPREAD:g} near the location): "
                    "this can single out people; ask the coordinator why"
                )
    if not any(isinstance(variable, Continuous) for variable in plan.variables):
        return
    if (bandwidth := plan.family.bandwidth) < MIN_BANDWIDTH:
        yield f"the features have bandwidth {bandwidth:g}, expected at least {MIN_BANDWIDTH:g}; ask the coordinator why"
    if (width := plan.family.width) > max_feature_columns:
        yield (
            f"a number has {width} feature columns, expected at most {max_feature_columns}: every column asks more about "
            f"the same values; ask the coordinator for fewer, or set widest in policy.toml, {_ASK_FIRST}"
        )
    if isinstance(plan.family, Fourier) and plan.family.seed >= MAX_FEATURE_SEED:
        yield (
            f"the random features have the seed {plan.family.seed}, expected one below {MAX_FEATURE_SEED}: among many seeds, "
            "one could be looked for that shows somebody; ask the coordinator for a small one, or for Hermite "
            "features, which have none"
        )


def check_profile_counts(profile: Profile, rows: int, least: int) -> Iterator[str]:
    """Few values, and labels that few people have: they may be names."""
    if profile.rows < rows:
        yield describe_too_few_rows(profile.rows, rows)
    for name, column in profile.columns.items():
        if 0 < column.count < rows <= profile.rows:
            yield f"variable {name!r} has {column.count} values, expected none or at least {rows}; leave it out"
        for level, count in zip(column.levels, column.counts, strict=True):
            if 0 < count < least:
                yield describe_small_cell(f"level {level!r} of {name!r}", count, least)


def check_cell_counts(summary: Summary, plan: StudyPlan, rows: int, least: int) -> Iterator[str]:
    """Counts are read off the moments exactly: a product of indicators is 2³⁶ or nothing."""
    spans = plan.spans()
    if summary.rows < rows:
        yield describe_too_few_rows(summary.rows, rows)
    labels = [variable for variable in plan.variables if isinstance(variable, Categorical)]
    for one in labels:
        counts = summary.moments[0, spans[one.name]] // GRID**2
        for level, count in zip(one.levels, counts.tolist(), strict=True):
            if 0 < count < least:
                yield describe_small_cell(f"level {level!r} of {one.name!r}", count, least)
    for one, other in combinations(labels, 2):
        cells = summary.moments[spans[one.name], spans[other.name]] // GRID**2
        for i, j in zip(*((cells > 0) & (cells < least)).nonzero(), strict=True):
            pair = f"{one.levels[i]!r} of {one.name!r} with {other.levels[j]!r} of {other.name!r}"
            yield describe_small_cell(pair, int(cells[i, j]), least)


def check_discrete_values(cells: Mapping[str, int], least: int) -> Iterator[str]:
    """People with a value of a number that has few different ones."""
    for cell, count in cells.items():
        if 0 < count < least:
            yield (
                f"{cell} has {count} people, expected none or at least {least}: a number of few different values "
                "tells like a label; group values, declare it categorical, leave the variable out, or set "
                f"min_cell_count or few_values in policy.toml, {_ASK_FIRST}"
            )


def check_leverage(known: Mapping[str, float], max_leverage: float, n_messages: int) -> Iterator[str]:
    """Rows that stand out by one value, in so many messages about the same rows."""
    for name, leverage in known.items():
        if leverage > max_leverage:
            error = math.sqrt(max(1 - leverage, 0.0) / (n_messages * leverage))
            yield (
                f"one row stands out by its value of {name!r} (leverage {leverage:.4f}, expected at most "
                f"{max_leverage:.4g}): its other values could be computed to within {error:.2g} standard "
                "deviations; take logarithms, cut extreme values, or leave the variable out (or ask the "
                "coordinator why the plan looks so closely there)"
            )


def check_location(summary: Summary, plan: StudyPlan, max_rms_distance: float) -> Iterator[str]:
    """√(Σ z²/n) of the standardised, clipped values, from the square column.

    Values far off are cut, so half the clip is far as well. Other units are found here, and a plan whose location
    and scale leave all but a few people outside.
    """
    limit = min(max_rms_distance, plan.clip / 2)
    for variable in plan.variables:
        if isinstance(variable, Continuous) and summary.rows:
            square = summary.moments[0, plan.spans()[variable.name].start + 1] / summary.moments[0, 0]
            distance = plan.clip * math.sqrt(max(square, 0.0))
            if distance > limit:
                yield (
                    f"variable {variable.name!r} lies {distance:.1f} scales from the plan's location "
                    f"{variable.location:g} (scale {variable.scale:g}), expected at most {limit:g}: are its units "
                    "those of the plan? Convert them, or set farthest in policy.toml if it is truly so"
                )


def describe_too_few_rows(found: int, least: int) -> str:
    """A table that could be computed from its summary."""
    return (
        f"there are {found} rows, expected at least {least}: from fewer, single rows may be computed; add rows, leave "
        f"variables out of the study, or set min_rows in policy.toml, {_ASK_FIRST}"
    )


def describe_small_cell(what: str, found: int, least: int) -> str:
    """Some people who would not be hidden among others."""
    return (
        f"{what} has {found} people, expected none or at least {least}; group levels, leave the variable out, or set "
        f"min_cell_count in policy.toml, {_ASK_FIRST}"
    )
