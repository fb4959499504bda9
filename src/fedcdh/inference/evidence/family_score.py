"""The score of a family: the log marginal likelihood of a variable given its parents, plus a log prior per arrow.

With the domain among the parents, the mechanism differs between clients; without it, all clients share it. One
computation gives both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from fedcdh._runtime.array_types import Array
from fedcdh.inference.counted_rows import common_shares
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
        counts = common_shares(cohort.plan)
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
        self._score_categorical(bare for bare in bare_families if bare[0] in self.counted)
        numbers = [
            (bare, changes)
            for bare, changes in zip(bare_families, changing, strict=True)
            if bare[0] not in self.counted
        ]
        self._score_shared(bare for bare, changes in numbers if not changes)
        self._score_differing(bare for bare, changes in numbers if changes)
        return [
            (self._differing[bare] + LOG_PRIOR_CHANGE if changes else self._same[bare]) + self.arrow * len(bare[1])
            for bare, changes in zip(bare_families, changing, strict=True)
        ]

    def _score_categorical(self, bare_families: Iterable[NodeWithParents]) -> None:
        """Score families of categorical nodes, for which both scores come at once."""
        new = _sort_families({bare for bare in bare_families if bare not in self._same})
        self._store(new, self.categorical([Family(*bare) for bare in new]))

    def _score_shared(self, bare_families: Iterable[NodeWithParents]) -> None:
        """Score families of continuous nodes with a mechanism that all clients share: by far the cheaper score."""
        new = _sort_families({bare for bare in bare_families if bare not in self._same})
        self._same.update(zip(new, self.continuous.same([Family(*bare) for bare in new]), strict=True))

    def _score_differing(self, bare_families: Iterable[NodeWithParents]) -> None:
        new = _sort_families({bare for bare in bare_families if bare not in self._differing})
        self._store(new, self.continuous([Family(*bare) for bare in new]))

    def _store(self, bare_families: list[NodeWithParents], found: list[tuple[float, float]]) -> None:
        for bare, (same, differing) in zip(bare_families, found, strict=True):
            self._same[bare], self._differing[bare] = same, differing


def _sort_families(bare_families: Iterable[NodeWithParents]) -> list[NodeWithParents]:
    return sorted(bare_families, key=lambda bare: (bare[0], sorted(bare[1])))
