"""How many rows of a study count, where rows depend on each other or values were imputed.

Where graphs are compared, one pair of shares holds for all variables. With a share per variable, x → y and y → x would
get the same correlation at different numbers of rows, and arrows would point to the variable with more of them. A test
of two variables needs no such care: its share is that of the two.

An imputed value says nothing new about the variable, and adds the noise of the draw. A regression on n rows, of which a
share m has a drawn response, varies as that of n/(1/(1 − m) + m) complete rows. That is the share of a variable. The
share of two variables is the product of theirs, as if their gaps had nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, prod
from types import MappingProxyType

from fedcdh._io.text import abbreviate_list
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares

_SHARE_STEP = 0.02
"""Shares of tests with imputed values are multiples of it."""


def common_shares(plan: StudyPlan) -> RowShares:
    """Return the shares of rows that count for all variables together: the smallest ones.

    Parameters
    ----------
    plan : StudyPlan
        The plan.

    Returns
    -------
    RowShares
        All rows, unless rows depend on each other.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> common_shares(StudyPlan((Continuous("a", mean_share=0.5), Continuous("b", product_share=0.8)), ("north",)))
    RowShares(product=0.8, mean=0.5)
    """
    product = min(variable.product_share for variable in plan.variables)
    return RowShares(product, min(product, *(variable.mean_share for variable in plan.variables)))


def variable_shares(plan: StudyPlan) -> dict[str, RowShares]:
    """Return the shares of the variables whose rows depend on each other.

    Parameters
    ----------
    plan : StudyPlan
        The plan.

    Returns
    -------
    dict from str to RowShares
        Without the variables of which all rows count.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> variable_shares(StudyPlan((Continuous("a"), Continuous("b", mean_share=0.5)), ("north",)))
    {'b': RowShares(product=1.0, mean=0.5)}
    """
    found = {one.name: RowShares(one.product_share, min(one.product_share, one.mean_share)) for one in plan.variables}
    return {name: shares for name, shares in found.items() if shares != ALL_ROWS}


def describe_dependence(plan: StudyPlan) -> Iterator[str]:
    """Yield a note on rows that depend on each other.

    Parameters
    ----------
    plan : StudyPlan
        The plan.

    Yields
    ------
    str
        One sentence with variables, or nothing.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> list(describe_dependence(StudyPlan((Continuous("a"), Continuous("b", 0, 1, 0, 1, 0.21, 0.1)), ("north",))))
    ['rows depend on each other: b; 21 % of all rows count for links, 10 % for levels of clients']
    """
    if dependent := sorted(variable_shares(plan)):
        counted = common_shares(plan)
        yield (
            f"rows depend on each other: {abbreviate_list(dependent)}; {100 * counted.product:.3g} % of all rows count "
            f"for links, {100 * counted.mean:.3g} % for levels of clients"
        )


def observed_shares(known: Cohort | Aggregate) -> dict[str, float]:
    """Return the share of rows that counts for every variable with imputed values.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.

    Returns
    -------
    dict from str to float
        Numbers below 1; empty where the plan leaves out rows with missing values.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from fedcdh.summaries import Continuous, add_up, summarize
    >>> plan = replace(StudyPlan((Continuous("a"), Continuous("b")), ("north",)), missing="impute")
    >>> table = {"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, None, 3.0, 5.0]}
    >>> cohort = add_up([summarize(table, plan, "north")], plan)
    >>> {name: round(share, 3) for name, share in observed_shares(cohort).items()}
    {'b': 0.632}
    """
    total = known.total
    if known.plan.missing == "complete":
        return {}
    dropped = total.rows_read - total.rows  # rows without any value
    lost = {name: (count - dropped) / total.rows for name, count in total.missing.items()}
    return {name: 1 / (1 / (1 - share) + share) for name, share in lost.items() if 0 < share < 1}


def counted_shares(known: Cohort | Aggregate) -> RowShares:
    """Return the shares of rows that count for all variables together, imputed values considered.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum.

    Returns
    -------
    RowShares
        Those of dependent rows, times the mean share of two variables.
    """
    dependent, observed = common_shares(known.plan), observed_shares(known)
    if not observed:
        return dependent
    shares = [observed.get(name, 1.0) for name in known.plan.names]
    typical = (sum(shares) / len(shares)) ** 2
    return RowShares(dependent.product * typical, dependent.mean * typical)


def query_shares(
    query: Query, shares: Mapping[str, RowShares], observed: Mapping[str, float] = MappingProxyType({})
) -> RowShares:
    """Return the shares of rows that count in a test.

    The share of a variable for products is a lower bound for every other variable, so that the larger of two holds.

    Parameters
    ----------
    query : Query
        A query about two variables, or about one and the domain.
    shares : mapping from str to RowShares
        The shares of variables; those of others are 1.
    observed : mapping from str to float, optional
        The shares of variables with imputed values; those of others are 1.

    Returns
    -------
    RowShares
        The shares.

    Examples
    --------
    >>> query_shares(Query("a", "b"), {"a": RowShares(0.2, 0.1), "b": RowShares(0.4, 0.3)})
    RowShares(product=0.4, mean=0.1)
    """
    own = [shares.get(name, ALL_ROWS) for name in query.pair - {DOMAIN}]
    known = prod(observed.get(name, 1.0) for name in query.pair - {DOMAIN})
    known = max(floor(known / _SHARE_STEP + 1e-9), 1) * _SHARE_STEP if known < 1 else 1.0  # few different shares
    return RowShares(known * max(one.product for one in own), known * min(one.mean for one in own))
