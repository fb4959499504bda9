"""Small groups that the columns of several plans separate from all other rows.

Where two plans encode two or three people differently, the sums over these people are disclosed, and with the sums of
squares their values. Whitened rows z have the identity as the sum of zzᵀ. So for a unit vector u, the numbers (uᵀz)²
are the shares of the rows in that direction, and add up to 1. A group of k people is separated if nearly all of this is
theirs. Two kinds of weights are examined:

- equal weights, up to their signs, as where a threshold or a rounding separates the group;
- free weights. These are often concentrated on one or two people in honest tables, so their limit is closer to 1, by a
  factor of 10 for each further person.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.privacy.disclosure.group_leverage import MAX_GROUP_LEVERAGE

_MAX_WEIGHTED_PEOPLE = 4  # free weights are examined for groups of at most this many people
_MAX_SEEDS = 256  # rows around which groups are looked for


@dataclass(frozen=True)
class UnionLimits:
    """Limits of leverage in the columns of several plans.

    Parameters
    ----------
    max_leverage : float, default 0.99
        Largest leverage of a row.
    max_people : int, default 1
        Number of people in the largest group that is examined.
    replicates : int, default 0
        Number of bootstrap replicates by all plans together.
    max_group_leverage : float, default 0.98
        Largest leverage of a group as a whole.

    Examples
    --------
    >>> UnionLimits(max_people=3).of_groups().round(4).tolist()
    [0.98, 0.98]
    >>> UnionLimits(max_people=3).of_weighted_groups().round(5).tolist()
    [0.999, 0.9999]
    """

    max_leverage: float = 0.99
    max_people: int = 1
    replicates: int = 0
    max_group_leverage: float = MAX_GROUP_LEVERAGE

    def of_groups(self) -> Array:
        """Return the limits of groups of 2, 3, ... people with equal weights.

        Each of k people has a k-th of the leverage of the group, and replicates multiply its odds.
        """
        rows = self.max_leverage * np.arange(2, self.max_people + 1)
        return np.minimum(self.max_group_leverage, rows / (rows + (self.replicates + 1) * (1 - self.max_leverage)))

    def of_weighted_groups(self) -> Array:
        """Return the limits of groups of 2, 3, ... people with free weights."""
        odds = (self.replicates + 1) * (1 - self.max_leverage)
        people = np.arange(2, min(self.max_people, _MAX_WEIGHTED_PEOPLE) + 1)
        return np.asarray(1 - odds / (self.max_leverage + odds) * 0.1 ** (people - 1.0))

    @property
    def of_rows(self) -> float:
        """The limit of a single row."""
        return self.max_leverage / (self.max_leverage + (self.replicates + 1) * (1 - self.max_leverage))


def find_separated_group(white: Array, limits: UnionLimits) -> int:
    """Return the number of people in the smallest group that exceeds its limit; 0 if there is none.

    Parameters
    ----------
    white : array
        Whitened rows that may belong to such a group, directions × rows, from `UnionMeasure.whiten`.
    limits : UnionLimits
        The limits.

    Returns
    -------
    int
        Number of people.

    Notes
    -----
    Looking at all groups would take too long. For each of the rows with the highest leverage, the others are put in the
    order of their weights in its direction, and the groups are the beginnings of these orders.

    Examples
    --------
    >>> white = np.array([[0.7, 0.71, 0.01], [0.0, 0.0, 0.1]])
    >>> find_separated_group(white, UnionLimits(max_people=3))
    2
    """
    most = min(limits.max_people, white.shape[1])
    if most < 2:
        return 0
    seeds = np.argsort(-(white**2).sum(axis=0), kind="stable")[:_MAX_SEEDS]
    found = [_smallest_group(white, white[:, seed], most, limits) for seed in seeds]
    return min(filter(None, found), default=0)


def _smallest_group(white: Array, seed: Array, most: int, limits: UnionLimits) -> int:
    shares = seed @ white
    order = np.argsort(-np.abs(shares), kind="stable")[:most]
    group = white[:, order] * np.where(shares[order] < 0, -1.0, 1.0)
    whole = (np.cumsum(group, axis=1) ** 2).sum(axis=0)[1:] / np.arange(2, most + 1)
    products = group[:, :_MAX_WEIGHTED_PEOPLE].T @ group[:, :_MAX_WEIGHTED_PEOPLE]
    weighted = np.array([np.linalg.eigvalsh(products[:k, :k])[-1] for k in range(2, len(products) + 1)])
    above = [
        *np.flatnonzero(whole > limits.of_groups()[: len(whole)]),
        *np.flatnonzero(weighted > limits.of_weighted_groups()[: len(weighted)]),
    ]
    return int(min(above)) + 2 if above else 0
