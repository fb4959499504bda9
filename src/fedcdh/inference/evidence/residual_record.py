"""A record of the queries about residuals, and of the answers of the clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fedcdh.protocols import Family
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualSums


class AskedForm(NamedTuple):
    """The queries about one form of a family.

    Attributes
    ----------
    curved : bool
        Whether the parents act nonlinearly.
    scored : bool
        Whether the normal score of the node is explained, instead of its value.
    plain : ResidualQuery, optional
        The query with noise of constant size; None for a family without a density.
    sized : ResidualQuery, optional
        The query with a size that depends on the parents, if that was considered.
    with_product : ResidualQuery, optional
        The query with the product of two parents in the regression, if that was considered.

    Examples
    --------
    >>> AskedForm(curved=False, scored=False).plain is None
    True
    """

    curved: bool
    scored: bool
    plain: ResidualQuery | None = None
    sized: ResidualQuery | None = None
    with_product: ResidualQuery | None = None


@dataclass(frozen=True)
class KnownScore:
    """The score of a family from what was answered so far.

    Attributes
    ----------
    value : float
        The log score.
    limit : float
        How high it may be once the clients have answered all there is to ask.
    gaussian : float
        The part that the summaries give.
    forms : tuple of AskedForm
        The forms that were asked about.
    factors : mapping from bool to float
        What the noise adds to the evidence of values (False) and of normal scores (True).

    Examples
    --------
    >>> KnownScore(value=-10.0, limit=-5.0, gaussian=-12.0, forms=(), factors={False: 2.0}).limit
    -5.0
    """

    value: float
    limit: float
    gaussian: float
    forms: tuple[AskedForm, ...]
    factors: Mapping[bool, float]


@dataclass(frozen=True)
class ResidualRecord:
    """All that the clients answered about residuals.

    Attributes
    ----------
    families : dict from Family to tuple of AskedForm
        The queries about each family.
    answers : dict from ResidualQuery to dict from str to ResidualSums
        The answers by client.
    rounds : int
        Number of requests.
    entries : int
        Number of sums that each client sent.
    left_out : int
        Number of families beyond the limits, about which nobody was asked.
    coordinates : mapping from str to Coordinates
        The coordinates of the variables in these queries.

    Examples
    --------
    >>> print(ResidualRecord({}, {}, rounds=2, entries=300, left_out=0))
    residuals: 0 regressions in 2 further rounds; 300 sums per client
    """

    families: dict[Family, tuple[AskedForm, ...]]
    answers: dict[ResidualQuery, dict[str, ResidualSums]]
    rounds: int
    entries: int
    left_out: int
    coordinates: Mapping[str, Coordinates] = field(default_factory=dict)

    def __str__(self) -> str:
        asked = sum(form.plain is not None for forms in self.families.values() for form in forms)
        rounds = f"{self.rounds} further round{'s' if self.rounds != 1 else ''}"
        text = f"residuals: {asked} regressions in {rounds}; {self.entries} sums per client"
        if self.left_out:
            text += f"; {self.left_out} further regressions were beyond the limits"
        return text


def add_clients(answers: Mapping[str, ResidualSums]) -> ResidualSums:
    """Return the sum of the clients' answers to one query."""
    first, *others = (answers[client] for client in sorted(answers))
    return sum(others, start=first)
