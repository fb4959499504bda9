"""`fedcdh effect`: how much one variable affects another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, PlanKey, Quiet
from fedcdh.errors import DataError, SettingsError

if TYPE_CHECKING:
    from fedcdh.discovery.effect import Effect
    from fedcdh.summaries.aggregation import Aggregate, Cohort


@report_errors
def effect_command(
    result: Annotated[Path, typer.Argument(help="Folder of a result, or its result.json.", metavar="RESULT")],
    summaries: Annotated[
        list[Path] | None,
        typer.Argument(help="Summaries of all clients, or one sum; they need --plan.", metavar="[SUMMARY...]"),
    ] = None,
    cause: Annotated[str | None, typer.Option(help="The variable that is changed.", metavar="NAME")] = None,
    outcome: Annotated[str | None, typer.Option(help="The variable that is affected.", metavar="NAME")] = None,
    plan: Annotated[Path | None, typer.Option(help="Plan of the study, with summaries.", metavar="PLAN")] = None,
    kind: Annotated[str, typer.Option(help="Kind of effect: total or direct.", metavar="KIND")] = "total",
    adjust: Annotated[
        str, typer.Option(help="Adjustment set: auto, parents, optimal, or names with commas.", metavar="SET")
    ] = "auto",
    contrast: Annotated[str | None, typer.Option(help="Two levels of a categorical cause.", metavar="FROM,TO")] = None,
    outcome_level: Annotated[str | None, typer.Option(help="Level of a categorical outcome.", metavar="LEVEL")] = None,
    plan_key: PlanKey = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show how much one variable affects another.

    The folder of a result has what the sites find together. What each site finds, and other adjustment sets, need the
    summaries; so do --kind, --adjust, --contrast and --outcome-level. The graph is that of the result. Without --cause
    and --outcome, all effects are listed.

    For example:

      fedcdh effect result/ --cause treated --outcome stay

      fedcdh effect result/ --plan study.plan.json *.summary --cause treated --outcome stay --adjust age,stage
    """
    from fedcdh.reporting.effect_records import effect_from_dict, effect_to_dict
    from fedcdh.reporting.html import read_document

    out = Output(quiet, as_json)
    document = read_document(result)
    _check_names(document, cause, outcome)
    if summaries:
        if cause is None or outcome is None:
            raise SettingsError("Summaries came without --cause and --outcome. Name two variables.")
        cohort = _read_cohort(summaries, plan, plan_key, document, out)
        options = {"kind": kind, "adjust": _split_names(adjust), "outcome_level": outcome_level}
        found = _estimate(cohort, document, cause, outcome, options, contrast)
        out.say(str(found))
        out.result(effect_to_dict(found))
        return
    _refuse_choices(
        plan,
        {
            "--kind": kind != "total",
            "--adjust": adjust != "auto",
            "--contrast": contrast is not None,
            "--outcome-level": outcome_level is not None,
        },
    )
    records = _find_records(document, cause, outcome)
    effects = [effect_from_dict(record) for record in records]
    if cause is not None and outcome is not None:
        _show(out, document, effects, cause, outcome)
    else:
        _list(out, effects)
    out.result({"effects": records})


def _show(out: Output, document: dict[str, Any], effects: list[Effect], cause: str, outcome: str) -> None:
    """Print the effects of one pair, and how to learn more."""
    for effect in effects:
        out.say(str(effect))
    if not effects:
        out.say(
            f"total effect of {cause} on {outcome}: 0, because the graph has no directed path from {cause} to {outcome}"
        )
    elif len(document["clients"]) > 1 and any(effect.pooling and not effect.by_client for effect in effects):
        out.say("What each site finds is not in the result; pass the plan and the summaries to see it.")


def _list(out: Output, effects: list[Effect]) -> None:
    """Print a table of effects."""
    from fedcdh.discovery.effect_text import describe_unidentified, name_ends

    rows = []
    for effect in effects:
        low, high = effect.interval or (None, None)
        state = "" if effect.identifiable else describe_unidentified(effect)
        rows.append((*name_ends(effect), effect.value, low, high, effect.standardised, state))
    if rows:
        out.table(("cause", "outcome", "effect", "low", "high", "in standard deviations", "note"), rows)
    out.say("" if rows else "The graph connects no such variables: all these effects are 0.")


