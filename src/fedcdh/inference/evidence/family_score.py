"""Evidence: the marginal likelihood of a variable given its parents, from the clients' moments alone.

A family's score is its log evidence plus a log prior per arrow. With the domain among the parents the mechanism differs
between clients, without it all clients share it; both come out of one computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import log

from fedcdh.inference.evidence.gaussian import GaussianEvidence, Moments
from fedcdh.inference.evidence.multinomial import CountEvidence
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.plan import Categorical

CHANGE = -1.0
"""Log prior odds that a mechanism differs between clients."""

Bare = tuple[str, frozenset[str]]  # node and parents, the domain left aside


@dataclass(frozen=True, eq=False)
class Evidence:
    """A `LocalScore`: log evidence with a prior of odds 1 : d for every arrow among d variables."""

    continuous: GaussianEvidence
    categorical: CountEvidence
    counted: frozenset[str]  # the categorical variables
    arrow: float
    _same: dict[Bare, float] = field(default_factory=dict)
    _differing: dict[Bare, float] = field(default_factory=dict)

    @classmethod
    def of(cls, cohort: Cohort | Aggregate, basis: Basis, *, curved: bool = True) -> Evidence:
        """With `curved=False` continuous parents act linearly only."""
        counted = frozenset(v.name for v in cohort.plan.variables if isinstance(v, Categorical))
        arrow = -log(max(2, len(cohort.plan.names)))
        moments = Moments(basis)
        labels = CountEvidence.of(cohort, GaussianEvidence(basis, curved, noisy=False, shared=moments))
        return cls(GaussianEvidence(basis, curved, shared=moments), labels, counted, arrow)

    @property
    def straight(self) -> Evidence:
        """The same where continuous parents act linearly only."""
        numbers, labels = replace(self.continuous, curved=False), self.categorical
        labels = replace(labels, regression=replace(labels.regression, curved=False))
        return Evidence(numbers, labels, self.counted, self.arrow)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """The log score of each family, in their order."""
        asked = [(family.node, family.parents - {DOMAIN}) for family in families]
        changing = [DOMAIN in family.parents for family in families]
        self._learn(bare for bare, changes in zip(asked, changing, strict=True) if not changes)
        self._learn_changing(bare for bare, changes in zip(asked, changing, strict=True) if changes)
        return [
            (self._differing[bare] + CHANGE if changes else self._same[bare]) + self.arrow * len(bare[1])
            for bare, changes in zip(asked, changing, strict=True)
        ]

    def _learn(self, asked: Iterable[Bare]) -> None:
        """If all clients share the mechanism. Of labels both come at once; of numbers this is by far the cheaper."""
        new = _in_order({bare for bare in asked if bare not in self._same})
        self._learn_labels([bare for bare in new if bare[0] in self.counted])
        numbers = [bare for bare in new if bare[0] not in self.counted]
        self._same.update(zip(numbers, self.continuous.same([Family(*bare) for bare in numbers]), strict=True))

    def _learn_changing(self, asked: Iterable[Bare]) -> None:
        new = _in_order({bare for bare in asked if bare not in self._differing})
        self._learn_labels([bare for bare in new if bare[0] in self.counted])
        numbers = [bare for bare in new if bare[0] not in self.counted]
        self._note(numbers, self.continuous([Family(*bare) for bare in numbers]))

    def _learn_labels(self, labels: list[Bare]) -> None:
        self._note(labels, self.categorical([Family(*bare) for bare in labels]))

    def _note(self, asked: list[Bare], found: list[tuple[float, float]]) -> None:
        for bare, (same, differing) in zip(asked, found, strict=True):
            self._same[bare], self._differing[bare] = same, differing


def _in_order(asked: Iterable[Bare]) -> list[Bare]:
    return sorted(asked, key=lambda bare: (bare[0], sorted(bare[1])))
