"""Limits of a client for the terms of a secure sum, which the coordinator proposes.

With n clients and the threshold t, a server that does not keep to the rounds learns the summaries of single clients if
2t − n of them help it (docs/masking.md). With t just above n/2, one or two helpers suffice. The threshold is therefore
not for the server alone to choose: every client has a minimum of its own, from its policy.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fedcdh.errors import DisclosureError
from fedcdh.privacy.secure_aggregation.terms import MIN_CLIENTS, SecAggTerms
from fedcdh.summaries.domain_mixtures import find_smallest_row_sum, find_smallest_sum

MIN_THRESHOLD_SHARE = 0.66
"""The coordinator's default, more than two thirds, is above it for every number of clients."""
MIN_SUM_SITES = 3
"""The least that terms admit: from a sum over two clients, each knows the other's summand."""
MIN_GROUP_SITES = 1
"""The method compares clients by their own sums of features, so by default they may be opened."""


@dataclass(frozen=True)
class SecureSumLimits:
    """Limits of one client for the terms and the clients of a secure sum.

    Parameters
    ----------
    min_threshold_share : float, default 0.66
        Smallest threshold, as a share of all clients of the plan.
    min_sum_sites : int, default 3
        Fewest clients in a sum, this one included.
    min_group_sites : int, default 1
        Fewest clients whose sums of features (rows, means, standard deviations) are opened together with this client's.
        In a sum with mixtures of clients, the fewest clients in any sum that can be computed; of features, 3 or more.

    Examples
    --------
    >>> SecureSumLimits(min_group_sites=3).min_sum_sites
    3
    """

    min_threshold_share: float = MIN_THRESHOLD_SHARE
    min_sum_sites: int = MIN_SUM_SITES
    min_group_sites: int = MIN_GROUP_SITES

    def check(self, terms: SecAggTerms, client: str, planned: Collection[str], present: Collection[str]) -> None:
        """Refuse terms, or a set of clients, under which too few could unmask this client's numbers.

        Parameters
        ----------
        terms : SecAggTerms
            The terms of the session.
        client : str
            Name of this client.
        planned : collection of str
            All clients of the plan.
        present : collection of str
            The clients that take part, as far as is known.

        Raises
        ------
        DisclosureError
            If a limit is not kept.
        """
        if terms.threshold < self.min_threshold_share * len(planned):
            raise DisclosureError(
                f"The threshold of the secure sum is {terms.threshold} of {len(planned)} clients. Expected at least "
                f"{self.min_threshold_share:g} of them (min_threshold_share in the policy of this site): with a lower "
                "one, few clients who help the server reveal a summary. Ask the coordinator for a higher threshold"
            )
        if len(present) < self.min_sum_sites:
            raise DisclosureError(
                f"The secure sum is of {len(present)} clients. Expected at least {self.min_sum_sites} (min_sum_sites "
                "in the policy of this site). Ask the coordinator to begin again with more clients"
            )
        if terms.mixtures:
            self._check_mixtures(terms, planned, present)
            return
        size = self._group_size(terms, client, present)
        if size < self.min_group_sites:
            raise DisclosureError(
                f"The sums of features of {size} clients, this one included, are opened together. Expected at least "
                f"{self.min_group_sites} (min_group_sites in the policy of this site). Ask the coordinator for larger "
                "groups"
            )

    def _check_mixtures(self, terms: SecAggTerms, planned: Collection[str], present: Collection[str]) -> None:
        """Refuse mixtures from which a sum of features over too few of those present could be computed."""
        signs = terms.signs_of(planned, present)
        least, smallest = max(self.min_group_sites, MIN_CLIENTS), find_smallest_sum(signs)
        if smallest < least:
            raise DisclosureError(
                f"From {terms.mixtures} mixtures of {len(present)} clients, sums of features over {smallest} clients "
                f"can be computed. Expected at least {least} clients in each (min_group_sites in the policy of this "
                f"site, and never fewer than {MIN_CLIENTS}). Ask the coordinator for fewer mixtures or more clients"
            )
        if (rows := find_smallest_row_sum(signs)) < self.min_group_sites:
            raise DisclosureError(
                f"From {terms.mixtures} mixtures of {len(present)} clients, the number of rows of {rows} clients may "
                f"be computed. Expected at least {self.min_group_sites} clients together (min_group_sites in the "
                "policy of this site). Ask the coordinator for fewer mixtures or more clients"
            )

    @staticmethod
    def _group_size(terms: SecAggTerms, client: str, present: Collection[str]) -> int:
        """Return with how many clients, itself included, a client's numbers are opened."""
        if terms.residuals is not None:
            return len(present)  # answers of all clients are one sum
        if not terms.groups:
            return 1
        return sum(terms.groups[other] == terms.groups.get(client) for other in present)
