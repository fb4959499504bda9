"""With a perfect test, the search finds the partial ancestral graph of the true graph."""

import random

from ancestral_oracle import observed_test, pag_by_enumeration, pag_of_mag, random_hidden

from fedcdh.graphs.latent_projection import project_to_mag
from fedcdh.protocols import DOMAIN
from fedcdh.search.fci import HiddenCauseRules, search_pag
from fedcdh.search.skeleton import SkeletonRules


def study(seed: int, most: int = 12, hidden: int = 3, changing: float = 0.0):
    rng = random.Random(seed)
    dag, gone = random_hidden(rng, rng.randint(2, most), rng.randint(0, hidden), rng.uniform(1, 3.5), changing)
    return rng, dag, gone, project_to_mag(dag, gone)


def test_the_true_pag_is_found():
    for seed in range(200):
        _, dag, _, mag = study(seed)
        found = search_pag(mag.nodes, observed_test(dag), 0.05)
        assert found.graph == pag_of_mag(mag), f"seed {seed}"


def test_the_rules_find_what_all_equivalent_graphs_share():
    counted = 0
    for seed in range(400):
        _, _, _, mag = study(seed, most=5, hidden=2)
        if 3 <= len(mag.skeleton) <= 7:
            counted += 1
            assert pag_of_mag(mag) == pag_by_enumeration(mag), f"seed {seed}"
    assert counted > 100


def test_marks_of_the_search_are_true_where_the_domain_is_context():
    for seed in range(150):
        _rng, dag, gone, _ = study(seed, most=8, changing=0.4)
        if DOMAIN not in dag.nodes or any(child in gone for child in dag.children(DOMAIN)):
            continue
        mag = project_to_mag(dag, gone)
        always = SkeletonRules(frozenset({DOMAIN}))
        found = search_pag(mag.nodes, observed_test(dag), 0.05, rules=HiddenCauseRules(always)).graph
        assert found.skeleton == mag.skeleton, f"seed {seed}"
        for ends, mark in found.end_marks.items():
            assert mark in ("circle", mag.end_marks[ends]), f"seed {seed}"


def test_the_order_of_nodes_changes_nothing():
    for seed in range(30):
        rng, dag, _, mag = study(seed, most=9)
        found = search_pag(mag.nodes, observed_test(dag), 0.05).graph
        assert search_pag(rng.sample(mag.nodes, len(mag.nodes)), observed_test(dag), 0.05).graph == found


def test_selected_rows_leave_tails():
    for seed in range(150):
        rng, dag, gone, _ = study(seed, most=8)
        sinks = [node for node in dag.nodes if node not in gone and not dag.children(node)]
        chosen = frozenset(rng.sample(sinks, min(1, len(sinks))))
        mag = project_to_mag(dag, gone, chosen)
        rules = HiddenCauseRules(selection=True)
        found = search_pag(mag.nodes, observed_test(dag, chosen), 0.05, rules=rules).graph
        assert found == pag_of_mag(mag, selection=True), f"seed {seed}"
        for ends, mark in found.end_marks.items():
            assert mark in ("circle", mag.end_marks[ends]), f"seed {seed}"
