"""Advice on the screen of a site: what must not leave, and the lines of recipes that change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedcdh.cli._console import Output

if TYPE_CHECKING:
    from pathlib import Path

    from fedcdh.federation.planning.declaration import Declaration
    from fedcdh.privacy.advice import Advice
    from fedcdh.privacy.release_context import ReleaseContext
    from fedcdh.summaries.profiles import Profile

Levels = Mapping[str, Sequence[str]]
"""Declared levels of variables."""
MAX_FORETOLD_CELLS = 20_000_000
"""Cells of a table up to which `profile` looks for advice: the table is then in memory."""


def read_declaration(path: Path | None, recipes: list[Path] | None = None) -> Declaration | None:
    """Read a declaration, if there is one, and the recipes that sites ask for."""
    from fedcdh._io.storage import read_regular_file
    from fedcdh.cli._inputs import MAX_SMALL_FILE_BYTES
    from fedcdh.data.recipe_file import Recipes
    from fedcdh.data.recipe_merging import merge_recipes
    from fedcdh.errors import PlanError
    from fedcdh.federation.planning.declaration import Declaration

    declared = None
    if path is not None:
        text = read_regular_file(path, MAX_SMALL_FILE_BYTES, "a declaration", refuse=PlanError)
        declared = Declaration.from_toml(text)
    if not recipes:
        return declared
    declared = declared or Declaration()
    return replace(declared, recipes=merge_recipes([declared.recipes, *map(Recipes.from_file, recipes)]))


def declared_levels(declared: Declaration | None) -> Levels:
    """Return the levels that a declaration lists, which every site knows."""
    variables = () if declared is None else declared.variables
    return {one.name: one.levels for one in variables if one.levels is not None}


def show_advice(out: Output, advice: Advice) -> None:
    """Print what must not leave, and the recipes that change it."""
    if advice.may_leave:
        out.say("By the policy of this site, the summary may leave as it is.")
        return
    out.say("By the policy of this site, the summary must not leave as it is (for this site only, do not forward):")
    out.say(*(f"- {line}" for line in advice.findings), "")
    if not advice.changes:
        out.say("No recipes were found with which it may leave.")
        return
    kept = f"{len(advice.variables)} variable{'s' * (len(advice.variables) != 1)}"
    out.say(f"With these lines in the declaration it may leave, with {kept}. They hold no counts:")
    out.say("", *advice.changes.to_toml().splitlines())


def foretell(out: Output, rows: Any, found: Profile, context: ReleaseContext, levels: Levels) -> None:
    """Print, after a profile, what `fedcdh summarize` would refuse by the policy of the site."""
    if (advice := _try_summary(out, rows, found, context, levels)) is not None:
        out.say("", "Before there is a plan, a summary was tried with this site's own locations, scales and levels.")
        show_advice(out, advice)


def suggest_recipes(out: Output, rows: Any, found: Profile, context: ReleaseContext, levels: Levels) -> None:
    """Print, where a profile is refused, the recipes with which profile and summary may leave, if there are any."""
    advice = _try_summary(out, rows, found, context, levels)
    if advice is not None and advice.changes:
        show_advice(out, advice)


def _try_summary(out: Output, rows: Any, found: Profile, context: ReleaseContext, levels: Levels) -> Advice | None:
    """Return the advice for a summary; None if nobody reads it, or the table is large."""
    from fedcdh.errors import FedCDHError
    from fedcdh.privacy.advice import advise_from_profile

    unread = out.quiet or out.as_json or not context.policy.disclosure_control
    if unread or found.rows * len(found.columns) > MAX_FORETOLD_CELLS:
        return None
    try:
        return advise_from_profile(rows, found, context, levels)
    except FedCDHError as problem:  # the profile itself is not affected
        out.say("", f"A summary of these rows cannot be made: {problem.message}")
        return None


def describe_advice(advice: Advice) -> dict[str, object]:
    """Return the advice for programs."""
    return {
        "may_leave": advice.may_leave,
        "may_leave_with_recipes": not advice.remaining,
        "findings": list(advice.findings),
        "remaining": list(advice.remaining),
        "recipes": advice.changes.to_document(),
        "variables": list(advice.variables),
    }
