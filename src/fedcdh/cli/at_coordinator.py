"""What the coordinator does: agree on a plan, and find the graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedcdh.agreement.agreeing import study_from
from fedcdh.agreement.declaration import Declaration
from fedcdh.arrival import admit
from fedcdh.cli.copies import copies_of_all, no_copies_alone
from fedcdh.cli.failing import speaking
from fedcdh.cli.inspecting import show_plan
from fedcdh.cli.options import AsJson, KeyFile, PlanFile, Quiet, not_an_input, pairs
from fedcdh.cli.output import Output
from fedcdh.cli.places import (
    SMALL,
    blaming,
    named,
    read_public,
    read_study,
    replaceable,
    signed_by,
    the_key,
    write_signed,
)
from fedcdh.cli.rounds import AnswersFolder
from fedcdh.discovery import discover_from
from fedcdh.engines import engine_for
from fedcdh.errors import NotASummary, PlanError, SettingsError, SignatureError
from fedcdh.exports import write_result
from fedcdh.files.disk import read_regular
from fedcdh.files.profiles import BYTES_AT_MOST, ProfileMessage, from_text
from fedcdh.files.signing import fingerprint
from fedcdh.files.studies import Study
from fedcdh.files.summaries import most_bytes, size, unpack
from fedcdh.stability import Stability
from fedcdh.summary import Summary


@speaking
def plan_command(
    profiles: Annotated[list[Path] | None, typer.Argument(help="The sites' profiles.", metavar="[PROFILE]...")] = None,
    declare: Annotated[
        Path | None, typer.Option(help="A declaration of variables and of what is known (TOML).", metavar="FILE")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The plan file.")] = Path("study.plan.json"),
    accept_ranges: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable whose ranges or labels really differ that much; may be repeated.", metavar="NAME"
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="The method whose features are wanted: evidence, constraint or paper.")
    ] = None,
    name: Annotated[
        str,
        typer.Option("--study", help="The study's name, to tell its messages from an older one's.", metavar="NAME"),
    ] = "",
    site_key: Annotated[
        list[str] | None,
        typer.Option(help="CLIENT=ed25519:... (or a file with it): the key of a site.", metavar="CLIENT=KEY"),
    ] = None,
    most_rounds: Annotated[
        int, typer.Option(help="How many further questions a site answers, see fedcdh answer.", metavar="N")
    ] = 0,
    most_bytes: Annotated[
        int, typer.Option(help="How many bytes a site sends in all its answers.", metavar="BYTES")
    ] = 10_000_000,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the plan that all sites follow, from their profiles, from a declaration, or from both.

    Examples:

      fedcdh plan *.profile.json -o study.plan.json

      fedcdh plan --declare variables.toml
    """
    out = Output(quiet, as_json)
    paths, signing = named(profiles or []), the_key(key, out)
    if not paths and declare is None:
        raise SettingsError("a plan needs profiles, or a declaration (--declare variables.toml), or both")
    not_an_input(output, [*paths, *([declare] if declare else [])])
    replaceable(output, "plan")
    messages = [_read_profile(path) for path in paths]
    declaration = None
    if declare is not None:
        text = read_regular(declare, SMALL, "a declaration", refuse=PlanError)
        declaration = Declaration.from_toml(text)
    family = engine_for(method).family(0) if method is not None else None
    study = study_from(messages, declaration, family=family, accept_ranges=accept_ranges or ())
    given = {client: read_public(text) for client, text in pairs(site_key, "--site-key", "CLIENT=KEY").items()}
    named_plan = replace(study.plan, study=name, most_rounds=most_rounds, most_bytes=most_bytes if most_rounds else 0)
    study = replace(study, plan=named_plan, keys={**study.keys, **given})
    show_plan(out, study)
    few, many = (size(study.plan, study.plan.clients[0], rows) for rows in (1000, 1_000_000))
    out.say(f"A site's message will have {few} bytes for a thousand rows, {many} for a million.")
    content = study.to_json().encode("utf-8")
    written = write_signed(output, content, "plan", signing)
    signature = f", signed by {fingerprint(signing.public)}" if signing else ""
    out.say(f"Wrote {' and '.join(map(str, written))}{signature}. Send it to every site.")
    out.result({"fingerprint": study.plan.fingerprint, "files": list(map(str, written)), "clients": study.plan.clients})


