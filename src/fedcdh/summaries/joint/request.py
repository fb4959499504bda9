"""Requests of adaptive rounds, and a client's answer for one set of variables."""

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
"""Sets in one request: more than any client will answer."""


@dataclass(frozen=True)
class Spent:
    """Cost of adaptive rounds: their number, that of the sets, and the bytes of all clients' answers without headers.

    Attributes
    ----------
    rounds : int
        Number of rounds.
    sets : int
        Number of sets that were requested.
    bytes : int
        Bytes of all clients' answers, without headers.
    not_asked : int
        Number of sets beyond the limits.

    Examples
    --------
    >>> str(Spent(rounds=1, sets=3, bytes=900, not_asked=0))
    'adaptive rounds: 1, for 3 conditioning sets; 900 bytes in all'
    """

    rounds: int
    sets: int
    bytes: int
    not_asked: int

    def __str__(self) -> str:
        sentence = f"adaptive rounds: {self.rounds}, for {self.sets} conditioning sets; {self.bytes} bytes in all"
        if self.not_asked:
            sentence += f"; {self.not_asked} sets were beyond the limits: there, the regression is additive"
        return sentence


def to_variable_set(names: Iterable[str]) -> VariableSet:
    """Write a set of variables in its one way: sorted.

    Parameters
    ----------
    names : iterable of str
        Names of variables.

    Returns
    -------
    tuple of str
        The names, sorted.

    Examples
    --------
    >>> to_variable_set({"dose", "age"})
    ('age', 'dose')
    """
    return tuple(sorted(names))


@dataclass(frozen=True)
class JointRequest:
    """The sets of variables whose joint features are requested in one round.

    Attributes
    ----------
    plan : str
        Fingerprint of the plan.
    number : int
        Number of the round, from 1.
    sets : tuple of tuple of str
        Sets of two or more variables, members and sets sorted, none twice.

    Examples
    --------
    >>> JointRequest("0" * 64, 1, (("age", "dose"),)).sets
    (('age', 'dose'),)
    """

    plan: str
    number: int
    sets: tuple[VariableSet, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", tuple(tuple(names) for names in self.sets))
        in_order = list(self.sets) == sorted({to_variable_set(set(names)) for names in self.sets})
        if not in_order or not 0 < len(self.sets) <= MAX_SETS or min(map(len, self.sets)) < 2:
            raise SummaryError(
                f"the request names {len(self.sets)} sets that are empty, too many, too small or out of order; "
                f"expected 1 to {MAX_SETS} different sets of two variables or more, sorted by name; ask the "
                "coordinator for the request again"
            )
        if not isinstance(self.number, int) or self.number < 1:
            raise SummaryError(
                f"the request has the number {self.number!r}; expected a whole number from 1 upwards; ask the "
                "coordinator for the request again"
            )

    def check(self, plan: StudyPlan) -> None:
        """Raise an error if a request belongs to another study, or no answer exists for it.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Raises
        ------
        PlanMismatchError
            If the request follows another plan.
        SummaryError
            If a set has no joint features.
        """
        if self.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"the request follows plan {self.plan[:12]}, not this plan ({plan.fingerprint[:12]}); ask the "
                "coordinator for the request of this study"
            )
        for names in self.sets:
            if not joint_terms(plan, names):
                raise SummaryError(
                    f"the request names the set {', '.join(names)}, which has too many levels for joint features; "
                    "leave it out"
                )

    @cached_property
    def digest(self) -> str:
        """Return a digest of plan and sets: the same sets requested again are the same request, whatever its number."""
        text = json.dumps([self.plan, self.sets], separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class JointSummary:
    """Σ ψψᵀ and Σ ψφᵀ over the rows of a client: ψ the joint features of a set, φ = [1, features] of the summary.

    With the summary's Σ φφᵀ, a regression of any variable on this set needs nothing else. Additive: `a + b`.

    Attributes
    ----------
    plan : str
        Fingerprint of the plan.
    client : str
        Name of the client.
    names : tuple of str
        Set of variables, sorted.
    rows : int
        Number of rows.
    own : array of int64
        Σ ψψᵀ on the grid.
    cross : array of int64
        Σ ψφᵀ on the grid; its first column is Σ ψ.

    Examples
    --------
    >>> JointSummary("0" * 64, "north", ("a", "b"), 1, np.array([[4]]), np.array([[2, 1]])).n_entries
    3
    """

    plan: str
    client: str
    names: VariableSet
    rows: int
    own: Integers
    cross: Integers

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
            raise self._damaged(f"an entry is larger than {self.rows} rows of bounded features can make it")

    @property
    def n_entries(self) -> int:
        """Return how many numbers it releases: a triangle and a rectangle."""
        return len(self.own) * (len(self.own) + 1) // 2 + self.cross.size

    def check(self, plan: StudyPlan, summary: Summary | None = None) -> None:
        """Raise an error if an answer follows another plan, or is not of the rows of the client's summary.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.
        summary : Summary, optional
            Summary of the client.

        Raises
        ------
        PlanMismatchError
            If the answer follows another plan.
        SummaryError
            If no rows, or not those of the summary, can have given it.

        Notes
        -----
        (Σ ψ_i φ_j)² ≤ Σ ψ_i² · Σ φ_j², and Σ ψψᵀ is positive semidefinite, whatever the rows are.
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
        """Add the answers of two parts of a client's rows."""
        if (self.plan, self.client, self.names) != (other.plan, other.client, other.names):
            raise SummaryError(
                "the answers are of different plans, clients or sets; expected the same in both; add answers of one "
                "client and set"
            )
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


def bytes_per_entry(rows: int, bound: int = GRID**2) -> int:
    """Return the bytes per entry: the fewest, from 3, that hold ±rows · bound as a signed number."""
    return next((width for width in range(3, 8) if rows * bound < 1 << (8 * width - 1)), 8)


def count_entries(plan: StudyPlan, names: VariableSet) -> int:
    """Return how many numbers a client releases in answer to one set."""
    width = len(joint_terms(plan, names))
    return width * (width + 1) // 2 + width * plan.layout.n_columns


def payload_bytes(plan: StudyPlan, sets: Iterable[VariableSet], rows: int) -> int:
    """Return the bytes of a client's answer to these sets, without headers."""
    return bytes_per_entry(rows) * sum(count_entries(plan, names) for names in sets)
