"""K2 and hill climbing on summed counts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from label_studies import CHAIN, label_chain, random_labels

from fedcdh.errors import DataError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.label_search import run_bdeu_climb, run_k2, search_k2


def test_k2_on_spread_rows_is_k2_on_all_rows():
    for seed in range(4):
        tables = random_labels(seed)
        together = {"all": np.concatenate(list(tables.values()))}
        order = np.random.default_rng(seed).permutation(list("vwxyz")).tolist()
        assert run_k2(tables, "vwxyz", order=order).graph == run_k2(together, "vwxyz", order=order).graph
        assert run_bdeu_climb(tables, "vwxyz").graph.skeleton == run_bdeu_climb(together, "vwxyz").graph.skeleton


def test_k2_adds_the_best_predecessor_until_none_helps():
    def score(families):
        gains = {"a": 2.0, "b": 3.0}
        return [
            sum(gains[p] for p in f.parents) - 4 * (len(f.parents) == 2) if f.node == "c" else 0.0 for f in families
        ]

    assert search_k2("abc", score).arrows == {("b", "c")}
    assert search_k2("cab", score).arrows == set()
    assert search_k2("abc", lambda families: [len(f.parents) for f in families], max_parents=1).arrows == {
        ("a", "b"),
        ("a", "c"),
    }


def test_with_the_true_order_k2_finds_the_chain_and_arrows_follow_the_order():
    tables = label_chain((1000, 1000))
    found = BASELINES["k2-counts-true-order"](tables, CHAIN, order=CHAIN)
    assert found.graph.arrows == {("a", "b"), ("b", "c"), ("c", "d")}
    for order in permutations(CHAIN):
        arrows = run_k2(tables, CHAIN, order=order).graph.arrows
        assert all(order.index(tail) < order.index(head) for tail, head in arrows)


def test_the_order_has_to_be_one():
    tables = label_chain((30,))
    with pytest.raises(DataError, match="no order"):
        BASELINES["k2-counts-true-order"](tables, CHAIN)
    with pytest.raises(DataError, match="order of 3 variables"):
        run_k2(tables, CHAIN, order="abc")


def test_other_methods_are_not_given_the_truth():
    tables = label_chain((400, 400))
    assert BASELINES["k2-counts"](tables, CHAIN, order=CHAIN) == BASELINES["k2-counts"](tables, CHAIN)
    assert {name for name, entry in BASELINES.items() if entry.truth == "order"} == {"k2-counts-true-order"}
    assert "truth" in BASELINES["k2-counts-true-order"].title
