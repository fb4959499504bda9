"""One-hot features: the exact delta kernel of a categorical variable, and of the domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array


@dataclass(frozen=True)
class OneHot:
    """Indicators of the levels of a categorical variable.

    f_l(x) = 1 if x is the l-th level, else 0, so that Σ_l f_l(x) f_l(y) = 1[x = y] exactly.

    Attributes
    ----------
    levels : tuple of str
        Levels of the variable.

    Examples
    --------
    >>> OneHot(("no", "yes"))(np.array([1, 0]))
    array([[0., 1.],
           [1., 0.]])
    """

    levels: tuple[str, ...]

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return len(self.levels)

    def __call__(self, codes: npt.NDArray[np.integer]) -> Array:
        """Return one column per level, from the positions of the rows' levels."""
        return np.asarray(codes[:, None] == np.arange(self.width), dtype=np.float64)

    @property
    def weights(self) -> Array:
        """Return the weights of the columns in the kernel, which are 1."""
        return np.ones(self.width)
