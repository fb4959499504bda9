"""The page of one experiment: its command and seeds, figures, tables, and the comparison with every rival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcdh.evaluation.experiments.definition import EVERY_METHOD, Experiment, MethodLimit
from fedcdh.evaluation.experiments.figures import FIGURE_SUFFIXES, figure_name
from fedcdh.evaluation.experiments.method_groups import OWN_METHODS, REFERENCE_METHOD, is_rival
from fedcdh.evaluation.experiments.paper_comparison import feature_tables, significance_table, time_tables
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.standings import ResultCell, Standing, split_cells
from fedcdh.evaluation.experiments.statements import describe_experiment
from fedcdh.evaluation.experiments.tables import (
    MIN_PAIRS,
    SIGNIFICANCE_LEVEL,
    ResultPanel,
    count_equal_graphs,
    describe_setting,
    format_mean,
    format_quantity,
    means_table,
    methods_with_rows,
    split_panels,
    to_markdown,
)

SEEN_LIMIT = "feddag-all-linear"
"""The method whose limit was set after its rows beyond it were seen; the page on what results rest on says why."""
TABLE_MEASURES = {
    "graphs": ("direction_f1", "skeleton_f1"),
    "real": ("skeleton_f1", "direction_f1"),
    "noise": ("direction_f1", "right", "reversed"),
    "stocks": ("edges", "within_sector", "known_directed"),
    "tests": ("rejected",),
    "principle": ("right",),
    "dependent": ("reversed", "open", "right"),
    "bytes": ("message", "raw", "tensor"),
}


def render_details_page(experiment: Experiment, rows: Sequence[ResultRow], folder: Path, size: str) -> str:
    """Return the text of the page of an experiment that has rows, in the folder of its figures."""
    parts = [f"# {experiment.title}\n", *_opening(experiment, rows, size)]
    found = split_panels(experiment, rows)
    for setting in dict.fromkeys(panel.setting for panel in found):
        for ending in FIGURE_SUFFIXES:
            path = folder / f"{figure_name(experiment, setting)}{ending}.png"
            if path.exists():
                parts.append(f"![{experiment.title}, {describe_setting(setting)}]({path.name})\n")
    if experiment.kind in ("graphs", "real", "noise"):
        parts += _comparison_section(experiment, rows)
    parts.append("## All means\n")
    for panel in found:
        parts += _measure_tables(experiment, panel)
    parts += _special_tables(experiment, rows)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _opening(experiment: Experiment, rows: Sequence[ResultRow], size: str) -> Iterator[str]:
    seeds = sorted({int(row["seed"]) for row in rows})
    command = " ".join(["fedcdh experiment", experiment.name, *([f"--{size}"] if size != "full" else [])])
    missing = len(experiment.jobs()) - len(rows)
    unfinished = f", and {missing} more that were not yet run" if missing else ""
    yield f"[Results](../results.md) · `{command}` · [{len(rows)} rows]({experiment.name}.csv){unfinished}, " + (
        f"{_format_seeds(seeds)}.\n"
    )
    yield describe_experiment(experiment, rows) + "\n"
    if experiment.remarks:
        yield experiment.remarks + "\n"
    if limits := _format_limits(experiment):
        yield limits + "\n"
    if failures := [row for row in rows if row["failure"]]:
        yield _format_failures(failures)
    yield (
        "Means are over seeds, and ± is one standard deviation. The number of seeds stands in brackets where it is "
        f"not all. Figures show at most twelve methods; the band is one standard error of `{REFERENCE_METHOD}`.\n"
    )


def _format_seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _format_limits(experiment: Experiment) -> str:
    """Describe how far methods were run that are slow, or made for some cases only."""
    listed = [
        f"{_format_method(method)} {' or '.join(map(_format_limit, limits))}"
        for method, limits in experiment.limits.items()
        if method in (EVERY_METHOD, *experiment.methods)
    ]
    if not listed:
        return ""
    exception = f", except for `{SEEN_LIMIT}`" if SEEN_LIMIT in experiment.limits else ""
    return f"Not on all cases, which was decided before the rows in question were seen{exception}: {'; '.join(listed)}."


def _format_method(method: str) -> str:
    return "every method" if method == EVERY_METHOD else f"`{method}`"


def _format_limit(limit: MethodLimit) -> str:
    return ", ".join(
        [
            *([f"{limit.seeds} seed{'s' if limit.seeds > 1 else ''}"] if limit.seeds else []),
            *(f"{name} ≤ {most:g}" for name, most in limit.max_values.items()),
            *(f"{name} {', '.join(map(str, listed))}" for name, listed in limit.values.items()),
        ]
    )


def _format_failures(rows: Sequence[ResultRow]) -> str:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        found[row["method"], row["failure"]] = found.get((row["method"], row["failure"]), 0) + 1
    listed = "; ".join(f"`{method}` on {count} ({why})" for (method, why), count in sorted(found.items()))
    return f"Failed, and counted as having found nothing: {listed}.\n"


# Where the reference stands


def _comparison_section(experiment: Experiment, rows: Sequence[ResultRow]) -> Iterator[str]:
    cells = split_cells(experiment, rows, "direction_f1")
    yield f"""## Direction F1 of `{REFERENCE_METHOD}` beside every rival

