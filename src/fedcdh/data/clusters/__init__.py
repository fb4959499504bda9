"""Rows that lie on a cluster the site already has: each part is summarised where it lies, and only sums travel.

A summary is a map over parts of the rows and a sum of what comes out, so any engine that can do both will do.
`DaskRows` and `RayRows` go wherever a table goes; they need dask (`pip install 'fedcdh[dask]'`) and ray
(`fedcdh[ray]`), which are imported once a table of theirs is given.
"""

from __future__ import annotations

from fedcdh.data.clusters.dask_source import DaskRows
from fedcdh.data.clusters.ray_source import RayRows

__all__ = ["DaskRows", "RayRows"]
