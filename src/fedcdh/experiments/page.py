"""The page of results: every experiment with its command, seeds, figures and tables, made from the files of rows."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedcdh.experiments.definition import Experiment, load, names
from fedcdh.experiments.figures import ENDINGS, MEASURES, figure_name
from fedcdh.experiments.running import Row, columns_of, read_rows
from fedcdh.experiments.tables import (
    LEVEL,
    OURS,
    Panel,
    duels,
    markdown,
    means,
    methods_of,
    panels,
    plus_minus,
    quantity,
    same_graphs,
    setting_in_words,
)
from fedcdh.files.disk import write_whole

ORDER = ("figure-3", "figure-4", "dense", "hyperparameter", "order", "changing", "unequal", "one-client", "power")
"""As in the paper; what is not named here follows."""
NOT_RIVALS = {"oracle", "fedcdh-evidence", "fedcdh-constraint", "fedcdh-paper"}
TABLES = {
    "graphs": ("direction_f1", "skeleton_f1"),
    "real": ("skeleton_f1", "direction_f1"),
    "stocks": ("edges", "within_sector", "known_directed"),
    "tests": ("rejected",),
    "principle": ("right",),
    "bytes": ("message", "raw", "tensor"),
}
CRITERIA = ("skeleton_f1", "skeleton_shd", "direction_f1", "direction_shd")

HEAD = """# Results

Every table and figure of this page is made by `fedcdh experiment page` from the CSV files beside it
(`docs/results/*.csv`), and every file by the command above its figures. One row of a file is one method on one instance:
parameters, seed, scores, messages and bytes, CPU seconds of all clients and the server together (one thread), and what
went wrong, if anything. Means are over seeds, ± is one standard deviation. [rivals.md](rivals.md) says what the methods
are; a method that fails on an instance has found no edge there.

*raw* data are the paper's: effects nearly always vary more than their causes, so that sorting the variables by variance
finds most directions (`sort-by-variance`, which is no causal method). *standardised* are the same data with every
variable at mean 0 and variance 1.
"""


def write_page(folder: Path, page: Path, size: str = "full") -> Path:
    """Writes the page of all experiments that have a file of rows in the folder."""
    experiments = [load(name, size) for name in sorted(names(), key=_place)]
    found = [
        (experiment, read_rows(folder / f"{experiment.name}.csv", columns_of(experiment))) for experiment in experiments
    ]
    parts = [HEAD, *_standing(found)]
    for experiment, rows in found:
        if rows:
            parts += _section(experiment, rows, folder, page)
    write_whole(page, "\n".join(part.rstrip() + "\n" for part in parts))
    return page


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


# Where we win, tie and lose


def _standing(found: Iterable[tuple[Experiment, Sequence[Row]]]) -> Iterator[str]:
    yield f"""## Where the default engine stands

