"""Plans, profiles, summaries, sums, requests and answers in plain words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedcdh._io.storage import write_atomically
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import read_study
from fedcdh.cli._keys import describe_signature, find_signer
from fedcdh.data.recipes import describe_recipe
from fedcdh.errors import FedCDHError, PlanMismatchError, SettingsError
from fedcdh.messages.aggregate_file import AggregateMessage, read_plan_fingerprint, unpack_aggregate
from fedcdh.messages.answer_file import RESIDUAL_ANSWER_FORMAT, read_answer_header
from fedcdh.messages.profile_file import profile_from_json
from fedcdh.messages.round_files import read_request
from fedcdh.messages.signing import key_fingerprint
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import read_summary_header, unpack_summary
from fedcdh.messages.summary_header import SummaryHeader
from fedcdh.summaries.client_changes import find_left_clients
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.descriptives import descriptive_statistics, level_counts, summary_to_csv
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO, PRODUCT_STEPS
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.opened_by_sums import describe_opened, describe_opened_mixtures
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.residuals import ResidualQuery
from fedcdh.summaries.summary import Summary, describe_coarsened
from fedcdh.summaries.validation import validate_summary
from fedcdh.summaries.variables import Categorical

SUM_NOISE_RATIO = CONSTANT_VARIANCE_RATIO**0.5
MAX_SHOWN = 20
"""Clients or groups of a sum that are shown one by one."""


def describe_plan(out: Output, file: Path, content: bytes) -> None:
    """Describe the plan in a file."""
    study, signer = Study.from_json(content), find_signer(file, content, "plan")
    show_plan(out, study)
    out.say(_sentence(describe_signature(signer)))
    out.result({"kind": "plan", "fingerprint": study.plan.fingerprint, "signed_by": signer})


def show_plan(out: Output, study: Study) -> None:
    """Print variables, clients, prior knowledge and noise of a plan."""
    rows = [
        (variable.name, "categorical", None, None, ", ".join(variable.levels))
        if isinstance(variable, Categorical)
        else (variable.name, "continuous", variable.location, variable.scale, "")
        for variable in study.plan.variables
    ]
    out.table(("variable", "kind", "location", "scale", "levels"), rows)
    show_recipes(out, study.plan)
    keys = {client: f" (key {key_fingerprint(key)})" for client, key in study.keys.items()}
    out.say("", f"Clients: {abbreviate_list(client + keys.get(client, '') for client in study.plan.clients)}.")
    if left := find_left_clients(study.plan):
        out.say(f"Left the study: {abbreviate_list(left)}.")
    known = study.knowledge
    if known.required or known.forbidden or known.tiers:
        out.say("Prior knowledge:")
        out.say(*(f"  {tail} causes {head}" for tail, head in sorted(known.required)))
        out.say(*(f"  {tail} does not cause {head}" for tail, head in sorted(known.forbidden)))
        out.say(*(f"  tier {number}: {', '.join(tier)}" for number, tier in enumerate(known.tiers)))
    if (noise := study.plan.noise) is not None:
        who = "every site" if not noise.distributed else f"all sites together, {noise.honest} of them honestly"
        out.say(f"Noise: epsilon {noise.epsilon:g}, delta {noise.delta:g}, added by {who}.")
    if study.plan.missing == "impute":
        out.say("Missing values: a site draws a value for each, by a model of its own rows; tests count fewer rows.")
    if study.plan.max_rounds:
        out.say(
            f"Further rounds: a site answers up to {study.plan.max_rounds} requests after its summary, with "
            f"{study.plan.max_bytes} bytes in all."
        )
    out.say(f"Plan {study.plan.fingerprint}" + (f", study {study.plan.study}" if study.plan.study else ""))


def show_recipes(out: Output, plan: StudyPlan) -> None:
    """Print what every site does with its columns first."""
    if plan.recipes:
        out.say("", "Every site first changes these columns:")
        out.say(*(f"  {name}: {describe_recipe(recipe)}" for name, recipe in plan.recipes.items()))
    if plan.excluded:
        out.say(f"Excluded: {', '.join(plan.excluded)}.")


def describe_profile(out: Output, file: Path, content: bytes) -> None:
    """Describe the profile in a file."""
    message, signer = profile_from_json(content), find_signer(file, content, "profile")
    found = message.profile
    out.say(f"The profile of client {found.client}: {found.rows} rows. It reveals, for every column:")
    rows = [(name, c.kind, c.count, c.missing, _describe_column(c)) for name, c in found.columns.items()]
    heads = ("variable", "kind", "values", "missing", "mean ± sd [5 % 25 % 50 % 75 % 95 %], or rows per level")
    out.table(heads, rows)
    for line in describe_shares(found):
        out.say(line)
    for name, column in found.columns.items():
        if column.recipe is not None:
            out.say(f"{name} was changed before: {describe_recipe(column.recipe)}.")
    out.say(_sentence(describe_signature(signer)))
    out.result({"kind": "profile", "client": found.client, "rows": found.rows, "signed_by": signer})


def describe_shares(found: Profile) -> Iterator[str]:
    """Yield a line for every column of which neighbouring rows depend on each other."""
    for name, column in found.columns.items():
        if column.shares_below_one:
            correlations, means = f"{100 * column.product_share:.3g} %", f"{100 * column.mean_share:.3g} %"
            yield f"Rows of {name} depend on each other: {correlations} count for correlations, {means} for means."


def describe_request(out: Output, file: Path, content: bytes) -> None:
    """Describe what a request asks a site for."""
    request, signer = read_request(content), find_signer(file, content, "request")
    if isinstance(request, JointRequest):
        asked = "sums of products of functions of several variables"
        rows = [(", ".join(names), "joint features") for names in request.sets]
    else:
        asked = "sums of bounded functions of the residuals of regressions"
        rows = [(_describe_regression(query), query.about) for query in request.queries]
    out.say(f"{file} is request {request.number} of the coordinator. It asks a site for {asked}:")
    out.table(("variables", "about"), rows)
    out.say(f"It follows the plan {request.plan[:12]} and is {describe_signature(signer)}.")
    out.result({"kind": "request", "number": request.number, "plan": request.plan, "parts": len(rows)})


def _describe_regression(query: ResidualQuery) -> str:
    given = f" given {', '.join(query.parents)}" if query.parents else ""
    adapted = ", adapted to the site" if query.differs else ""
    product = f" and the product of {' and '.join(query.product)}" if query.product else ""
    return f"{'normal score of ' if query.scored else ''}{query.node}{given}{product}{adapted}"


def describe_answer(out: Output, file: Path, content: bytes) -> None:
    """Describe the header of an answer; its request says what the sums are."""
    header, signer = read_answer_header(content), find_signer(file, content, "answer")
    what = "residuals" if header["format"] == RESIDUAL_ANSWER_FORMAT else "joint features"
    out.say(
        f"{file} is an answer of client {header['client']} about {what}, {len(content)} bytes, made by "
        f"{header['software']}: sums over {header['rows']} rows.",
        f"It follows the plan {header['plan'][:12]} and is {describe_signature(signer)}.",
        f"Its request ({header['request'][:12]}) says what the sums are: fedcdh inspect request-....json",
    )
    if not header["disclosure_control"]:
        out.say("It was made without disclosure control.")
    out.result({**header, "kind": "answer", "bytes": len(content), "signed_by": signer})


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _describe_column(column: ColumnProfile) -> str:
    if not column.count:
        return "no values"
    if column.kind == "categorical":
        return _format_counts(dict(zip(column.levels, column.counts, strict=True)))
    return f"{column.mean:.4g} ± {column.scale:.3g} [{' '.join(f'{value:.4g}' for value in column.quantiles)}]"


def describe_summary(out: Output, file: Path, content: bytes, plan: Path | None, numbers: Path | None) -> None:
    """Describe the summary in a file; with its plan, also what its sums mean."""
    header, signer = read_summary_header(content), find_signer(file, content, "summary")
    _show_header(out, file, header, len(content), signer)
    study = _find_study(file, header.plan, plan)
    if study is not None:
        found = study.plan
        summary = unpack_summary(content, found).summary
        validate_summary(summary, found)
        if signer != (expected := study.keys.get(header.client, signer)) and expected is not None:
            out.warn(
                f"the plan names the key {key_fingerprint(expected)} for {header.client}: discover will refuse this"
            )
        _show_statistics(out, summary, found, "this client")
        if numbers is not None:
            _write_numbers(numbers, summary_to_csv(summary, found))
            out.say("", f"Every number of it is in {numbers}")
    elif numbers is not None:
        raise PlanMismatchError(
            "The plan of this summary was not found, and it says what the numbers mean. Name it with --plan."
        )
    else:
        out.say("", "The plan says what the sums mean. Name it with --plan to see means, deviations and counts.")
    out.result({**_to_document(header), "kind": "summary", "bytes": len(content), "signed_by": signer})


def describe_aggregate(out: Output, file: Path, content: bytes, plan: Path | None, numbers: Path | None) -> None:
    """Describe the sum in a file."""
    signer = find_signer(file, content, "aggregate")
    study = _find_study(file, read_plan_fingerprint(content), plan)
    if study is None:
        raise PlanMismatchError(
            "This is a sum of summaries, and its plan was not found, which says what is in it. Name it with --plan."
        )
    found = study.plan
    message = unpack_aggregate(content, found)
    total, groups = message.aggregate.total, message.aggregate.groups
    _show_aggregate(out, file, message, len(content), signer)
    _show_statistics(out, total, found, "all of them together")
    if numbers is not None:
        _write_numbers(numbers, summary_to_csv(total, found))
        out.say("", f"Every number of the sum is in {numbers}")
    out.result(
        {
            "kind": "aggregate",
            "masked": message.masked,
            "plan": found.fingerprint,
            "clients": total.clients,
            "groups": [name for name, _ in groups],
            "mixtures": 0 if message.aggregate.mixtures is None else len(message.aggregate.mixtures.signs),
            "rows": total.rows,
            "rows_read": total.rows_read,
            "missing": dict(total.missing),
            "without_disclosure_control": message.without_disclosure_control,
            "software": message.software,
            "bytes": len(content),
            "signed_by": signer,
        }
    )


def _show_aggregate(out: Output, file: Path, message: AggregateMessage, length: int, signer: str | None) -> None:
    total, groups = message.aggregate.total, message.aggregate.groups
    out.say(
        f"{file} is {'a secure' if message.masked else 'the'} sum of the summaries of {len(total.clients)} clients, "
        f"{length} bytes, made by {message.software}: {abbreviate_list(total.clients)}.",
        f"It follows the plan {total.plan[:12]} and is {describe_signature(signer)}.",
        f"{total.rows_read} rows were read, {total.rows} used.",
    )
    if message.masked:
        out.say(f"{message.threshold} sites had to help to open it, in the session {message.session[:12]}.")
    if message.without_disclosure_control:
        out.say(f"Made without disclosure control at {abbreviate_list(message.without_disclosure_control)}.")
    if message.aggregate.mixtures is not None:
        out.say(f"It reveals {describe_opened_mixtures(message.aggregate.mixtures.signs)}.")
        return
    out.say(f"It reveals, for each of these {len(groups)}, {describe_opened()}:")
    rows = [(name, len(group), rows) for (name, group), rows in zip(groups, message.aggregate.client_rows, strict=True)]
    out.table(("client, or group of clients", "clients", "rows"), rows[:MAX_SHOWN])
    if len(rows) > MAX_SHOWN:
        out.say(f"... and {len(rows) - MAX_SHOWN} more")


def _write_numbers(path: Path, text: str) -> None:
    if path.exists() and not path.read_bytes()[:64].startswith(text[:13].encode()):
        raise SettingsError(f"{path} exists already and is something else; it is not overwritten. Choose another name.")
    write_atomically(path, text)


def _to_document(header: SummaryHeader) -> dict[str, Any]:
    names = ("client", "plan", "rows", "rows_read", "columns", "replicate", "disclosure_control", "software")
    coarsened = [{"variables": names, "cells": cells} for names, cells in header.coarsened.items()]
    return {name: getattr(header, name) for name in names} | {"missing": dict(header.missing), "coarsened": coarsened}


def _show_header(out: Output, file: Path, header: SummaryHeader, length: int, signer: str | None) -> None:
    dropped = header.rows_read - header.rows
    gaps = ", ".join(f"{name} {count}" for name, count in header.missing.items() if count) or "none"
    what = f"bootstrap replicate {header.replicate} of the summary" if header.replicate else "the summary"
    out.say(
        f"{file} is {what} of client {header.client}, {length} bytes, made by {header.software}.",
        f"It follows the plan {header.plan[:12]} and is {describe_signature(signer)}.",
        f"{header.rows_read} rows were read, {header.rows} used, {dropped} left out; missing values: {gaps}.",
        f"It holds {header.entries} sums over all rows used: of {header.columns} features and of their products.",
    )
    if max(header.missing.values(), default=0) > dropped:
        out.say("Where a value was missing, the site drew one, by a model of its own rows.")
    if header.replicate:
        out.say("Its rows were resampled: each counts 0, 1, 2, ... times. It cannot replace the summary itself.")
    if header.noise:
        out.say(
            f"Noise was added to every sum: {header.noise / PRODUCT_STEPS:.3g} in products of two features, "
            f"{SUM_NOISE_RATIO:.3g} times that in sums of one, and more in the number of rows, which is not exact "
            "either."
        )
    if header.coarsened:
        out.say("Before it left, the site made rare cells coarser, so that they tell less about few people:")
        out.say(*(f"- {part};" for part in describe_coarsened(header.coarsened)))
    if not header.disclosure_control:
        out.say("It was made without disclosure control: the minimum numbers of rows and people were not enforced.")


def _find_study(file: Path, fingerprint: str, given: Path | None) -> Study | None:
    """Return the plan that was named, or one with the right fingerprint beside the file or in the current folder."""
    if given is not None:
        study = read_study(given)[0]
        if study.plan.fingerprint != fingerprint:
            raise PlanMismatchError(
                f"{file} follows the plan {fingerprint[:12]}, but {given} is the plan {study.plan.fingerprint[:12]}. "
                "Name the plan that it was made with."
            )
        return study
    for path in sorted({*file.parent.glob("*.json"), *Path().glob("*.json")}):
        try:
            study = read_study(path)[0]
        except (FedCDHError, OSError):  # some other file
            continue
        if study.plan.fingerprint == fingerprint:
            return study
    return None


def _show_statistics(out: Output, summary: Summary, plan: StudyPlan, whom: str) -> None:
    show_recipes(out, plan)
    moments = descriptive_statistics(summary, plan)
    shown = {name: f"{mean:.5g} ± {deviation:.4g}" for name, (mean, deviation) in moments.items()}
    counts = level_counts(summary, plan)
    shown |= {name: _format_counts(levels) for name, levels in counts.items()}
    out.say("", f"Anybody who receives it can compute for {whom}, among others:")
    heads = ("variable", "mean ± standard deviation, or rows per level")
    out.table(heads, [(name, shown[name]) for name in plan.names])
    out.say(
        "",
        "For every two variables, they can compute correlations of values and of features, contingency tables of "
        "levels, and means among the rows of each level.",
    )
    if present := [count for levels in counts.values() for count in levels.values() if count]:
        out.say(f"The rarest level that occurs has {min(present)} rows.")
    out.say("It is not anonymous: with few rows, or a rare level, single rows could be computed from it.")


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{level} {count}" for level, count in counts.items())
