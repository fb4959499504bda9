"""Type aliases for numpy arrays, used by all packages."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
"""An array of 64-bit floats."""

Indices: TypeAlias = npt.NDArray[np.intp]
"""An array of positions."""
