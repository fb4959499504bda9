"""`fedcdh discover`: the causal graph, from the summaries of all sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, Method, PlanFile, PlanKey, Quiet
from fedcdh.errors import SettingsError

if TYPE_CHECKING:
    from fedcdh.cli._answers_folder import AnswersFolder
    from fedcdh.cli._bootstrap_files import ReplicateFiles
    from fedcdh.discovery.result import Discovery
    from fedcdh.discovery.stability import Stability
    from fedcdh.messages.study_file import Study
    from fedcdh.summaries.aggregation import Aggregate, Cohort


@report_errors
def discover_command(
    plan: PlanFile,
    summaries: Annotated[
        list[Path],
        typer.Argument(
            help="Summaries and replicates of all clients (files, patterns, folders), or one sum.",
            metavar="SUMMARY...",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the result.", metavar="FOLDER")] = Path(
        "result"
    ),
    method: Annotated[
        Method, typer.Option(help="Search method: auto, evidence, constraint or paper.", metavar="METHOD")
    ] = "auto",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Significance level of the tests (constraint, paper).",
            metavar="ALPHA",
            show_default="0.05; less for constraint with more than 30 variables",
        ),
    ] = None,
    max_conditioning_size: Annotated[
        int | None, typer.Option(help="Largest number of conditioning variables, or of causes.", metavar="N")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of features and starting points.", metavar="N")] = 0,
    workers: Annotated[
        int, typer.Option(help="Number of threads for the tests; -1 for one per core.", metavar="N")
    ] = 1,
    stability: Annotated[
        bool, typer.Option("--stability", help="Search again without each site in turn, and report what stays.")
    ] = False,
    plan_key: PlanKey = None,
    answers: Annotated[
        Path | None,
        typer.Option(help="Folder of requests and answers, see fedcdh rounds (constraint only).", metavar="FOLDER"),
    ] = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find the causal graph and the mechanisms that differ.

    The result folder holds result.json, edges.csv, graph.dot and graph.txt.

    For example:

      fedcdh discover study.plan.json *.summary -o result/

      fedcdh discover study.plan.json *.summary --method constraint --alpha 0.01 -o result-tests/

      fedcdh discover study.plan.json *.summary --method constraint --answers rounds/
    """
    from fedcdh.cli._inputs import expand_paths, read_trusted_study
    from fedcdh.cli._summaries import SUMMARY_PATTERN
    from fedcdh.discovery.api import discover_from
    from fedcdh.reporting.result_files import write_result

    out = Output(quiet, as_json)
    study = read_trusted_study(plan, plan_key, out)
    known, replicates, uncontrolled = _read_received(expand_paths(summaries, SUMMARY_PATTERN), study, out)
    source = None
    if answers is not None:
        source = _open_answers(answers, study, known, key, out, resampled=replicates is not None, stability=stability)
    with out.search_status("discover") as progress:
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
    without_sites, resampled = _assess_stability(result, replicates, out, without_sites=stability)
    written = write_result(result, output, without_sites, resampled, without_disclosure_control=uncontrolled)
    out.say(f"Wrote {', '.join(map(str, written))}")
    out.result(
        {
            "arrows": sorted(result.graph.arrows),
            "lines": sorted(sorted(line) for line in result.graph.lines),
            "changing": sorted(result.changing),
            "replicates": len(replicates) if replicates else 0,
            "files": list(map(str, written)),
        }
    )


def _open_answers(
    folder: Path,
    study: Study,
    known: Cohort | Aggregate,
    key: Path | None,
    out: Output,
    *,
    resampled: bool,
    stability: bool,
) -> AnswersFolder:
    """Open the folder of answers; refuse what answers cannot serve."""
    from fedcdh.cli._answers_folder import AnswersFolder
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.summaries.aggregation import Aggregate

    if isinstance(known, Aggregate):
        raise SettingsError("A sum was given with --answers, which needs the summaries of all clients. Leave it out.")
    if resampled or stability:
        leave_out = "--stability" if stability else 'the bootstrap replicates (files with "boot" in their names)'
        raise SettingsError(
            f"Stability cannot be assessed with --answers, because no site answers again. Leave out {leave_out}."
        )
    return AnswersFolder(folder, study, known, load_signing_key(key, out), out)


def _read_received(
    paths: list[Path], study: Study, out: Output
) -> tuple[Cohort | Aggregate, ReplicateFiles | None, frozenset[str]]:
    """Return the summaries of all clients, or their sum; replicates; and clients without disclosure control."""
    from fedcdh.cli._bootstrap_files import check_replicates_have_summaries, collect_replicates
    from fedcdh.cli._summaries import SummaryReader, admit_messages, read_aggregate

    if len(paths) == 1 and (opened := read_aggregate(paths[0], study, out)):
        return opened.aggregate, None, frozenset(opened.without_disclosure_control)
    reader = SummaryReader(study)
    messages, replicates = reader.read_all(paths, out)
    check_replicates_have_summaries(replicates, messages)
    cohort = admit_messages(messages, study.plan, out)
    uncontrolled = {client for _, client in reader.uncontrolled} | {
        each.client for each in replicates if not each.disclosure_control
    }
    found = collect_replicates(replicates, cohort, reader, out) if replicates else None
    return cohort, found, frozenset(uncontrolled)


def _assess_stability(
    result: Discovery, replicates: ReplicateFiles | None, out: Output, *, without_sites: bool
) -> tuple[Stability | None, Stability | None]:
    """Search again without each site, and on resampled rows, where this was asked for."""
    left_out = resampled = None
    if without_sites:
        with out.search_status("without each site in turn") as progress:
            left_out = result.stability(progress=progress)
    if replicates:
        with out.search_status("on resampled rows") as progress:
            resampled = result.stability(replicates=replicates, progress=progress)
        _show_bootstrap(out, resampled)
    return left_out, resampled


def _show_bootstrap(out: Output, stability: Stability) -> None:
    out.say(f"Found again on {len(stability.runs)} bootstrap replicates (shares, not probabilities):")
    found = [edge for edge in stability.edges if edge.mark]
    if rows := [(f"{e.source} {e.mark} {e.target}", f"{e.adjacent:.0%}", f"{e.same:.0%}") for e in found]:
        out.table(("edge", "adjacent", "same direction"), rows)
    out.say("")
