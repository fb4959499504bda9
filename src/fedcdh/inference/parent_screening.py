"""Candidate parents: the pairs that can be cause and effect, found before any graph is scored.

Among few variables every pair that looks dependent remains a candidate, at a liberal level, since a pair that is missed
here is lost. Among many variables, chance alone would leave each variable with a share of all others. There the level
falls with the number of variables. A cause whose effect is masked by stronger ones would then be lost. Each variable
therefore gets companions, one by one, each the strongest given those before it, and every variable on which it depends
given these companions remains a candidate too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Answer, Query

MIN_SCREENED_VARIABLES = 8
"""With fewer variables, every pair is a candidate."""
SCREENING_ALPHA = 0.1
"""Significance level at which a pair looks dependent: liberal, since a pair that is missed is lost."""
MAX_PAIRWISE_VARIABLES = 100
"""With more variables the level falls, and companions are used; with fewer, that saves no time."""
MAX_COMPANIONS = 5
"""Largest number of companions of a variable; `benchmarks.bench_evidence_scale` shows what other numbers do."""
EXPECTED_FALSE_COMPANIONS = 3.0
"""Expected number of false companions of a variable: the level is this, divided by the number of variables."""
EXPECTED_FALSE_PARENTS = 1.0
"""Expected number of false candidates of a variable, alone and again given its companions."""


def screen_parents(basis: Basis, names: tuple[str, ...]) -> Mapping[str, frozenset[str]] | None:
    """Return the candidate parents of each variable.

    Parameters
    ----------
    basis : Basis
        The moments in orthonormal coordinates.
    names : tuple of str
        The variables.

    Returns
    -------
    mapping from str to frozenset of str, or None
        The candidates of each variable; None if every other variable is one, as in small studies.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import Basis
    >>> study = fedcdh.simulate(variables=10, seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site")
    >>> candidates = screen_parents(Basis.of(result.cohort), result.graph.nodes)
    >>> all(name not in others for name, others in candidates.items())
    True
    """
    if len(names) < MIN_SCREENED_VARIABLES or not basis.has_client_scatter:
        return None
    test, always = RegressionTest(basis), frozenset({DOMAIN} if len(basis.rows) > 1 else ())
    if len(names) > MAX_PAIRWISE_VARIABLES:
        return _symmetric_candidates(names, _dependent_pairs(test, names, always))
    answers = test([Query(a, b, always) for a, b in combinations(names, 2)])
    return _symmetric_candidates(names, (answer.query.pair for answer in answers if answer.p_value < SCREENING_ALPHA))


def _dependent_pairs(test: RegressionTest, names: tuple[str, ...], always: frozenset[str]) -> Iterable[frozenset[str]]:
    """Yield each variable with its companions, and with every variable on which it depends alone or given these."""
    given, growing = dict.fromkeys(names, always), list(names)
    alone = answers = _answers_by_variable(test, _queries_given(names, given))
    while growing:
        closest = {name: min(answers[name], key=_by_significance) for name in growing}
        growing = [
            name
            for name, answer in closest.items()
            if answer.p_value < EXPECTED_FALSE_COMPANIONS / len(names) and len(given[name] - always) < MAX_COMPANIONS
        ]
        given |= {name: given[name] | {closest[name].query.y} for name in growing}
        answers = answers | _answers_by_variable(test, _queries_given(names, {name: given[name] for name in growing}))
    for name in names:
        yield from (frozenset((name, other)) for other in given[name] - always)
        some = (
            answer for answer in (*alone[name], *answers[name]) if answer.p_value < EXPECTED_FALSE_PARENTS / len(names)
        )
        yield from (answer.query.pair for answer in some)


def _answers_by_variable(test: RegressionTest, queries: list[Query]) -> dict[str, list[Answer]]:
    """Return the answers, by the variable that they are about."""
    found: dict[str, list[Answer]] = {}
    for answer in test(queries):
        found.setdefault(answer.query.x, []).append(answer)
    return found


def _queries_given(names: tuple[str, ...], given: Mapping[str, frozenset[str]]) -> list[Query]:
    """Return queries about each variable and every other one, given its companions."""
    return [Query(name, other, some) for name, some in given.items() for other in names if other not in some | {name}]


def _by_significance(answer: Answer) -> tuple[float, float, str]:
    """Return a sort key: the p-value, and the statistic where p-values are too small to differ."""
    return answer.p_value, -answer.statistic, answer.query.y


def _symmetric_candidates(names: tuple[str, ...], pairs: Iterable[frozenset[str]]) -> dict[str, frozenset[str]]:
    linked = {name: set[str]() for name in names}
    for pair in pairs:
        for name in pair:
            linked[name] |= pair
    return {name: frozenset(others - {name}) for name, others in linked.items()}
