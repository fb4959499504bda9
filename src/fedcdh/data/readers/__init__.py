"""Reading a client's rows from files, batch by batch: CSV (also packed with gzip), Parquet and Arrow, one file or many.

    rows = open_tables("data/*.parquet", rename=read_column_map("names.toml"))

What comes out is a `TableSource`: it can be read again and again, and no more than a batch of it is ever in memory. How
the rows are cut into files, formats and batches never changes a value.
"""

from fedcdh.data.readers.column_mapping import read_column_map
from fedcdh.data.readers.csv_dialect import MISSING_VALUES, CsvStyle
from fedcdh.data.readers.table_files import TableFiles, open_tables

__all__ = ["MISSING_VALUES", "CsvStyle", "TableFiles", "open_tables", "read_column_map"]
