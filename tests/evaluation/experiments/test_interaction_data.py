"""Studies in which causes interact: the graph of `simulate`, and products that a sum of functions cannot explain."""

from __future__ import annotations

import numpy as np

from fedcdh.evaluation.experiments.interaction_data import simulate_interactions
from fedcdh.evaluation.simulation import simulate


def test_the_graph_is_that_of_the_simulation():
    study = simulate_interactions(variables=5, edges=6, rows=20, clients=3, changing=2, seed=4)
    plain = simulate("linear", variables=5, edges=6, rows=20, clients=3, changing=2, seed=4)
    assert (study.arrows, study.changing, study.names) == (plain.arrows, plain.changing, plain.names)
    assert list(study.tables) == list(plain.tables)
    assert all(not table.flags.writeable for table in study.tables.values())


def test_products_of_causes_explain_what_sums_do_not():
    seen = 0
    for seed in range(30):
        study = simulate_interactions(variables=4, edges=3, rows=400, clients=2, changing=0, seed=seed)
        pooled = dict(zip(study.names, np.concatenate(list(study.tables.values())).T, strict=True))
        for effect in study.names:
            causes = sorted(tail for tail, head in study.arrows if head == effect)
            if len(causes) != 2 or any(head in causes for _, head in study.arrows):
                continue
            first, second = (pooled[cause] for cause in causes)
            added = np.column_stack([np.ones_like(first), first, second, first**2, second**2])
            with_product = np.column_stack([added, first * second])
            assert _left(pooled[effect], with_product) < 0.8 * _left(pooled[effect], added), f"seed {seed}, {effect}"
            seen += 1
    assert seen >= 5  # causes without causes, so that they are independent


def _left(effect: np.ndarray, design: np.ndarray) -> float:
    return float(np.var(effect - design @ np.linalg.lstsq(design, effect, rcond=None)[0]))


def test_means_of_changing_variables_differ_between_clients():
    study = simulate_interactions(variables=3, edges=0, rows=500, clients=6, changing=1, seed=1)
    for index, name in enumerate(study.names):
        spread = np.ptp([table[:, index].mean() for table in study.tables.values()])
        assert (spread > 0.5) == (name in study.changing), name
