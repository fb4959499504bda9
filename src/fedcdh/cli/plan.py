"""`fedcdh plan`: the plan that all sites follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, Quiet, RecipeFiles, parse_pairs
from fedcdh.errors import FedCDHError, PlanError, SettingsError

if TYPE_CHECKING:
    from fedcdh.federation.planning.declaration import Declaration
    from fedcdh.messages.signing import SigningKey
    from fedcdh.messages.study_file import Study
    from fedcdh.summaries.absent_columns import AbsentRule
    from fedcdh.summaries.dp_parameters import DPParameters
    from fedcdh.summaries.plan import StudyPlan

PROFILE_PATTERN = "*.profile.json"
"""The files of a folder that are read."""
DEFAULT_EXPECTED_ROWS = 10_000  # equals summaries.dp_parameters.DEFAULT_EXPECTED_ROWS, which a test asserts
_MAX_BYTES = 10_000_000  # of all answers, where the number of rounds is chosen
_NOISE_PANEL = "Differential privacy"
PlanMethod = Literal["evidence", "constraint", "paper"]


@report_errors
def plan_command(
    profiles: Annotated[
        list[Path] | None,
        typer.Argument(help="Profiles of the sites: files, patterns, folders.", metavar="[PROFILE...]"),
    ] = None,
    declare: Annotated[
        Path | None, typer.Option(help="Declaration of variables and of prior knowledge (TOML).", metavar="FILE")
    ] = None,
    recipes: RecipeFiles = None,
    like: Annotated[
        Path | None,
        typer.Option(help="Plan of the study so far: the new one differs in its clients only.", metavar="PLAN"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="With --like: site that leaves the study; may be repeated.", metavar="NAME"),
    ] = None,
    joined: Annotated[
        list[str] | None,
        typer.Option("--with", help="With --like: site that joins the study; may be repeated.", metavar="NAME"),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Plan file to write.", metavar="FILE")] = Path(
        "study.plan.json"
    ),
    accept_differences: Annotated[
        list[str] | None,
        typer.Option(help="Variable whose ranges or levels really differ; may be repeated.", metavar="NAME"),
    ] = None,
    allow_absent: Annotated[
        bool,
        typer.Option(
            "--allow-absent",
            help="Sites may lack variables that others have, unless they have one of nearly the same name.",
        ),
    ] = False,
    method: Annotated[
        PlanMethod | None,
        typer.Option(
            help="Method that the features are for: evidence, constraint or paper.",
            metavar="METHOD",
            show_default="evidence",
        ),
    ] = None,
    feature_columns: Annotated[
        int | None,
        typer.Option(
            help="Feature columns of a number, besides its value and square; sites of few rows can send fewer.",
            metavar="N",
            show_default="4",
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--study", help="Name of the study; files of another study are refused.", metavar="NAME", show_default=False
        ),
    ] = "",
    site_key: Annotated[
        list[str] | None,
        typer.Option(help="Public key of a site, as text or file; may be repeated.", metavar="CLIENT=KEY"),
    ] = None,
    max_rounds: Annotated[
        int | None,
        typer.Option(
            help="Number of further requests that a site answers; with 2, the first holds all that may matter.",
            metavar="N",
            show_default="12; 0 for noise",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            help="Bytes of all answers of a site.",
            metavar="N",
            show_default="four summaries; 10 million with --max-rounds",
        ),
    ] = None,
    max_rows_per_client: Annotated[
        int, typer.Option(help="Largest number of rows of one site; 0 for no limit.", metavar="N")
    ] = 0,
    missing: Annotated[
        Literal["complete", "impute"] | None,
        typer.Option(
            help="What a site does with rows in which a value is missing: leave them out, or draw a value.",
            metavar="METHOD",
            show_default="complete, or as declared",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Differential privacy parameter epsilon; sites add noise to their summaries.",
            metavar="EPSILON",
            rich_help_panel=_NOISE_PANEL,
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Differential privacy parameter delta.", metavar="DELTA", rich_help_panel=_NOISE_PANEL)
    ] = 1e-6,
    expected_rows: Annotated[
        int, typer.Option(help="Rough number of rows of all sites.", metavar="N", rich_help_panel=_NOISE_PANEL)
    ] = DEFAULT_EXPECTED_ROWS,
    distributed_noise: Annotated[
        bool,
        typer.Option(
            "--distributed-noise",
            help="Every site adds a part of the noise; for secure sums only.",
            rich_help_panel=_NOISE_PANEL,
        ),
    ] = False,
    honest: Annotated[
        int | None,
        typer.Option(
            help="Number of sites that surely add their part of distributed noise.",
            metavar="N",
            rich_help_panel=_NOISE_PANEL,
        ),
    ] = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the plan that all sites follow.

    A plan comes from the sites' profiles, from a declaration, or from both.

    For example:

      fedcdh plan *.profile.json -o study.plan.json

      fedcdh plan --declare variables.toml

      fedcdh plan *.profile.json --recipes north.recipes.toml --recipes south.recipes.toml

      fedcdh plan --declare variables.toml --epsilon 1 --expected-rows 20000 -o noisy.plan.json

      fedcdh plan --like study.plan.json --without coast --with west -o later.plan.json
    """
    from fedcdh.cli import _later_plans as later_plans
    from fedcdh.cli._advice import read_declaration
    from fedcdh.cli._inputs import expand_paths
    from fedcdh.cli._keys import load_signing_key, read_public_key
    from fedcdh.cli._outputs import check_replaceable, refuse_input_as_output

    out = Output(quiet, as_json)
    if like is not None:
        later_plans.refuse_with_like(
            {
                "profiles": profiles,
                "--declare": declare,
                "--recipes": recipes,
                "--accept-differences": accept_differences,
                "--method": method,
                "--feature-columns": feature_columns,
                "--study": name,
                "--max-rounds": max_rounds is not None,
                "--max-bytes": max_bytes is not None,
                "--max-rows-per-client": max_rows_per_client,
                "--epsilon": epsilon is not None,
                "--distributed-noise": distributed_noise,
                "--honest": honest is not None,
            }
        )
        refuse_input_as_output(output, [like])
        check_replaceable(output, "plan")
        keys = parse_pairs(site_key, "--site-key", "CLIENT=KEY")
        changed = later_plans.make_later_study(like, without or (), joined or (), keys, out)
        _write_plan(out, output, changed, load_signing_key(key, out))
        later_plans.say_later_plan(out, changed, output, joined or ())
        return
    later_plans.refuse_without_like(without or (), joined or ())
    noise = _build_noise(epsilon, delta, expected_rows, honest, distributed=distributed_noise)
    paths, signing = expand_paths(profiles or [], PROFILE_PATTERN), load_signing_key(key, out)
    if not paths and declare is None:
        raise SettingsError(
            "No profile and no declaration was given. A plan needs profiles, a declaration (--declare variables.toml), "
            "or both."
        )
    if noise is not None and paths:
        raise PlanError(
            "Profiles were given together with --epsilon. Profiles are exact numbers about the rows, which the noise "
            "does not cover. Describe all variables in a declaration (--declare) instead."
        )
    refuse_input_as_output(output, [*paths, *([declare] if declare else []), *(recipes or ())])
    check_replaceable(output, "plan")
    declaration = read_declaration(declare, recipes)
    rules = _Rules(accept_differences or [], "allow" if allow_absent else "refuse", noisy=noise is not None)
    study = _make_study(paths, declaration, method, rules, out)
    given = {
        client: read_public_key(text) for client, text in parse_pairs(site_key, "--site-key", "CLIENT=KEY").items()
    }
    study = replace(study, plan=_with_feature_columns(study.plan, feature_columns))
    rounds, most = _round_limits(study.plan, max_rounds, max_bytes, noisy=noise is not None)
    plan = replace(
        study.plan,
        study=name,
        max_rows_per_client=max_rows_per_client,
        missing=missing or study.plan.missing,
        noise=noise,
        max_rounds=rounds,
        max_bytes=most,
    )
    _write_plan(out, output, replace(study, plan=plan, keys={**study.keys, **given}), signing)


