"""Results as files. Every file is complete or absent: it is written beside its place and then moved there."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from dataclasses import fields
from pathlib import Path

from fedcdh.result import Discovery, Edge


def write_whole(path: Path, text: str) -> None:
    """Writes the text to the path in one step; a crash leaves the old file or none, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def edges_csv(result: Discovery) -> str:
    """One row per pair of nodes, with a heading; empty cells where there is nothing to say."""
    columns = [field.name for field in fields(Edge)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for edge in result.edges():
        writer.writerow([_cell(getattr(edge, column)) for column in columns])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, tuple):
        return "; ".join(value)
    return "" if value is None else value
