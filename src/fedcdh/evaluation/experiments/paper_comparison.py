"""Our figures beside those that the paper prints: tables of times, of significance and of the number of features."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.method_groups import REFERENCE_METHOD
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.tables import (
    MIN_PAIRS,
    ResultPanel,
    compare_methods,
    format_quantity,
    methods_with_rows,
    to_markdown,
)

SIGNIFICANCE_MEASURES = ("skeleton_f1", "skeleton_shd", "direction_f1", "direction_shd")

PAPER_BASELINES = {"FedPC": "fedpc", "NOTEARS-ADMM": "notears-admm", "FedDAG": "feddag"}


def load_printed_figures() -> dict[str, list[list[Any]]]:
    """Return the numbers that the paper prints."""
    return tomllib.loads((files("fedcdh.evaluation.experiments") / "printed.toml").read_text(encoding="utf-8"))


def _select_rows(rows: Iterable[ResultRow], d: int, clients: int, n: int, scale: str = "raw") -> list[ResultRow]:
    wanted = {"variables": str(d), "clients": str(clients), "rows": str(n), "scale": scale}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _mean_and_count(rows: Iterable[ResultRow], method: str, measure: str) -> tuple[float, int] | None:
    """Return the mean of a measure, and the number of seeds it is over."""
    numbers = [float(row[measure]) for row in rows if row["method"] == method]
    return (sum(numbers) / len(numbers), len(numbers)) if numbers else None


def _format_mean(figure: tuple[float, int] | None, seeds: int) -> str:
    if figure is None:
        return "–"
    return format_quantity(figure[0]) + (f" [{figure[1]}]" if figure[1] != seeds else "")


def time_tables(experiment: Experiment, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield tables of CPU seconds and of the bytes that all clients send, in all sizes of the paper's table."""
    seeds = len(experiment.seeds)
    methods = [*PAPER_BASELINES.values(), *(method for method in experiment.methods if method.startswith("fedcdh"))]
    clock, sent = [], []
    for d, clients, n, *theirs in load_printed_figures()["times"]:
        here = _select_rows(rows, d, clients, n)
        paper = dict(zip((*PAPER_BASELINES.values(), "fedcdh-paper"), theirs, strict=True))
        cells = [
            _format_mean(_mean_and_count(here, method, "seconds"), seeds)
            + (f" ({paper[method]:g})" if method in paper else "")
            for method in methods
        ]
        clock.append([str(d), str(clients), str(n), *cells])
        counts = [[_mean_and_count(here, method, f"{what}_up") for what in ("bytes", "messages")] for method in methods]
        listed = [
            f"{_format_mean(sums, seeds)} in {format_quantity(number[0])}" if number else "–" for sums, number in counts
        ]
        sent.append([str(d), str(clients), str(n), *listed])
    yield "## Table of computational time\n"
    yield (
        "CPU seconds, clients and server added up, no parallelism. In round brackets what the paper prints, for its "
        "own program and the baselines' (another machine, other implementations); in square brackets the number of "
        "seeds where it is not all.\n"
    )
    yield to_markdown(["d", "K", "n_k", *methods], clock) + "\n"
    yield "Bytes that all clients together send, and in how many messages:\n"
    yield to_markdown(["d", "K", "n_k", *methods], sent) + "\n"


def significance_table(rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield the table of signed-rank tests against each baseline, in all sizes of the paper's table."""
    yield "## Table of significance\n"
    yield (
        f"p-values of the signed-rank test, `{REFERENCE_METHOD}` against each baseline, raw data; in brackets the "
        "paper's, "
        "for its own method. An asterisk marks where the baseline is the better one, a dash where both have fewer than "
        f"{MIN_PAIRS} seeds.\n"
    )
    heads = [
        "d",
        "K",
        "n_k",
        *(f"{name}: {criterion}" for name in PAPER_BASELINES for criterion in ("S-F1", "S-SHD", "D-F1", "D-SHD")),
    ]
    lines = []
    for d, clients, n, *theirs in load_printed_figures()["wilcoxon"]:
        here = _select_rows(rows, d, clients, n)
        panel = ResultPanel((), "rows", (str(n),), tuple(here))
        cells = []
        for number, baseline in enumerate(PAPER_BASELINES.values()):
            for place, criterion in enumerate(SIGNIFICANCE_MEASURES):
                cells.append(_format_p_value(panel, str(n), baseline, criterion, theirs[4 * number + place]))
        lines.append([str(d), str(clients), str(n), *cells])
    yield to_markdown(heads, lines) + "\n"


def _format_p_value(panel: ResultPanel, value: str, baseline: str, criterion: str, paper: float) -> str:
    compared = next(iter(compare_methods(panel, value, [baseline], criterion)), None)
    if compared is None or compared.pairs < MIN_PAIRS:
        return f"– ({paper:.2f})"
    better = compared.ours < compared.theirs if criterion.endswith("shd") else compared.ours > compared.theirs
    return f"{compared.p_value:.3f}{'' if better or compared.ours == compared.theirs else '*'} ({paper:.2f})"


def feature_tables(experiment: Experiment, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield tables of all scores by the number h of features."""
    yield "## Beside the paper's table\n"
    yield "The paper's figures in brackets (10 runs of its own program on its own draws).\n"
    measures = [
        f"{part}_{score}" for part in ("skeleton", "direction") for score in ("f1", "precision", "recall", "shd")
    ]
    theirs = {str(h): figures for h, *figures in load_printed_figures()["features"]}
    for method in methods_with_rows(experiment, rows):
        lines = []
        for h in experiment.sweeps["width"]:
            here = [row for row in rows if row["width"] == str(h)]
            if not any(row["method"] == method for row in here):
                continue
            figures = [_mean_and_count(here, method, measure) for measure in (*measures, "seconds")]
            cells = [f"{figure[0]:.2f}" for figure in figures if figure]
            if method == "fedcdh-paper" and str(h) in theirs:
                cells = [f"{cell} ({paper:g})" for cell, paper in zip(cells, theirs[str(h)], strict=True)]
            lines.append([str(h), *cells])
        yield f"`{method}`:\n"
        yield to_markdown(
            ["h", "S-F1", "S-prec", "S-rec", "S-SHD", "D-F1", "D-prec", "D-rec", "D-SHD", "seconds"], lines
        )
        yield ""
