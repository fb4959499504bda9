"""Evidence: the marginal likelihood of a variable given its parents, from the clients' moments alone.

A family's score is its log evidence plus a log prior per arrow. With the domain among the parents the mechanism differs
between clients, without it all clients share it; both come out of one computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import log

from fedcdh.inference.evidence.gaussian import GaussianScore, StackedMoments
from fedcdh.inference.evidence.multinomial import MultinomialScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.plan import Categorical

LOG_PRIOR_CHANGE = -1.0
"""Log prior odds that a mechanism differs between clients."""

NodeWithParents = tuple[str, frozenset[str]]  # node and parents, the domain left aside


@dataclass(frozen=True, eq=False)
class FamilyScore:
    """A `LocalScore`: log evidence with a prior of odds 1 : d for every arrow among d variables."""

    continuous: GaussianScore
    categorical: MultinomialScore
    counted: frozenset[str]  # the categorical variables
    arrow: float
    _same: dict[NodeWithParents, float] = field(default_factory=dict)
    _differing: dict[NodeWithParents, float] = field(default_factory=dict)

    @classmethod
    def of(cls, cohort: Cohort | Aggregate, basis: Basis, *, curved: bool = True) -> FamilyScore:
        """With `curved=False` continuous parents act linearly only."""
        counted = frozenset(v.name for v in cohort.plan.variables if isinstance(v, Categorical))
        arrow = -log(max(2, len(cohort.plan.names)))
        moments = StackedMoments(basis)
        labels = MultinomialScore.of(cohort, GaussianScore(basis, curved, noisy=False, shared=moments))
        return cls(GaussianScore(basis, curved, shared=moments), labels, counted, arrow)

    @property
    def linear(self) -> FamilyScore:
        """The same where continuous parents act linearly only."""
        numbers, labels = replace(self.continuous, curved=False), self.categorical
        labels = replace(labels, regression=replace(labels.regression, curved=False))
        return FamilyScore(numbers, labels, self.counted, self.arrow)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """The log score of each family, in their order."""
        asked = [(family.node, family.parents - {DOMAIN}) for family in families]
        changing = [DOMAIN in family.parents for family in families]
        self._learn(bare for bare, changes in zip(asked, changing, strict=True) if not changes)
        self._learn_changing(bare for bare, changes in zip(asked, changing, strict=True) if changes)
        return [
            (self._differing[bare] + LOG_PRIOR_CHANGE if changes else self._same[bare]) + self.arrow * len(bare[1])
            for bare, changes in zip(asked, changing, strict=True)
        ]

    def _learn(self, asked: Iterable[NodeWithParents]) -> None:
        """If all clients share the mechanism. Of labels both come at once; of numbers this is by far the cheaper."""
        new = _sort_families({bare for bare in asked if bare not in self._same})
        self._learn_labels([bare for bare in new if bare[0] in self.counted])
        numbers = [bare for bare in new if bare[0] not in self.counted]
        self._same.update(zip(numbers, self.continuous.same([Family(*bare) for bare in numbers]), strict=True))

    def _learn_changing(self, asked: Iterable[NodeWithParents]) -> None:
        new = _sort_families({bare for bare in asked if bare not in self._differing})
        self._learn_labels([bare for bare in new if bare[0] in self.counted])
        numbers = [bare for bare in new if bare[0] not in self.counted]
        self._note(numbers, self.continuous([Family(*bare) for bare in numbers]))

    def _learn_labels(self, labels: list[NodeWithParents]) -> None:
        self._note(labels, self.categorical([Family(*bare) for bare in labels]))

    def _note(self, asked: list[NodeWithParents], found: list[tuple[float, float]]) -> None:
        for bare, (same, differing) in zip(asked, found, strict=True):
            self._same[bare], self._differing[bare] = same, differing


def _sort_families(asked: Iterable[NodeWithParents]) -> list[NodeWithParents]:
    return sorted(asked, key=lambda bare: (bare[0], sorted(bare[1])))
