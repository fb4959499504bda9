"""Joint risk: how close the answers of an adaptive round come to single people. The site checks it before they leave.

An answer adds two risks. A cell of several levels may hold few people, whose sums are released. And a row with a low
leverage in each variable may have a high one in several together. As for a summary (`leverage`), the leverage of a row
says how well its other values can be computed; here it is that of every row in the columns of a set of variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import Table
from fedcdh.summaries.complete_rows import complete_blocks
from fedcdh.summaries.encoder import Encoder, encode_levels
from fedcdh.summaries.joint.encoder import JointEncoder
from fedcdh.summaries.joint.request import JointSummary, VariableSet
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical

_EIGENVALUE_TOLERANCE = 1e-12  # share of the largest eigenvalue of the scaled moments; below it is rounding error


@dataclass(frozen=True)
class JointRisk:
    """The risk of an answer about one set of variables.

    Parameters
    ----------
    leverage : float
        Largest leverage of a row in the columns of the set.
    cell : str, default ""
        The smallest cell of the set's levels with those of one other variable.
    people : int, default 0
        Number of people in that cell; 0 if there are no cells.
    """

    leverage: float
    cell: str = ""
    people: int = 0


def assess_joint_risk(
    table: Any, plan: StudyPlan, summary: Summary, answers: Sequence[JointSummary]
) -> Mapping[VariableSet, JointRisk]:
    """Compute the joint risk of each answer in one more pass over the rows.

    Parameters
    ----------
    table : table or source of rows
        The rows.
    plan : StudyPlan
        The plan of the study.
    summary : Summary
        Summary of the rows.
    answers : sequence of JointSummary
        The answers that are to leave.

    Returns
    -------
    mapping from tuple of str to JointRisk
        Risk of each set of variables.
    """
    client = summary.clients[0]
    sets = [answer.names for answer in answers]
    encode, joint = Encoder(plan, client), JointEncoder(plan, client, sets)
    inverses = {answer.names: _inverse_root(plan, summary, answer) for answer in answers}
    largest, cells = dict.fromkeys(sets, 0.0), _JointCells(plan, client, sets)
    for block in complete_blocks(table, plan, client):
        features = encode(block)
        for names, columns in joint(block):
            both = np.concatenate([features[_summary_columns(plan, names)], columns])
            along = inverses[names] @ both
            largest[names] = max(largest[names], float((along**2).sum(axis=0).max(initial=0.0)))
        cells.add(block)
    return {names: JointRisk(largest[names], *cells.smallest(names)) for names in sets}


def _summary_columns(plan: StudyPlan, names: VariableSet) -> npt.NDArray[np.intp]:
    """Return the positions of the constant and of the variables' columns in the summary."""
    return np.asarray(np.r_[0, *(plan.layout.spans[name] for name in names)], dtype=np.intp)


def _inverse_root(plan: StudyPlan, summary: Summary, answer: JointSummary) -> Array:
    """Return R with RᵀR = M⁻¹ in the directions that the rows have: ‖R f‖² is the leverage of a row with columns f."""
    known = _summary_columns(plan, answer.names)
    cross = answer.cross[:, known]
    moments = np.block([[summary.moments[np.ix_(known, known)], cross.T], [cross, answer.own]]).astype(np.float64)
    scales = np.sqrt(np.maximum(moments.diagonal(), 1.0))
    eigenvalues, vectors = np.linalg.eigh(moments / np.multiply.outer(scales, scales))
    kept = eigenvalues > _EIGENVALUE_TOLERANCE * eigenvalues[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(eigenvalues[kept])).T / scales)


class _JointCells:
    """Counts people by the levels of a set and of one more variable.

    An answer holds sums over the people in each of these cells, where a summary holds only how many they are.
    """

    def __init__(self, plan: StudyPlan, client: str, sets: Sequence[VariableSet]) -> None:
        self._variables = {v.name: v for v in plan.variables if isinstance(v, Categorical)}
        self._client = client
        self._counts: dict[VariableSet, dict[VariableSet, Counter[tuple[int, ...]]]] = {}
        for names in sets:
            members = tuple(name for name in names if name in self._variables)
            others = [other for other in self._variables if other not in members]
            groups = [members, *((*members, other) for other in others)] if members else []
            self._counts[names] = {group: Counter() for group in groups if len(group) > 1}

    def add(self, rows: Table) -> None:
        """Count rows."""
        codes = {
            name: encode_levels(variable, self._client, rows.columns[name])
            for name, variable in self._variables.items()
        }
        for groups in self._counts.values():
            for group, counts in groups.items():
                cells, times = np.unique(np.array([codes[name] for name in group]), axis=1, return_counts=True)
                counts.update(dict(zip(map(tuple, cells.T.tolist()), times.tolist(), strict=True)))

    def smallest(self, names: VariableSet) -> tuple[str, int]:
        """Return the smallest cell that is not empty, in words, and its number of people."""
        found = [(count, group, cell) for group, cells in self._counts[names].items() for cell, count in cells.items()]
        if not found:
            return "", 0
        count, group, cell = min(found)
        where = (f"{self._variables[name].levels[code]!r} of {name!r}" for name, code in zip(group, cell, strict=True))
        return " with ".join(where), count
