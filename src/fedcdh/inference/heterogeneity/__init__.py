"""Differences between clients: the quantities of one mechanism at each client, compared with the others.

- `client_regressions`: level, effects and noise at every client
- `deviations`: the comparison of a client with the others
- `residual_kurtosis`: heavy tails of the noise, which make its spread less certain
- `unlike_clients`: columns that look swapped at one client, and tails that only one client has
"""

from fedcdh.inference.heterogeneity.client_regressions import ClientRegressions
from fedcdh.inference.heterogeneity.deviations import ClientComparison, compare_clients

__all__ = ["ClientComparison", "ClientRegressions", "compare_clients"]
