"""Files that hold a query: where the database is, and what to ask it."""

from __future__ import annotations

import os
import sqlite3
import weakref
from pathlib import Path
from typing import Any

from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_toml import abbreviate, expect_strings, expect_table, parse_toml
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.readers.query import Query
from fedcdh.errors import DataError, FedCDHError

MAX_BYTES = 1_000_000
_KEYS = ("url", "url_variable", "query", "missing")


def open_query_file(path: Path) -> Query:
    """Open a query that a file names: `url`, or the environment variable `url_variable` that holds it, and `query`.

    The database is opened for reading, in one transaction that ends when the rows are no longer used.

    Parameters
    ----------
    path : Path
        A TOML file.

    Returns
    -------
    Query
        The rows.

    Raises
    ------
    DataError
        If the file cannot be used, or the database cannot be opened.
    """

    def refuse(reason: str) -> FedCDHError:
        return DataError(f'{path} cannot be used: {reason}; expected url = "..." and query = "SELECT ...". Correct it')

    try:
        content = read_regular_file(path, MAX_BYTES, "a query", refuse=refuse)
    except OSError as problem:
        raise refuse(str(problem.strerror)) from None
    found = expect_table(parse_toml(content, refuse=refuse), _KEYS, "the file", refuse=refuse)
    if ("url" in found) == ("url_variable" in found):
        raise refuse("it should name either url or url_variable")
    for key in found.keys() - {"missing"}:
        if not isinstance(found[key], str) or not found[key].strip():
            raise refuse(f"{key} should be a text, found {abbreviate(found[key])}")
    if "query" not in found:
        raise refuse("it has no query")
    missing = expect_strings(found["missing"], "missing", refuse=refuse) if "missing" in found else ()
    url = found["url"] if "url" in found else os.environ.get(found["url_variable"], "")
    if not url:
        raise refuse(f"the environment variable {found['url_variable']} is not set")
    connection = _connect(url, path)
    query = Query(path, connection, found["query"], ("", *missing))
    weakref.finalize(query, connection.close)
    return query


def _connect(url: str, path: Path) -> Any:
    """Open a database for reading; the address is not shown, nor an error that may quote it: it may hold a password."""
    scheme, _, place = url.partition("://")
    file = path.parent / place.removeprefix("/")
    try:
        match scheme:
            case "sqlite":
                return _open_sqlite(file)
            case "duckdb":
                return _open_duckdb(file)
            case "postgresql" | "postgres":
                return _open_postgresql(url)
            case _:
                return _open_with_sqlalchemy(url)
    except FedCDHError:
        raise
    except Exception as problem:  # every library of a database has errors of its own
        raise DataError(
            f"{path}: the database cannot be opened ({type(problem).__name__}); expected an address such as "
            "postgresql://user@host/name, duckdb:///file or sqlite:///file. Check the address, the password and the "
            "network"
        ) from problem


def _open_sqlite(file: Path) -> Any:
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    connection.execute("BEGIN")
    return connection


def _open_duckdb(file: Path) -> Any:
    with optional_import("duckdb", extra="sql"):
        import duckdb
    connection = duckdb.connect(str(file), read_only=True, config={"memory_limit": "256MB"})  # it would keep all pages
    connection.execute("BEGIN TRANSACTION")
    return connection


def _open_postgresql(url: str) -> Any:
    with optional_import("adbc-driver-postgresql", extra="sql"):
        from adbc_driver_postgresql import dbapi
    connection = dbapi.connect(url)
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return connection


def _open_with_sqlalchemy(url: str) -> Any:
    with optional_import("sqlalchemy", extra="sql"):
        import sqlalchemy
    connection = sqlalchemy.create_engine(url).connect()
    try:
        return connection.execution_options(isolation_level="REPEATABLE READ")
    except (sqlalchemy.exc.ArgumentError, NotImplementedError):  # counts of rows are compared all the same
        return connection
