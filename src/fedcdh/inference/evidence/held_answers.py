"""Log Bayes factors of the noise where clients lack variables: families of one node are compared on the same rows.

A family is asked of the clients that have all of it. What the shape of its noise gains there, over that of the node
without parents at the same clients, is added to what the node without parents gains at all clients that have it. Both
are counted as the rows that count for all variables. A family that nobody has whole gains nothing by its parents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from fedcdh.inference.absent_variables import CompletedCohort
from fedcdh.inference.evidence.residual_factors import shape_factors
from fedcdh.inference.evidence.residual_record import add_clients
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.residuals import ResidualQuery, ResidualSums

Answers = Mapping[ResidualQuery, Mapping[str, ResidualSums]]


@dataclass(frozen=True)
class HeldAnswers:
    """The answers of a study in which clients lack variables.

    Attributes
    ----------
    known : CompletedCohort
        The completed summaries.
    counted_rows : float
        Number of rows that count.
    """

    known: CompletedCohort
    counted_rows: float

    def is_held(self, query: ResidualQuery) -> bool:
        """Return whether some client has all variables of a query.

        Parameters
        ----------
        query : ResidualQuery
            A query.

        Returns
        -------
        bool
            False if it cannot be asked.
        """
        return bool(self.known.observed.holders((query.node, *query.parents)))

    def factor(self, query: ResidualQuery, base: ResidualQuery | None, answers: Answers) -> float | None:
        """Return the log Bayes factor of the noise of a family.

        Parameters
        ----------
        query : ResidualQuery
            The query about the family.
        base : ResidualQuery, optional
            The query about the node without parents.
        answers : mapping from ResidualQuery to mapping from str to ResidualSums
            The answers so far.

        Returns
        -------
        float or None
            None if nothing was answered.
        """
        own, alone = answers.get(query), answers.get(base) if base is not None else None
        if own is None:
            return None if alone is None or self.is_held(query) else self._gain(alone, alone)
        if alone is None or base == query or not own.keys() <= alone.keys():
            return self._gain(own, own)
        return self._gain(alone, alone) + self._gain(own, own) - self._gain(alone, own)

    def _gain(self, answers: Mapping[str, ResidualSums], clients: Collection[str]) -> float:
        """Return the factor of some clients' answers, as if they were from all the rows that count."""
        total = add_clients({client: answers[client] for client in clients})
        return shape_factors([total], self.counted_rows / total.rows)[0]


def with_bases(families: Mapping[Family, Family | None]) -> dict[Family, Family | None]:
    """Return families with those of the same nodes without parents, with which they are compared.

    Parameters
    ----------
    families : mapping from Family to Family or None
        Families, each with a family of the same node that may be known.

    Returns
    -------
    dict from Family to Family or None
        The same, and those without parents.

    Examples
    --------
    >>> [sorted(family.parents) for family in with_bases({Family("y", frozenset("x")): None})]
    [['x'], []]
    """
    return dict(families) | {base: None for base in bases_of(families) if base not in families}


def bases_of(families: Iterable[Family]) -> list[Family]:
    """Return the families of the same nodes without parents, those that differ between clients as such."""
    return list(dict.fromkeys(Family(one.node, one.parents & {DOMAIN}) for one in families))
