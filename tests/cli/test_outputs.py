"""Files that commands write."""

from __future__ import annotations

import errno

import pytest

from fedcdh.cli._bootstrap_files import write_with_replicates
from fedcdh.cli._outputs import check_replaceable, default_file_name, refuse_input_as_output, write_signed
from fedcdh.errors import SettingsError
from fedcdh.messages.signing import SigningKey


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


def test_only_an_older_file_of_the_same_kind_is_replaced(tmp_path):
    target = tmp_path / "north.summary"
    check_replaceable(target, "summary")
    target.write_bytes(b"... fedcdh-summary-3 ...")
    check_replaceable(target, "summary")
    with pytest.raises(SettingsError, match="is something else"):
        check_replaceable(target, "plan")
    (tmp_path / "north.summary.sig").write_text("a letter", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"north\.summary\.sig"):
        check_replaceable(target, "summary")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SettingsError, match="is not a file"):
        check_replaceable(tmp_path / "folder", "summary")


def test_an_input_is_never_an_output(tmp_path):
    (tmp_path / "data.csv").touch()
    (tmp_path / "link").symlink_to("data.csv")
    refuse_input_as_output(tmp_path / "other", [tmp_path / "data.csv"])
    with pytest.raises(SettingsError, match="also an input"):
        refuse_input_as_output(tmp_path / "link", [tmp_path / "data.csv"])


def test_a_client_names_a_file_in_the_current_folder():
    assert str(default_file_name("north", ".summary")) == "north.summary"
    for client in ("../north", "a/b", "", ".", "..", "n\x07"):
        with pytest.raises(SettingsError, match="Name the file with -o"):
            default_file_name(client, ".summary")


def test_an_old_signature_never_stands_beside_a_new_file(tmp_path):
    key = SigningKey.generate()
    written = write_signed(tmp_path / "a", b"one", "summary", key)
    assert [path.name for path in written] == ["a", "a.sig"]
    assert write_signed(tmp_path / "a", b"two", "summary", None) == [tmp_path / "a"]
    assert not (tmp_path / "a.sig").exists()
