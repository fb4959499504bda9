"""The page of results: every experiment with its command, seeds, figures and tables, made from the files of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fedcdh._io.storage import write_atomically
from fedcdh.evaluation.experiments.definition import Experiment, experiment_names, load_experiment
from fedcdh.evaluation.experiments.figures import FIGURE_MEASURES, FIGURE_SUFFIXES, figure_name
from fedcdh.evaluation.experiments.paper_comparison import feature_tables, significance_table, time_tables
from fedcdh.evaluation.experiments.row_files import ResultRow, read_design_rows
from fedcdh.evaluation.experiments.tables import (
    MIN_PAIRS,
    REFERENCE_METHOD,
    SIGNIFICANCE_LEVEL,
    ResultPanel,
    compare_methods,
    count_equal_graphs,
    describe_setting,
    format_mean,
    format_quantity,
    means_table,
    methods_with_rows,
    split_panels,
    to_markdown,
)

PAPER_ORDER = (
    "figure-3",
    "figure-4",
    "dense",
    "hyperparameter",
    "order",
    "changing",
    "unequal",
    "one-client",
    "rounds",
    "power",
)
"""The order of the paper; other experiments follow."""
NON_BASELINES = {"oracle", "fedcdh-evidence", "fedcdh-constraint", "fedcdh-rounds", "fedcdh-paper"}
TABLE_MEASURES = {
    "graphs": ("direction_f1", "skeleton_f1"),
    "real": ("skeleton_f1", "direction_f1"),
    "stocks": ("edges", "within_sector", "known_directed"),
    "tests": ("rejected",),
    "principle": ("right",),
    "bytes": ("message", "raw", "tensor"),
}

PAGE_HEAD = """# Results

Every table and figure of this page is made by `fedcdh experiment page` from the CSV files beside it,
and every file by the command above its figures. One row of a file is one method on one instance:
parameters, seed, scores, messages and bytes, CPU seconds of all clients and the server together (one thread), and what
failed, if anything. Means are over seeds, and ± is one standard deviation. Slow baselines have fewer seeds; their
number then stands in brackets. Paired comparisons are on the seeds that both have.
[rivals.md](rivals.md) says what the methods are; a method that fails on an instance has found no edge there.

*raw* data are the paper's: effects nearly always vary more than their causes, so that sorting the variables by variance
finds most directions (`sort-by-variance`, which is no causal method). *standardised* are the same data with every
variable at mean 0 and variance 1.
"""


def write_results_page(folder: Path, page: Path, size: str = "full") -> Path:
    """Write the page of all experiments of this size that have rows in the folder, and only of these rows.

    The file discussion.txt (Markdown) of the folder holds what a person has to say about them, and becomes part of the
    page.

    Parameters
    ----------
    folder : Path
        Folder with the files of rows and the figures.
    page : Path
        File to write.
    size : {"full", "quick", "smallest"}, default "full"
        Size of the designs; see `load_experiment`.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fedcdh.evaluation.experiments import write_results_page
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_results_page(folder, folder / "results.md").read_text(encoding="utf-8").splitlines()[0]
    '# Results'
    """
    write_atomically(page, render_results_page(folder, page, size))
    return page


def render_results_page(folder: Path, page: Path, size: str = "full") -> str:
    """Return the text of the page."""
    experiments = [load_experiment(name, size) for name in sorted(experiment_names(), key=_paper_position)]
    found = [
        (experiment, read_design_rows(experiment, folder / f"{experiment.name}.csv")) for experiment in experiments
    ]
    said = folder / "discussion.txt"
    parts = [PAGE_HEAD, *([said.read_text(encoding="utf-8")] if said.exists() else []), *_comparison_section(found)]
    for experiment, rows in found:
        if rows:
            parts += _experiment_section(experiment, rows, folder, page, size)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _paper_position(name: str) -> tuple[int, str]:
    return (PAPER_ORDER.index(name) if name in PAPER_ORDER else len(PAPER_ORDER), name)


# Where we win, tie and lose


def _comparison_section(found: Iterable[tuple[Experiment, Sequence[ResultRow]]]) -> Iterator[str]:
    yield f"""## Where the default method stands

