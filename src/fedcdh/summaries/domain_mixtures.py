"""Mixtures of the client index: the paper's Step 2, in which sums over clients have random weights.

Without mixtures, a sum opens the first moments of every client or group. With m mixtures it opens Σ_k x_k and, for
each mixture, Σ_k ±x_k, where x_k are the first moments of client k. The signs are random features of the client index:
their mean product over mixtures approximates the delta kernel.

Weights of ±1 have a reason. First moments are whole numbers, and those of categories are small: from Σ w_k x_k with
long weights w_k, all x_k can be found by trial, though there are fewer sums than clients. With signs, every client
that linear algebra cannot single out can exchange single rows with others, and no sum changes (docs/masking.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary

MAX_MIXTURES = 5
"""As many as the paper's features of a variable. An exchange of rows that changes no sum then moves at most five rows
of a client at once, since determinants of 6 × 6 signs are at most 5 · 2⁵."""
_CANDIDATES = 64
"""Draws of signs, of which the one is taken that hides clients best."""
_MAX_COEFFICIENTS = (1, 1, 1, 1, 2, 3)
"""Largest coefficient, by number of mixtures, of a shortest combination of sums over few clients: such a combination
vanishes at m independent clients, so its coefficients are determinants of m × m signs, over 2^(m − 1)."""


@dataclass(frozen=True, eq=False)
class DomainMixtures:
    """Mixtures of the clients' first moments, and of their numbers of rows.

    Attributes
    ----------
    signs : array of int64
        Sign of each client in each mixture, (mixtures, clients).
    sums : array of int64
        Σ_k ± first moments, (mixtures, columns).
    products : array of int64
        Σ_k rows of client k, times its signs in two mixtures, (mixtures, mixtures): Σ φ(℧) φ(℧)ᵀ over rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), tuple("abcdef"))
    >>> summaries = [summarize({"age": [50.0, 61.0]}, plan, client) for client in plan.clients]
    >>> DomainMixtures.of(summaries, plan, 1).products.tolist()
    [[12]]
    """

    signs: Integers
    sums: Integers
    products: Integers

    @classmethod
    def of(cls, summaries: Iterable[Summary], plan: StudyPlan, mixtures: int) -> DomainMixtures:
        """Return the mixtures of single summaries, in whatever order they come.

        Parameters
        ----------
        summaries : iterable of Summary
            One summary of each client.
        plan : StudyPlan
            Their plan.
        mixtures : int
            Number of mixtures.

        Returns
        -------
        DomainMixtures
            What a secure sum with mixtures would open beside the sum.
        """
        found = {summary.clients[0]: summary for summary in summaries}
        signs = select_signs(plan, mixtures, sorted(found))
        firsts: Integers = np.array([found[client].moments[0] for client in sorted(found)])
        rows: Integers = np.array([found[client].rows for client in sorted(found)], dtype=np.int64)
        return cls(signs, signs @ firsts, (signs * rows) @ signs.T)

    def check(self, plan: StudyPlan, total: Summary) -> None:
        """Refuse mixtures that no rows can have given together with the sum.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.
        total : Summary
            Sum of the clients' summaries.

        Raises
        ------
        SummaryError
            If mixtures and sum contradict each other.
        """
        count = len(self.signs)
        if self.sums.shape != (count, plan.layout.n_columns) or self.products.shape != (count, count):
            raise _contradiction(f"it has mixtures of the shapes {self.sums.shape} and {self.products.shape}")
        if not np.array_equal(self.signs, select_signs(plan, count, total.clients)):
            raise _contradiction("its signs are not those of its clients")
        if (self.sums[:, 0] % GRID**2).any() or (np.diag(self.products) != total.rows).any():
            raise _contradiction("its mixtures count rows that are no whole numbers, or other rows than the sum")
        upper = np.triu_indices(count, 1)
        signs = np.vstack([self.signs, self.signs[upper[0]] * self.signs[upper[1]]])
        values = np.concatenate([self.sums[:, 0] // GRID**2, self.products[upper]])
        for side in (1, -1):  # twice the rows of the clients on each side of each mixture
            clients, rows = (signs == side).sum(axis=1), total.rows + side * values
            most = 2 * (plan.max_rows_per_client or total.rows) * clients
            if (rows % 2).any() or (rows < 2 * clients).any() or (rows > most).any():
                raise _contradiction("its mixtures count rows that its clients cannot have")
            part = total.moments[0] + side * self.sums  # twice the first moments of these clients
            if (part % 2).any() or (np.abs(part) > rows[:count, None] * GRID**2).any():
                raise _contradiction("no rows can have its mixtures")


def derive_signs(clients: Collection[str], mixtures: int) -> Integers:
    """Return the sign of every client of a plan in every mixture.

    Clients get the 2^m patterns of signs in turn, in an order that hashes of their names decide; of several such
    orders, the first that hides clients best. Nothing else of the plan matters, so a second plan for the same clients
    opens no further mixtures.

    Parameters
    ----------
    clients : collection of str
        All clients of the plan, in any order.
    mixtures : int
        Number of mixtures.

    Returns
    -------
    array of int64
        Signs, (mixtures, clients); clients in the order of their names.

    Raises
    ------
    SummaryError
        If there is no such number of mixtures.

    Examples
    --------
    >>> sorted(derive_signs("abcdef", 1)[0].tolist())
    [-1, -1, -1, 1, 1, 1]
    """
    if not 1 <= mixtures <= MAX_MIXTURES:
        raise SummaryError(
            f"{mixtures} mixtures of clients are asked for; expected 1 to {MAX_MIXTURES}; choose another number"
        )
    return _derive_signs(tuple(sorted(clients)), mixtures)


def select_signs(plan: StudyPlan, mixtures: int, clients: Collection[str]) -> Integers:
    """Return the signs of these clients of the plan, in the order of their names.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    mixtures : int
        Number of mixtures.
    clients : collection of str
        Clients of the plan.

    Returns
    -------
    array of int64
        Signs, (mixtures, clients).

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), tuple("abcdef"))
    >>> select_signs(plan, 2, ["b", "a"]).shape
    (2, 2)
    """
    present = {*clients}
    signs = derive_signs(plan.clients, mixtures)
    return signs[:, [client in present for client in plan.clients]]


def find_smallest_sum(signs: Integers) -> int:
    """Return the fewest clients in a sum of features that can be computed from the total and the mixtures.

    It is the smallest number of clients with a coefficient other than 0, over all combinations of the total and the
    mixtures. If it is d, the first moments of a single client cannot be computed, not even with the help of d − 2
    others that know their own. With groups in the place of mixtures it would be the size of the smallest group.

    Parameters
    ----------
    signs : array of int64
        Signs of the clients present, (mixtures, clients).

    Returns
    -------
    int
        Number of clients; 0 if one mixture follows from the others.

    Examples
    --------
    >>> find_smallest_sum(np.array([[1, 1, 1, -1, -1, -1]]))  # the three clients with the same sign
    3
    >>> find_smallest_sum(np.array([[1, 1, 1, 1, 1, -1]]))
    1
    """
    patterns, counts = np.unique(signs, axis=1, return_counts=True)
    rows = np.vstack([np.ones(patterns.shape[1]), patterns])
    absent = _combinations(len(signs)) @ rows == 0  # small whole numbers: exact
    return int(counts.sum() - (absent.astype(np.float32) @ counts.astype(np.float32)).max())


def find_smallest_row_sum(signs: Integers) -> int:
    """Return a number of clients such that no sum of rows over fewer of them can be computed.

    Rows are added with single signs and with products of two, which are known for the covariance of the domain's
    features. Clients with the same signs are never separated. Where all patterns of signs occur, a combination of
    such sums, a polynomial of degree 2 in the signs, differs from 0 at a quarter of them or more.

    Parameters
    ----------
    signs : array of int64
        Signs of the clients present, (mixtures, clients).

    Returns
    -------
    int
        Number of clients; 1 if the rows of single clients may become known.

    Examples
    --------
    >>> find_smallest_row_sum(np.array([[1, 1, 1, -1, -1, -1]]))
    3
    >>> find_smallest_row_sum(np.array([[1, 1, -1, -1], [1, -1, 1, -1]]))
    1
    """
    mixtures = len(signs)
    if mixtures == 1:
        return find_smallest_sum(signs)
    _, counts = np.unique(signs, axis=1, return_counts=True)
    return int(counts.min()) * (1 << (mixtures - 2) if len(counts) == 1 << mixtures else 1)


@lru_cache(maxsize=16)
def _derive_signs(clients: tuple[str, ...], mixtures: int) -> Integers:
    drawn = (_draw_signs(candidate, clients, mixtures) for candidate in range(_CANDIDATES))
    best = max(drawn, key=find_smallest_sum)  # the first of several
    best.setflags(write=False)
    return best


def _draw_signs(candidate: int, clients: Sequence[str], mixtures: int) -> Integers:
    """Deal the patterns of signs to the clients, both in the order of their hashes."""
    patterns = sorted(product((-1, 1), repeat=mixtures), key=lambda one: _hash(candidate, str(one)))
    order = sorted(clients, key=lambda client: _hash(candidate, client))
    dealt = {client: patterns[place % len(patterns)] for place, client in enumerate(order)}
    return np.array([dealt[client] for client in clients], dtype=np.int64).T


def _hash(candidate: int, text: str) -> bytes:
    return hashlib.sha256(f"fedcdh domain mixtures {candidate} {text}".encode()).digest()


@lru_cache(maxsize=MAX_MIXTURES)
def _combinations(mixtures: int) -> Array:
    """Return all coefficients of the total and the mixtures that a shortest combination can have, up to a factor."""
    most = _MAX_COEFFICIENTS[mixtures]
    found = [
        one
        for one in product(range(-most, most + 1), repeat=mixtures + 1)
        if math.gcd(*one) == 1 and next(number for number in one if number) > 0
    ]
    return np.array(found, dtype=np.float64)


def _contradiction(reason: str) -> SummaryError:
    return SummaryError(
        f"the sum contradicts itself: {reason}; expected mixtures of the clients in the sum; begin the sum again"
    )
