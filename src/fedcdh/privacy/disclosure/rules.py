"""Rules of disclosure control: one sentence for each finding in a plan, a profile or a summary.

A sentence says what was found, what is expected, and what to do. The policy of the site (`policy`) sets the limits, and
decides what follows from a finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from fedcdh.privacy.disclosure._findings import Finding
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous

MAX_SCALE_TO_SPREAD = 20.0
"""Largest ratio of a variable's scale to its spread; plans made from profiles stay below 10 by construction."""
MIN_BANDWIDTH = 0.25
"""Smallest bandwidth, in spreads. Below it features isolate values: Hermite ones near the centre, others anywhere."""
MAX_BANDWIDTH = 50.0
"""Largest bandwidth, in spreads. Far above it, features are so flat that rounding turns them into labels."""
MAX_FEATURE_SEED = 100
"""Seeds of random features have to be below this, so that nobody can search for a draw that isolates somebody."""
MAX_CENTRE_DISTANCE = 3.0
"""Largest distance of a variable's centre from its location, in scales."""
_MAX_NAMED = 3  # cells that a refusal names; more have the same cause
_ASK_FIRST = "after asking the person responsible for data protection"


def check_feature_resolution(plan: StudyPlan, max_feature_columns: int) -> Iterator[str]:
    """Find features that are so sharp at one place that they isolate the people there.

    Parameters
    ----------
    plan : StudyPlan
        The plan that a client is asked to follow.
    max_feature_columns : int
        Largest number of feature columns of a continuous variable, besides its value and its square.

    Yields
    ------
    str
        One sentence for each finding.
    """
    for variable in plan.variables:
        if isinstance(variable, Continuous) and plan.family.compresses_tails:
            centre, spread = variable.centre_and_spread
            is_sharp = spread * MAX_SCALE_TO_SPREAD < variable.scale
            if is_sharp or abs(centre - variable.location) > MAX_CENTRE_DISTANCE * variable.scale:
                yield (
                    f"the plan resolves {variable.name!r} finely around {centre:g} (spread {spread:g}, scale "
                    f"{variable.scale:g}), expected a spread of at least scale/{MAX_SCALE_TO_SPREAD:g} near the "
                    "location: this can single out people; ask the coordinator why"
                )
    if not any(isinstance(variable, Continuous) for variable in plan.variables):
        return
    if (bandwidth := plan.family.bandwidth) < MIN_BANDWIDTH:
        yield f"the features have bandwidth {bandwidth:g}, expected at least {MIN_BANDWIDTH:g}; ask the coordinator why"
    if bandwidth > MAX_BANDWIDTH:
        yield f"the features have bandwidth {bandwidth:g}, expected at most {MAX_BANDWIDTH:g}; ask the coordinator why"
    if (width := plan.family.width) > max_feature_columns:
        yield (
            f"a continuous variable has {width} feature columns, expected at most {max_feature_columns}: every column "
            "reveals more about the same values; ask the coordinator for fewer, or set max_feature_columns in "
            f"policy.toml, {_ASK_FIRST}"
        )
    if isinstance(plan.family, Fourier) and plan.family.seed >= MAX_FEATURE_SEED:
        yield (
            f"the random features have the seed {plan.family.seed}, expected one below {MAX_FEATURE_SEED}: among many "
            "seeds one could be found that isolates somebody; ask the coordinator for a small one, or for Hermite "
            "features, which have none"
        )


def check_profile_counts(profile: Profile, min_rows: int, min_cell_count: int) -> Iterator[str]:
    """Find columns with few values, and levels that few people have, which may be names.

    Parameters
    ----------
    profile : Profile
        The profile that is to leave.
    min_rows : int
        Smallest number of rows, and of values of a column.
    min_cell_count : int
        Smallest number of people with a level.

    Yields
    ------
    str
        One sentence for each finding.
    """
    if profile.rows < min_rows:
        yield describe_too_few_rows(profile.rows, min_rows)
    for name, column in profile.columns.items():
        if 0 < column.count < min_rows <= profile.rows:
            yield f"variable {name!r} has {column.count} values, expected none or at least {min_rows}; leave it out"
        for level, count in zip(column.levels, column.counts, strict=True):
            if 0 < count < min_cell_count:
                yield describe_small_cell(f"level {level!r} of {name!r}", count, min_cell_count)


def check_cell_counts(
    summary: Summary, plan: StudyPlan, min_rows: int, min_cell_count: int, min_pair_count: int
) -> Iterator[str]:
    """Find too few rows, levels that few people have, and pairs of levels that few people have.

    The counts are read off the moments exactly, since a product of indicators is 2³⁶ or zero. Pairs of variables whose
    small counts were rounded (`rare_cells`) are not looked at.

    Parameters
    ----------
    summary : Summary
        The summary that is to leave.
    plan : StudyPlan
        The plan that it follows.
    min_rows : int
        Smallest number of rows.
    min_cell_count : int
        Smallest number of people with a level.
    min_pair_count : int
        Smallest number of people with a pair of levels.

    Yields
    ------
    str
        One sentence for each finding.
    """
    spans = plan.layout.spans
    if summary.rows < min_rows:
        yield describe_too_few_rows(summary.rows, min_rows)
    variables = [variable for variable in plan.variables if isinstance(variable, Categorical)]
    for one in variables:
        counts = summary.moments[0, spans[one.name]] // GRID**2
        for level, count in zip(one.levels, counts.tolist(), strict=True):
            if 0 < count < min_cell_count:
                yield describe_small_cell(f"level {level!r} of {one.name!r}", count, min_cell_count)
    for one, other in combinations(variables, 2):
        if (one.name, other.name) in summary.coarsened:
            continue
        cells = summary.moments[spans[one.name], spans[other.name]] // GRID**2
        for i, j in zip(*((cells > 0) & (cells < min_pair_count)).nonzero(), strict=True):
            pair = f"{one.levels[i]!r} of {one.name!r} with {other.levels[j]!r} of {other.name!r}"
            yield describe_small_cell(pair, int(cells[i, j]), min_pair_count)


