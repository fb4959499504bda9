"""How many rows of a study count, by the shares that the clients found where rows depend on each other.

Where graphs are compared, one pair of shares holds for all variables. With a share per variable, x → y and y → x would
get the same correlation at different numbers of rows, and arrows would point to the variable with more of them. A test
of two variables needs no such care: its share is that of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fedcdh._io.text import abbreviate_list
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares


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


def query_shares(query: Query, shares: Mapping[str, RowShares]) -> RowShares:
    """Return the shares of rows that count in a test.

    The share of a variable for products is a lower bound for every other variable, so that the larger of two holds.

    Parameters
    ----------
    query : Query
        A query about two variables, or about one and the domain.
    shares : mapping from str to RowShares
        The shares of variables; those of others are 1.

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
    return RowShares(max(one.product for one in own), min(one.mean for one in own))
