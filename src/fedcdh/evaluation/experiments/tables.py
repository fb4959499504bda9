"""Rows of results as tables: means and deviations, paired tests, and which graphs are the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.method_groups import REFERENCE_METHOD
from fedcdh.evaluation.experiments.row_files import ResultRow

SIGNIFICANCE_LEVEL = 0.05
MIN_PAIRS = 6
PanelSetting = tuple[tuple[str, str], ...]
"""Parameters and values that several rows share."""


@dataclass(frozen=True)
class ResultPanel:
    """One sweep in one setting of everything else, as a curve of a figure or a block of a table shows it."""

    setting: PanelSetting  # of the parameters that are crossed with everything
    varied: str
    values: tuple[str, ...]
    rows: tuple[ResultRow, ...]

    def of(self, method: str, value: str) -> list[ResultRow]:
        """Return the rows of a method at a value of the varied parameter, in the order of seeds."""
        found = [row for row in self.rows if row["method"] == method and row[self.varied] == value]
        return sorted(found, key=lambda row: int(row["seed"]))

    def mean(self, method: str, value: str, measure: str) -> tuple[float, float] | None:
        """Return mean and standard deviation over the seeds: None without rows, a deviation of nan for one seed."""
        numbers = [float(row[measure]) for row in self.of(method, value) if row[measure]]
        if not numbers:
            return None
        return float(np.mean(numbers)), float(np.std(numbers, ddof=1)) if len(numbers) > 1 else math.nan

    def seeds(self, method: str, value: str, measure: str) -> frozenset[str]:
        """Return the seeds that this mean is over."""
        return frozenset(row["seed"] for row in self.of(method, value) if row[measure])


def split_panels(experiment: Experiment, rows: Iterable[ResultRow]) -> list[ResultPanel]:
    """Return one panel for each sweep in each setting of the parameters with several base values."""
    rows = list(rows)
    found = []
    for varied, values in experiment.sweeps.items():
        crossed = [name for name, base in experiment.base.items() if len(base) > 1 and name != varied]
        others = [name for name in experiment.base if name != varied and name not in crossed]
        at_base = [row for row in rows if all(row[name] == str(experiment.base[name][0]) for name in others)]
        for setting in dict.fromkeys(tuple((name, row[name]) for name in crossed) for row in at_base):
            here = [row for row in at_base if all(row[name] == value for name, value in setting)]
            present = {row[varied] for row in here}
            shown = tuple(str(value) for value in values if str(value) in present)
            found.append(ResultPanel(setting, varied, shown, tuple(here)))
    return found


def methods_with_rows(experiment: Experiment, rows: Iterable[ResultRow]) -> list[str]:
    """Return the methods that have rows, in the order of the design."""
    present = {row["method"] for row in rows}
    return [method for method in experiment.methods if method in present]


def signed_rank_p_value(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the two-sided p-value of the signed-rank test of paired figures; 1 where all pairs are ties.

    >>> round(signed_rank_p_value([0.9, 0.8, 0.95, 1.0, 0.7, 0.9], [0.5, 0.6, 0.7, 0.8, 0.6, 0.4]), 3)
    0.031
    """
    differences = np.round(np.subtract(ours, theirs), 9)
    differences = differences[differences != 0]
    ranks = np.round(2 * stats.rankdata(np.abs(differences))).astype(int)  # twice the ranks: whole numbers with ties
    reached, total = int(ranks[differences > 0].sum()), int(ranks.sum())
    ways = np.ones(1)  # choices of signs with sum 0, 1, 2, ...: exact, ties or not, in every version of scipy
    for rank in ranks:
        ways = np.concatenate([ways, np.zeros(rank)]) + np.concatenate([np.zeros(rank), ways])
    as_far = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * reached - total)
    return float(ways[as_far].sum() / ways.sum())


@dataclass(frozen=True)
class PairedComparison:
    """A comparison of our method with a baseline on the instances that both have."""

    baseline: str
    pairs: int
    ours: float
    theirs: float
    p_value: float

    @property
    def verdict(self) -> str:
        """Return "better", "worse" or "tied": by the means, unless the paired test cannot distinguish them.

        With five pairs or fewer no test can reach 5 %; the verdict is then "too few".
        """
        if self.pairs < MIN_PAIRS:
            return "too few"
        if self.p_value >= SIGNIFICANCE_LEVEL or self.ours == self.theirs:
            return "tied"
        return "better" if self.ours > self.theirs else "worse"


