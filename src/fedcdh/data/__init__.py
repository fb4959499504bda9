"""Rows at a site: tables, batches, readers of CSV, Parquet and Arrow files, Dask and Ray."""
