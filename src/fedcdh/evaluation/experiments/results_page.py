"""The pages of results: a short one with a table and a figure per question, and one per experiment with all figures.

Everything that states a figure is made from the files of rows. What a person has to say about them stands in
discussion.txt, which may state none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fedcdh._io.storage import write_atomically
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.evaluation.experiments.definition import Experiment, experiment_names, load_experiment
from fedcdh.evaluation.experiments.details_page import render_details_page
from fedcdh.evaluation.experiments.figures import draw_figures
from fedcdh.evaluation.experiments.method_groups import ORACLE_METHOD, OWN_METHODS, PAPER_METHODS, REFERENCE_METHOD
from fedcdh.evaluation.experiments.row_files import ResultRow, read_design_rows
from fedcdh.evaluation.experiments.standings import Standing, split_cells
from fedcdh.evaluation.experiments.statements import describe_experiment, describe_scale, join_words, summarise_standing
from fedcdh.evaluation.experiments.summary_figures import DesignRows, draw_summary_figures
from fedcdh.evaluation.experiments.tables import format_quantity, to_markdown

PAPER_ORDER = (
    "figure-3",
    "figure-4",
    "dense",
    "noise-shapes",
    "changing",
    "unequal",
    "one-client",
    "order",
    "rounds",
    "hyperparameter",
    "power",
    "principle",
    "dependent-changes",
    "communication",
    "fmri",
    "stocks",
    "real",
)
"""The order of the pages; other experiments follow."""
MAIN_EXPERIMENTS = {"figure-3": "linear", "figure-4": "general"}
MAIN_SETTINGS = tuple((name, scale) for scale in ("standardised", "raw") for name in MAIN_EXPERIMENTS)
SCALE_PAGE, BASIS_PAGE = "scale", "basis"
"""Pages beside those of the experiments: on units of measurement, and what a person has to say."""
SCALE_QUESTION = "Do the units of measurement matter?"
FURTHER_RIVALS = 3
"""Rivals of the main table besides those of the paper: those with the highest means."""

PAGE_HEAD = f"""# Results

