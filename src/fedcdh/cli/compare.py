"""`fedcdh compare`: scores of a result against the true graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.errors import DataError, SettingsError

if TYPE_CHECKING:
    from fedcdh.graphs.metrics import Score

_ORDER = "The result comes first: fedcdh compare RESULT TRUTH."


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
    _refuse_exchanged(result, truth)
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


def _refuse_exchanged(result: Path, truth: Path) -> None:
    """Refuse files that are neither a result nor a graph, and the true graph in the place of the result."""
    from fedcdh.cli._file_kinds import recognise_file, refuse_other_kind

    files = [path / "result.json" if path.is_dir() else path for path in (result, truth)]
    for path in files:
        refuse_other_kind(path, "a result or the true graph", DataError, _ORDER)
    kinds = [recognise_file(path) for path in files]
    if kinds[0] is None and kinds[1] is not None:
        raise DataError(
            f"{files[1]} is {kinds[1].name}; expected the true graph in its place, since {files[0]} is no result. Were "
            f"two arguments exchanged? {_ORDER}"
        )


def score_document(score: Score) -> dict[str, Any]:
    """Return a score as a JSON object."""
    names = ("correct", "claimed", "true", "precision", "recall", "f1", "shd")
    return {name: getattr(score, name) for name in names}