Direction F1 of `{OURS}` in every cell of the two main figures, beside all rivals that were run on the same instances:
*worse* and *better* where a signed-rank test of the paired figures has p < {LEVEL:g}, *tied* otherwise."""
    for experiment, rows in found:
        if experiment.name in ("figure-3", "figure-4") and rows:
            yield f"### {experiment.title}\n"
            for setting in dict.fromkeys(panel.setting for panel in panels(experiment, rows)):
                yield f"{setting_in_words(setting)}, cell by cell, and all its instances together:\n"
                here = [panel for panel in panels(experiment, rows) if panel.setting == setting]
                yield _verdicts(experiment, here)
                yield ""
                yield _altogether(experiment, here)


def _verdicts(experiment: Experiment, found: Sequence[Panel]) -> str:
    rivals = [method for method in experiment.methods if method not in NOT_RIVALS]
    lines = []
    for panel in found:
        for value in panel.values:
            met = list(duels(panel, value, rivals, "direction_f1"))
            if not met:
                continue
            ours, best = panel.mean(OURS, value, "direction_f1"), max(met, key=lambda duel: duel.theirs)
            behind = ", ".join(f"{duel.rival} (p = {duel.p_value:.3f})" for duel in met if duel.verdict == "worse")
            won = sum(duel.verdict == "better" for duel in met)
            lines.append(
                [
                    f"{panel.varied} = {value}",
                    "–" if ours is None else f"{ours[0]:.2f}",
                    f"{best.rival} {best.theirs:.2f}",
                    f"{won} of {len(met)}",
                    behind or "none",
                ]
            )
    return markdown(["cell", "ours", "best rival", "better than", "worse than"], lines)


def _altogether(experiment: Experiment, found: Sequence[Panel]) -> str:
    """All instances of a setting: whom we beat how often. Cells share instances, so there is no test here."""
    scores: dict[str, dict[tuple[str, ...], float]] = {}
    for row in (row for panel in found for row in panel.rows):
        instance = tuple(row[name] for name in (*experiment.parameters, "seed"))
        scores.setdefault(row["method"], {})[instance] = float(row["direction_f1"])
    lines = []
    for rival in methods_of(experiment, [row for panel in found for row in panel.rows]):
        shared = sorted(scores.get(OURS, {}).keys() & scores[rival].keys())
        if rival in (OURS, "oracle") or not shared:
            continue
        pairs = [(scores[OURS][instance], scores[rival][instance]) for instance in shared]
        counts = [sum(a > b for a, b in pairs), sum(a == b for a, b in pairs), sum(a < b for a, b in pairs)]
        both = [sum(figures) / len(pairs) for figures in zip(*pairs, strict=True)]
        lines.append([rival, str(len(pairs)), *(f"{figure:.3f}" for figure in both), *map(str, counts)])
    return markdown(["rival", "instances", "ours", "theirs", "we are better", "equal", "worse"], lines)


# One experiment


def _section(experiment: Experiment, rows: Sequence[Row], folder: Path, page: Path) -> Iterator[str]:
    seeds = sorted({int(row["seed"]) for row in rows})
    yield f"## {experiment.title}\n"
    yield f"`fedcdh experiment {experiment.name}`: {len(rows)} rows, {_seeds(seeds)}. {_limits(experiment)}\n"
    if failures := [row for row in rows if row["failure"]]:
        yield _failures(failures)
    if experiment.remarks:
        yield experiment.remarks + "\n"
    found = panels(experiment, rows)
    for setting in dict.fromkeys(panel.setting for panel in found):
        for ending, _ in zip(ENDINGS, MEASURES[experiment.kind], strict=False):
            path = folder / f"{figure_name(experiment, setting)}{ending}.svg"
            if path.exists():
                yield f"![{experiment.title}, {setting_in_words(setting)}]({path.relative_to(page.parent).as_posix()})\n"
    for panel in found:
        yield from _tables(experiment, panel)
    yield from _extras(experiment, rows)


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _limits(experiment: Experiment) -> str:
    """What slow methods were spared."""
    told = []
    for method, limits in experiment.limits.items():
        parts = [
            ", ".join(
                [
                    *([f"{limit.seeds} seed{'s' if limit.seeds > 1 else ''}"] if limit.seeds else []),
                    *(f"{name} ≤ {most:g}" for name, most in limit.at_most.items()),
                ]
            )
            for limit in limits
        ]
        told.append(f"`{method}` {' or '.join(parts)}")
    return f"Only as far as they are fast enough: {'; '.join(told)}." if told else ""


def _failures(rows: Sequence[Row]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["method"]] = counts.get(row["method"], 0) + 1
    told = ", ".join(f"`{method}` on {count}" for method, count in counts.items())
    return f"Failed, and counted as having found nothing: {told} ({rows[0]['failure']}).\n"


def _tables(experiment: Experiment, panel: Panel) -> Iterator[str]:
    methods = methods_of(experiment, panel.rows)
    for measure in TABLES[experiment.kind]:
        words = setting_in_words(panel.setting)
        yield f"{measure.replace('_', ' ')}{f' ({words})' if words else ''}:\n"
        show = (lambda figures: quantity(figures and figures[0])) if experiment.kind == "bytes" else plus_minus
        yield means(panel, methods, measure, show) + "\n"


def _extras(experiment: Experiment, rows: Sequence[Row]) -> Iterator[str]:
    if experiment.name == "figure-3":
        yield from _times(experiment, rows)
        yield from _significance(experiment, rows)
    if experiment.name == "hyperparameter":
        yield from _features(experiment, rows)
    for between in ("scale", "order"):
        if len(experiment.base.get(between, ())) > 1:
            yield f"### The same graph, whatever the {between}\n"
            found = same_graphs([row for row in rows if row["method"] != "oracle"], between)
            values = " and ".join(map(str, experiment.base[between]))
            yield f"Instances on which a method finds the very same graph and changes with {between} {values}:\n"
            yield markdown(["method", "same"], [[method, f"{same} of {of}"] for method, (same, of) in found.items()])
            yield ""


# Beside the paper's printed figures

RIVALS = {"FedPC": "fedpc", "NOTEARS-ADMM": "notears-admm", "FedDAG": "feddag"}


def printed() -> dict[str, list[list[Any]]]:
    """The numbers that the paper prints."""
    return tomllib.loads((files("fedcdh.experiments") / "printed.toml").read_text(encoding="utf-8"))


def _at(rows: Iterable[Row], d: int, clients: int, n: int, scale: str = "raw") -> list[Row]:
    wanted = {"variables": str(d), "clients": str(clients), "rows": str(n), "scale": scale}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _mean(rows: Iterable[Row], method: str, measure: str) -> float | None:
    numbers = [float(row[measure]) for row in rows if row["method"] == method]
    return sum(numbers) / len(numbers) if numbers else None


def _times(experiment: Experiment, rows: Sequence[Row]) -> Iterator[str]:
    yield "### Table of computational time\n"
    yield (
        "CPU seconds, clients and server added up, no parallelism; in brackets what the paper prints for its own "
        "program, and for the rivals' (another machine, other implementations). Our three engines are the last.\n"
    )
    heads = ["d", "K", "n_k", *RIVALS, *(method for method in experiment.methods if method.startswith("fedcdh"))]
    lines = []
    for d, clients, n, *theirs in printed()["times"]:
        here = _at(rows, d, clients, n)
        cells = [
            f"{quantity(_mean(here, method, 'seconds'))} ({paper:g})"
            for method, paper in zip(RIVALS.values(), theirs, strict=False)
        ]
        for method in heads[6:]:
            mine = quantity(_mean(here, method, "seconds"))
            cells.append(f"{mine} ({theirs[3]:g})" if method == "fedcdh-paper" else mine)
        lines.append([str(d), str(clients), str(n), *cells])
    yield markdown(heads, lines) + "\n"
    yield "Messages and bytes, of all clients together, up and down:\n"
    methods = [method for method in methods_of(experiment, rows) if method != "oracle"]
    lines = []
    for d, clients, n in ((6, 10, 100), (30, 10, 100), (6, 32, 100), (6, 10, 400)):
        here = _at(rows, d, clients, n)
        for method in methods:
            figures = [_mean(here, method, f"{what}_{way}") for what in ("messages", "bytes") for way in ("up", "down")]
            if figures[0] is not None:
                lines.append([method, str(d), str(clients), str(n), *map(quantity, figures)])
    yield markdown(["method", "d", "K", "n_k", "messages up", "down", "bytes up", "down"], lines) + "\n"


def _significance(experiment: Experiment, rows: Sequence[Row]) -> Iterator[str]:
    yield "### Table of significance\n"
    yield (
        f"p-values of the signed-rank test, `{OURS}` against each rival, raw data; in brackets the paper's, for its own "
        "method. An asterisk marks the cells in which the rival is the better one.\n"
    )
    heads = [
        "d",
        "K",
        "n_k",
        *(f"{name}: {criterion}" for name in RIVALS for criterion in ("S-F1", "S-SHD", "D-F1", "D-SHD")),
    ]
    lines = []
    for d, clients, n, *theirs in printed()["wilcoxon"]:
        here = _at(rows, d, clients, n)
        panel = Panel((), "rows", (str(n),), tuple(here))
        cells = []
        for number, rival in enumerate(RIVALS.values()):
            for place, criterion in enumerate(CRITERIA):
                cells.append(_p(panel, str(n), rival, criterion, theirs[4 * number + place]))
        lines.append([str(d), str(clients), str(n), *cells])
    yield markdown(heads, lines) + "\n"


def _p(panel: Panel, value: str, rival: str, criterion: str, paper: float) -> str:
    met = next(iter(duels(panel, value, [rival], criterion)), None)
    if met is None:
        return f"– ({paper:.2f})"
    better = met.ours < met.theirs if criterion.endswith("shd") else met.ours > met.theirs
    return f"{met.p_value:.3f}{'' if better or met.ours == met.theirs else '*'} ({paper:.2f})"


def _features(experiment: Experiment, rows: Sequence[Row]) -> Iterator[str]:
    yield "### Beside the paper's table\n"
    yield "The paper's figures in brackets (10 runs of its own program on its own draws).\n"
    measures = [
        f"{part}_{score}" for part in ("skeleton", "direction") for score in ("f1", "precision", "recall", "shd")
    ]
    theirs = {str(h): figures for h, *figures in printed()["features"]}
    for method in methods_of(experiment, rows):
        lines = []
        for h in experiment.sweeps["width"]:
            here = [row for row in rows if row["width"] == str(h)]
            if not any(row["method"] == method for row in here):
                continue
            cells = [f"{_mean(here, method, measure):.2f}" for measure in measures]
            cells.append(quantity(_mean(here, method, "seconds")))
            if method == "fedcdh-paper" and str(h) in theirs:
                cells = [f"{cell} ({paper:g})" for cell, paper in zip(cells, theirs[str(h)], strict=True)]
            lines.append([str(h), *cells])
        yield f"`{method}`:\n"
        yield markdown(["h", "S-F1", "S-prec", "S-rec", "S-SHD", "D-F1", "D-prec", "D-rec", "D-SHD", "seconds"], lines)
        yield ""
