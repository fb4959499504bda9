"""`fedcdh discover`: the causal graph, from the summaries of all sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._effect_pairs import read_pair
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, Method, PlanFile, PlanKey, Quiet, Rounds
from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.errors import SettingsError

if TYPE_CHECKING:
    from fedcdh.cli._bootstrap_files import ReplicateFiles
    from fedcdh.cli._masked_answers import MaskedAnswersFolder
    from fedcdh.discovery.result import Discovery
    from fedcdh.discovery.settings import SummaryOptions
    from fedcdh.discovery.stability import Stability
    from fedcdh.messages.aggregate_file import AggregateMessage
    from fedcdh.messages.signing import SigningKey
    from fedcdh.messages.study_file import Study
    from fedcdh.summaries.aggregation import Aggregate, Cohort
    from fedcdh.summaries.joint import AnswerSource


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
    min_probability: Annotated[
        float, typer.Option(help="Smallest probability of an edge or difference that is drawn.", metavar="P")
    ] = DEFAULT_MIN_PROBABILITY,
    min_arrow_probability: Annotated[
        float, typer.Option(help="Smallest probability of an arrow; other edges are lines.", metavar="P")
    ] = DEFAULT_MIN_ARROW_PROBABILITY,
    min_effect: Annotated[
        float, typer.Option(help="Smallest share of variance that a drawn edge explains.", metavar="SHARE")
    ] = DEFAULT_MIN_EFFECT,
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
        typer.Option(
            "--ask",
            "--answers",
            help="Folder of requests to the sites and of their answers, or of secure sums of these.",
            metavar="FOLDER",
        ),
    ] = None,
    rounds: Annotated[
        Rounds, typer.Option(help="What sites are asked with --ask: residuals or adaptive.", metavar="ROUNDS")
    ] = "auto",
    without_answers: Annotated[
        list[str] | None,
        typer.Option(help="Site that does not answer about residuals; may be repeated.", metavar="CLIENT"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Site that is left out, with or without a summary; may be repeated.", metavar="NAME"),
    ] = None,
    effect: Annotated[
        list[str] | None,
        typer.Option(
            help="Effect that the result gives for each site as well; may be repeated.", metavar="CAUSE:OUTCOME"
        ),
    ] = None,
    hidden: Annotated[
        bool,
        typer.Option("--hidden", help="Allow for unmeasured common causes; edges then have circles and ↔."),
    ] = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find the causal graph and the mechanisms that differ.

    The result folder holds result.json, edges.csv, effects.csv, graph.dot and graph.txt. It says of an effect what the
    sites find together; with --effect, also what each site finds.

    For example:

      fedcdh discover study.plan.json *.summary -o result/

      fedcdh discover study.plan.json *.summary --method constraint --alpha 0.01 -o result-tests/

      fedcdh discover study.plan.json *.summary --ask rounds/ -o result/

      fedcdh discover study.plan.json *.summary --without coast

      fedcdh discover study.plan.json *.summary --hidden -o result-hidden/
    """
    from fedcdh.cli._answers_folder import AnswersFolder
    from fedcdh.cli._inputs import expand_paths, read_trusted_study
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._later_plans import check_left_out
    from fedcdh.cli._single_sites import say_hinges
    from fedcdh.cli._summaries import SUMMARY_PATTERN
    from fedcdh.discovery.api import discover_from
    from fedcdh.messages.aggregate_file import AggregateMessage
    from fedcdh.reporting.result_files import write_result

    out = Output(quiet, as_json)
    study = read_trusted_study(plan, plan_key, out)
    pairs = [read_pair(text, study.plan.names) for text in effect or ()]
    left_out = check_left_out(without or (), study.plan)
    paths = expand_paths(summaries, SUMMARY_PATTERN)
    received, replicates, uncontrolled = read_received(paths, study, out, plan, left_out)
    source: AnswerSource | None = None
    if answers is not None:
        _refuse_stability(resampled=replicates is not None, stability=stability and rounds == "adaptive")
        signing, silent = load_signing_key(key, out), frozenset(without_answers or ())
        if isinstance(received, AggregateMessage):
            source = _open_masked_answers(answers, study, received, signing, silent)
        else:
            source = AnswersFolder(answers, study, received, signing, out, uncontrolled, silent=silent)
    known = received.aggregate if isinstance(received, AggregateMessage) else received
    options: SummaryOptions = {
        "method": method,
        "alpha": alpha,
        "knowledge": study.knowledge,
        "max_conditioning_size": max_conditioning_size,
        "seed": seed,
        "source": source,
        "rounds": rounds,
        "workers": workers,
        "min_probability": min_probability,
        "min_arrow_probability": min_arrow_probability,
        "min_effect": min_effect,
        "without": left_out,
    }
    if hidden:
        _refuse_with_hidden(stability=stability, resampled=replicates is not None, effects=bool(pairs))
        _find_hidden_causes(known, study, options, output, out, uncontrolled)
        return
    with out.search_status("discover") as progress:
        options["progress"] = progress
        result = discover_from(known, study.plan, **options)
    out.say(str(result), "")
    without_sites, resampled = _assess_stability(result, replicates, out, without_sites=stability)
    say_hinges(out, result, without_sites)
    if source is None:
        _suggest_rounds(out, plan, study, result)
    chosen = [result.effect(*pair) for pair in pairs]
    for one in chosen:
        out.say(str(one), "")
    written = write_result(
        result, output, without_sites, resampled, without_disclosure_control=uncontrolled, effects=chosen
    )
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


