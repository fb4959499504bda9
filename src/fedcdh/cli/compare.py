"""`fedcdh compare`: scores of a result against the true graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.errors import SettingsError

if TYPE_CHECKING:
    from fedcdh.graphs.metrics import Score


@report_errors
def compare_command(
    result: Annotated[Path, typer.Argument(help="Folder of a result, or its result.json.", metavar="RESULT")],
    truth: Annotated[Path, typer.Argument(help="truth.json: the true edges and changing mechanisms.", metavar="TRUTH")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score a result against the true graph.

    The table shows precision, recall, F1 and the structural Hamming distance of edges, directions and changing
    mechanisms.

    For example:

      fedcdh compare result/ study/truth.json
    """
    from fedcdh.graphs.metrics import compare, compare_changing
    from fedcdh.reporting.result_files import read_graph_claims

    out = Output(quiet, as_json)
    found, true = read_graph_claims(result), read_graph_claims(truth)
    try:
        scores = compare(found.arrows, true.arrows, found.lines)
    except ValueError as problem:
        raise SettingsError(f"The two graphs cannot be compared: {problem}") from None
    rows = {"edges": scores.skeleton, "directions": scores.direction}
    if found.changing is not None and true.changing is not None:
        rows["changing"] = compare_changing(found.changing, true.changing)
    heads = ("", "correct", "claimed", "true", "precision", "recall", "F1", "distance")
    out.table(
        heads,
        [(name, s.correct, s.claimed, s.true, s.precision, s.recall, s.f1, s.shd) for name, s in rows.items()],
    )
    out.result({name: score_document(score) for name, score in rows.items()})


def score_document(score: Score) -> dict[str, Any]:
    """Return a score as a JSON object."""
    names = ("correct", "claimed", "true", "precision", "recall", "f1", "shd")
    return {name: getattr(score, name) for name in names}
