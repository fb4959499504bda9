"""Descriptions of summary files, from which people see which of two came last."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from fedcdh.messages.summary_file import read_summary_header


def describe_received_file(path: Path) -> str:
    """Return the name of a summary's file, when it was written, its rows and the beginning of its digest.

    Parameters
    ----------
    path : Path
        A file that holds a summary.

    Returns
    -------
    str
        The description.

    Examples
    --------
    >>> import tempfile
    >>> from fedcdh import Continuous, StudyPlan, summarize
    >>> from fedcdh.messages.summary_file import SummaryMessage, pack_summary
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> path = Path(tempfile.mkdtemp()) / "north.summary"
    >>> _ = path.write_bytes(pack_summary(SummaryMessage(summarize({"age": [50, 61]}, plan, "north")), plan))
    >>> describe_received_file(path).split(", ")[1]
    '2 rows'
    """
    content = path.read_bytes()
    when = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
    rows = read_summary_header(content).rows
    return f"{path} (written {when}, {rows} rows, SHA-256 {hashlib.sha256(content).hexdigest()[:12]})"
