"""Sentences for the reader of a result from tests, where only sums over clients are known."""

from __future__ import annotations

from fedcdh._io.text import abbreviate_list
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.domain_mixtures import DomainMixtures
from fedcdh.summaries.opened_by_sums import describe_hidden, describe_opened, describe_opened_mixtures


def describe_regression_sums(known: Cohort | Aggregate) -> tuple[str, ...]:
    """Return notes on what the tests of "constraint" do differently with sums."""
    if not _has_hidden_clients(known):
        return ()
    pairs = (
        "only sums over all clients are known: two variables are tested with one regression for all clients, about the "
        "means of each client; where the effects of two mechanisms differ between clients, tests may find too many "
        "edges"
    )
    if len(known.clients) == 1:
        return (pairs, *describe_unused_mixtures(known), describe_learned(known))
    changes = (
        "whether a mechanism differs between clients is judged by means and spreads at each client; the independent "
        "change principle is not used"
    )
    return (pairs, changes, describe_learned(known))


def describe_kernel_sums(known: Cohort | Aggregate) -> tuple[str, ...]:
    """Return notes on what sums mean for the tests of "paper": nothing, unless clients form groups."""
    if not _has_hidden_clients(known):
        return ()
    if isinstance(known, Aggregate) and known.mixtures is not None:
        mixed = (
            f"only sums over all clients are known: {len(known.mixtures.signs)} mixtures of the clients are the random "
            "features of the domain in the paper's tests; how much a mechanism differs at which client cannot be asked"
        )
        return (mixed, describe_learned(known))
    grouped = "" if known.clients == known.total.clients else ", with groups of clients in place of clients"
    needed = (
        "only sums over all clients are known; the paper's tests need no more: the graph is the same as from single "
        "summaries"
    )
    return (needed + grouped, describe_learned(known))


def _has_hidden_clients(known: Cohort | Aggregate) -> bool:
    """Return whether several clients are known by their sum only."""
    return isinstance(known, Aggregate) and len(known.total.clients) > 1


def describe_unused_mixtures(known: Cohort | Aggregate) -> tuple[str, ...]:
    """Return a note for methods that cannot use mixtures of the clients."""
    if not isinstance(known, Aggregate) or known.mixtures is None:
        return ()
    return (
        "this sum has mixtures of the clients, which this method does not use: it treats all rows as those of one "
        'client; method "paper" finds changes from them',
    )


def describe_learned_mixtures(mixtures: DomainMixtures) -> str:
    """Return what a holder of a sum with mixtures knows of the clients."""
    return (
        f"anyone with these sums knows {describe_opened_mixtures(mixtures.signs)}; {describe_hidden()} is known of all "
        "rows together only"
    )


def describe_learned(known: Cohort | Aggregate) -> str:
    """Return what a holder of the sum knows of every client, or of every group of clients."""
    if isinstance(known, Aggregate) and known.mixtures is not None:
        return describe_learned_mixtures(known.mixtures)
    groups = known.groups if isinstance(known, Aggregate) else ()
    members = "; ".join(f"{name}: {abbreviate_list(clients)}" for name, clients in groups)
    whom = "client" if known.clients == known.total.clients else f"group of clients ({members})"
    return (
        f"anyone with these sums knows, for every {whom}, {describe_opened()}; {describe_hidden()} is known of all "
        "rows together only"
    )