def compare_scores(baseline: str, own: Mapping[str, float], theirs: Mapping[str, float]) -> PairedComparison | None:
    """Compare the scores of the reference, by seed, with those of a baseline; None if they share no seed."""
    shared = sorted(own.keys() & theirs.keys())
    if not shared:
        return None
    first, second = [own[seed] for seed in shared], [theirs[seed] for seed in shared]
    return PairedComparison(
        baseline, len(shared), float(np.mean(first)), float(np.mean(second)), signed_rank_p_value(first, second)
    )


def compare_methods(
    panel: ResultPanel, value: str, baselines: Iterable[str], measure: str, reference: str = REFERENCE_METHOD
) -> Iterator[PairedComparison]:
    """Compare the reference with each baseline that was run here, on the seeds both have; larger figures are better."""
    own = {row["seed"]: float(row[measure]) for row in panel.of(reference, value) if row[measure]}
    for baseline in baselines:
        theirs = {row["seed"]: float(row[measure]) for row in panel.of(baseline, value) if row[measure]}
        if compared := compare_scores(baseline, own, theirs):
            yield compared


def count_equal_graphs(rows: Iterable[ResultRow], between: str) -> dict[str, tuple[int, int]]:
    """Count per method on how many instances, and of how many, the graph is the same whatever `between` is."""
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for row in (row for row in rows if row["graph"]):  # a method that failed has none
        instance = tuple(value for name, value in row.items() if name in _INSTANCE_COLUMNS - {between})
        groups.setdefault((row["method"], *instance), {})[row[between]] = row["graph"]
    found: dict[str, tuple[int, int]] = {}
    for (method, *_), graphs in groups.items():
        if len(graphs) > 1:
            same, all_ = found.get(method, (0, 0))
            found[method] = (same + (len({*graphs.values()}) == 1), all_ + 1)
    return found


_INSTANCE_COLUMNS = {
    *("model", "variables", "clients", "rows", "density", "changing"),
    *("dialect", "scale", "sizes", "order", "width", "seed"),
}


# Text


def to_markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, the first column to the left and numbers to the right.

    >>> print(to_markdown(["method", "F1"], [["ours", "0.95"]]))
    | method | F1 |
    |---|--:|
    | ours | 0.95 |
    """
    rule = "|---|" + "--:|" * (len(heads) - 1)
    return "\n".join([_markdown_row(heads), rule, *map(_markdown_row, lines)])


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def format_mean(figures: tuple[float, float] | None, digits: int = 2) -> str:
    """Return mean ± deviation, or a dash where nothing was run."""
    if figures is None:
        return "–"
    return f"{figures[0]:.{digits}f}" + ("" if math.isnan(figures[1]) else f" ± {figures[1]:.{digits}f}")


def format_quantity(value: float | None) -> str:
    """Return a number of seconds or bytes with three digits.

    >>> format_quantity(1234567), format_quantity(0.01234), format_quantity(None)
    ('1,230,000', '0.0123', '–')
    """
    if value is None:
        return "–"
    if not value:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if digits <= 0 else f"{rounded:.{digits}f}"


def means_table(
    panel: ResultPanel, methods: Sequence[str], measure: str, show: Callable[[tuple[float, float] | None], str]
) -> str:
    """Return a table of methods × values; the number of seeds stands in brackets where it is not all."""

    def cell(method: str, value: str) -> str:
        own, all_ = panel.seeds(method, value, measure), frozenset(row["seed"] for row in panel.rows)
        shown = show(panel.mean(method, value, measure))
        return f"{shown} [{len(own)}]" if own and own != all_ else shown

    lines = [[method, *(cell(method, value) for value in panel.values)] for method in methods]
    return to_markdown([f"{panel.varied} =", *panel.values], lines)


def describe_setting(setting: Mapping[str, str] | PanelSetting) -> str:
    """Return the values of a setting, such as "linear, standardised"."""
    return ", ".join(dict(setting).values())
