"""Sentences about results, made from rows: their wording follows the figures, and cannot contradict them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.method_groups import OWN_METHODS, REFERENCE_METHOD
from fedcdh.evaluation.experiments.paper_comparison import load_printed_figures
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.standings import ResultCell, Standing, split_cells
from fedcdh.evaluation.experiments.tables import count_equal_graphs, format_quantity

LEVEL = 0.05
RowList = Sequence[ResultRow]


def describe_standing(cells: Sequence[ResultCell], measure: str = "direction F1") -> str:
    """Say in how many cells the reference is highest, what it and its best rival have, and what the tests say."""
    standing = Standing(cells)
    if REFERENCE_METHOD not in standing.overall:
        return _absence_sentence(standing, measure)
    return " ".join(
        sentence
        for sentence in (
            _highest_sentence(standing, measure),
            _overall_sentence(standing),
            _test_sentence(standing),
        )
        if sentence
    )


def summarise_standing(standing: Standing, measure: str = "direction F1") -> str:
    """Say the same in few words, for a list or a table."""
    if REFERENCE_METHOD not in standing.overall:
        return _absence_sentence(standing, measure)
    own, rival, cells = standing.overall[REFERENCE_METHOD], standing.best_rival, len(standing.cells)
    if not rival:
        return f"{measure} of `{REFERENCE_METHOD}` {own:.2f}; no rival was run on all instances."
    higher = cells - standing.highest
    cellwise = "no rival is higher in any cell" if not higher else f"a rival is higher in {higher} of {cells} cells"
    return (
        f"{measure} of `{REFERENCE_METHOD}` {own:.2f}, of the best rival {standing.overall[rival]:.2f} (`{rival}`); "
        f"{cellwise}{_significance_words(standing)}."
    )


def _absence_sentence(standing: Standing, measure: str) -> str:
    """Say that the reference lacks instances, and which rival with all of them is the highest."""
    first = f"`{REFERENCE_METHOD}` was not run on all of these instances yet"
    if not (rival := standing.best_rival):
        return f"{first}."
    return f"{first}; of the rivals that were, `{rival}` has the highest mean {measure}: {standing.overall[rival]:.2f}."


def _significance_words(standing: Standing) -> str:
    """Say which rivals are significantly better; nothing where there are too few seeds for any test."""
    if not any(counts["better"] + counts["worse"] + counts["tied"] for counts in standing.verdicts.values()):
        return ""
    better = [f"`{name}` (in {counts['worse']})" for name, counts in standing.verdicts.items() if counts["worse"]]
    if better:
        return f", significantly: {join_words(better)}"
    return ", none of them significantly" if standing.highest < len(standing.cells) else ""


def _highest_sentence(standing: Standing, measure: str) -> str:
    cells, highest = len(standing.cells), standing.highest
    if not any(cell.rivals for cell in standing.cells):
        return ""
    if highest == cells:
        where = "in the only cell" if cells == 1 else f"in all {cells} cells"
        return f"No rival has a higher mean {measure} than `{REFERENCE_METHOD}` {where}."
    others = join_words(f"`{rival}` in {count}" for rival, count in standing.higher_rivals.most_common(3))
    if not highest:
        return f"A rival has a higher mean {measure} than `{REFERENCE_METHOD}` in every cell (highest: {others})."
    return (
        f"No rival has a higher mean {measure} than `{REFERENCE_METHOD}` in {highest} of {cells} cells; in the others "
        f"the highest is {others}."
    )


def _overall_sentence(standing: Standing) -> str:
    own, rival = standing.overall[REFERENCE_METHOD], standing.best_rival
    means = [cell.means[REFERENCE_METHOD] for cell in standing.cells]
    spread = f", from {min(means):.2f} to {max(means):.2f} by cell" if len(means) > 1 else ""
    first = f"Over all {standing.instances} instances it has {own:.2f}{spread}"
    if not rival:
        return f"{first}."
    theirs = standing.overall[rival]
    if f"{theirs:.2f}" == f"{own:.2f}":
        return f"{first}; the best rival run on all of them, `{rival}`, has the same."
    more = "more" if theirs > own else "less"
    return f"{first}; the best rival run on all of them, `{rival}`, has {more}: {theirs:.2f}."


def _test_sentence(standing: Standing) -> str:
    better = {rival: counts["worse"] for rival, counts in standing.verdicts.items() if counts["worse"]}
    if not any(counts["better"] + counts["worse"] + counts["tied"] for counts in standing.verdicts.values()):
        return ""
    if not better:
        return "By the paired test no rival is significantly better in any cell."
    listed = join_words(
        f"`{rival}` in {count}" for rival, count in sorted(better.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"By the paired test significantly better: {listed} of {len(standing.cells)} cells."


def describe_scale(experiment: Experiment, rows: RowList) -> str:
    """Say what another unit of measurement does to the reference and to the methods that lose most by it."""
    raw, scaled = (_overall_by_scale(experiment, rows, scale) for scale in ("raw", "standardised"))
    same, of = count_equal_graphs(rows, "scale").get(REFERENCE_METHOD, (0, 0))
    if not of:
        return ""
    losses = sorted((scaled[method] - raw[method], method) for method in raw.keys() & scaled.keys())
    lost = [
        f"`{method}` from {raw[method]:.2f} to {scaled[method]:.2f}" for change, method in losses[:3] if change < -0.05
    ]
    first = f"`{REFERENCE_METHOD}` finds the same graph on raw and on standardised data in {same} of {of} instances."
    return first + (f" Directions of others depend on the scale: {join_words(lost)}." if lost else "")


def _overall_by_scale(experiment: Experiment, rows: RowList, scale: str) -> dict[str, float]:
    here = [row for row in rows if row["scale"] == scale]
    return Standing(split_cells(experiment, here, "direction_f1")).overall


def describe_order(experiment: Experiment, rows: RowList) -> str:
    """Say which methods find the same graph whatever the order of clients."""
    found = count_equal_graphs(rows, "order")
    always = [f"`{method}`" for method, (same, of) in found.items() if same == of]
    others = [f"`{method}` in {same} of {of}" for method, (same, of) in found.items() if same < of]
    instances = max((of for _, of in found.values()), default=0)
    parts = []
    if always:
        parts.append(f"The same graph on all {instances} instances, whatever the order: {join_words(always)}.")
    if others:
        parts.append(f"The same graph on some instances only: {join_words(others)}.")
    return " ".join(parts)


def describe_power(experiment: Experiment, rows: RowList) -> str:
    """Give the rejection rates at the largest number of rows, and say which tests keep their level there."""
    largest = max((int(row["rows"]) for row in rows), default=0)
    here = [row for row in rows if int(row["rows"]) == largest and row["rejected"]]
    power, errors = (
        _means_by_method([row for row in here if row["hypothesis"] == hypothesis], "rejected")
        for hypothesis in ("dependent", "independent")
    )
    if not power or not errors:
        return ""
    shown = join_words(f"`{method}` {rate:.2f}" for method, rate in _descending(power))
    broken = [f"`{method}` {rate:.2f}" for method, rate in _descending(errors) if rate > 2 * LEVEL]
    if broken:
        ending = f"True independence is rejected in more than {2 * LEVEL:g} of the cases by {join_words(broken)}"
    else:
        ending = f"No test rejects true independence in more than {2 * LEVEL:g} of the cases"
    printed = dict(load_printed_figures()["power"])
    paper = f" (the paper reports more than {printed[largest]:g})" if largest in printed else ""
    return f"Power at {largest} rows: {shown}{paper}. {ending}."


def describe_features(experiment: Experiment, rows: RowList) -> str:
    """Give the scores of the paper's method at the paper's number of features beside those it prints."""
    printed = {str(h): figures for h, *figures in load_printed_figures()["features"]}
    here = [row for row in rows if row["method"] == "fedcdh-paper"]
    sentences = []
    for h in ("5", "30"):
        own = [row for row in here if row["width"] == h]
        if own:
            skeleton, direction = (_mean(own, f"{part}_f1") for part in ("skeleton", "direction"))
            sentences.append(
                f"with h = {h} it has {skeleton:.2f} (skeleton F1) and {direction:.2f} (direction F1), where the paper "
                f"prints {printed[h][0]:.2f} and {printed[h][4]:.2f}"
            )
    return f"`fedcdh-paper`: {'; '.join(sentences)}." if sentences else ""


def describe_rounds(experiment: Experiment, rows: RowList) -> str:
    """Say in how many cells further rounds raise the skeleton F1 of our tests, and by how much."""
    sentences = []
    for model in dict.fromkeys(row["model"] for row in rows):
        here = split_cells(experiment, [row for row in rows if row["model"] == model], "skeleton_f1")
        pairs = [
            (cell.means["fedcdh-constraint-one-message"], cell.means["fedcdh-rounds"])
            for cell in here
            if {"fedcdh-constraint-one-message", "fedcdh-rounds"} <= cell.means.keys()
        ]
        if pairs:
            before, after = (sum(figures) / len(pairs) for figures in zip(*pairs, strict=True))
            raised = sum(second > first for first, second in pairs)
            sentences.append(
                f"On the model *{model}* adaptive rounds change the skeleton F1 of our tests from {before:.2f} to "
                f"{after:.2f} on average, and raise it in {raised} of {len(pairs)} cells."
            )
    return " ".join(sentences)


def describe_principle(experiment: Experiment, rows: RowList) -> str:
    """Give the share of right directions of each form of the principle."""
    means = _means_by_method(rows, "right")
    if not means:
        return ""
    return f"Share of right directions: {join_words(f'`{form}` {share:.2f}' for form, share in _descending(means))}."


def describe_dependent_changes(experiment: Experiment, rows: RowList) -> str:
    """Give the share of pairs that each method reverses, over all cases."""
    means = _means_by_method(rows, "reversed")
    if not means:
        return ""
    shown = join_words(f"`{method}` {share:.2f}" for method, share in _descending(means))
    return f"Share of reversed directions where both mechanisms follow one pseudo-confounder: {shown}."


def describe_bytes(experiment: Experiment, rows: RowList) -> str:
    """Give the bytes of a message at the base of the design, and from how many rows on it is smaller than these."""
    base = {name: str(values[0]) for name, values in experiment.base.items()}
    own = [row for row in rows if row["method"] == REFERENCE_METHOD]
    here = [row for row in own if all(row[name] == value for name, value in base.items())]
    swept = [row for row in own if row["variables"] == base["variables"] and row["width"] == base["width"]]
    smaller = sorted(int(row["rows"]) for row in swept if int(row["message"]) < int(row["raw"]))
    if not here:
        return ""
    message, raw = int(here[0]["message"]), int(here[0]["raw"])
    first = (
        f"With {base['variables']} variables and {base['rows']} rows a client sends {format_quantity(message)} bytes; "
        f"its rows have {format_quantity(raw)}."
    )
    return first + (f" Of the sizes shown, the message is smaller from {smaller[0]} rows on." if smaller else "")


def describe_stocks(experiment: Experiment, rows: RowList) -> str:
    """Give the share of edges within a sector, of the reference and of the highest rival."""
    cells = split_cells(experiment, rows, "within_sector")
    scores: dict[str, list[float]] = {}
    for cell in cells:
        for method, by_seed in cell.scores.items():
            scores.setdefault(method, []).extend(by_seed.values())
    means = {method: sum(found) / len(found) for method, found in scores.items()}
    if REFERENCE_METHOD not in means:
        return ""
    own = means.pop(REFERENCE_METHOD)
    rivals = _descending({method: mean for method, mean in means.items() if method not in OWN_METHODS})
    highest = f"; the highest of a rival is {rivals[0][1]:.2f} (`{rivals[0][0]}`)" if rivals else ""
    return f"Of the edges of `{REFERENCE_METHOD}`, {own:.2f} lie within a sector{highest}. By chance it would be 0.20."


def _describe_graphs(experiment: Experiment, rows: RowList) -> str:
    return describe_standing(split_cells(experiment, rows, "direction_f1"))


_STATEMENTS: Mapping[str, Callable[[Experiment, RowList], str]] = {
    "order": describe_order,
    "hyperparameter": describe_features,
    "rounds": describe_rounds,
    "tests": describe_power,
    "principle": describe_principle,
    "dependent": describe_dependent_changes,
    "bytes": describe_bytes,
    "stocks": describe_stocks,
    "graphs": _describe_graphs,
    "real": _describe_graphs,
    "noise": _describe_graphs,
}
"""By the name of an experiment, or else by its kind."""


def describe_experiment(experiment: Experiment, rows: RowList) -> str:
    """Return what the rows of an experiment say, in one or a few sentences; "" if there are no rows."""
    if not rows:
        return ""
    return _STATEMENTS.get(experiment.name, _STATEMENTS[experiment.kind])(experiment, rows)


def join_words(words: Iterable[str]) -> str:
    """Return a list as part of a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _means_by_method(rows: Iterable[ResultRow], measure: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for row in rows:
        if row[measure]:
            found.setdefault(row["method"], []).append(float(row[measure]))
    return {method: sum(values) / len(values) for method, values in found.items()}


def _mean(rows: RowList, measure: str) -> float:
    return sum(float(row[measure]) for row in rows) / len(rows)


def _descending(figures: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(figures.items(), key=lambda item: (-item[1], item[0]))
