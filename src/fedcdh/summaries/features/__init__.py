"""Feature families: the functions of one variable whose sums and products leave a client.

Every family maps a standardised, clipped column to `width` columns with values in [-1, 1], the range the fixed grid of
`fedcdh.summaries.encoder` is made for. The kernel a family stands for is k(x, y) ≈ Σ_j w_j² f_j(x) f_j(y), with the weights w
kept apart: they are applied by the server, where they cost no precision.
"""

from fedcdh.summaries.features.fourier import Fourier
from fedcdh.summaries.features.hermite import Hermite
from fedcdh.summaries.features.one_hot import OneHot

FeatureFamily = Fourier | Hermite
"""The families for continuous variables; categorical ones have `OneHot`, the exact delta kernel."""

__all__ = ["FeatureFamily", "Fourier", "Hermite", "OneHot"]
