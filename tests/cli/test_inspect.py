"""`fedcdh inspect`: all that a file reveals, in words and numbers."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa

from fedcdh.cli import main


def test_inspect_says_what_leaves(study, tmp_path, capsys):
    assert main(["inspect", str(study / "north.summary"), "--numbers", str(tmp_path / "all.csv")]) == 0
    shown = capsys.readouterr().out
    table = pa.csv.read_csv(study / "north" / "data.csv")
    assert f"{np.mean(table['v1']):.5g} ± {np.std(table['v1']):.4g}" in shown
    assert "703 sums" in shown
    assert "not signed" in shown
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 703
    assert rows[0] == {"feature": "1", "times": "1", "sum": "300.0", "sum_as_sent": str(300 << 36)}
    for file, words in (("study.plan.json", "v1  "), ("north.profile.json", "client north: 300 rows")):
        assert main(["inspect", str(study / file)]) == 0
        assert words in capsys.readouterr().out


def test_what_is_no_file_of_ours_is_called_so(study, capsys):
    assert main(["inspect", str(study / "north" / "data.csv")]) == 5
    assert "This is not a file of fedcdh. Expected a summary" in capsys.readouterr().err
