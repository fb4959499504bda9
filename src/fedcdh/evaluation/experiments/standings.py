"""Where a method stands among its rivals: cell by cell, and over all instances that both have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedcdh.evaluation.experiments.definition import Experiment
from fedcdh.evaluation.experiments.method_groups import REFERENCE_METHOD, is_rival
from fedcdh.evaluation.experiments.row_files import ResultRow
from fedcdh.evaluation.experiments.tables import PairedComparison, PanelSetting, compare_scores

ScoresBySeed = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class ResultCell:
    """One case of a design: the scores of every method, by seed."""

    setting: PanelSetting  # of the parameters that are crossed with everything
    label: str  # the parameters that differ from their base
    scores: Mapping[str, ScoresBySeed]

    @cached_property
    def means(self) -> dict[str, float]:
        """Return the mean of every method that has all seeds of the cell."""
        seeds = {seed for one in self.scores.values() for seed in one}
        return {method: sum(one.values()) / len(one) for method, one in self.scores.items() if one.keys() == seeds}

    @property
    def rivals(self) -> dict[str, float]:
        """Return the means of the rivals that have all seeds."""
        return {method: mean for method, mean in self.means.items() if is_rival(method)}

    @property
    def best_rival(self) -> str:
        """Return the rival with the highest mean, or "" if none has all seeds."""
        return max(self.rivals, key=lambda method: self.rivals[method], default="")

    @property
    def is_reference_highest(self) -> bool:
        """Return whether no rival has a higher mean than the reference."""
        return REFERENCE_METHOD in self.means and self.means[REFERENCE_METHOD] >= max(self.rivals.values(), default=0.0)

    def compare(self) -> list[PairedComparison]:
        """Compare the reference with every rival, on the seeds that both have."""
        own = self.scores.get(REFERENCE_METHOD, {})
        return [
            compared
            for method, theirs in self.scores.items()
            if is_rival(method) and (compared := compare_scores(method, own, theirs))
        ]


def split_cells(experiment: Experiment, rows: Iterable[ResultRow], measure: str) -> list[ResultCell]:
    """Return the cells of a design that have rows, in its order."""
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in experiment.parameters), []).append(row)
    crossed = [name for name, base in experiment.base.items() if len(base) > 1 and name not in experiment.sweeps]
    cells = []
    for case in experiment.cases():
        here = groups.get(tuple(str(case[name]) for name in experiment.parameters), [])
        scores: dict[str, dict[str, float]] = {}
        for row in (row for row in here if row[measure]):
            scores.setdefault(row["method"], {})[row["seed"]] = float(row[measure])
        if scores:
            setting = tuple((name, str(case[name])) for name in crossed)
            varied = [name for name in experiment.sweeps if case[name] not in experiment.base[name]]
            label = ", ".join(f"{name} = {case[name]}" for name in varied) or "base"
            cells.append(ResultCell(setting, label, scores))
    return cells


@dataclass(frozen=True, eq=False)
class Standing:
    """The reference among its rivals in several cells.

    Examples
    --------
    >>> cell = ResultCell((), "base", {"fedcdh": {"1": 0.9, "2": 0.8}, "fedpc": {"1": 0.5, "2": 0.6}})
    >>> standing = Standing([cell])
    >>> standing.highest, standing.best_rival, standing.overall["fedpc"]
    (1, 'fedpc', 0.55)
    """

    cells: Sequence[ResultCell]

    @property
    def highest(self) -> int:
        """Return in how many cells no rival with all seeds has a higher mean than the reference."""
        return sum(cell.is_reference_highest for cell in self.cells)

    @property
    def higher_rivals(self) -> Counter[str]:
        """Return for each rival in how many cells its mean is the highest, and higher than the reference's."""
        return Counter(cell.best_rival for cell in self.cells if not cell.is_reference_highest)

    @cached_property
    def overall(self) -> dict[str, float]:
        """Return the mean over all instances, of every method that has all of them."""
        means: dict[str, float] = {}
        methods = {method for cell in self.cells for method in cell.scores}
        for method in methods:
            if all(method in cell.means for cell in self.cells):
                scores = [score for cell in self.cells for score in cell.scores[method].values()]
                means[method] = sum(scores) / len(scores)
        return means

    @cached_property
    def available(self) -> dict[str, float]:
        """Return the mean of every method over the instances that it has."""
        scores: dict[str, list[float]] = {}
        for cell in self.cells:
            for method, by_seed in cell.scores.items():
                scores.setdefault(method, []).extend(by_seed.values())
        return {method: sum(found) / len(found) for method, found in scores.items()}

    def format_mean(self, method: str) -> str:
        """Return the mean of a method, with the number of instances if it has not all of them; a dash without any."""
        if method not in self.available:
            return "–"
        number = sum(len(cell.scores.get(method, {})) for cell in self.cells)
        return f"{self.available[method]:.2f}" + ("" if method in self.overall else f" [{number}]")

    @property
    def best_rival(self) -> str:
        """Return the rival with the highest mean over all instances, or "" if none has all of them."""
        rivals = [method for method in sorted(self.overall) if is_rival(method)]
        return max(rivals, key=lambda method: self.overall[method], default="")

    @property
    def instances(self) -> int:
        """Return the number of instances that the reference has."""
        return sum(len(cell.scores.get(REFERENCE_METHOD, {})) for cell in self.cells)

    @cached_property
    def verdicts(self) -> dict[str, Counter[str]]:
        """Return for each rival in how many cells the reference is better, worse, tied, or has too few seeds."""
        found: dict[str, Counter[str]] = {}
        for cell in self.cells:
            for compared in cell.compare():
                found.setdefault(compared.baseline, Counter())[compared.verdict] += 1
        return found
