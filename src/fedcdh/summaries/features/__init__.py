"""Feature families: the functions of one variable whose sums and products leave a client.

Every family maps a standardised, clipped column to `width` columns with values in [-1, 1], the range of the grid of
`fedcdh.summaries.encoder`. A family stands for the kernel k(x, y) ≈ Σ_j w_j² f_j(x) f_j(y). The server applies the
weights w, where they cost no precision.

- `hermite`: eigenfunctions of the Gaussian kernel, the default;
- `fourier`: random Fourier features, the family of the paper;
- `one_hot`: the delta kernel of categorical variables;
- `bounded`: features of studies with differential privacy.
"""

from fedcdh.summaries.features.fourier import Fourier
from fedcdh.summaries.features.hermite import Hermite
from fedcdh.summaries.features.one_hot import OneHot

FeatureFamily = Fourier | Hermite
"""The families for continuous variables."""

__all__ = ["FeatureFamily", "Fourier", "Hermite", "OneHot"]
