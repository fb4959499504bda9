"""`fedcdh profile`."""

from __future__ import annotations

from fedcdh.cli import main


def test_a_column_without_values_is_no_mistake_of_ours(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("x,y\n" + "1,\n2,\n" * 60, encoding="utf-8")
    assert main(["profile", str(tmp_path / "d.csv"), "--client", "north", "-o", str(tmp_path / "p.json")]) == 0
    assert "no values" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "p.json")]) == 0
