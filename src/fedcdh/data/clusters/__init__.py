"""Rows on a cluster: each partition is summarised where it lies, and only sums travel.

A summary is a map over partitions and a sum of the results, so any engine that can do both will do. `DaskRows` and
`RayRows` can be passed wherever a table can. They need dask (`pip install 'fedcdh[dask]'`) or ray (`fedcdh[ray]`),
which are imported when the first such table is made.

- `dask_source`, `ray_source`: the rows of a Dask data frame and of a Ray dataset
- `partitions`: the work on one partition, and the sum of the results
- `worker_process`: settings of a worker process while it works
"""

from __future__ import annotations

from fedcdh.data.clusters.dask_source import DaskRows
from fedcdh.data.clusters.ray_source import RayRows

__all__ = ["DaskRows", "RayRows"]