def _refuse_with_hidden(*, stability: bool, resampled: bool, effects: bool) -> None:
    """Refuse what cannot be computed for circles and ↔."""
    given = {
        "--stability": stability,
        'the bootstrap replicates (files with "boot" in their names)': resampled,
        "--effect": effects,
    }
    for option, is_given in given.items():
        if is_given:
            raise SettingsError(
                f"{option} was given with --hidden, whose graphs have neither yet. Leave one of them out."
            )


def _find_hidden_causes(
    known: Cohort | Aggregate,
    study: Study,
    options: SummaryOptions,
    output: Path,
    out: Output,
    uncontrolled: frozenset[str],
) -> None:
    """Find the partial ancestral graph, show it and write it."""
    from fedcdh.discovery.api import discover_from
    from fedcdh.reporting.result_files import write_result

    with out.search_status("discover") as progress:
        options["progress"] = progress
        result = discover_from(known, study.plan, hidden=True, **options)
    out.say(str(result), "")
    written = write_result(result, output, without_disclosure_control=uncontrolled)
    out.say(f"Wrote {', '.join(map(str, written))}")
    out.result(
        {
            "edges": [{"source": a, "target": b, "marks": [at_a, at_b]} for a, b, at_a, at_b in result.graph.edges],
            "changing": sorted(result.changing),
            "files": list(map(str, written)),
        }
    )


def _suggest_rounds(out: Output, plan: Path, study: Study, result: Discovery) -> None:
    """Name the next step where the plan lets sites answer more, and edges have no direction."""
    if study.plan.max_rounds and result.graph.lines and result.settings.method != "paper":
        out.say(
            "Some edges have no direction. The sites may be asked about residuals, which can decide them: "
            f"fedcdh discover {plan} ... --ask rounds/",
            "",
        )


def _refuse_stability(*, resampled: bool, stability: bool) -> None:
    """Refuse to assess stability where answers of the sites cannot be used again."""
    if resampled or stability:
        leave_out = "--stability" if stability else 'the bootstrap replicates (files with "boot" in their names)'
        raise SettingsError(
            f"Stability cannot be assessed with --ask, because no site answers again. Leave out {leave_out}."
        )


def _open_masked_answers(
    folder: Path, study: Study, known: AggregateMessage, key: SigningKey | None, silent: frozenset[str]
) -> MaskedAnswersFolder:
    """Open the folder of secure sums of answers; refuse a sum that was added in the open."""
    from fedcdh.cli._masked_answers import MaskedAnswersFolder

    if not known.masked:
        raise SettingsError(
            "A sum that was added in the open was given with --ask, which needs a secure sum or the summaries of all "
            "clients. Leave it out."
        )
    return MaskedAnswersFolder(folder, study, known, key, silent)


def read_received(
    paths: list[Path],
    study: Study,
    out: Output,
    plan: Path = Path("PLAN"),
    left_out: frozenset[str] = frozenset(),
) -> tuple[Cohort | AggregateMessage, ReplicateFiles | None, frozenset[str]]:
    """Return the summaries of all clients, or their sum; replicates; and clients without disclosure control."""
    from fedcdh.cli._bootstrap_files import check_replicates_have_summaries, collect_replicates
    from fedcdh.cli._later_plans import refuse_missing
    from fedcdh.cli._summaries import SummaryReader, admit_messages, leave_out, read_aggregate

    if len(paths) == 1 and (opened := read_aggregate(paths[0], study, out)):
        return opened, None, frozenset(opened.without_disclosure_control)
    reader = SummaryReader(study)
    messages, replicates = leave_out(*reader.read_all(paths, out), left_out, out)
    check_replicates_have_summaries(replicates, messages)
    present = {client for message in messages for client in message.summary.clients}
    if messages:
        refuse_missing(present, study.plan, left_out, plan, f"fedcdh discover {plan} ...")
    cohort = admit_messages(messages, study.plan, out, left_out)
    uncontrolled = {client for _, client in reader.uncontrolled if client not in left_out} | {
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
