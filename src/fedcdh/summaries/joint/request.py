"""What is asked in a further round, and what one client answers for one set of variables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedcdh.errors import PlanMismatchError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint.encoder import joint_terms
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

Integers = npt.NDArray[np.int64]
VariableSet = tuple[str, ...]

MAX_SETS = 10_000
"""In one request: more than any site will answer."""


@dataclass(frozen=True)
class Spent:
    """What further rounds took: how many, about how many sets, and the bytes of all clients' answers, headers apart."""

    rounds: int
    sets: int
    bytes: int
    not_asked: int  # sets that would have been too much

    def __str__(self) -> str:
        sentence = f"further rounds: {self.rounds}, for {self.sets} conditioning sets; {self.bytes} bytes in all"
        if self.not_asked:
            sentence += f"; {self.not_asked} sets were beyond what may be asked: there, variables act one by one"
        return sentence


def to_variable_set(names: Iterable[str]) -> VariableSet:
    """The one way to write a set of variables."""
    return tuple(sorted(names))


@dataclass(frozen=True)
class JointRequest:
    """The sets of variables whose joint features are asked for in one round.

    >>> JointRequest("0" * 64, 1, (("age", "dose"),)).sets
    (('age', 'dose'),)
    """

    plan: str  # fingerprint
    number: int  # of the round, from 1
    sets: tuple[VariableSet, ...]  # members sorted, sets sorted, none twice

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", tuple(tuple(names) for names in self.sets))
        in_order = list(self.sets) == sorted({to_variable_set(set(names)) for names in self.sets})
        if not in_order or not 0 < len(self.sets) <= MAX_SETS or min(map(len, self.sets)) < 2:
            raise SummaryError(
                f"a request names 1 to {MAX_SETS} different sets of two variables or more, in the order of their "
                f"names; found {len(self.sets)} that are not; ask the coordinator for the request again"
            )
        if not isinstance(self.number, int) or self.number < 1:
            raise SummaryError(f"a request is numbered from 1 up, found {self.number!r}")

    def check(self, plan: StudyPlan) -> None:
        """Refuses a request of another study, or one that no answer exists for."""
        if self.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"the request follows plan {self.plan[:12]}, not this plan ({plan.fingerprint[:12]}); ask the "
                "coordinator for the request of this study"
            )
        for names in self.sets:
            if not joint_terms(plan, names):
                raise SummaryError(f"there are no joint features of {', '.join(names)}: too many levels; leave it out")

    @cached_property
    def digest(self) -> str:
        """Tells requests apart: the same sets asked for again are the same request, whatever its number."""
        text = json.dumps([self.plan, self.sets], separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class JointSummary:
    """Σ ψψᵀ and Σ ψφᵀ over the rows of a client: ψ the joint features of a set, φ = [1, features] of the summary.

    With the summary's Σ φφᵀ, that is all that a regression of any variable on this set needs. Additive: `a + b`.
    """

    plan: str  # fingerprint
    client: str
    names: VariableSet
    rows: int
    own: Integers  # Σ ψψᵀ on the grid
    cross: Integers  # Σ ψφᵀ on the grid; its first column is Σ ψ

    def __post_init__(self) -> None:
        for which in ("own", "cross"):
            found = np.asarray(getattr(self, which))
            whole = np.array(found, dtype=np.int64) if np.can_cast(found.dtype, np.int64) else np.zeros(0, np.int64)
            whole.setflags(write=False)
            object.__setattr__(self, which, whole)
        width, most = len(self.own), self.rows * GRID**2
        shaped = self.own.shape == (width, width) and self.cross.ndim == 2 and len(self.cross) == width > 0
        if not shaped or self.cross.shape[1] == 0 or not np.array_equal(self.own, self.own.T):
            raise self._damaged("its blocks have other shapes than joint features give")
        if self.rows < 1 or max(-self.own.min(), self.own.max(), -self.cross.min(), self.cross.max()) > most:
            raise self._damaged("an entry is larger than so many rows of bounded features can make it")

    @property
    def numbers(self) -> int:
        """How many numbers it tells: a triangle and a rectangle."""
        return len(self.own) * (len(self.own) + 1) // 2 + self.cross.size

    def check(self, plan: StudyPlan, summary: Summary | None = None) -> None:
        """Refuses what is not by this plan, or not of the rows that the client's summary is of.

        (Σ ψ_i φ_j)² ≤ Σ ψ_i² · Σ φ_j², and Σ ψψᵀ has no negative direction, whatever the rows are.
        """
        if self.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"the answer of {self.client} follows plan {self.plan[:12]}, not this one; ask it again"
            )
        if self.cross.shape != (len(joint_terms(plan, self.names)), plan.layout.n_columns):
            raise self._damaged("its blocks have other shapes than the plan gives")
        eigenvalues = np.linalg.eigvalsh(self.own.astype(np.float64))
        if eigenvalues[0] < -1e-9 * max(eigenvalues[-1], float(GRID**2)):
            raise self._damaged("no rows have these sums: in some direction a sum of squares is negative")
        if summary is None:
            return
        if summary.rows != self.rows:
            raise self._damaged(f"it is of {self.rows} rows, the summary of {summary.rows}: the table has changed")
        most = np.sqrt(np.multiply.outer(self.own.diagonal().astype(np.float64), summary.moments.diagonal()))
        if (np.abs(self.cross) > most * (1 + 1e-9) + 1).any():
            raise self._damaged("it cannot be of the same rows as the summary")

    def __add__(self, other: JointSummary) -> JointSummary:
        """Of all the rows of two parts of a client."""
        if (self.plan, self.client, self.names) != (other.plan, other.client, other.names):
            raise SummaryError("answers of different plans, clients or sets cannot be added")
        rows = self.rows + other.rows
        return JointSummary(self.plan, self.client, self.names, rows, self.own + other.own, self.cross + other.cross)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JointSummary):
            return NotImplemented
        same = (self.plan, self.client, self.names, self.rows) == (other.plan, other.client, other.names, other.rows)
        return same and np.array_equal(self.own, other.own) and np.array_equal(self.cross, other.cross)

    def _damaged(self, reason: str) -> SummaryError:
        return SummaryError(
            f"the answer of {self.client} for {', '.join(self.names)} is damaged: {reason}; ask the site for it again"
        )


def bytes_per_entry(rows: int) -> int:
    """Bytes per number: the fewest that hold ±rows · 2³⁶ as a signed number."""
    return next((width for width in (5, 6, 7) if rows * GRID**2 < 1 << (8 * width - 1)), 8)


def count_entries(plan: StudyPlan, names: VariableSet) -> int:
    """How many numbers a client tells in answer to one set."""
    width = len(joint_terms(plan, names))
    return width * (width + 1) // 2 + width * plan.layout.n_columns


def payload_bytes(plan: StudyPlan, sets: Iterable[VariableSet], rows: int) -> int:
    """The bytes of a client's answer to these sets, headers apart."""
    return bytes_per_entry(rows) * sum(count_entries(plan, names) for names in sets)