def _with_feature_columns(plan: StudyPlan, columns: int | None) -> StudyPlan:
    """Return the plan with this many feature columns of a number."""
    from fedcdh.summaries.features import Hermite

    if columns is None:
        return plan
    if not isinstance(plan.family, Hermite):
        raise SettingsError(
            f"--feature-columns {columns} was given for a method with random features. Expected evidence or "
            "constraint, whose features are in an order of importance. Leave the option out, or choose another method."
        )
    return replace(plan, family=replace(plan.family, width=columns))


def _round_limits(plan: StudyPlan, max_rounds: int | None, max_bytes: int | None, *, noisy: bool) -> tuple[int, int]:
    """Return how much a site may answer after its summary; noise covers no answers."""
    from fedcdh.summaries.joint.round_budget import DEFAULT_MAX_ROUNDS, default_max_bytes

    rounds = (0 if noisy else DEFAULT_MAX_ROUNDS) if max_rounds is None else max_rounds
    usual = default_max_bytes(plan) if max_rounds is None else _MAX_BYTES
    return rounds, (usual if max_bytes is None else max_bytes) if rounds else 0


class _Rules(NamedTuple):
    """The differences that the coordinator accepts, and whether the plan has noise."""

    accepted: list[str]
    absent: AbsentRule
    noisy: bool


