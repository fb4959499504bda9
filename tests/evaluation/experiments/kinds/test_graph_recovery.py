"""Graphs against the truth: the oracle, scales and orders, unequal clients."""

from __future__ import annotations

import pytest
from label_studies import CHAIN, label_chain
from small_experiments import CASE

from fedcdh.errors import DataError
from fedcdh.evaluation.experiments.kinds.graph_recovery import (
    ARROW_SHARES,
    NOISE_SHAPE_GRAPHS,
    ORACLE_METHOD,
    SIMULATED_GRAPHS,
    GraphInstance,
)

LABELS = dict.fromkeys(CHAIN, "categorical")
CHAIN_ARROWS = frozenset({("a", "b"), ("b", "c"), ("c", "d")})


def measure_chain(method, kinds=LABELS, arrows=CHAIN_ARROWS):
    instance = GraphInstance(label_chain((1000, 1000)), CHAIN, arrows, None, kinds)
    return SIMULATED_GRAPHS.measure(instance, {}, method, 1)


def test_the_oracle_has_the_right_skeleton_and_changes():
    instance = SIMULATED_GRAPHS.prepare_instance(CASE, 5)
    found = SIMULATED_GRAPHS.measure(instance, CASE, ORACLE_METHOD, 5)
    assert found["skeleton_f1"] == found["changing_recall"] == found["changing_precision"] == 1
    assert SIMULATED_GRAPHS.failure_measures(instance)["skeleton_shd"] == len(instance.arrows)


@pytest.mark.parametrize("engine", ["fedcdh", "fedcdh-constraint"])
def test_our_engines_see_neither_scale_nor_order(engine):
    found = {
        (scale, order): SIMULATED_GRAPHS.measure(SIMULATED_GRAPHS.prepare_instance(case, 7), case, engine, 7)["graph"]
        for scale in ("raw", "standardised")
        for order in ("given", "shuffled")
        for case in [{**CASE, "scale": scale, "order": order}]
    }
    assert len({*found.values()}) == 1


def test_shuffled_clients_swap_names_and_keep_their_rows():
    given, shuffled = (
        SIMULATED_GRAPHS.prepare_instance({**CASE, "clients": 6, "order": order}, 3) for order in ("given", "shuffled")
    )
    assert list(given.tables) == list(shuffled.tables)
    assert {table.tobytes() for table in given.tables.values()} == {t.tobytes() for t in shuffled.tables.values()}
    assert [t.tobytes() for t in given.tables.values()] != [t.tobytes() for t in shuffled.tables.values()]


def test_unequal_clients_have_as_many_rows_together():
    for seed in range(20):
        instance = SIMULATED_GRAPHS.prepare_instance({**CASE, "clients": 5, "sizes": "unequal"}, seed)
        counts = [len(table) for table in instance.tables.values()]
        assert sum(counts) == 300, f"seed {seed}"
        assert min(counts) >= 10, f"seed {seed}"
        assert len({*counts}) > 1, f"seed {seed}"


def test_methods_for_labels_run_on_labels_and_refuse_others():
    assert measure_chain("fedc2sl-exact")["skeleton_f1"] == 1
    with pytest.raises(DataError, match=r"3 of 4 variables .* labels only"):
        measure_chain("fedc2sl-exact", {**LABELS, "d": "continuous"})
    numbers = SIMULATED_GRAPHS.prepare_instance(CASE, 5)
    with pytest.raises(DataError, match="whole numbers"):
        SIMULATED_GRAPHS.measure(numbers, CASE, "fedc2sl", 5)


def test_voting_methods_are_given_the_kinds_of_columns():
    """The levels of labels travel; those of numbers do not."""
    assert measure_chain("fedacd")["messages_up"] > measure_chain("fedacd", {})["messages_up"]


def test_the_true_order_goes_to_methods_that_ask_for_it():
    assert measure_chain("k2-counts-true-order")["direction_f1"] == 1
    turned = frozenset((head, tail) for tail, head in CHAIN_ARROWS)
    assert measure_chain("k2-counts-true-order", arrows=turned)["direction_f1"] == 1
    with pytest.raises(DataError, match="cycle"):
        measure_chain("k2-counts-true-order", arrows=CHAIN_ARROWS | {("d", "a")})


def test_shares_of_arrows_under_noise_of_any_shape_add_up():
    case = {"noise": "exponential", "mechanism": "curved", "size": "3 x 300"}
    instance = NOISE_SHAPE_GRAPHS.prepare_instance(case, 4)
    nothing = NOISE_SHAPE_GRAPHS.failure_measures(instance)
    assert [nothing[share] for share in ARROW_SHARES] == [0, 0, 0, 1]
    for method in (ORACLE_METHOD, "fedcdh", "fedpc"):
        found = NOISE_SHAPE_GRAPHS.measure(instance, case, method, 4)
        assert sum(found[share] for share in ARROW_SHARES) == pytest.approx(1)
        assert found["missed"] == pytest.approx(1 - found["skeleton_recall"])
        assert found["right"] <= found["direction_recall"]  # lines are not right, though a DAG may direct them rightly
    assert NOISE_SHAPE_GRAPHS.measure(instance, case, ORACLE_METHOD, 4)["reversed"] == 0
