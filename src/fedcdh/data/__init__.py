"""Rows at a site: tables, sources of batches, readers of files, and rows on clusters.

- `clusters`: rows of Dask and Ray
- `columns`: numeric and categorical columns
- `labels`: levels that look like numbers
- `readers`: CSV, Parquet and Arrow files
- `sources`: sources of rows in batches
- `table`: tables in memory
- `threaded_source`: one source, read by several threads
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.data.clusters import DaskRows, RayRows
    from fedcdh.data.columns import CategoricalColumn, NumericColumn
    from fedcdh.data.readers import CsvStyle, TableFiles, open_tables, read_column_map
    from fedcdh.data.sources import (
        ColumnKind,
        CompleteCaseSource,
        InMemorySource,
        PartitionedSource,
        TableSource,
        to_source,
    )
    from fedcdh.data.table import Table, split_by_client, to_table
    from fedcdh.data.threaded_source import ThreadedSource, partition

__all__ = [
    "CategoricalColumn",
    "ColumnKind",
    "CompleteCaseSource",
    "CsvStyle",
    "DaskRows",
    "InMemorySource",
    "NumericColumn",
    "PartitionedSource",
    "RayRows",
    "Table",
    "TableFiles",
    "TableSource",
    "ThreadedSource",
    "open_tables",
    "partition",
    "read_column_map",
    "split_by_client",
    "to_source",
    "to_table",
]

_HOMES = {
    "CategoricalColumn": "fedcdh.data.columns",
    "ColumnKind": "fedcdh.data.sources",
    "CompleteCaseSource": "fedcdh.data.sources",
    "CsvStyle": "fedcdh.data.readers",
    "DaskRows": "fedcdh.data.clusters",
    "InMemorySource": "fedcdh.data.sources",
    "NumericColumn": "fedcdh.data.columns",
    "PartitionedSource": "fedcdh.data.sources",
    "RayRows": "fedcdh.data.clusters",
    "Table": "fedcdh.data.table",
    "TableFiles": "fedcdh.data.readers",
    "TableSource": "fedcdh.data.sources",
    "ThreadedSource": "fedcdh.data.threaded_source",
    "open_tables": "fedcdh.data.readers",
    "partition": "fedcdh.data.threaded_source",
    "read_column_map": "fedcdh.data.readers",
    "split_by_client": "fedcdh.data.table",
    "to_source": "fedcdh.data.sources",
    "to_table": "fedcdh.data.table",
}

__getattr__, __dir__ = attach(__name__, _HOMES)