def _check_names(document: dict[str, Any], *names: str | None) -> None:
    for name in names:
        if name is not None and name not in document["variables"]:
            raise SettingsError(
                f"The result has no variable {name!r}. Choose among {abbreviate_list(document['variables'])}."
            )
    if names[0] is not None and names[0] == names[1]:
        raise SettingsError(f"Cause and outcome are both {names[0]!r}. Name two different variables.")


def _find_records(document: dict[str, Any], cause: str | None, outcome: str | None) -> list[dict[str, Any]]:
    records = document.get("effects")
    if records is None:
        raise DataError("This result has no effects, because its summaries have noise, which moves every slope.")
    return [record for record in records if cause in (None, record["cause"]) and outcome in (None, record["outcome"])]


def _refuse_choices(plan: Path | None, given: dict[str, bool]) -> None:
    named = [option for option, there in given.items() if there]
    if plan is not None or named:
        raise SettingsError(
            f"{', '.join(named) or '--plan'} came without summaries. The result alone has total effects with the "
            "default adjustment set. Pass --plan and the summaries as well."
        )


def _split_names(adjust: str) -> str | list[str]:
    return adjust if adjust in ("auto", "parents", "optimal") else [name.strip() for name in adjust.split(",") if name]


def _read_cohort(
    summaries: list[Path], plan: Path | None, plan_key: str | None, document: dict[str, Any], out: Output
) -> Cohort | Aggregate:
    """Return the summaries, which must be those of the result."""
    from fedcdh.cli._inputs import expand_paths, read_trusted_study
    from fedcdh.cli._summaries import SUMMARY_PATTERN
    from fedcdh.cli.discover import read_received
    from fedcdh.messages.aggregate_file import AggregateMessage

    if plan is None:
        raise SettingsError("Summaries came without a plan. Pass it with --plan.")
    study = read_trusted_study(plan, plan_key, out)
    if study.plan.fingerprint != document["plan"]:
        raise DataError("The result was found by another plan. Pass the plan of the result.")
    received, _, _ = read_received(expand_paths(summaries, SUMMARY_PATTERN), study, out)
    return received.aggregate if isinstance(received, AggregateMessage) else received


def _read_probabilities(document: dict[str, Any]) -> dict[tuple[str, str], float] | None:
    """Return the probabilities of arrows in a result; None for searches by tests."""
    found = {}
    for edge in document["edges"]:
        whole, forward = edge.get("probability"), edge.get("probability_forward")
        if whole is None or forward is None:
            return None
        found[edge["source"], edge["target"]] = forward
        found[edge["target"], edge["source"]] = max(0.0, whole - forward)
    return found


def _estimate(
    cohort: Cohort | Aggregate,
    document: dict[str, Any],
    cause: str,
    outcome: str,
    options: dict[str, Any],
    contrast: str | None,
) -> Effect:
    """Return an effect by the graph of the result."""
    from fedcdh.discovery.effect_estimation import estimate_effect
    from fedcdh.graphs.knowledge import Knowledge
    from fedcdh.graphs.partial_graph import PartialGraph

    arrows, lines = document["graph"]["arrows"], document["graph"]["lines"]
    graph = PartialGraph(tuple(document["variables"]), frozenset(map(tuple, arrows)), frozenset(map(frozenset, lines)))
    known = document["settings"]["knowledge"]
    knowledge = Knowledge(
        [tuple(arrow) for arrow in known["required"]],
        [tuple(arrow) for arrow in known["forbidden"]],
        known["tiers"],
        known.get("forbid_within_tier", ()),
    )
    levels = None if contrast is None else tuple(contrast.split(","))
    return estimate_effect(
        cohort,
        graph,
        cause,
        outcome,
        contrast=levels,  # type: ignore[arg-type]  # its length is checked there
        changing=document["changing"],
        knowledge=knowledge,
        probabilities=_read_probabilities(document),
        **options,
    )
