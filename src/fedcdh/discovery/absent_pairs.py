"""Pairs of variables that no client has both of: no edge between them can be found, and none can be excluded."""

from __future__ import annotations

from collections.abc import Iterator

from fedcdh._io.text import abbreviate_list
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Pair, sort_pair
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.aggregation import Aggregate, Cohort

NOT_MEASURED_TOGETHER = "not measured together"
"""Status of such a pair."""
_MAX_NAMED_PAIRS, _MAX_NAMED_CLIENTS = 10, 20


def find_unmeasured(known: Cohort | Aggregate) -> frozenset[Pair]:
    """Return the pairs that nobody measured together; with the domain, the variables that only one client has.

    Parameters
    ----------
    known : Cohort or Aggregate
        What the coordinator knows.

    Returns
    -------
    frozenset of frozenset of str
        The pairs.

    Examples
    --------
    >>> import fedcdh
    >>> find_unmeasured(fedcdh.discover(fedcdh.simulate(seed=1).columns("site"), domain="site").cohort)
    frozenset()
    """
    if not isinstance(known, Cohort) or not known.lacks_columns:
        return frozenset()
    alone = {frozenset((DOMAIN, name)) for name in known.plan.names if len(known.holders([name])) < 2}
    return known.pairs_never_together() | (alone if len(known.clients) > 1 else set())


def forbid_unmeasured(knowledge: Knowledge, known: Cohort) -> Knowledge:
    """Return the knowledge without edges between variables that nobody measured together, but for required ones.

    Parameters
    ----------
    knowledge : Knowledge
        Background knowledge.
    known : Cohort
        The summaries.

    Returns
    -------
    Knowledge
        The knowledge of the search.
    """
    required = {frozenset(arrow) for arrow in knowledge.required}
    pairs = sorted(find_unmeasured(known) - required, key=sort_pair)
    return knowledge.forbid_pairs(map(sort_pair, pairs))


def describe_absent_variables(known: Cohort | Aggregate, method: str) -> Iterator[str]:
    """Yield notes on who lacked what, and on pairs that nobody measured together.

    Parameters
    ----------
    known : Cohort or Aggregate
        What the coordinator knows.
    method : str
        Name of the method of the search.

    Yields
    ------
    str
        A sentence.
    """
    if not isinstance(known, Cohort) or not known.lacks_columns:
        return
    lacking = {
        client: [name for name in known.plan.names if name not in held] for client, held in known.columns_of.items()
    }
    nowhere = [name for name in known.plan.names if not known.holders([name])]
    if nowhere:
        yield f"no client that is left has {abbreviate_list(nowhere)}: of these the result says nothing"
    parts = [f"{client} has no {abbreviate_list(names)}" for client, names in lacking.items() if names]
    more = f"; {len(parts) - _MAX_NAMED_CLIENTS} more clients lack some" if len(parts) > _MAX_NAMED_CLIENTS else ""
    yield f"not measured everywhere: {'; '.join(parts[:_MAX_NAMED_CLIENTS])}{more}"
    if method == "evidence":
        yield (
            "evidence expects what a client lacks from the others; where mechanisms differ between clients, this can "
            "draw false edges: compare with method 'constraint', which expects nothing"
        )
    pairs = sorted(map(sort_pair, known.pairs_never_together()))
    if pairs:
        shown = ", ".join(f"{one} and {other}" for one, other in pairs[:_MAX_NAMED_PAIRS])
        more = f" and {len(pairs) - _MAX_NAMED_PAIRS} more pairs" if len(pairs) > _MAX_NAMED_PAIRS else ""
        yield f"{NOT_MEASURED_TOGETHER}: {shown}{more}: no client has both, so an edge is neither found nor excluded"
    if alone := [name for name in known.plan.names if len(known.holders([name])) == 1 and len(known.clients) > 1]:
        yield f"only one client has {abbreviate_list(alone)}: nobody can say whether that mechanism differs"
