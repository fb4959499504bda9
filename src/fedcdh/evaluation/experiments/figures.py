"""Figures of experiments, with matplotlib: curves of means, a panel per sweep and measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.method_groups import (
    MAX_CURVES,
    OWN_METHODS,
    REFERENCE_METHOD,
    CurveStyle,
    choose_curves,
    curve_styles,
)
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.tables import ResultPanel, describe_setting, methods_with_rows, split_panels

FIGURE_MEASURES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "graphs": (
        ("skeleton_f1", "skeleton_shd", "direction_f1", "direction_shd"),
        ("skeleton_precision", "skeleton_recall", "direction_precision", "direction_recall"),
    ),
    "noise": (("direction_f1", "right", "reversed", "skeleton_f1"),),
    "real": (("skeleton_f1", "skeleton_shd", "direction_f1", "direction_shd"),),
    "stocks": (("edges", "within_sector", "known_adjacent", "known_directed"),),
    "tests": (("rejected",),),
    "principle": (("right",),),
    "dependent": (("reversed", "open", "right"),),
    "bytes": (("message",),),
}
"""Measures that are drawn side by side; a second group is another figure."""
FIGURE_SUFFIXES = ("", "-precision-recall")
CATEGORY_MEASURES = (("skeleton_f1", "direction_f1"),)
"""Measures that are drawn where the varied parameter is no number, in wide panels."""
AXIS_LABELS = {
    "variables": "number of variables d",
    "clients": "number of clients K",
    "rows": "rows per client",
    "changing": "changing mechanisms",
    "width": "features h",
    "noise": "shape of the noise",
    "study": "study",
    "rejected": "share of p < 0.05",
    "right": "share of right arrows",
    "reversed": "share of reversed arrows",
    "open": "share of open directions",
    "level": "effect of ψ on levels",
    "message": "bytes of a message",
    "within_sector": "share of edges within a sector",
    "known_adjacent": "known pairs adjacent (of 2)",
    "known_directed": "known directions (of 2)",
}
DOTS_PER_INCH = 110  # readable on a page, and a tenth of the bytes of an SVG with that number of points
LOGARITHMIC_PARAMETERS = {"clients", "rows"}


def draw_figures(experiment: Experiment, rows: Sequence[ResultRow], folder: Path) -> list[Path]:
    """Draw the figures of an experiment as PNG: means over seeds of at most twelve methods; the tables have all.

    Parameters
    ----------
    experiment : Experiment
        The design.
    rows : sequence of dict
        Rows of results, as `run_experiment` returns them.
    folder : Path
        Where the figures are written; it is created if necessary.

    Returns
    -------
    list of Path
        The files that were written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fedcdh.evaluation.experiments import draw_figures, load_experiment
    >>> draw_figures(load_experiment("figure-3", "smallest"), [], Path(tempfile.mkdtemp()))
    []
    """
    with optional_import("matplotlib", extra="plot"):
        from matplotlib import pyplot, rc_context
    found = [panel for panel in split_panels(experiment, rows) if panel.values]
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for setting in dict.fromkeys(panel.setting for panel in found):
        here = [panel for panel in found if panel.setting == setting]
        groups = FIGURE_MEASURES[experiment.kind] if is_numeric(here[0]) else CATEGORY_MEASURES
        for ending, measures in zip(FIGURE_SUFFIXES, groups, strict=False):
            with rc_context({"font.size": 8, "axes.grid": True, "grid.alpha": 0.25}):
                figure = _draw_figure(pyplot, experiment, here, measures)
                path = folder / f"{figure_name(experiment, setting)}{ending}.png"
                figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None}, bbox_inches="tight")
                pyplot.close(figure)
            written.append(path)
    return written


def figure_name(experiment: Experiment, setting: tuple[tuple[str, str], ...]) -> str:
    """Return the name of a figure's file, without its ending."""
    return "-".join([experiment.name, *(value for _, value in setting)])


