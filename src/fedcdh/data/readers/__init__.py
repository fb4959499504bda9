"""Readers of table files and databases: CSV, Parquet, Arrow, Excel, SPSS, Stata, SAS and SQL queries.

`open_tables` opens them::

    rows = open_tables("data/*.parquet", rename=read_column_map("names.toml"))

The result is a `TableSource`: it can be read several times, and no more than a batch of it is ever in memory. The
division of the rows into files, formats and batches never changes a value.

- `arrow_columns`: conversion of Arrow columns to numeric and categorical columns
- `arrow_file`, `csv_file`, `parquet_file`: one file of each format
- `column_mapping`: files that map the columns of a site to the variables of the study
- `csv_dialect`, `csv_header`: how a CSV file is written, and its first lines
- `excel_file`: a sheet of a spreadsheet
- `pandas_metadata`: what pandas records about columns in a Parquet file
- `paths`: the files that names, folders and patterns stand for
- `python_cells`: conversion of cells that come as Python values
- `query`, `query_file`: the rows of a database query, and files that hold one
- `statistics_file`: files of SPSS, Stata and SAS
- `table_files`: all files of a client as one source
- `typed_file`: what Parquet and Arrow files have in common
"""

from fedcdh.data.readers.column_mapping import read_column_map
from fedcdh.data.readers.csv_dialect import MISSING_VALUES, CsvStyle
from fedcdh.data.readers.table_files import TableFiles, open_query, open_tables

__all__ = ["MISSING_VALUES", "CsvStyle", "TableFiles", "open_query", "open_tables", "read_column_map"]
