"""How many sums of residuals a site may answer, and that nothing is asked twice: rules about all answers together.

Sums are equations about the values of a site. The first rule is that of summaries: at most half as many numbers as
there are values (`thresholds.required_rows`). The second is about somebody who knows all columns but one: the sums
about one column are at most 0.65 times as many as its rows. Where only the total over all sites is seen, the rows are
those of all sites.

Sites with fewer rows are asked for coarse sums, which are rounded so coarsely that each says little. A coarse sum
counts as a twentieth of an exact one for the first rule. Of coarse sums, at most three times as many may be about one
column as the summary has numbers about it. Sums of both kinds together count as exact ones.

Two answers to nearly the same question differ by few people. Hence each question is answered with one set of weights,
and the coordinates of a variable never change. Sites and the coordinator follow the same rules, from the same budget.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from fedcdh.privacy.disclosure.thresholds import count_numbers_about, count_released_numbers, required_rows
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.asked import count_exact_sums
from fedcdh.summaries.residuals.functions import SHAPE_FUNCTIONS

MAX_SUMS_PER_ROW_AND_COLUMN = 0.65
"""Sums about one column, per row, in all messages together. Residuals twice too large then determine up to 0.041 more
of the values than the summary does; with 0.7, 0.051 (`benchmarks/attacks/residuals.py` on seeds 0 to 5)."""
MAX_COARSE_SUMS_PER_NUMBER = 3.0
"""Coarse sums about one column, per number of the summary about it. Residuals twice too large then determine up to
0.042 more of the values than the summary does (`benchmarks/attacks/residuals.py` on seeds 0 to 5)."""
MIN_EXACT_SUMS = 300
"""Exact sums about one column that a site has to be able to answer, or it is asked for coarse ones. At ten sites of 500
rows, exact sums end the search early: 10 of 120 arrows are reversed, 3 with coarse sums; at 1000 rows, 4 with both."""
_SMALLEST_ANSWER = SHAPE_FUNCTIONS + 2
"""Sums about one column that a client has to be able to answer, or it is asked for none."""


def count_sums_by_column(plan: StudyPlan, budget: RoundBudget) -> dict[str, int]:
    """Return how many numbers are about each continuous variable, in the summary and in answers about residuals.

    Levels are no unknowns here, as for `required_rows`.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    budget : RoundBudget
        Everything that was answered.

    Returns
    -------
    dict from str to int
        Numbers of the summary, and sums of every query in which the variable is node or parent.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> from fedcdh.summaries.residuals import AskedQuery
    >>> plan = StudyPlan((Continuous("x"), Continuous("y")), ("north",))
    >>> query = AskedQuery("0" * 64, ("y",), 14, "1" * 64, ("2" * 64,))
    >>> count_sums_by_column(plan, RoundBudget(queries=frozenset({query})))
    {'x': 62, 'y': 76}
    """
    found = {name: count_numbers_about(plan, name) for name, kind in plan.kinds.items() if kind == "continuous"}
    for query in budget.queries:
        for name in found.keys() & {*query.variables}:
            found[name] += query.entries
    return found


def check_all_numbers(plan: StudyPlan, rows: int, budget: RoundBudget, min_rows: int | None = None) -> Iterator[str]:
    """Find more numbers in all messages together than the rows can hide.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    rows : int
        Number of rows that the messages are about.
    budget : RoundBudget
        Everything that was answered, including the answer that is to leave.
    min_rows : int, optional
        Rows that the policy demands for the summary alone; more numbers need more rows in proportion.

    Yields
    ------
    str
        One sentence for each finding.
    """
    sums = count_exact_sums(budget.queries)
    needed = required_rows(plan, budget.sets, sums)
    if min_rows is not None:
        needed = math.ceil(min_rows * needed / required_rows(plan))
    if rows < needed:
        yield (
            f"with this answer the client would have released {count_released_numbers(plan, budget.sets, sums)} "
            f"numbers about {rows} rows, expected at least {needed} rows for as many numbers; plan the study with "
            "fewer rounds"
        )


def check_numbers_by_column(
    plan: StudyPlan,
    rows: int,
    budget: RoundBudget,
    max_sums_per_row_and_column: float = MAX_SUMS_PER_ROW_AND_COLUMN,
    max_coarse_sums_per_number: float = MAX_COARSE_SUMS_PER_NUMBER,
) -> Iterator[str]:
    """Find a continuous column about which more sums would be known than its rows can hide.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    rows : int
        Number of rows that the messages are about.
    budget : RoundBudget
        Everything that was answered, including the answer that is to leave.
    max_sums_per_row_and_column : float, default 0.65
        Largest number of sums about one column, per row.
    max_coarse_sums_per_number : float, default 3.0
        Largest number of coarse sums about one column, per number of the summary about it, if no other sums were
        answered.

    Yields
    ------
    str
        One sentence for each finding.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("x"), Continuous("y")), ("north",))
    >>> list(check_numbers_by_column(plan, 100, RoundBudget()))
    []
    """
    if budget.queries and all(query.coarse for query in budget.queries):
        yield from _check_coarse_sums(plan, budget, max_coarse_sums_per_number)
        return
    most = int(max_sums_per_row_and_column * rows)
    for name, found in count_sums_by_column(plan, budget).items():
        if found > most:
            yield (
                f"with this answer {found} sums would be about {name!r}, expected at most {most} for {rows} rows: who "
                "knows all other columns could compute it; ask the coordinator for fewer regressions, or for a secure "
                "sum"
            )


def _check_coarse_sums(plan: StudyPlan, budget: RoundBudget, max_coarse_sums_per_number: float) -> Iterator[str]:
    first = count_sums_by_column(plan, RoundBudget())
    for name, found in count_sums_by_column(plan, budget).items():
        most = int(max_coarse_sums_per_number * first[name])
        if found - first[name] > most:
            yield (
                f"with this answer {found - first[name]} coarse sums would be about {name!r}, expected at most {most}: "
                "who knows all other columns could compute it; ask the coordinator for fewer regressions, or for a "
                "secure sum"
            )


def check_repetitions(budget: RoundBudget) -> Iterator[str]:
    """Find a question with two sets of weights, and a variable with two sets of coordinates.

    Parameters
    ----------
    budget : RoundBudget
        Everything that was answered, including the answer that is to leave. The same query again is no finding.

    Yields
    ------
    str
        One sentence for each finding.

    Examples
    --------
    >>> from fedcdh.summaries.residuals import AskedQuery
    >>> one, other = (AskedQuery(digit * 64, ("y",), 14, "q" * 64, ("c" * 64,)) for digit in "01")
    >>> [finding[:62] for finding in check_repetitions(RoundBudget(queries=frozenset({one, other})))]
    ["a question about 'y' would be answered with 2 sets of weights,"]
    """
    weights, places = Counter[tuple[str, tuple[str, ...]]](), dict[str, set[str]]()
    for query in budget.queries:
        weights[query.question, query.variables] += 1
        for name, place in zip(query.variables, query.places, strict=True):
            places.setdefault(name, set()).add(place)
    for (_, variables), found in sorted(weights.items()):
        if found > 1:
            yield (
                f"a question about {describe_regression(*variables)} would be answered with {found} sets of weights, "
                "expected each question once: the difference of two answers could single somebody out; ask the "
                "coordinator why"
            )
    for name, several in sorted(places.items()):
        if len(several) > 1:
            yield (
                f"the coordinates of {name!r} are not those of an earlier request, expected the same throughout a "
                "study: two requests that differ by a little could single somebody out; ask the coordinator why"
            )


def describe_regression(node: str, *parents: str) -> str:
    """Return a regression in words.

    Parameters
    ----------
    node : str
        The variable that is explained.
    *parents : str
        The variables that explain it.

    Returns
    -------
    str
        The words.

    Examples
    --------
    >>> describe_regression("y", "x")
    "'y' given 'x'"
    """
    return f"{node!r} given {', '.join(map(repr, parents))}" if parents else repr(node)


def may_answer(plan: StudyPlan, rows: int, budget: RoundBudget) -> bool:
    """Return whether the default policy lets a client with this many rows answer as much as a budget says.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    rows : int
        Number of rows.
    budget : RoundBudget
        Everything that would be answered.

    Returns
    -------
    bool
        True if all rules hold.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("x"), Continuous("y")), ("north",))
    >>> may_answer(plan, 100, RoundBudget()), may_answer(plan, 80, RoundBudget())
    (True, False)
    """
    findings = chain(
        check_all_numbers(plan, rows, budget), check_numbers_by_column(plan, rows, budget), check_repetitions(budget)
    )
    return next(findings, None) is None


def needs_coarse_sums(plan: StudyPlan, rows: Iterable[int]) -> bool:
    """Return whether a client has too few rows for a search with exact sums, but enough for coarse ones.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    rows : iterable of int
        Number of rows of each client.

    Returns
    -------
    bool
        Whether the clients are asked for coarse sums.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("x"), Continuous("y")), ("north", "south"))
    >>> needs_coarse_sums(plan, [110, 900]), needs_coarse_sums(plan, [600, 900])
    (True, False)
    """
    about_one = max(count_sums_by_column(plan, RoundBudget()).values(), default=0) + MIN_EXACT_SUMS
    least = required_rows(plan, sums=1)
    return any(least <= found < about_one / MAX_SUMS_PER_ROW_AND_COLUMN for found in rows)


def select_answering_clients(plan: StudyPlan, rows: Mapping[str, int], *, coarse: bool = False) -> tuple[str, ...]:
    """Return the clients with enough rows to answer anything about residuals, by the default policy.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    rows : mapping from str to int
        Number of rows of each client.
    coarse : bool, default False
        Whether the clients are asked for coarse sums.

    Returns
    -------
    tuple of str
        Names of the clients that are asked; the sums are over these.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("x"), Continuous("y")), ("north", "south"))
    >>> select_answering_clients(plan, {"north": 110, "south": 900})
    ('south',)
    >>> select_answering_clients(plan, {"north": 110, "south": 900}, coarse=True)
    ('north', 'south')
    """
    if coarse:
        return tuple(client for client, found in rows.items() if found >= required_rows(plan, sums=1))
    about_one = max(count_sums_by_column(plan, RoundBudget()).values(), default=0) + _SMALLEST_ANSWER
    needed = max(required_rows(plan, sums=_SMALLEST_ANSWER), about_one / MAX_SUMS_PER_ROW_AND_COLUMN)
    return tuple(client for client, found in rows.items() if found >= needed)
