"""References through lingam: what is made of its weights, with a stand-in and, where it is installed, with itself."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fedcdh.errors import BaselineError, MissingDependencyError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.interface import Traffic
from fedcdh.evaluation.baselines.lingam_references import run_direct_lingam, run_multi_group_lingam

NAMES = ("y", "x", "z")


def chain(clients=3, rows=300):
    """x → y → z with exponential noise, in units that differ."""
    tables = {}
    for k in range(clients):
        e = np.random.default_rng([2, k]).exponential(size=(3, rows))
        x, y = e[0], e[0] + e[1]
        tables[f"c{k}"] = np.column_stack([1000 * y, x, 0.01 * (y + e[2])])
    return tables


class StandIn:
    """Weights as lingam returns them: the effect of the column on the row."""

    def __init__(self, random_state=None):
        pass

    def fit(self, rows):
        if isinstance(rows, list):
            assert np.concatenate(rows).std(axis=0) == pytest.approx(np.ones(3))
            self.adjacency_matrices_ = [np.array([[0, w, 0.0], [0, 0, 0], [0.9, 0.05, 0]]) for w in (0.4, -0.1, 0.3)]
        else:
            assert rows.std(axis=0) == pytest.approx(np.ones(3))
            self.adjacency_matrix_ = np.array([[0, 0.5, 0.0], [0, 0, 0], [0.9, 0.05, 0]])


def test_weights_become_arrows_from_column_to_row(monkeypatch):
    monkeypatch.setitem(sys.modules, "lingam", SimpleNamespace(DirectLiNGAM=StandIn, MultiGroupDirectLiNGAM=StandIn))
    for run in (run_direct_lingam, run_multi_group_lingam):
        found = run(chain(), NAMES)
        assert found.graph.arrows == {("x", "y"), ("y", "z")}
        assert found.directed == found.graph.arrows
        assert found.traffic == Traffic(messages_up=3, bytes_up=3 * 300 * 3 * 8)
    alone = {"c0": chain()["c0"]}
    assert run_multi_group_lingam(alone, NAMES) == run_direct_lingam(alone, NAMES)


def test_what_lingam_raises_is_one_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "lingam", SimpleNamespace(DirectLiNGAM=None))
    with pytest.raises(BaselineError, match="lingam's DirectLiNGAM failed on these rows"):
        run_direct_lingam(chain(), NAMES)


def test_what_to_install_where_lingam_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lingam", None)
    for run in (run_direct_lingam, run_multi_group_lingam):
        with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[peers\]'"):
            run(chain(), NAMES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["direct-lingam", "multi-group-lingam"])
def test_a_chain_with_exponential_noise(name):
    pytest.importorskip("lingam")
    assert BASELINES[name](chain(), NAMES).graph.arrows == {("x", "y"), ("y", "z")}