All methods run on the same studies. `{REFERENCE_METHOD}` is `fedcdh.discover` by default, with a second message of each
client; `fedcdh-one-message` does without. `fedcdh-paper` is the paper's method to the letter. `oracle` is what perfect
tests would find. [Rivals](rivals.md) explains the others, [Experiments](experiments.md) repeats everything. Every
sentence with a number is made from the rows in `docs/results`.
"""
SCALE_TEXT = """In raw data, which are the paper's, effects nearly always vary more than their causes: sorting the
variables by variance finds most directions. Standardised data are the same in other units: every variable has the same
mean and variance.
"""


def write_results_page(folder: Path, page: Path, size: str = "full") -> Path:
    """Write the short page, the page of every experiment of this size that has rows in the folder, and all figures.

    The file discussion.txt (Markdown) of the folder holds what a person has to say. It becomes a page of its own, and
    may state no figure: sentences with figures are made from the rows.

    Parameters
    ----------
    folder : Path
        Folder with the files of rows. The figures and the pages of single experiments are written there.
    page : Path
        File of the short page.
    size : {"full", "quick", "smallest"}, default "full"
        Size of the designs; see `load_experiment`.

    Returns
    -------
    Path
        The short page.

    Raises
    ------
    SettingsError
        If discussion.txt states a figure.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fedcdh.evaluation.experiments import write_results_page
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_results_page(folder, folder / "results.md").read_text(encoding="utf-8").splitlines()[0]
    '# Results'
    """
    found = read_all_rows(folder, size)
    _draw_all(found, folder)
    for path, text in render_pages(folder, page, size, found).items():
        write_atomically(path, text)
    return page


def _draw_all(found: DesignRows, folder: Path) -> None:
    """Draw all figures anew; without matplotlib the pages show those that are there."""
    try:
        for experiment, rows in found.values():
            draw_figures(experiment, rows, folder)
        draw_summary_figures(found, folder)
    except MissingDependencyError:
        return


def read_all_rows(folder: Path, size: str = "full") -> dict[str, tuple[Experiment, list[ResultRow]]]:
    """Return every design with its rows in the folder, in the order of the page."""
    experiments = [load_experiment(name, size) for name in sorted(experiment_names(), key=_paper_position)]
    return {one.name: (one, read_design_rows(one, folder / f"{one.name}.csv")) for one in experiments}


def _paper_position(name: str) -> tuple[int, str]:
    return (PAPER_ORDER.index(name) if name in PAPER_ORDER else len(PAPER_ORDER), name)


def render_pages(folder: Path, page: Path, size: str = "full", found: DesignRows | None = None) -> dict[Path, str]:
    """Return the text of every page by its file: the short one, and one per experiment that has rows."""
    found = read_all_rows(folder, size) if found is None else found
    present = {name: (experiment, rows) for name, (experiment, rows) in found.items() if rows}
    place = folder.relative_to(page.parent).as_posix()
    parts = [PAGE_HEAD, *_main_section(present, folder, place), *_question_sections(present, folder, place)]
    aside = {SCALE_PAGE: [*_scale_page(present, folder)], BASIS_PAGE: [*_discussion(folder)]}
    pages = [name for name, written in aside.items() if written]
    parts += [*_further_section(present, place), *_basis_link(pages, place), *_toctree([*present, *pages], place)]
    texts = {page: _join(parts)} | {folder / f"{name}.md": _join(aside[name]) for name in pages}
    for name, (experiment, rows) in present.items():
        texts[folder / f"{name}.md"] = render_details_page(experiment, rows, folder, size)
    return texts


def _join(parts: Iterable[str]) -> str:
    return "\n".join(part.rstrip() + "\n" for part in parts)


# The short page


def _main_section(found: DesignRows, folder: Path, place: str) -> Iterator[str]:
    standings = main_standings(found)
    if not standings:
        return
    yield "## How good are the directions?\n"
    yield (
        f"{_describe_main_design(found)} The table has the mean direction F1 over all instances (in brackets: over how "
        f"many, where not all) of {_first_scale(standings)} data, and at the paper's base setting kB that a client "
        "sends and CPU seconds of all clients and the server. The sentences below count rivals with all instances.\n"
    )
    yield main_table(found, standings) + "\n"
    yield "\n".join(
        f"- [{MAIN_EXPERIMENTS[name]} model]({place}/{name}.md): {summarise_standing(standing)}"
        for (name, _), standing in _of_first_scale(standings).items()
    )
    yield from _show_figure(folder, place, "summary-sizes", "Direction F1 by variables, clients and rows")


def _describe_main_design(found: DesignRows) -> str:
    """Return the sizes of the two main designs in a sentence."""
    experiment = next(found[name][0] for name in MAIN_EXPERIMENTS if name in found)
    sizes = join_words(
        f"{min(values)} to {max(values)} {'rows each' if name == 'rows' else name}"
        for name, values in experiment.sweeps.items()
    )
    return f"Simulated studies of the paper's models, with {sizes}, and {len(experiment.seeds)} seeds in every cell."


def main_standings(found: DesignRows) -> dict[tuple[str, str], Standing]:
    """Return the standing in each setting of the two main figures that has rows."""
    standings = {}
    for name, scale in MAIN_SETTINGS:
        if name in found:
            experiment, rows = found[name]
            cells = split_cells(experiment, [row for row in rows if row["scale"] == scale], "direction_f1")
            if cells:
                standings[name, scale] = Standing(cells)
    return standings


def _first_scale(standings: Mapping[tuple[str, str], Standing]) -> str:
    """Return the scale of the main table: standardised, unless there are only raw data."""
    return next(scale for _, scale in standings)


def _of_first_scale(standings: Mapping[tuple[str, str], Standing]) -> dict[tuple[str, str], Standing]:
    return {key: standing for key, standing in standings.items() if key[1] == _first_scale(standings)}


def main_table(found: DesignRows, standings: Mapping[tuple[str, str], Standing]) -> str:
    """Return the main table, of one scale: ours, the paper's methods, and the rivals with the highest means."""
    costs, shown = _base_costs(found), _of_first_scale(standings)
    lines = []
    for method in _main_methods(standings):
        cells = [standing.format_mean(method) for standing in shown.values()]
        lines.append([f"`{method}`", *cells, *(format_quantity(cost) for cost in costs.get(method, (None, None)))])
    heads = [MAIN_EXPERIMENTS[name] for name, _ in shown]
    return to_markdown(["method", *heads, "kB", "seconds"], lines)


def _main_methods(standings: Mapping[tuple[str, str], Standing]) -> list[str]:
    """Return the oracle and ours, then the paper's methods and the strongest others, by their standardised means."""
    average = _average_means(standings.values())
    scaled = average | _average_means(one for (_, scale), one in standings.items() if scale == "standardised")
    complete = {method for standing in standings.values() for method in standing.overall}
    first = [method for method in (ORACLE_METHOD, *OWN_METHODS) if method in average]
    paper = [method for method in PAPER_METHODS if method in average]
    others = sorted(complete - {*first, *paper}, key=lambda method: (-average[method], method))
    return first + sorted(paper + others[:FURTHER_RIVALS], key=lambda method: (-scaled[method], method))


def _average_means(standings: Iterable[Standing]) -> dict[str, float]:
    means: dict[str, list[float]] = {}
    for standing in standings:
        for method, mean in standing.available.items():
            means.setdefault(method, []).append(mean)
    return {method: sum(figures) / len(figures) for method, figures in means.items()}