def _read_profile(path: Path) -> tuple[str, ProfileMessage]:
    """A profile with the name of its file; where it names a key, that key has signed it."""
    content = read_regular(path, BYTES_AT_MOST, "a profile")
    with blaming(path):
        message = from_text(content)
        signer = signed_by(path, content, "profile", message.key)
    if signer is not None and message.key is None:
        raise SignatureError(
            f"{path} is signed by {fingerprint(signer)}, but names no key itself; ask the site for it again, made with "
            "its key at hand"
        )
    return str(path), message


@speaking
def discover_command(
    plan: PlanFile,
    summaries: Annotated[
        list[Path],
        typer.Argument(help="One summary of every client, and its bootstrap copies if any.", metavar="SUMMARY..."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the result.")] = Path("result"),
    method: Annotated[str, typer.Option(help="auto, evidence, constraint or paper.")] = "auto",
    alpha: Annotated[float, typer.Option(help="The level of the tests of constraint and paper.")] = 0.05,
    max_conditioning: Annotated[
        int | None, typer.Option(help="The most variables to condition on, or causes, besides the domain.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random features and starting points.")] = 0,
    stability: Annotated[
        bool, typer.Option("--stability", help="Search again without one site after the other, and say what stays.")
    ] = False,
    plan_key: Annotated[
        str | None,
        typer.Option(help="The public key that has to have signed the plan: a file, or ed25519:...", metavar="KEY"),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(help="Let constraint ask the sites again: the folder for requests and answers.", metavar="FOLDER"),
    ] = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find what causes what, and which mechanisms differ between sites, from the sites' messages.

    Examples:

      fedcdh discover study.plan.json *.summary -o result/

      fedcdh discover study.plan.json *.summary --method constraint --alpha 0.01 -o result-tests/

      fedcdh discover study.plan.json *.summary --method constraint --answers rounds/
    """
    out = Output(quiet, as_json)
    study, signer = read_study(plan)
    if plan_key is not None and signer != read_public(plan_key):
        raise SignatureError(f"{plan} is not signed by {fingerprint(read_public(plan_key))}; ask who made it")
    out.say(
        f"Plan {study.plan.fingerprint[:12]}, " + (f"signed by {fingerprint(signer)}." if signer else "not signed.")
    )
    received = [read_summary(path, study, out) for path in named(summaries)]
    plain, drawn = [one for one in received if not one.copy], [one for one in received if one.copy]
    no_copies_alone(drawn, plain)
    cohort = admit(plain, study.plan)
    copies = copies_of_all(drawn, cohort, out)
    source = AnswersFolder(answers, study, the_key(key, out), out) if answers is not None else None
    with out.searching("discover") as progress:
        result = discover_from(
            cohort,
            study.plan,
            method=method,
            alpha=alpha,
            knowledge=study.knowledge,
            max_conditioning=max_conditioning,
            seed=seed,
            progress=progress,
            source=source,
        )
    out.say(str(result), "")
    stable = again = None
    if stability:
        with out.searching("without one site after the other") as progress:
            stable = result.stability(progress=progress)
    if copies:
        with out.searching("with rows drawn anew") as progress:
            again = result.stability(copies=copies, progress=progress)
        _show_again(out, again)
    written = write_result(result, output, stable, again)
    out.say(f"Wrote {', '.join(map(str, written))}")
    out.result(
        {
            "arrows": sorted(result.graph.arrows),
            "lines": sorted(sorted(line) for line in result.graph.lines),
            "changing": sorted(result.changing),
            "copies": len(copies),
            "files": list(map(str, written)),
        }
    )


def _show_again(out: Output, stability: Stability) -> None:
    out.say(f"With rows drawn anew at every site, {len(stability.runs)} times (shares, not probabilities):")
    found = [edge for edge in stability.edges if edge.mark]
    if rows := [(f"{e.source} {e.mark} {e.target}", f"{e.adjacent:.0%}", f"{e.same:.0%}") for e in found]:
        out.table(("edge", "found again", "exactly so"), rows)
    out.say("")


def read_summary(path: Path, study: Study, out: Output) -> Summary:
    """One site's summary, or a copy of it; by the key that the plan names for the site, if it does.

    What there is to note about a site is noted once, at its summary.
    """
    content = read_regular(path, most_bytes(study.plan), "a summary of this plan", refuse=NotASummary)
    with blaming(path):
        message = unpack(content, study.plan)
    client = message.summary.clients[0]
    signer, first = signed_by(path, content, "summary", study.keys.get(client)), not message.summary.copy
    if signer is None and first:
        out.warn(f"{path} is not signed: that it comes from {client} is known only by the way it came")
    if message.research and first:
        out.warn(f"{path} was made for research, without privacy: {client} did not enforce smallest numbers of rows")
    return message.summary
