"""Which variables can be cause and effect at all: what is asked before the evidence of any graph is weighed.

Among few variables every pair that looks dependent stays possible, at a liberal level, since what a screen misses is
lost. Among many that would leave each variable with a share of all others, by chance alone. There the level falls, so
that chance leaves each variable no more than a few. A cause that stronger ones drown would be lost so; each variable
therefore takes its companions, one by one, each the strongest given those before it, and whoever still says something
about it beside these stays possible too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Answer, Question

SCREENED_FROM = 8
"""With fewer variables every pair is possible."""
SCREEN = 0.1
"""Level at which a pair looks dependent: liberal, since what it misses is lost."""
MANY = 100
"""With more variables the level falls, and companions are sought: up to here that saves no time."""
COMPANIONS = 5
"""So many a variable has at most; `benchmarks.bench_evidence_scale` shows what other numbers do."""
SOUGHT = 3.0
"""So many others may seem companions of a variable by chance: the level is this, divided by the number of variables."""
BY_CHANCE = 1.0
"""So many look dependent on a variable by chance, and as many beside its companions: the levels of both."""


def screened(basis: Basis, names: tuple[str, ...]) -> Mapping[str, frozenset[str]] | None:
    """The possible parents of each variable; None where every other one is possible."""
    if len(names) < SCREENED_FROM or not basis.knows_clients:
        return None
    test, always = RegressionTest(basis), frozenset({DOMAIN} if len(basis.rows) > 1 else ())
    if len(names) > MANY:
        return _both_ways(names, _alone_or_beside(test, names, always))
    answers = test([Question(a, b, always) for a, b in combinations(names, 2)])
    return _both_ways(names, (answer.question.pair for answer in answers if answer.p_value < SCREEN))


def _alone_or_beside(test: RegressionTest, names: tuple[str, ...], always: frozenset[str]) -> Iterable[frozenset[str]]:
    """Each variable with its companions, and with whoever it depends on alone or beside these."""
    given, growing = dict.fromkeys(names, always), list(names)
    alone = heard = _heard(test, _beside(names, given))
    while growing:
        closest = {name: min(heard[name], key=_surest_first) for name in growing}
        growing = [
            name
            for name, answer in closest.items()
            if answer.p_value < SOUGHT / len(names) and len(given[name] - always) < COMPANIONS
        ]
        given |= {name: given[name] | {closest[name].question.y} for name in growing}
        heard = heard | _heard(test, _beside(names, {name: given[name] for name in growing}))
    for name in names:
        yield from (frozenset((name, other)) for other in given[name] - always)
        some = (answer for answer in (*alone[name], *heard[name]) if answer.p_value < BY_CHANCE / len(names))
        yield from (answer.question.pair for answer in some)


def _heard(test: RegressionTest, questions: list[Question]) -> dict[str, list[Answer]]:
    """The answers, by the variable that they are about."""
    found: dict[str, list[Answer]] = {}
    for answer in test(questions):
        found.setdefault(answer.question.x, []).append(answer)
    return found


def _beside(names: tuple[str, ...], given: Mapping[str, frozenset[str]]) -> list[Question]:
    """What everybody else says about a variable, given some of them."""
    return [
        Question(name, other, some) for name, some in given.items() for other in names if other not in some | {name}
    ]


def _surest_first(answer: Answer) -> tuple[float, float, str]:
    """By p-value; those too small to tell apart by the statistic."""
    return answer.p_value, -answer.statistic, answer.question.y


def _both_ways(names: tuple[str, ...], pairs: Iterable[frozenset[str]]) -> dict[str, frozenset[str]]:
    linked = {name: set[str]() for name in names}
    for pair in pairs:
        for name in pair:
            linked[name] |= pair
    return {name: frozenset(others - {name}) for name, others in linked.items()}
