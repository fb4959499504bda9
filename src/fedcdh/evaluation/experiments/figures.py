"""Figures of experiments, with matplotlib: curves of means with standard deviations, a panel per sweep and measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.tables import ResultPanel, describe_setting, methods_with_rows, split_panels

FIGURE_MEASURES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "graphs": (
        ("skeleton_f1", "skeleton_shd", "direction_f1", "direction_shd"),
        ("skeleton_precision", "skeleton_recall", "direction_precision", "direction_recall"),
    ),
    "real": (("skeleton_f1", "skeleton_shd", "direction_f1", "direction_shd"),),
    "stocks": (("edges", "within_sector", "known_adjacent", "known_directed"),),
    "tests": (("rejected",),),
    "principle": (("right",),),
    "bytes": (("message",),),
}
"""Measures that are drawn side by side; a second group is another figure."""
FIGURE_SUFFIXES = ("", "-precision-recall")
AXIS_LABELS = {
    "variables": "number of variables d",
    "clients": "number of clients K",
    "rows": "rows per client",
    "changing": "changing mechanisms",
    "width": "features h",
    "rejected": "share of p < 0.05",
    "right": "share of right directions",
    "message": "bytes of a message",
    "within_sector": "share of edges within a sector",
    "known_adjacent": "known pairs adjacent (of 2)",
    "known_directed": "known directions (of 2)",
}
COLOURS = ("#000000", "#0072B2", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "#E69F00", "#8C6D31", "#7F7F7F", "#B22222")
"""Distinguishable with all common kinds of colour blindness (after Okabe and Ito); markers repeat them."""
MARKERS = "osD^vP*Xph<>"
DOTS_PER_INCH = 110  # readable on a page, and a tenth of the bytes of an SVG with that number of points
LOGARITHMIC_PARAMETERS = {"clients", "rows"}


def draw_figures(experiment: Experiment, rows: Sequence[ResultRow], folder: Path) -> list[Path]:
    """Draw the figures of an experiment as PNG; there is none where the varied parameter is not a number.

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
    found = [panel for panel in split_panels(experiment, rows) if _is_numeric(panel)]
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for setting in dict.fromkeys(panel.setting for panel in found):
        here = [panel for panel in found if panel.setting == setting]
        for ending, measures in zip(FIGURE_SUFFIXES, FIGURE_MEASURES[experiment.kind], strict=False):
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


def _is_numeric(panel: ResultPanel) -> bool:
    return bool(panel.values) and all(value.replace(".", "", 1).isdigit() for value in panel.values)


def _draw_figure(pyplot: Any, experiment: Experiment, found: Sequence[ResultPanel], measures: Sequence[str]) -> Any:
    shape = (len(found), len(measures))
    figure, axes = pyplot.subplots(*shape, figsize=(2.6 * shape[1] + 0.4, 2.1 * shape[0] + 0.6), squeeze=False)
    methods = methods_with_rows(experiment, [row for panel in found for row in panel.rows])
    for line, panel in zip(axes, found, strict=True):
        for ax, measure in zip(line, measures, strict=True):
            _draw_curves(ax, panel, methods, measure)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=min(5, len(labels)), frameon=False, fontsize=8)
    words = describe_setting(found[0].setting)
    figure.suptitle(experiment.title + (f" ({words})" if words else ""), fontsize=9)
    lines = -(-len(labels) // 5)
    height = 2.1 * shape[0] + 0.6
    figure.tight_layout(rect=(0, (0.2 * lines + 0.1) / height, 1, 1))
    return figure


def _draw_curves(ax: Any, panel: ResultPanel, methods: Sequence[str], measure: str) -> None:
    for position, method in enumerate(methods):
        points = [(float(value), *found) for value in panel.values if (found := panel.mean(method, value, measure))]
        if not points:
            ax.plot([], [], color=COLOURS[position % len(COLOURS)], marker=MARKERS[position % 12], label=method)
            continue
        places, centres, spread = zip(*points, strict=True)
        ours = method.startswith("fedcdh")
        ax.errorbar(
            places,
            centres,
            yerr=np.nan_to_num(spread),
            label=method,
            color=COLOURS[position % len(COLOURS)],
            marker=MARKERS[position % len(MARKERS)],
            markersize=4 if ours else 3,
            linewidth=1.6 if ours else 0.9,
            elinewidth=0.5,
            capsize=1.5,
            linestyle=":" if method == "oracle" else "-",
            zorder=3 if ours else 2,
        )
    if panel.varied in LOGARITHMIC_PARAMETERS:
        ax.set_xscale("log", base=2)
    if measure.endswith(("f1", "precision", "recall", "rejected", "right")):
        ax.set_ylim(-0.03, 1.03)  # shares: comparable from panel to panel
    if measure == "message":
        ax.set_yscale("log")
    ax.set_xticks([float(value) for value in panel.values], panel.values)
    ax.minorticks_off()
    ax.set_xlabel(AXIS_LABELS.get(panel.varied, panel.varied))
    ax.set_ylabel(AXIS_LABELS.get(measure, measure.replace("_", " ").replace("f1", "F1").replace("shd", "SHD")))