def check_discrete_values(cells: Mapping[str, int], min_cell_count: int) -> Iterator[str]:
    """Find values of discrete variables that few people have: one sentence for all of them.

    Parameters
    ----------
    cells : mapping from str to int
        Number of people in each cell, from `CellCounter.cells`.
    min_cell_count : int
        Smallest number of people in a cell.

    Yields
    ------
    str
        One sentence, if there is such a cell.
    """
    for cell, count in cells.items():
        if 0 < count < min_cell_count:
            rest = (
                f"expected none or at least {min_cell_count}: a variable with few different values discloses people as "
                "a categorical one does; group values, declare it categorical, leave the variable out, or set "
                f"min_cell_count or max_discrete_values in policy.toml, {_ASK_FIRST}"
            )
            yield Finding(f"{cell} has {count} people, {rest}", f"{cell} has {count} people", f"{{items}}, {rest}")


def find_small_variables(cells: Mapping[str, int], names: Iterable[str], min_cell_count: int) -> set[str]:
    """Return the variables with values that few people have.

    Parameters
    ----------
    cells : mapping from str to int
        Number of people in each cell, from `CellCounter.cells`.
    names : iterable of str
        Names of the variables.
    min_cell_count : int
        Smallest number of people in a cell.

    Returns
    -------
    set of str
        Names of variables.
    """
    small = [cell for cell, count in cells.items() if 0 < count < min_cell_count]
    return {name for name in names if any(f" of {name!r}" in cell for cell in small)}


def check_leverage(leverages: Mapping[str, float], max_leverage: float, n_messages: int) -> Iterator[str]:
    """Find variables in which one row has a high leverage: one sentence for all of them.

    Parameters
    ----------
    leverages : mapping from str to float
        Largest leverage of a row, by variable.
    max_leverage : float
        Largest leverage that a row may have.
    n_messages : int
        Number of messages about the same rows: the summary and its bootstrap replicates.

    Yields
    ------
    str
        One sentence, if there is such a row.
    """
    for name, leverage in leverages.items():
        if leverage > max_leverage:
            error = math.sqrt(max(1 - leverage, 0.0) / (n_messages * leverage))
            advice = (
                "take logarithms, cut extreme values, or leave the variable out (or ask the coordinator why the plan "
                "resolves it so finely there)"
            )
            yield Finding(
                f"one row has a high leverage by its value of {name!r} ({leverage:.4f}, expected at most "
                f"{max_leverage:.4g}): its other values could be computed to within {error:.2g} standard deviations; "
                + advice,
                f"of {name!r} ({leverage:.4f} and {error:.2g})",
                f"single rows have a high leverage by their values {{items}}, expected at most {max_leverage:.4g}: "
                "the second number is the error, in standard deviations, with which their other values could be "
                f"computed; {advice}",
            )


def check_location(summary: Summary, plan: StudyPlan, max_rms_distance: float) -> Iterator[str]:
    """Find continuous variables that lie far from the plan's location: √(Σ z²/n) of the clipped, standardised values.

    Extreme values are clipped, so half the clip is far as well. This detects other units, and a plan whose location and
    scale leave all but a few people outside.

    Parameters
    ----------
    summary : Summary
        The summary that is to leave.
    plan : StudyPlan
        The plan that it follows.
    max_rms_distance : float
        Largest root mean square distance from the location, in scales.

    Yields
    ------
    str
        One sentence for each finding.
    """
    limit = min(max_rms_distance, plan.clip / 2)
    for variable in plan.variables:
        if isinstance(variable, Continuous) and summary.rows:
            square = summary.moments[0, plan.layout.spans[variable.name].start + 1] / summary.moments[0, 0]
            distance = plan.clip * math.sqrt(max(square, 0.0))
            if distance > limit:
                yield (
                    f"variable {variable.name!r} lies {distance:.1f} scales from the plan's location "
                    f"{variable.location:g} (scale {variable.scale:g}), expected at most {limit:g}: are its units "
                    "those of the plan? Convert them, or set max_rms_distance in policy.toml if they are right"
                )


def describe_too_few_rows(found: int, min_rows: int) -> str:
    """Return the finding that a table has too few rows."""
    return (
        f"there are {found} rows, expected at least {min_rows}: from fewer, single rows may be computed; add rows, "
        f"leave variables out of the study, or set min_rows in policy.toml, {_ASK_FIRST}"
    )


def describe_small_cell(what: str, found: int, min_cell_count: int) -> str:
    """Return the finding that a cell has too few people."""
    rest = (
        f"expected none or at least {min_cell_count}; group levels, leave the variable out, or set min_cell_count in "
        f"policy.toml, {_ASK_FIRST}"
    )
    return Finding(f"{what} has {found} people, {rest}", f"{what} has {found} people", f"{{items}}, {rest}")
