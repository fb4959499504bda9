"""Rows at a site: tables, sources of batches, readers of files, and rows on clusters.

- `clusters`: rows of Dask and Ray
- `columns`: numeric and categorical columns
- `labels`: levels that look like numbers
- `loaded_tables`: files and sources, read into memory
- `prepared_source`: rows after the recipes of a plan
- `readers`: files and databases
- `recipes`, `recipe_file`, `recipe_merging`: what every site does with its columns first
- `sources`: sources of rows in batches
- `table`: tables in memory
- `threaded_source`: one source, read by several threads
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.data.clusters import DaskRows, RayRows
    from fedcdh.data.columns import CategoricalColumn, NumericColumn
    from fedcdh.data.loaded_tables import load_tables
    from fedcdh.data.prepared_source import PreparedSource, prepare_rows, prepare_source
    from fedcdh.data.readers import CsvStyle, TableFiles, open_query, open_tables, read_column_map
    from fedcdh.data.recipe_file import Recipes
    from fedcdh.data.recipe_merging import merge_recipes
    from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Threshold, UnitConversion, describe_recipe
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
    "LabelRecipe",
    "NumberRecipe",
    "NumericColumn",
    "PartitionedSource",
    "PreparedSource",
    "RayRows",
    "Recipes",
    "Table",
    "TableFiles",
    "TableSource",
    "ThreadedSource",
    "Threshold",
    "UnitConversion",
    "describe_recipe",
    "load_tables",
    "merge_recipes",
    "open_query",
    "open_tables",
    "partition",
    "prepare_rows",
    "prepare_source",
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
    "LabelRecipe": "fedcdh.data.recipes",
    "NumberRecipe": "fedcdh.data.recipes",
    "NumericColumn": "fedcdh.data.columns",
    "PartitionedSource": "fedcdh.data.sources",
    "PreparedSource": "fedcdh.data.prepared_source",
    "RayRows": "fedcdh.data.clusters",
    "Recipes": "fedcdh.data.recipe_file",
    "Table": "fedcdh.data.table",
    "TableFiles": "fedcdh.data.readers",
    "TableSource": "fedcdh.data.sources",
    "ThreadedSource": "fedcdh.data.threaded_source",
    "Threshold": "fedcdh.data.recipes",
    "UnitConversion": "fedcdh.data.recipes",
    "describe_recipe": "fedcdh.data.recipes",
    "load_tables": "fedcdh.data.loaded_tables",
    "merge_recipes": "fedcdh.data.recipe_merging",
    "open_query": "fedcdh.data.readers",
    "open_tables": "fedcdh.data.readers",
    "partition": "fedcdh.data.threaded_source",
    "prepare_rows": "fedcdh.data.prepared_source",
    "prepare_source": "fedcdh.data.prepared_source",
    "read_column_map": "fedcdh.data.readers",
    "split_by_client": "fedcdh.data.table",
    "to_source": "fedcdh.data.sources",
    "to_table": "fedcdh.data.table",
}

__getattr__, __dir__ = attach(__name__, _HOMES)