Direction F1 of `{REFERENCE_METHOD}` in every cell of the two main figures, beside all baselines run on the same
instances: *worse* and *better* where a signed-rank test of the paired figures has p < {SIGNIFICANCE_LEVEL:g}, *tied*
otherwise. With fewer than {MIN_PAIRS} seeds no such test can reach this level: these are counted apart, as *too
few seeds*. Ten seeds show large differences only. The second table of each setting has all instances together, which
share seeds and truths."""
    for experiment, rows in found:
        if experiment.name in ("figure-3", "figure-4") and rows:
            yield f"### {experiment.title}\n"
            for setting in dict.fromkeys(panel.setting for panel in split_panels(experiment, rows)):
                yield f"{describe_setting(setting)}, cell by cell, and all its instances together:\n"
                here = [panel for panel in split_panels(experiment, rows) if panel.setting == setting]
                yield _cell_comparisons(experiment, here)
                yield ""
                yield _setting_comparison(experiment, here)


def _cell_comparisons(experiment: Experiment, found: Sequence[ResultPanel]) -> str:
    baselines = [method for method in experiment.methods if method not in NON_BASELINES]
    lines = []
    for panel in found:
        for value in panel.values:
            compared = list(compare_methods(panel, value, baselines, "direction_f1"))
            if not compared:
                continue
            ours = panel.mean(REFERENCE_METHOD, value, "direction_f1")
            best = max(compared, key=lambda comparison: comparison.theirs - comparison.ours)
            behind = ", ".join(
                f"{comparison.baseline} (p = {comparison.p_value:.3f})"
                for comparison in compared
                if comparison.verdict == "worse"
            )
            listed = [comparison.verdict for comparison in compared]
            lines.append(
                [
                    f"{panel.varied} = {value}",
                    "–" if ours is None else f"{ours[0]:.2f}",
                    f"{best.baseline} {best.theirs:.2f} : {best.ours:.2f}",
                    str(best.pairs),
                    *(str(listed.count(verdict)) for verdict in ("better", "tied", "too few")),
                    behind or "none",
                ]
            )
    return to_markdown(
        ["cell", "ours", "hardest baseline : ours", "seeds", "better than", "tied with", "too few seeds", "worse than"],
        lines,
    )


def _setting_comparison(experiment: Experiment, found: Sequence[ResultPanel]) -> str:
    """Compare the methods on all instances of a setting; cells share instances, so there is no test here."""
    scores: dict[str, dict[tuple[str, ...], float]] = {}
    for row in (row for panel in found for row in panel.rows):
        instance = tuple(row[name] for name in (*experiment.parameters, "seed"))
        scores.setdefault(row["method"], {})[instance] = float(row["direction_f1"])
    lines = []
    for baseline in methods_with_rows(experiment, [row for panel in found for row in panel.rows]):
        shared = sorted(scores.get(REFERENCE_METHOD, {}).keys() & scores[baseline].keys())
        if baseline in (REFERENCE_METHOD, "oracle") or not shared:
            continue
        pairs = [(scores[REFERENCE_METHOD][instance], scores[baseline][instance]) for instance in shared]
        counts = [sum(a > b for a, b in pairs), sum(a == b for a, b in pairs), sum(a < b for a, b in pairs)]
        both = [sum(figures) / len(pairs) for figures in zip(*pairs, strict=True)]
        lines.append([baseline, str(len(pairs)), *(f"{figure:.3f}" for figure in both), *map(str, counts)])
    return to_markdown(["baseline", "instances", "ours", "theirs", "we are better", "equal", "worse"], lines)


# One experiment


def _experiment_section(
    experiment: Experiment, rows: Sequence[ResultRow], folder: Path, page: Path, size: str
) -> Iterator[str]:
    seeds = sorted({int(row["seed"]) for row in rows})
    command = " ".join(["fedcdh experiment", experiment.name, *([f"--{size}"] if size != "full" else [])])
    missing = len(experiment.jobs()) - len(rows)
    unfinished = f", and {missing} more that were not yet run" if missing else ""
    yield f"## {experiment.title}\n"
    yield f"`{command}`: {len(rows)} rows{unfinished}, {_format_seeds(seeds)}. {_format_limits(experiment)}\n"
    if failures := [row for row in rows if row["failure"]]:
        yield _format_failures(failures)
    if experiment.remarks:
        yield experiment.remarks + "\n"
    found = split_panels(experiment, rows)
    for setting in dict.fromkeys(panel.setting for panel in found):
        for ending, _ in zip(FIGURE_SUFFIXES, FIGURE_MEASURES[experiment.kind], strict=False):
            path = folder / f"{figure_name(experiment, setting)}{ending}.png"
            if path.exists():
                place = path.relative_to(page.parent).as_posix()
                yield f"![{experiment.title}, {describe_setting(setting)}]({place})\n"
    for panel in found:
        yield from _measure_tables(experiment, panel)
    yield from _special_tables(experiment, rows)


def _format_seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _format_limits(experiment: Experiment) -> str:
    """Describe how far slow methods were run."""
    listed = []
    for method, limits in experiment.limits.items():
        if method not in experiment.methods:
            continue
        parts = [
            ", ".join(
                [
                    *([f"{limit.seeds} seed{'s' if limit.seeds > 1 else ''}"] if limit.seeds else []),
                    *(f"{name} ≤ {most:g}" for name, most in limit.max_values.items()),
                ]
            )
            for limit in limits
        ]
        listed.append(f"`{method}` {' or '.join(parts)}")
    return f"Only as far as they are fast enough: {'; '.join(listed)}." if listed else ""


def _format_failures(rows: Sequence[ResultRow]) -> str:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        found[row["method"], row["failure"]] = found.get((row["method"], row["failure"]), 0) + 1
    listed = "; ".join(f"`{method}` on {count} ({why})" for (method, why), count in sorted(found.items()))
    return f"Failed, and counted as having found nothing: {listed}.\n"


def _measure_tables(experiment: Experiment, panel: ResultPanel) -> Iterator[str]:
    methods = methods_with_rows(experiment, panel.rows)
    for measure in TABLE_MEASURES[experiment.kind]:
        words = describe_setting(panel.setting)
        yield f"{measure.replace('_', ' ')}{f' ({words})' if words else ''}:\n"
        show = (lambda figures: format_quantity(figures and figures[0])) if experiment.kind == "bytes" else format_mean
        yield means_table(panel, methods, measure, show) + "\n"


def _special_tables(experiment: Experiment, rows: Sequence[ResultRow]) -> Iterator[str]:
    if experiment.name == "figure-3":
        yield from time_tables(experiment, rows)
        yield from significance_table(rows)
    if experiment.name == "hyperparameter":
        yield from feature_tables(experiment, rows)
    if experiment.name == "rounds":
        yield from _round_costs(experiment, rows)
    for between in ("scale", "order"):
        if len(experiment.base.get(between, ())) > 1:
            yield f"### The same graph, whatever the {between}\n"
            found = count_equal_graphs([row for row in rows if row["method"] != "oracle"], between)
            values = " and ".join(map(str, experiment.base[between]))
            yield f"Instances on which a method finds the very same graph and changes with {between} {values}:\n"
            yield to_markdown(["method", "same"], [[method, f"{same} of {of}"] for method, (same, of) in found.items()])
            yield ""


def _round_costs(experiment: Experiment, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield a table of messages and bytes besides the profile, of which every client sends one."""
    yield "### Rounds and bytes\n"
    yield "Messages of a client after its profile (the first is its summary), and kB that a client sends in all:\n"
    lines = []
    for panel in split_panels(experiment, rows):
        for value in panel.values:
            cells = []
            for method in ("fedcdh-constraint", "fedcdh-rounds"):
                found = panel.of(method, value)
                clients = [int(row["clients"]) for row in found]
                for measure, unit, less in (("messages_up", 1, 1), ("bytes_up", 1000, 0)):
                    each = [int(row[measure]) / of / unit - less for row, of in zip(found, clients, strict=True)]
                    cells.append(f"{sum(each) / len(each):.1f}" if each else "–")
            lines.append([f"{describe_setting(panel.setting)}, {panel.varied} = {value}", *cells])
    yield to_markdown(["case", "one message", "kB", "adaptive rounds", "kB"], lines) + "\n"
