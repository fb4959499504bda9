"""Variables that were assigned by design: their shares differ less between clients than chance allows.

A treatment that is randomised in blocks is balanced at every client. Shares of levels that arise by themselves vary at
least as much as in random samples. Less variation shows that somebody has assigned the levels, so nothing that was
measured has caused them.
"""

from __future__ import annotations

from scipy import stats

from fedcdh.inference.degenerate_variables import find_few_valued
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.variables import Categorical

MAX_BALANCE_P_VALUE = 1e-4
"""Probability of as little variation between clients by chance, below which a variable counts as assigned."""


def find_balanced(known: Cohort | Aggregate) -> tuple[str, ...]:
    """Find the labels and two-valued numbers whose shares are more alike at all clients than by chance.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries of the clients, or their sum, which knows the means of every client as well.

    Returns
    -------
    tuple of str
        The variables, in the order of the plan; none for one client or noisy summaries.

    Notes
    -----
    For levels that arise alike and independently at all clients, the sum of squares between clients, in units of the
    variance, has about a χ² distribution. Its lower tail is the p-value.

    Examples
    --------
    >>> import fedcdh
    >>> tables = {f"c{k}": {"arm": ["a", "b"] * 10, "y": [float(k + i * i % 7) for i in range(20)]} for k in range(8)}
    >>> plan = fedcdh.StudyPlan.from_tables(tables)
    >>> summaries = [fedcdh.summarize(table, plan, client) for client, table in tables.items()]
    >>> find_balanced(fedcdh.add_up(summaries, plan))
    ('arm',)
    """
    if known.total.noise or len(known.clients) < 2:
        return ()
    labels = {variable.name for variable in known.plan.variables if isinstance(variable, Categorical)}
    candidates = labels | {one.name for one in find_few_valued(known) if one.values == 2}
    constant = known.total.constant_variables(known.plan)
    if not candidates.difference(constant):
        return ()
    basis = Basis.of(known)
    return tuple(
        name
        for name in known.plan.names
        if name in candidates and name not in constant and _balance_p_value(basis, name) < MAX_BALANCE_P_VALUE
    )


def _balance_p_value(basis: Basis, name: str) -> float:
    """Return the probability of as little variation between clients, if levels are drawn alike at all of them."""
    means = basis.means[:, basis.targets[name]]
    between = float((basis.rows[:, None] * means**2).sum())
    return float(stats.chi2.cdf(between, (len(basis.rows) - 1) * means.shape[1]))
