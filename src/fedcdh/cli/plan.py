"""What the coordinator does: agree on a plan, and find the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedcdh._io.storage import read_regular_file
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._answers_folder import AnswersFolder
from fedcdh.cli._bootstrap_files import ReplicateFiles, check_replicates_have_summaries, collect_replicates
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import (
    MAX_SMALL_FILE_BYTES,
    check_replaceable,
    check_signer,
    expand_paths,
    find_signer,
    load_signing_key,
    naming_file,
    read_public_key,
    read_trusted_study,
    refuse_running_sum,
    write_signed,
)
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, PlanKey, Quiet, parse_pairs, refuse_input_as_output
from fedcdh.cli._summaries import SUMMARY_PATTERN, SummaryReader
from fedcdh.cli.inspect import show_plan
from fedcdh.discovery.api import discover_from
from fedcdh.discovery.methods import get_method
from fedcdh.discovery.stability import Stability
from fedcdh.errors import PlanError, SettingsError, SignatureError, SummaryFormatError
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.messages.aggregate_file import AggregateMessage, is_aggregate, max_aggregate_bytes, unpack_aggregate
from fedcdh.messages.profile_file import MAX_PROFILE_BYTES, ProfileMessage, profile_from_json
from fedcdh.messages.signing import key_fingerprint
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import max_summary_bytes, summary_file_size
from fedcdh.reporting.result_files import write_result
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.dp_parameters import DEFAULT_EXPECTED_ROWS, DPParameters
from fedcdh.summaries.features import bounded
from fedcdh.summaries.plan import DEFAULT_CLIP
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries

PROFILE_PATTERN = "*.profile.json"
"""What is read of a folder."""


@report_errors
def plan_command(
    profiles: Annotated[list[Path] | None, typer.Argument(help="The sites' profiles.", metavar="[PROFILE]...")] = None,
    declare: Annotated[
        Path | None, typer.Option(help="A declaration of variables and of what is known (TOML).", metavar="FILE")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The plan file.")] = Path("study.plan.json"),
    accept_differences: Annotated[
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
    max_rounds: Annotated[
        int, typer.Option(help="How many further questions a site answers, see fedcdh answer.", metavar="N")
    ] = 0,
    max_bytes: Annotated[
        int, typer.Option(help="How many bytes a site sends in all its answers.", metavar="BYTES")
    ] = 10_000_000,
    max_rows_per_client: Annotated[
        int, typer.Option(help="How many rows of one site count at most; 0: any number.", metavar="N")
    ] = 0,
    epsilon: Annotated[
        float | None, typer.Option(help="Have sites add noise for differential privacy, see docs/noise.md.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The other number of that noise.")] = 1e-6,
    expected_rows: Annotated[
        int, typer.Option(help="With noise: how many rows all sites have, roughly.", metavar="N")
    ] = DEFAULT_EXPECTED_ROWS,
    together: Annotated[
        int | None,
        typer.Option(help="With noise: sites add it together, N of them honestly; for masked sums.", metavar="N"),
    ] = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the plan that all sites follow, from their profiles, from a declaration, or from both.

    Examples:

      fedcdh plan *.profile.json -o study.plan.json

      fedcdh plan --declare variables.toml

      fedcdh plan --declare variables.toml --epsilon 1 --expected-rows 20000
    """
    out = Output(quiet, as_json)
    noise = _build_noise(epsilon, delta, expected_rows, together)
    paths, signing = expand_paths(profiles or [], PROFILE_PATTERN), load_signing_key(key, out)
    if not paths and declare is None:
        raise SettingsError("a plan needs profiles, or a declaration (--declare variables.toml), or both")
    if noise is not None and paths:
        raise PlanError(
            "profiles are exact numbers about the rows, which the noise of a plan does not cover; with --epsilon, say "
            "all about the variables in a declaration (--declare)"
        )
    refuse_input_as_output(output, [*paths, *([declare] if declare else [])])
    check_replaceable(output, "plan")
    with out.counting("reading profiles", len(paths)) as progress:
        messages = []
        for number, path in enumerate(paths, start=1):
            messages.append(_read_profile(path))
            progress(number)
    declaration = None
    if declare is not None:
        text = read_regular_file(declare, MAX_SMALL_FILE_BYTES, "a declaration", refuse=PlanError)
        declaration = Declaration.from_toml(text)
    family = get_method(method).family(0) if method is not None else None
    clip = DEFAULT_CLIP if noise is None else bounded.BOUNDED_CLIP
    study = plan_study(messages, declaration, family=family, clip=clip, accept_differences=accept_differences or ())
    given = {
        client: read_public_key(text) for client, text in parse_pairs(site_key, "--site-key", "CLIENT=KEY").items()
    }
    max_bytes = max_bytes if max_rounds else 0
    named_plan = replace(
        study.plan,
        study=name,
        max_rounds=max_rounds,
        max_bytes=max_bytes,
        max_rows_per_client=max_rows_per_client,
        noise=noise,
    )
    study = replace(study, plan=named_plan, keys={**study.keys, **given})
    show_plan(out, study)
    few, many = (summary_file_size(study.plan, study.plan.clients[0], rows) for rows in (1000, 1_000_000))
    out.say(f"A site's message will have {few} bytes for a thousand rows, {many} for a million.")
    content = study.to_json().encode("utf-8")
    written = write_signed(output, content, "plan", signing)
    signature = f", signed by {key_fingerprint(signing.public)}" if signing else ""
    out.say(f"Wrote {' and '.join(map(str, written))}{signature}. Send it to every site.")
    out.result({"fingerprint": study.plan.fingerprint, "files": list(map(str, written)), "clients": study.plan.clients})


