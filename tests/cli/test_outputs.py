"""Files that commands write."""

from __future__ import annotations

import errno

import pytest

from fedcdh.cli._bootstrap_files import write_with_replicates
from fedcdh.cli._outputs import write_signed


@pytest.mark.parametrize(
    "written",
    [
        lambda path: write_signed(path, b"sums", "aggregate", None),
        lambda path: write_with_replicates(path, b"sums", [b"sums of rows drawn anew"], [], None),
    ],
)
def test_a_full_disk_is_told_with_the_name_of_the_file_that_was_asked_for(tmp_path, monkeypatch, written):
    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fedcdh._io.storage._write_all", full)
    with pytest.raises(OSError, match="No space left") as refused:
        written(tmp_path / "north.summary")
    assert refused.value.filename == str(tmp_path / "north.summary")
    assert list(tmp_path.iterdir()) == []