def _base_costs(found: DesignRows) -> dict[str, tuple[float, float]]:
    """Return kB that a client sends and CPU seconds, at the base of the two main designs."""
    listed: dict[str, list[tuple[float, float]]] = {}
    for name in MAIN_EXPERIMENTS.keys() & found.keys():
        experiment, rows = found[name]
        base = {key: str(values[0]) for key, values in experiment.base.items() if len(values) == 1}
        for row in (row for row in rows if all(row[key] == value for key, value in base.items())):
            kilobytes = float(row["bytes_up"]) / 1000 / int(row["clients"])
            listed.setdefault(row["method"], []).append((kilobytes, float(row["seconds"])))
    return {
        method: (sum(kb for kb, _ in costs) / len(costs), sum(seconds for _, seconds in costs) / len(costs))
        for method, costs in listed.items()
        if method != ORACLE_METHOD
    }


def _question_sections(found: DesignRows, folder: Path, place: str) -> Iterator[str]:
    for name, figure in (("dense", "summary-dense"), ("noise-shapes", "summary-noise")):
        if name in found:
            experiment, rows = found[name]
            yield f"## {experiment.question}\n"
            yield f"{describe_experiment(experiment, rows)} [Details]({place}/{name}.md).\n"
            yield from _show_figure(folder, place, figure, experiment.title)


def _scale_page(found: DesignRows, folder: Path) -> Iterator[str]:
    """Yield the page about raw and standardised data, if both were run."""
    sentences = {name: describe_scale(*found[name]) for name in MAIN_EXPERIMENTS if name in found}
    if not any(sentences.values()):
        return
    yield f"# {SCALE_QUESTION}\n\n[Results](../results.md)\n"
    yield SCALE_TEXT
    raw = {name: standing for (name, scale), standing in main_standings(found).items() if scale == "raw"}
    yield "\n".join(
        f"- [{MAIN_EXPERIMENTS[name]} model]({name}.md): {sentence} On raw data: {summarise_standing(raw[name])}"
        for name, sentence in sentences.items()
        if sentence
    )
    if (folder / "summary-scale.png").exists():
        yield "![Direction F1 on raw and on standardised data](summary-scale.png)\n"


def _show_figure(folder: Path, place: str, name: str, words: str) -> Iterator[str]:
    if (folder / f"{name}.png").exists():
        yield f"![{words}]({place}/{name}.png)\n"


def _further_section(found: DesignRows, place: str) -> Iterator[str]:
    shown = {*MAIN_EXPERIMENTS, "dense", "noise-shapes"}
    lines = [
        [f"[{experiment.question}]({place}/{name}.md)", _short_answer(experiment, rows) or "not yet complete"]
        for name, (experiment, rows) in found.items()
        if name not in shown
    ]
    if scale := " ".join(
        f"{MAIN_EXPERIMENTS[name]} model: {sentence}"
        for name in MAIN_EXPERIMENTS
        if name in found and (sentence := describe_scale(*found[name]))
    ):
        lines.insert(0, [f"[{SCALE_QUESTION}]({place}/{SCALE_PAGE}.md)", scale])
    if lines:
        yield "## Further questions\n"
        yield to_markdown(["question", "answer"], lines).replace("--:", "---") + "\n"


def _short_answer(experiment: Experiment, rows: Sequence[ResultRow]) -> str:
    if experiment.kind in ("graphs", "real") and experiment.name not in ("order", "hyperparameter", "rounds"):
        return summarise_standing(Standing(split_cells(experiment, rows, "direction_f1")))
    return describe_experiment(experiment, rows)


def _basis_link(pages: Sequence[str], place: str) -> Iterator[str]:
    if BASIS_PAGE in pages:
        yield (
            "Before you rely on a figure, read [what these results rest on]"
            f"({place}/{BASIS_PAGE}.md): what was cut and why, older rows, the tests, and real data.\n"
        )


def _discussion(folder: Path) -> Iterator[str]:
    """Yield what a person has to say; a figure there could contradict the rows and is refused."""
    path = folder / "discussion.txt"
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    if figure := find_figure(text):
        raise SettingsError(
            f"{path} states the figure {figure!r}; expected words only, as sentences with figures are made from the "
            "rows; rephrase it"
        )
    yield text


def find_figure(text: str) -> str:
    """Return the first figure that a text states, or ""; names of methods and links to pages may have digits.

    >>> find_figure("`notears-admm-0.3` is behind"), find_figure("it keeps 0.9 and more")
    ('', '0.9')
    """
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    found = re.search(r"\d[\d.,]*", plain)
    return found.group().rstrip(".,") if found else ""


def _toctree(found: Sequence[str], place: str) -> Iterator[str]:
    """List the pages of experiments for Sphinx."""
    if found:
        yield "\n".join(["```{toctree}", ":hidden:", "", *(f"{place}/{name}" for name in found), "```"])
