"""The default test: regressions from second moments, calibrated for additive mechanisms.

Questions about two variables go to `pairs`, those about the domain to `mechanism`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedcdh.basis import Basis
from fedcdh.independence import mechanism, pairs
from fedcdh.independence.pairs import SEPARATELY, Together
from fedcdh.partial import in_groups
from fedcdh.questions import DOMAIN, Answer, Question


@dataclass(frozen=True, eq=False)
class RegressionTest:
    """Partial F tests for pairs of variables, Chow and Bartlett tests for the domain."""

    basis: Basis
    together: Together = SEPARATELY

    def __call__(self, questions: Sequence[Question], /) -> list[Answer]:
        """Answers in the order of the questions."""
        rows = int(self.basis.rows.sum())
        results = in_groups(questions, self._shape, self._elements, self._solve)
        return [Answer(q, statistic, p_value, rows) for q, (statistic, p_value) in zip(questions, results, strict=True)]

    def _shape(self, question: Question) -> tuple[object, ...]:
        if DOMAIN in question.pair:
            return ("mechanism", *mechanism.shape(self.basis, _domain_first(question)))
        return ("pair", *pairs.shape(self.basis, pairs.narrow_first(self.basis, question), self.together))

    def _elements(self, question: Question) -> int:
        clients = len(self.basis.rows) if DOMAIN in question.given | question.pair else 1
        return clients * sum(len(self.basis.predictors[n]) for n in (question.given | question.pair) - {DOMAIN}) ** 2

    def _solve(self, questions: list[Question]) -> list[tuple[float, float]]:
        if DOMAIN in questions[0].pair:
            return mechanism.answer_mechanisms(self.basis, [_domain_first(q) for q in questions], self.together)
        ordered = [pairs.narrow_first(self.basis, q) for q in questions]
        return pairs.answer_pairs(self.basis, ordered, self.together)


def _domain_first(question: Question) -> Question:
    return question if question.x == DOMAIN else Question(question.y, question.x, question.given)
