"""Figures of the short page: one per question, each from the rows of one or two experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.figures import (
    DOTS_PER_INCH,
    add_legend,
    draw_curves,
    drawn_methods,
    is_numeric,
)
from fedcdh.evaluation.experiments.method_groups import ORACLE_METHOD, choose_curves, curve_styles
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.standings import Standing, split_cells
from fedcdh.evaluation.experiments.tables import ResultPanel, methods_with_rows, split_panels

DesignRows = Mapping[str, tuple[Experiment, Sequence[ResultRow]]]
"""Designs and their rows, by name."""
WIDTH = 8.0  # inches: as wide as the text of a page
MEASURE = "direction_f1"
MODELS = {"figure-3": "linear", "figure-4": "general"}


def draw_summary_figures(found: DesignRows, folder: Path) -> list[Path]:
    """Draw the figures of the short page whose experiments have rows, as PNG."""
    with optional_import("matplotlib", extra="plot"):
        from matplotlib import pyplot, rc_context
    written = []
    for name, draw in SUMMARY_FIGURES.items():
        with rc_context({"font.size": 8, "axes.grid": True, "grid.alpha": 0.25}):
            figure = draw(pyplot, found)
            if figure is not None:
                path = folder / f"{name}.png"
                figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None}, bbox_inches="tight")
                pyplot.close(figure)
                written.append(path)
    return written


def _draw_sizes(pyplot: Any, found: DesignRows) -> Any:
    """Draw direction F1 by variables, clients and rows, both models, standardised."""
    present = {name: panels for name in MODELS if (panels := _standardised_panels(found, name))}
    if not present:
        return None
    return _draw_grid(pyplot, found, list(present.items()), 1.75)


def _draw_dense(pyplot: Any, found: DesignRows) -> Any:
    """Draw direction F1 by variables on dense graphs, both models, standardised."""
    panels = _standardised_panels(found, "dense")
    return _draw_grid(pyplot, found, [("dense", panels)], 2.0) if panels else None


def _draw_noise(pyplot: Any, found: DesignRows) -> Any:
    """Draw direction F1 by the shape of the noise over all mechanisms, and by mechanism over all shapes."""
    experiment, rows = found.get("noise-shapes", (None, ()))
    if experiment is None or not rows:
        return None
    panels = [
        ResultPanel((), varied, tuple(dict.fromkeys(row[varied] for row in rows)), tuple(rows))
        for varied in ("noise", "mechanism")
    ]
    return _draw_grid(pyplot, found, [("noise-shapes", panels)], 2.3)


def _standardised_panels(found: DesignRows, name: str) -> list[ResultPanel]:
    if name not in found or not found[name][1]:
        return []
    panels = split_panels(*found[name])
    return [
        panel for panel in panels if dict(panel.setting).get("scale", "standardised") == "standardised" and panel.values
    ]


def _draw_grid(
    pyplot: Any, found: DesignRows, lines: Sequence[tuple[str, Sequence[ResultPanel]]], height: float
) -> Any:
    columns = max(len(panels) for _, panels in lines)
    size = (WIDTH, height * len(lines) + 0.6)
    figure, axes = pyplot.subplots(len(lines), columns, figsize=size, squeeze=False, sharey=True)
    methods: list[str] = []
    for name, panels in lines:
        rows = [row for panel in panels for row in panel.rows]
        methods += [method for method in drawn_methods(found[name][0], rows) if method not in methods]
    for line, (name, panels) in zip(axes, lines, strict=True):
        for ax, panel in zip(line, panels, strict=False):
            draw_curves(ax, panel, methods, MEASURE)
            ax.set_title(dict(panel.setting).get("model", MODELS.get(name, "")), fontsize=8)
            ax.set_ylabel("direction F1" if ax is line[0] else "")
            if not is_numeric(panel):
                ax.set_xlabel("")
    add_legend(figure, methods, size[1], columns=5)
    return figure


def _draw_scale(pyplot: Any, found: DesignRows) -> Any:
    """Draw each method's direction F1 on raw and on standardised data, over all instances."""
    present = [name for name in MODELS if name in found and found[name][1]]
    if not present:
        return None
    means = {name: [_means_at_scale(*found[name], scale) for scale in ("raw", "standardised")] for name in present}
    shown = {name: _methods_at_scales(*found[name], means[name]) for name in present}
    lines = max(map(len, shown.values()))
    figure, axes = pyplot.subplots(1, len(present), figsize=(WIDTH, 0.2 * lines + 0.9), squeeze=False)
    for ax, name in zip(axes[0], present, strict=True):
        _draw_scale_panel(ax, shown[name], *means[name])
        ax.set_title(f"{MODELS[name]} model", fontsize=8)
    figure.tight_layout()
    return figure


def _draw_scale_panel(ax: Any, methods: Sequence[str], raw: Mapping[str, float], scaled: Mapping[str, float]) -> None:
    styles = curve_styles(methods)
    for at, method in enumerate(reversed(methods)):
        colour = styles[method].colour
        ax.plot([raw[method], scaled[method]], [at, at], color=colour, linewidth=1.2)
        ax.plot(raw[method], at, "o", markerfacecolor="white", color=colour, label="raw" if not at else None)
        ax.plot(scaled[method], at, "o", color=colour, label="standardised" if not at else None)
    ax.set_yticks(range(len(methods)), [*reversed(methods)])
    ax.set_xlim(0, 1)
    ax.set_xlabel("direction F1 over all instances: ○ raw, ● standardised")


def _means_at_scale(experiment: Experiment, rows: Sequence[ResultRow], scale: str) -> dict[str, float]:
    here = [row for row in rows if row["scale"] == scale]
    return Standing(split_cells(experiment, here, MEASURE)).overall


def _methods_at_scales(
    experiment: Experiment, rows: Sequence[ResultRow], means: Sequence[Mapping[str, float]]
) -> list[str]:
    raw, scaled = means
    drawn = choose_curves(rows, methods_with_rows(experiment, rows), MEASURE)
    both = [method for method in drawn if method in raw and method in scaled and method != ORACLE_METHOD]
    return sorted(both, key=lambda method: -scaled[method])


SUMMARY_FIGURES: Mapping[str, Callable[[Any, DesignRows], Any]] = {
    "summary-sizes": _draw_sizes,
    "summary-scale": _draw_scale,
    "summary-dense": _draw_dense,
    "summary-noise": _draw_noise,
}
"""Files of figures, without their ending, and what draws them."""