def _build_noise(epsilon: float | None, delta: float, rows: int, together: int | None) -> DPParameters | None:
    if epsilon is None and together is not None:
        raise SettingsError("--together says who adds noise, and there is none; say how much with --epsilon")
    if epsilon is None:
        return None
    if together is None:
        return DPParameters(epsilon, delta, rows=rows)
    return DPParameters(epsilon, delta, shared="together", honest=together, rows=rows)


def _read_profile(path: Path) -> tuple[str, ProfileMessage]:
    """A profile with the name of its file; where it names a key, that key has signed it."""
    content = read_regular_file(path, MAX_PROFILE_BYTES, "a profile")
    with naming_file(path):
        message = profile_from_json(content)
        signer = check_signer(path, content, "profile", message.key)
    if signer is not None and message.key is None:
        raise SignatureError(
            f"{path} is signed by {key_fingerprint(signer)}, but names no key itself; ask the site for it again, made with "
            "its key at hand"
        )
    return str(path), message


@report_errors
def discover_command(
    plan: PlanFile,
    summaries: Annotated[
        list[Path],
        typer.Argument(
            help="One summary of every client, and its bootstrap copies if any (files, patterns, folders); or one sum.",
            metavar="SUMMARY...",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the result.")] = Path("result"),
    method: Annotated[str, typer.Option(help="auto, evidence, constraint or paper.")] = "auto",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="The level of the tests of constraint and paper.", show_default="0.05; less for many variables"
        ),
    ] = None,
    max_conditioning_size: Annotated[
        int | None, typer.Option(help="The most variables to condition on, or causes, besides the domain.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random features and starting points.")] = 0,
    workers: Annotated[int, typer.Option(help="Threads for the tests of constraint; -1 for one per core.")] = 1,
    stability: Annotated[
        bool, typer.Option("--stability", help="Search again without one site after the other, and say what stays.")
    ] = False,
    plan_key: PlanKey = None,
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
    study = read_trusted_study(plan, plan_key, out)
    known, copies, research = _read_received(expand_paths(summaries, SUMMARY_PATTERN), study, out)
    source = None
    if answers is not None:
        if isinstance(known, Aggregate):
            raise SettingsError("--answers needs the summaries of all clients, not only their sum; leave it out")
        if copies or stability:
            raise SettingsError(
                "with --answers, stability cannot be looked at: nobody is there to answer again; leave "
                + ("--stability out" if stability else 'the bootstrap copies out (files with "boot" in their names)')
            )
        source = AnswersFolder(answers, study, known, load_signing_key(key, out), out)
    with out.searching("discover") as progress:
        result = discover_from(
            known,
            study.plan,
            method=method,
            alpha=alpha,
            knowledge=study.knowledge,
            max_conditioning_size=max_conditioning_size,
            seed=seed,
            progress=progress,
            source=source,
            workers=workers,
        )
    out.say(str(result), "")
    stable = again = None
    if stability:
        with out.searching("without one site after the other") as progress:
            stable = result.stability(progress=progress)
    if copies:
        with out.searching("with rows drawn anew") as progress:
            again = result.stability(replicates=copies, progress=progress)
        _show_bootstrap(out, again)
    written = write_result(result, output, stable, again, uncontrolled_clients=research)
    out.say(f"Wrote {', '.join(map(str, written))}")
    out.result(
        {
            "arrows": sorted(result.graph.arrows),
            "lines": sorted(sorted(line) for line in result.graph.lines),
            "changing": sorted(result.changing),
            "copies": len(copies) if copies else 0,
            "files": list(map(str, written)),
        }
    )


def _read_received(
    paths: list[Path], study: Study, out: Output
) -> tuple[Cohort | Aggregate, ReplicateFiles | None, frozenset[str]]:
    """The summaries of all clients and their copies; or, in one file, their sum (`fedcdh masked`, `fedcdh add`).

    And the clients that say that nothing was held back there: research, no privacy.
    """
    if len(paths) == 1 and (opened := read_aggregate(paths[0], study, out)):
        return opened.aggregate, None, frozenset(opened.research)
    receiving = SummaryReader(study)
    messages, copies = receiving.read_all(paths, out)
    check_replicates_have_summaries(copies, messages)
    with out.counting("checking summaries", len(messages)) as progress:
        cohort = admit_summaries(_count_each([message.summary for message in messages], progress), study.plan)
    research = {client for _, client in receiving.research} | {copy.client for copy in copies if copy.research}
    return cohort, collect_replicates(copies, cohort, receiving, out) if copies else None, frozenset(research)


def _count_each(summaries: list[Summary], progress: Callable[[int], None]) -> Iterator[Summary]:
    for number, summary in enumerate(summaries):
        progress(number)
        yield summary


def read_aggregate(path: Path, study: Study, out: Output) -> AggregateMessage | None:
    """The sum in this file, masked or not; None if it is something else."""
    most = max(max_aggregate_bytes(study.plan), max_summary_bytes(study.plan))
    content = read_regular_file(path, most, "a summary of this plan, or a sum", refuse=SummaryFormatError)
    if not is_aggregate(content):
        with naming_file(path):
            refuse_running_sum(content)
        return None
    with naming_file(path):
        message = unpack_aggregate(content, study.plan)
        signer = find_signer(path, content, "aggregate")
    whom, by = (
        abbreviate_list(message.aggregate.total.clients),
        f", signed by {key_fingerprint(signer)}" if signer else "",
    )
    out.say(
        f"A masked sum of {whom}, session {message.session[:12]}{by}." if message.masked else f"The sum of {whom}{by}."
    )
    if not message.masked and signer is None:
        out.warn(f"{path} is not signed: that it is the sum of what these sent is known only by the way it came")
    if message.research:
        out.warn(
            f"{abbreviate_list(message.research)} took part for research, without privacy: smallest numbers of rows were not "
            "enforced there"
        )
    return message


def _show_bootstrap(out: Output, stability: Stability) -> None:
    out.say(f"With rows drawn anew at every site, {len(stability.runs)} times (shares, not probabilities):")
    found = [edge for edge in stability.edges if edge.mark]
    if rows := [(f"{e.source} {e.mark} {e.target}", f"{e.adjacent:.0%}", f"{e.same:.0%}") for e in found]:
        out.table(("edge", "found again", "exactly so"), rows)
    out.say("")
