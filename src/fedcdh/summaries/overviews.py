"""Plans, profiles and summaries in a few words at a prompt, and as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedcdh._io.text import abbreviate_list
from fedcdh._io.text_tables import escape_html, format_table, render_table_html
from fedcdh.summaries.variables import Categorical

if TYPE_CHECKING:
    from fedcdh.summaries.column_profiles import ColumnProfile
    from fedcdh.summaries.plan import StudyPlan
    from fedcdh.summaries.profiles import Profile
    from fedcdh.summaries.summary import Summary

_FINGERPRINT_DIGITS = 12
_PLAN_HEADS = ("variable", "kind", "#location", "#scale", "levels")
_PROFILE_HEADS = ("variable", "kind", "#values", "#missing", "mean ± sd, or rows per level")
_SUMMARY_HEADS = ("variable", "#missing")


def name_plan(plan: StudyPlan) -> str:
    """Return a plan in one line."""
    fingerprint = plan.fingerprint[:_FINGERPRINT_DIGITS]
    return f"StudyPlan {fingerprint}: {_count(len(plan.names), 'variable')}, {_count(len(plan.clients), 'client')}"


def format_plan(plan: StudyPlan) -> str:
    """Return a plan as text: a row per variable, the clients, and the noise."""
    return "\n".join([name_plan(plan), format_table(_PLAN_HEADS, _plan_rows(plan)), *_plan_sentences(plan)])


def render_plan_html(plan: StudyPlan) -> str:
    """Return a plan as HTML."""
    table = render_table_html(_PLAN_HEADS, _plan_rows(plan), "no variables")
    return _render(name_plan(plan), table, *_plan_sentences(plan))


def name_profile(profile: Profile) -> str:
    """Return a profile in one line."""
    return f"Profile of {profile.client}: {_count(profile.rows, 'row')}, {_count(len(profile.columns), 'column')}"


def format_profile(profile: Profile) -> str:
    """Return a profile as text: a row per column."""
    return "\n".join([name_profile(profile), format_table(_PROFILE_HEADS, _profile_rows(profile))])


def render_profile_html(profile: Profile) -> str:
    """Return a profile as HTML."""
    table = render_table_html(_PROFILE_HEADS, _profile_rows(profile), "no columns")
    return _render(name_profile(profile), table)


def name_summary(summary: Summary) -> str:
    """Return a summary in one line: whose rows, how many, and by which plan."""
    of = abbreviate_list(summary.clients, 3)
    plan, width = summary.plan[:_FINGERPRINT_DIGITS], len(summary.moments)
    rows = f"{summary.rows:,} of {_count(summary.rows_read, 'row')}"
    noise = ", with noise" if summary.noise else ""
    return f"Summary of {of}: {rows}, sums of {width} × {width} products{noise}, plan {plan}"


def format_summary(summary: Summary) -> str:
    """Return a summary as text: its rows, and the missing values of each variable."""
    return "\n".join([name_summary(summary), format_table(_SUMMARY_HEADS, _summary_rows(summary))])


def render_summary_html(summary: Summary) -> str:
    """Return a summary as HTML."""
    table = render_table_html(_SUMMARY_HEADS, _summary_rows(summary), "no variables")
    return _render(name_summary(summary), table)


def _render(title: str, table: str, *sentences: str) -> str:
    rest = "".join(f"<p>{escape_html(sentence)}</p>" for sentence in sentences)
    return f"<div><p>{escape_html(title)}</p>{table}{rest}</div>"


def _plan_rows(plan: StudyPlan) -> Iterator[list[str]]:
    for variable in plan.variables:
        if isinstance(variable, Categorical):
            yield [variable.name, "categorical", "", "", abbreviate_list(variable.levels, 6)]
        else:
            yield [variable.name, "continuous", f"{variable.location:.4g}", f"{variable.scale:.3g}", ""]


def _plan_sentences(plan: StudyPlan) -> Iterator[str]:
    yield f"clients: {abbreviate_list(plan.clients, 10)}"
    if plan.noise is not None:
        yield f"noise: epsilon {plan.noise.epsilon:g}, delta {plan.noise.delta:g}"
    if plan.max_rounds:
        yield f"further rounds: up to {plan.max_rounds}"


def _profile_rows(profile: Profile) -> Iterator[list[str]]:
    for name, column in profile.columns.items():
        yield [name, column.kind, f"{column.count:,}", f"{column.missing:,}", _describe_values(column)]


def _describe_values(column: ColumnProfile) -> str:
    if not column.count:
        return "no values"
    if column.kind == "categorical":
        counted = (f"{level} {count:,}" for level, count in zip(column.levels, column.counts, strict=True))
        return abbreviate_list(counted, 6)
    return f"{column.mean:.4g} ± {column.scale:.3g}"


def _summary_rows(summary: Summary) -> list[list[str]]:
    return [[name, f"{count:,}"] for name, count in summary.missing.items()]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
