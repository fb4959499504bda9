"""The paper's figures are whole."""

from __future__ import annotations

from fedcdh.evaluation.experiments.paper_comparison import load_printed_figures


def test_the_printed_figures_are_whole():
    """Every row of the paper's three tables."""
    said = load_printed_figures()
    sizes = {(d, 10, 100) for d in (6, 12, 18, 24, 30)} | {(6, k, 100) for k in (2, 4, 8, 16, 32)}
    sizes |= {(6, 10, n) for n in (25, 50, 200, 400)}
    assert {tuple(line[:3]) for line in said["times"]} == {tuple(line[:3]) for line in said["wilcoxon"]} == sizes
    assert {len(line) for line in said["wilcoxon"]} == {15}
    assert [line[0] for line in said["features"]] == [5, 10, 15, 20, 25, 30]