def _make_study(
    paths: list[Path],
    declaration: Declaration | None,
    method: str | None,
    rules: _Rules,
    out: Output,
) -> Study:
    """Plan the study that profiles and declaration describe."""
    from fedcdh.cli._inputs import read_profile, refuse_files
    from fedcdh.discovery.methods import get_method
    from fedcdh.federation.planning.study_from_profiles import plan_study
    from fedcdh.summaries.features import bounded
    from fedcdh.summaries.plan import DEFAULT_CLIP

    messages, refused = [], []
    with out.file_progress("reading profiles", len(paths)) as progress:
        for number, path in enumerate(paths, start=1):
            progress(number)
            try:
                messages.append(read_profile(path))
            except FedCDHError as problem:
                refused.append((path, problem))
    refuse_files(refused)
    family = get_method(method).family(0) if method is not None else None
    clip = bounded.BOUNDED_CLIP if rules.noisy else DEFAULT_CLIP
    return plan_study(
        messages,
        declaration,
        family=family,
        clip=clip,
        accept_differences=rules.accepted,
        absent=rules.absent,
    )


def _write_plan(out: Output, output: Path, study: Study, signing: SigningKey | None) -> None:
    from fedcdh.cli._descriptions import show_plan
    from fedcdh.cli._outputs import write_signed
    from fedcdh.messages.signing import key_fingerprint
    from fedcdh.messages.summary_file import summary_file_size

    show_plan(out, study)
    longest = max(study.plan.clients, key=lambda client: len(study.plan.for_client(client).names))
    few, many = (summary_file_size(study.plan, longest, rows) for rows in (1000, 1_000_000))
    out.say(f"A site's summary will have {few} bytes for a thousand rows, {many} for a million.")
    written = write_signed(output, study.to_json().encode("utf-8"), "plan", signing)
    signature = f", signed by {key_fingerprint(signing.public)}" if signing else ""
    send = "" if study.plan.client_changes else " Send it to every site."
    out.say(f"Wrote {' and '.join(map(str, written))}{signature}.{send}")
    out.result({"fingerprint": study.plan.fingerprint, "files": list(map(str, written)), "clients": study.plan.clients})


def _build_noise(
    epsilon: float | None, delta: float, rows: int, honest: int | None, *, distributed: bool
) -> DPParameters | None:
    """Return the noise that the options describe."""
    if epsilon is None and (distributed or honest is not None):
        raise SettingsError("Distributed noise was asked for without its amount. State the amount with --epsilon.")
    if epsilon is None:
        return None
    from fedcdh.summaries.dp_parameters import DPParameters

    if distributed != (honest is not None):
        raise SettingsError(
            "--distributed-noise and --honest N belong together: N is the number of sites that surely add their part. "
            "Give both, or neither."
        )
    if honest is None:
        return DPParameters(epsilon, delta, expected_rows=rows)
    return DPParameters(epsilon, delta, distributed=True, honest=honest, expected_rows=rows)
