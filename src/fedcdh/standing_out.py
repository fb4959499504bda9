"""Whether single people stand out in a summary, and how far.

The columns φ of one variable (with the constant) have the moments M = Σ φφᵀ. For a row with columns φ₁, the weights
w_k = φ_kᵀ M⁻¹ φ₁ over all rows can be applied to any other variable g by whoever has the summary, as Σ w_k g_k. The
row's own weight is its leverage h = φ₁ᵀ M⁻¹ φ₁, and Σ w_k² = h: so Σ w_k g_k / h is g₁ up to √((1 − h)/h) standard
deviations of g. From h = 0.99 on that is a tenth: all that is known about this person can be read off. Who knows the
plan finds φ₁ by trying the values of one variable.

Leverage is largest where others are far: at the smallest and the largest value, and where a plan looks closely, next to
its centre. These values are noted while the rows go by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fedcdh.encoding import Encoder
from fedcdh.plan import Continuous, StudyPlan
from fedcdh.sources import Kind, TableSource
from fedcdh.summary import Summary
from fedcdh.tables import Numbers, Table

Array = npt.NDArray[np.float64]
_NOTHING = 1e-12  # of the largest eigenvalue of the scaled moments: below, it is rounding


@dataclass(frozen=True)
class Watched:
    """A source that remembers the outermost values of its complete rows, and those next to the plan's centres."""

    source: TableSource
    plan: StudyPlan
    outermost: dict[str, Array] = field(default_factory=dict)

    def kinds(self) -> Mapping[str, Kind]:
        """Those of the source."""
        return self.source.kinds()

    def batches(self, kinds: Mapping[str, Kind]) -> Iterator[Table]:
        """Those of the source, looked at on the way."""
        for table in self.source.batches(kinds):
            complete = np.ones(table.rows, dtype=np.bool_)
            for column in table.columns.values():
                complete &= ~column.missing
            for variable in self.plan.variables:
                column = table.columns[variable.name]
                if isinstance(variable, Continuous) and isinstance(column, Numbers):
                    self._note(variable, column.values[complete])
            yield table

    def _note(self, variable: Continuous, values: Array) -> None:
        known = np.concatenate([self.outermost.get(variable.name, np.zeros(0)), values])
        sides = [side for side in (known[known <= variable.bulk[0]], known[known >= variable.bulk[0]]) if len(side)]
        if sides:
            self.outermost[variable.name] = np.unique([end for side in sides for end in (side.min(), side.max())])


def leverages(summary: Summary, plan: StudyPlan, outermost: Mapping[str, Array]) -> dict[str, float]:
    """The largest leverage among the outermost values of every continuous variable."""
    spans = plan.spans()
    return {
        variable.name: _leverage(summary, plan, variable, spans[variable.name], outermost[variable.name])
        for variable in plan.variables
        if isinstance(variable, Continuous) and variable.name in outermost
    }


def _leverage(summary: Summary, plan: StudyPlan, variable: Continuous, span: slice, values: Array) -> float:
    alone = replace(plan, variables=(variable,))
    features = Encoder(alone, summary.clients[0])(Table({variable.name: Numbers(values)}))
    columns = np.r_[0, span]
    moments = summary.moments[np.ix_(columns, columns)].astype(np.float64)
    scales = np.sqrt(np.maximum(moments.diagonal(), 1.0))
    eigenvalues, vectors = np.linalg.eigh(moments / np.multiply.outer(scales, scales))
    told = eigenvalues > _NOTHING * eigenvalues[-1]
    along = vectors[:, told].T @ (features / scales[:, None])
    return float((along**2 / eigenvalues[told, None]).sum(axis=0).max())
