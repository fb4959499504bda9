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
from fedcdh.protocols import DOMAIN, Answer, Query

MIN_SCREENED_VARIABLES = 8
"""With fewer variables every pair is possible."""
SCREENING_ALPHA = 0.1
"""Level at which a pair looks dependent: liberal, since what it misses is lost."""
MAX_PAIRWISE_VARIABLES = 100
"""With more variables the level falls, and companions are sought: up to here that saves no time."""
MAX_COMPANIONS = 5
"""So many a variable has at most; `benchmarks.bench_evidence_scale` shows what other numbers do."""
EXPECTED_FALSE_COMPANIONS = 3.0
"""So many others may seem companions of a variable by chance: the level is this, divided by the number of variables."""
EXPECTED_FALSE_PARENTS = 1.0
"""So many look dependent on a variable by chance, and as many beside its companions: the levels of both."""


def screen_parents(basis: Basis, names: tuple[str, ...]) -> Mapping[str, frozenset[str]] | None:
    """The possible parents of each variable; None where every other one is possible."""
    if len(names) < MIN_SCREENED_VARIABLES or not basis.has_client_scatter:
        return None
    test, always = RegressionTest(basis), frozenset({DOMAIN} if len(basis.rows) > 1 else ())
    if len(names) > MAX_PAIRWISE_VARIABLES:
        return _symmetric_candidates(names, _dependent_pairs(test, names, always))
    answers = test([Query(a, b, always) for a, b in combinations(names, 2)])
    return _symmetric_candidates(names, (answer.query.pair for answer in answers if answer.p_value < SCREENING_ALPHA))


def _dependent_pairs(test: RegressionTest, names: tuple[str, ...], always: frozenset[str]) -> Iterable[frozenset[str]]:
    """Each variable with its companions, and with whoever it depends on alone or beside these."""
    given, growing = dict.fromkeys(names, always), list(names)
    alone = heard = _answers_by_variable(test, _queries_given(names, given))
    while growing:
        closest = {name: min(heard[name], key=_by_significance) for name in growing}
        growing = [
            name
            for name, answer in closest.items()
            if answer.p_value < EXPECTED_FALSE_COMPANIONS / len(names) and len(given[name] - always) < MAX_COMPANIONS
        ]
        given |= {name: given[name] | {closest[name].query.y} for name in growing}
        heard = heard | _answers_by_variable(test, _queries_given(names, {name: given[name] for name in growing}))
    for name in names:
        yield from (frozenset((name, other)) for other in given[name] - always)
        some = (
            answer for answer in (*alone[name], *heard[name]) if answer.p_value < EXPECTED_FALSE_PARENTS / len(names)
        )
        yield from (answer.query.pair for answer in some)


def _answers_by_variable(test: RegressionTest, questions: list[Query]) -> dict[str, list[Answer]]:
    """The answers, by the variable that they are about."""
    found: dict[str, list[Answer]] = {}
    for answer in test(questions):
        found.setdefault(answer.query.x, []).append(answer)
    return found


def _queries_given(names: tuple[str, ...], given: Mapping[str, frozenset[str]]) -> list[Query]:
    """What everybody else says about a variable, given some of them."""
    return [Query(name, other, some) for name, some in given.items() for other in names if other not in some | {name}]


def _by_significance(answer: Answer) -> tuple[float, float, str]:
    """By p-value; those too small to tell apart by the statistic."""
    return answer.p_value, -answer.statistic, answer.query.y


def _symmetric_candidates(names: tuple[str, ...], pairs: Iterable[frozenset[str]]) -> dict[str, frozenset[str]]:
    linked = {name: set[str]() for name in names}
    for pair in pairs:
        for name in pair:
            linked[name] |= pair
    return {name: frozenset(others - {name}) for name, others in linked.items()}
