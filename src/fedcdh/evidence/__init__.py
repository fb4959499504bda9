"""Evidence: the marginal likelihood of a variable given its parents, from the clients' moments alone.

A family's score is its log evidence plus a log prior per arrow. With the domain among the parents the mechanism differs
between clients, without it all clients share it; both come out of one computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log

from fedcdh.basis import Basis
from fedcdh.evidence.counts import CountEvidence
from fedcdh.evidence.gaussian import GaussianEvidence
from fedcdh.plan import Categorical
from fedcdh.questions import DOMAIN, Family
from fedcdh.summary import Aggregate, Cohort

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
    _known: dict[Bare, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, cohort: Cohort | Aggregate, basis: Basis, *, curved: bool = True) -> Evidence:
        """With `curved=False` continuous parents act linearly only."""
        counted = frozenset(v.name for v in cohort.plan.variables if isinstance(v, Categorical))
        arrow = -log(max(2, len(cohort.plan.names)))
        labels = CountEvidence.of(cohort, GaussianEvidence(basis, curved, noisy=False))
        return cls(GaussianEvidence(basis, curved), labels, counted, arrow)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """The log score of each family, in their order."""
        asked = [(family.node, family.parents - {DOMAIN}) for family in families]
        self._learn(sorted({*asked} - self._known.keys(), key=lambda bare: (bare[0], sorted(bare[1]))))
        return [
            self._known[bare][DOMAIN in family.parents]
            + self.arrow * len(bare[1])
            + (CHANGE if DOMAIN in family.parents else 0.0)
            for bare, family in zip(asked, families, strict=True)
        ]

    def _learn(self, bare: list[Bare]) -> None:
        for score, part in (
            (self.categorical, [one for one in bare if one[0] in self.counted]),
            (self.continuous, [one for one in bare if one[0] not in self.counted]),
        ):
            self._known.update(zip(part, score([Family(*one) for one in part]), strict=True))