def _draw_figure(pyplot: Any, experiment: Experiment, found: Sequence[ResultPanel], measures: Sequence[str]) -> Any:
    shape, (width, height) = (len(found), len(measures)), (2.6, 2.1) if is_numeric(found[0]) else (5.2, 2.8)
    size = (width * shape[1] + 0.4, height * shape[0] + 0.6)
    figure, axes = pyplot.subplots(*shape, figsize=size, squeeze=False)
    methods = [*dict.fromkeys(method for panel in found for method in drawn_methods(experiment, panel.rows))]
    for line, panel in zip(axes, found, strict=True):
        for ax, measure in zip(line, measures, strict=True):
            draw_curves(ax, panel, methods, measure)
    words = describe_setting(found[0].setting)
    figure.suptitle(experiment.title + (f" ({words})" if words else ""), fontsize=9)
    add_legend(figure, methods, size[1])
    return figure


def drawn_methods(experiment: Experiment, rows: Sequence[ResultRow]) -> list[str]:
    """Return the methods of a figure, in the order of the design: all of them where they are few."""
    methods = methods_with_rows(experiment, rows)
    measure = FIGURE_MEASURES[experiment.kind][0][0]
    if "direction_f1" in FIGURE_MEASURES[experiment.kind][0]:
        measure = "direction_f1"
    return methods if len(methods) <= MAX_CURVES else choose_curves(rows, methods, measure)


def add_legend(figure: Any, methods: Sequence[str], height: float, columns: int = 6) -> None:
    """Put one legend of all methods below the panels of a figure that is so high, in inches."""
    with optional_import("matplotlib", extra="plot"):
        from matplotlib.lines import Line2D
    styles = curve_styles(methods)
    handles = [Line2D([], [], label=method, **line_options(method, styles[method])) for method in methods]
    figure.legend(handles=handles, loc="lower center", ncols=min(columns, len(methods)), frameon=False, fontsize=8)
    lines = -(-len(methods) // columns)
    figure.tight_layout(rect=(0, (0.2 * lines + 0.1) / height, 1, 1))


def draw_curves(ax: Any, panel: ResultPanel, methods: Sequence[str], measure: str) -> None:
    """Draw the means of each method; a band of one standard error is around the reference."""
    places = {value: float(value) if is_numeric(panel) else float(at) for at, value in enumerate(panel.values)}
    styles = curve_styles(methods)
    for method in methods:
        points = [(places[value], *found) for value in panel.values if (found := panel.mean(method, value, measure))]
        if not points:
            continue
        at, means, spread = map(np.array, zip(*points, strict=True))
        joined = {} if is_numeric(panel) else {"linestyle": ""}  # no line between categories
        ax.plot(at, means, **line_options(method, styles[method]) | joined)
        if method == REFERENCE_METHOD and is_numeric(panel):
            seeds = [len(own) for value in panel.values if (own := panel.seeds(method, value, measure))]
            error = np.nan_to_num(spread) / np.sqrt(seeds)
            ax.fill_between(at, means - error, means + error, color=styles[method].colour, alpha=0.15, linewidth=0)
    _format_axes(ax, panel, places, measure)


def line_options(method: str, style: CurveStyle) -> dict[str, Any]:
    """Return the options of matplotlib for the curve of a method."""
    ours = method in OWN_METHODS
    return {
        "color": style.colour,
        "marker": style.marker,
        "linestyle": style.line,
        "markersize": 4.5 if ours else 4,
        "linewidth": 1.8 if method == REFERENCE_METHOD else 1.0,
        "zorder": 3 if ours else 2,
    }


def _format_axes(ax: Any, panel: ResultPanel, places: Mapping[str, float], measure: str) -> None:
    if panel.varied in LOGARITHMIC_PARAMETERS:
        ax.set_xscale("log", base=2)
    if measure.endswith(("f1", "precision", "recall", "rejected", "right")):
        ax.set_ylim(-0.03, 1.03)  # shares: comparable from panel to panel
    if measure == "message":
        ax.set_yscale("log")
    turned = {} if is_numeric(panel) else {"rotation": 30, "ha": "right"}
    ax.set_xticks(list(places.values()), list(places), **turned)
    ax.minorticks_off()
    ax.set_xlabel(AXIS_LABELS.get(panel.varied, panel.varied))
    ax.set_ylabel(AXIS_LABELS.get(measure, measure.replace("_", " ").replace("f1", "F1").replace("shd", "SHD")))


def is_numeric(panel: ResultPanel) -> bool:
    """Return whether the values of the varied parameter are numbers."""
    return bool(panel.values) and all(value.replace(".", "", 1).isdigit() for value in panel.values)
