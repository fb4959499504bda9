"""The score of a family: the log marginal likelihood of a variable given its parents, plus a log prior per arrow.

With the domain among the parents, the mechanism differs between clients; without it, all clients share it. One
computation gives both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from fedcdh._runtime.array_types import Array
from fedcdh.inference.counted_rows import counted_shares
from fedcdh.inference.evidence._gaussian_moments import StackedMoments
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.evidence.multinomial import MultinomialScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.variables import Categorical

LOG_PRIOR_CHANGE = -1.0
"""Log prior odds that a mechanism differs between clients."""

NodeWithParents = tuple[str, frozenset[str]]  # node and parents without the domain


@dataclass(frozen=True, eq=False)
class FamilyScore:
    """A local score: log marginal likelihood with prior odds of 1 : d for every arrow among d variables.

    Attributes
    ----------
    continuous : GaussianScore
        Scores continuous nodes.
    categorical : MultinomialScore
        Scores categorical nodes.
    counted : frozenset of str
        The categorical variables.
    arrow : float
        Log prior of an arrow.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import Basis
    >>> from fedcdh.protocols import Family
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> score = FamilyScore.of(cohort, Basis.of(cohort))
    >>> without, with_cause = score([Family("cholesterol"), Family("cholesterol", frozenset({"smoker"}))])
    >>> with_cause > without
    True
    """

    continuous: GaussianScore
    categorical: MultinomialScore
    counted: frozenset[str]
    arrow: float
    _same: dict[NodeWithParents, float] = field(default_factory=dict, init=False)
    _differing: dict[NodeWithParents, float] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls,
        cohort: Cohort | Aggregate,
        basis: Basis,
        *,
        curved: bool = True,
        scores: Mapping[str, Array] | None = None,
    ) -> FamilyScore:
        """Make the score of a study.

        Parameters
        ----------
        cohort : Cohort or Aggregate
            The summaries, or their sum.
        basis : Basis
            Their moments in orthonormal coordinates.
        curved : bool, default True
            Whether continuous parents may act nonlinearly.
        scores : mapping from str to array, optional
            Normal scores that are explained instead of the values, in terms of the variable's coordinates.

        Returns
        -------
        FamilyScore
            The score.
        """
        counted = frozenset(v.name for v in cohort.plan.variables if isinstance(v, Categorical))
        arrow = -log(max(2, len(cohort.plan.names)))
        counts = counted_shares(cohort)
        basis = basis.scaled(counts)
        moments = StackedMoments(basis, scores or {})
        categorical = MultinomialScore.of(cohort, GaussianScore(basis, curved, noisy=False, shared=moments), counts)
        return cls(GaussianScore(basis, curved, shared=moments), categorical, counted, arrow)

    @property
    def total_rows(self) -> float:
        """Return the number of rows of all clients."""
        return self.continuous.basis.total_rows

    @property
    def clients(self) -> int:
        """Return the number of clients that are known apart."""
        return len(self.continuous.basis.rows)

    @property
    def level_counts(self) -> dict[str, int]:
        """Return the number of levels of every categorical variable."""
        return {name: len(columns) for name, columns in self.categorical.levels.items()}

    @property
    def linear(self) -> FamilyScore:
        """Return the same score with continuous parents that act linearly only."""
        continuous, categorical = replace(self.continuous, curved=False), self.categorical
        categorical = replace(categorical, regression=replace(categorical.regression, curved=False))
        return FamilyScore(continuous, categorical, self.counted, self.arrow)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return the log score of each family, in their order."""
        bare_families = [(family.node, family.parents - {DOMAIN}) for family in families]
        changing = [DOMAIN in family.parents for family in families]
        shared = _sort_families(
            bare for bare, x in zip(bare_families, changing, strict=True) if not x and bare not in self._same
        )
        differing = _sort_families(
            bare for bare, x in zip(bare_families, changing, strict=True) if x and bare not in self._differing
        )
        self._score_labels(*([one for one in some if one.node in self.counted] for some in (shared, differing)))
        self._score_numbers(*([one for one in some if one.node not in self.counted] for some in (shared, differing)))
        return [
            (self._differing[bare] + LOG_PRIOR_CHANGE if changes else self._same[bare]) + self.arrow * len(bare[1])
            for bare, changes in zip(bare_families, changing, strict=True)
        ]

    def _score_numbers(self, shared: list[Family], differing: list[Family]) -> None:
        """Score families of continuous nodes; a mechanism that all clients share is by far the cheaper score."""
        self._same.update(zip(map(_to_bare, shared), self.continuous.same(shared), strict=True))
        self._store(differing, self.continuous(differing))

    def _score_labels(self, shared: list[Family], differing: list[Family]) -> None:
        """Score families of categorical nodes; both scores come at once unless all parents are categorical, too."""
        labels = [family for family in shared if self.categorical.is_of_labels(family)]
        both = [*differing, *(family for family in shared if not self.categorical.is_of_labels(family))]
        self.categorical.prepare(labels, both)
        self._same.update(zip(map(_to_bare, labels), self.categorical.same(labels), strict=True))
        self._store(both, self.categorical(both))

    def _store(self, families: list[Family], found: list[tuple[float, float]]) -> None:
        for family, (same, differing) in zip(families, found, strict=True):
            self._same[_to_bare(family)], self._differing[_to_bare(family)] = same, differing


def _to_bare(family: Family) -> NodeWithParents:
    return family.node, family.parents


def _sort_families(bare_families: Iterable[NodeWithParents]) -> list[Family]:
    """Return families, each once and sorted, so that batches are the same in any order."""
    return [Family(*bare) for bare in sorted(set(bare_families), key=lambda bare: (bare[0], sorted(bare[1])))]
