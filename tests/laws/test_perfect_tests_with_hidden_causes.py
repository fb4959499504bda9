"""With a perfect test, the search finds the partial ancestral graph of the true graph."""

import random

from ancestral_oracle import observed_test, pag_by_enumeration, pag_of_mag, random_hidden

from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.latent_projection import project_to_mag
from fedcdh.protocols import DOMAIN, Answer
from fedcdh.search.colliders import make_largest_p_decision, make_largest_p_rule
from fedcdh.search.conditioning_sets import CachedTest
from fedcdh.search.edge_removal import remove_consistent
from fedcdh.search.fci import MAX_POSSIBLE_SEPARATORS, HiddenCauseRules, search_pag
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


def test_rules_that_ask_more_queries_find_the_same_with_a_perfect_test():
    for seed in range(60):
        _, dag, _, mag = study(seed, most=9)
        test = observed_test(dag)
        rules = HiddenCauseRules(colliders=make_largest_p_rule(test), middles=make_largest_p_decision(test))
        assert search_pag(mag.nodes, test, 0.05, rules=rules).graph == pag_of_mag(mag), f"seed {seed}"


def test_answers_at_random_still_give_a_graph_with_the_domain_as_a_cause():
    for seed in range(40):
        rng = random.Random(seed)
        nodes = (DOMAIN, *"abcdef"[: rng.randint(2, 6)])

        def test(queries, /, rng=rng):
            return [Answer(query, 0.0, rng.random() ** 3, 9) for query in queries]

        answers = CachedTest(test)
        rules = HiddenCauseRules(
            SkeletonRules(frozenset({DOMAIN}), remove_consistent),
            make_largest_p_rule(answers),
            make_largest_p_decision(answers),
            max_possible_separators=MAX_POSSIBLE_SEPARATORS,
        )
        known = Knowledge(forbidden=[("a", "b")])
        graph = search_pag(nodes, answers, 0.1, known, rules=rules).graph
        assert all(graph.marks(DOMAIN, node) == ("tail", "arrow") for node in graph.neighbours(DOMAIN))
        if graph.is_adjacent("a", "b"):
            assert graph.marks("a", "b")[0] == "arrow"  # a does not cause b