A signed-rank test compares the paired figures of the seeds that both have: *better* and *worse* where p <
{SIGNIFICANCE_LEVEL:g}, *tied* otherwise. With fewer than {MIN_PAIRS} seeds no such test can reach this level.
"""
    for setting in dict.fromkeys(cell.setting for cell in cells):
        here = [cell for cell in cells if cell.setting == setting]
        words = describe_setting(setting)
        yield f"{words[:1].upper()}{words[1:]}, by rival:\n" if words else "By rival:\n"
        yield _rival_table(here) + "\n"
        if len(here) > 1:
            yield "By cell:\n"
            yield _cell_table(here) + "\n"


def _rival_table(cells: Sequence[ResultCell]) -> str:
    """Return the verdicts on every method, and the means over the instances that both have."""
    lines = []
    methods = list(dict.fromkeys(method for cell in cells for method in cell.scores))
    verdicts = Standing(cells).verdicts
    for method in methods:
        if not is_rival(method) and (method not in OWN_METHODS or method == REFERENCE_METHOD):
            continue
        pairs = [
            (own[seed], theirs[seed])
            for cell in cells
            for own, theirs in [(cell.scores.get(REFERENCE_METHOD, {}), cell.scores.get(method, {}))]
            for seed in own.keys() & theirs.keys()
        ]
        if pairs:
            both = [f"{sum(figures) / len(pairs):.3f}" for figures in zip(*pairs, strict=True)]
            counts = verdicts.get(method, Counter[str]())
            shown = [str(counts[verdict]) for verdict in ("better", "tied", "worse", "too few")]
            lines.append([method, str(len(pairs)), *both, *(shown if is_rival(method) else ["–"] * 4)])
    lines.sort(key=lambda line: -float(line[3]))
    return to_markdown(
        ["method", "instances", "ours", "theirs", "cells: we are better", "tied", "worse", "too few seeds"], lines
    )


def _cell_table(cells: Sequence[ResultCell]) -> str:
    lines = []
    for cell in cells:
        own, best = cell.means.get(REFERENCE_METHOD), cell.best_rival
        worse = [compared for compared in cell.compare() if compared.verdict == "worse"]
        behind = ", ".join(f"{compared.baseline} (p = {compared.p_value:.3f})" for compared in worse)
        rival = f"{best} {cell.rivals[best]:.2f}" if best else "–"
        lines.append([cell.label, "–" if own is None else f"{own:.2f}", rival, behind or "none"])
    return to_markdown(["cell", "ours", "best rival with all seeds", "worse than"], lines)


# Tables


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
            yield f"## The same graph, whatever the {between}\n"
            found = count_equal_graphs([row for row in rows if row["method"] != "oracle"], between)
            values = " and ".join(map(str, experiment.base[between]))
            yield f"Instances on which a method finds the very same graph and changes with {between} {values}:\n"
            yield to_markdown(["method", "same"], [[method, f"{same} of {of}"] for method, (same, of) in found.items()])
            yield ""


def _round_costs(experiment: Experiment, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield a table of messages and bytes besides the profile, of which every client sends one."""
    yield "## Rounds and bytes\n"
    yield "Messages of a client after its profile (the first is its summary), and kB that a client sends in all:\n"
    lines = []
    for panel in split_panels(experiment, rows):
        for value in panel.values:
            cells = []
            for method in ("fedcdh-constraint-one-message", "fedcdh-rounds"):
                found = panel.of(method, value)
                clients = [int(row["clients"]) for row in found]
                for measure, unit, less in (("messages_up", 1, 1), ("bytes_up", 1000, 0)):
                    each = [int(row[measure]) / of / unit - less for row, of in zip(found, clients, strict=True)]
                    cells.append(f"{sum(each) / len(each):.1f}" if each else "–")
            lines.append([f"{describe_setting(panel.setting)}, {panel.varied} = {value}", *cells])
    yield to_markdown(["case", "one message", "kB", "adaptive rounds", "kB"], lines) + "\n"
