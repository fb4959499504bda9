"""Effects from summaries: regressions at every client, and what they say together.

- `client_slopes`: a slope at every client, and the common slope within clients
- `pooling`: the mean effect over clients, and how much they differ
- `response_curves`: additive curved responses
"""

from fedcdh.inference.effects.client_slopes import ClientScatters, Design, Slopes
from fedcdh.inference.effects.pooling import Heterogeneity, PooledEffect, measure_heterogeneity, pool_random

__all__ = [
    "ClientScatters",
    "Design",
    "Heterogeneity",
    "PooledEffect",
    "Slopes",
    "measure_heterogeneity",
    "pool_random",
]
