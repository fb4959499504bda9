"""The cells of the benchmark of calibration, and the truth of their studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.bench_graphs import DIALECTS, Setting, make_instance
from fedcdh.evaluation.experiments.noise_shape_data import (
    SPECIAL_CASES,
    Cell,
    GridStudy,
    draw,
    further_cells,
    grid,
    special_cells,
)
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, RealStudy

Arrow = tuple[str, str]
CONFORMING, MISSPECIFIED, PAPER = "model-conforming", "misspecified", "paper's generator"
MISSPECIFIED_KINDS = frozenset(
    {
        "post-nonlinear",
        "interaction",
        "integers",
        "counts",
        "zero-inflated",
        "three levels",
        "autocorrelated",
        "outliers",
        "hidden cause",
    }
)
"""Mechanisms and special cases that contradict the model. In "hidden cause" the confounded pair is not adjacent."""
MAX_MISSING_SHARE = 0.9
"""With 10 % of each column missing, about half of the rows are incomplete, which the default setting refuses."""


@dataclass(frozen=True, eq=False)
class Study:
    """The arguments of `fedcdh.discover`, and the truth.

    `changes` says whether a mechanism differs between clients; variables for which this is not known are left out.
    """

    data: Mapping[str, Any]
    names: tuple[str, ...]
    arrows: frozenset[Arrow]
    changes: Mapping[str, bool]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One cell: a cell of the grid of noise shapes, or a setting of the paper's generator."""

    source: Cell | Setting

    def __str__(self) -> str:
        one = self.source
        if isinstance(one, Cell):
            return str(one)
        return f"paper's {one.model} model, {one.dialect} dialect, {one.clients} x {one.rows}"

    @property
    def group(self) -> str:
        if isinstance(self.source, Setting):
            return PAPER
        return MISSPECIFIED if self._contradictions() else CONFORMING

    @property
    def family(self) -> str:
        """The noise of a conforming cell, or what contradicts the model."""
        if isinstance(self.source, Setting):
            return f"paper's {self.source.model} model"
        return self._contradictions() or self.source.noise

    def _contradictions(self) -> str:
        if isinstance(self.source, Setting):
            return ""
        return ", ".join(kind for kind in (self.source.mechanism, self.source.special) if kind in MISSPECIFIED_KINDS)

    def draw(self, seed: int) -> Study:
        """Draw the study of a seed."""
        if isinstance(self.source, Setting):
            simulation = make_instance(self.source, seed)
            changes = {name: name in simulation.changing for name in simulation.names}
            options = {"names": simulation.names}
            return Study(dict(simulation.tables), simulation.names, simulation.arrows, changes, options)
        study = draw(self.source, seed)
        options = {"max_missing_share": MAX_MISSING_SHARE}
        return Study(dict(study.tables), study.names, study.arrows, known_changes(self.source, study), options)


def all_cases() -> list[Case]:
    """Return the grid, the special and the further cases, and the paper's generator."""
    paper = [Setting(model, 6, 10, 100, 1, dialect) for model in ("linear", "general") for dialect in DIALECTS]
    return [Case(source) for source in (*grid(), *special_cells(), *further_cells(), *paper)]


def choose_cases(parts: str) -> list[Case]:
    """Return the cases whose title contains one of the parts, which semicolons separate."""
    wanted = [part.strip() for part in parts.split(";")]
    found = [case for case in all_cases() if any(part in str(case) for part in wanted)]
    if not found:
        raise SystemExit(f"found no cell with a part of {parts!r} in its title; expected for example 'size, gaussian'")
    return found


def known_changes(cell: Cell, study: GridStudy) -> dict[str, bool]:
    """Say for each variable whether its mechanism differs between clients, where this is known.

    Special cases standardise values at each client. That takes the change of a variable without parents away, and may
    change the scale of a variable that descends from one that changes. Both are left out.
    """
    if cell.special not in SPECIAL_CASES:
        return {name: name in study.changing for name in study.names}
    heads = {head for _, head in study.arrows}
    followers = descendants(study.arrows, study.changing)
    changed = dict.fromkeys(sorted(study.changing & heads), True)
    return changed | dict.fromkeys(sorted({*study.names} - study.changing - followers), False)


def descendants(arrows: Iterable[Arrow], ancestors: Iterable[str]) -> frozenset[str]:
    """Return what lies downstream of the ancestors.

    >>> sorted(descendants([("a", "b"), ("b", "c"), ("d", "c")], ["a"]))
    ['b', 'c']
    """
    arrows, found, new = list(arrows), frozenset[str](), frozenset(ancestors)
    while new:
        new = frozenset(head for tail, head in arrows if tail in new) - found
        found |= new
    return found


def real_study(study: RealStudy) -> Study:
    """Return a study of real data in the same form; the changes may not be known."""
    known = study.changing
    changes = {} if known is None else {name: name in known for name in study.names}
    return Study(study.columns, study.names, study.arrows, changes, {"domain": DOMAIN_COLUMN, "kinds": study.kinds})
