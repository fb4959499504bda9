"""A perfect test recovers the class of the true graph, and errors of a test never break what holds for every graph."""

import random
from dataclasses import replace

import pytest
from oracle import (
    class_by_enumeration,
    class_by_extension,
    noise,
    noisy_change,
    random_dag,
    renamed,
    shuffled,
    true_change,
    true_knowledge,
)

from fedcdh.graphs import meek_rules
from fedcdh.graphs.d_separation import is_d_separated, make_d_separation_test
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import sort_pair
from fedcdh.protocols import DOMAIN, Query
from fedcdh.search.colliders import make_largest_p_rule, separating_set_rule
from fedcdh.search.edge_removal import remove_consistent
from fedcdh.search.orientation import orient_skeleton
from fedcdh.search.skeleton import SkeletonRules, find_skeleton

RULES = {"largest p": make_largest_p_rule, "separating set": lambda test: separating_set_rule}


def search(nodes, test, rule, knowledge=NO_KNOWLEDGE, change=None, alpha=0.05):
    return orient_skeleton(find_skeleton(nodes, test, alpha, knowledge), RULES[rule](test), knowledge, change)


def test_a_perfect_test_finds_the_class():
    for seed in range(200):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(1, 12), rng.uniform(0.5, 3.5), rng.choice([0, 0.2, 0.4]))
        test = make_d_separation_test(dag)
        always = frozenset({DOMAIN} & {*dag.nodes})
        for known in (NO_KNOWLEDGE, true_knowledge(rng, dag)):
            expected = class_by_extension(dag, known)
            plain = find_skeleton(dag.nodes, test, 0.05, known)
            careful = find_skeleton(dag.nodes, test, 0.05, known, rules=SkeletonRules(always, remove_consistent))
            for skeleton, rule in (
                (plain, separating_set_rule),
                (plain, make_largest_p_rule(test)),
                (careful, make_largest_p_rule(test)),
            ):
                found = orient_skeleton(skeleton, rule, known)
                assert found.graph == expected, f"seed {seed}"
                assert found.reasons.keys() == found.graph.arrows, f"seed {seed}"
                assert found.conflicts == (), f"seed {seed}"


@pytest.mark.parametrize("rule", RULES)
def test_a_perfect_test_finds_the_class_by_enumeration(rule):
    for seed in range(60):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(2, 5), rng.uniform(1, 3.5), rng.choice([0, 0.5]))
        knowledge = true_knowledge(rng, dag)
        assert search(dag.nodes, make_d_separation_test(dag), rule).graph == class_by_enumeration(dag), f"seed {seed}"
        assert search(dag.nodes, make_d_separation_test(dag), rule, knowledge).graph == class_by_enumeration(
            dag, knowledge
        ), f"seed {seed}"


def test_names_and_their_order_change_nothing_but_names():
    for seed in range(40):
        rng = random.Random(seed)
        dag = random_dag(rng, 8, 3, 0.3)
        names = dict(
            zip(dag.nodes, (DOMAIN if node == DOMAIN else f"w{rng.random()}" for node in dag.nodes), strict=True)
        )
        other = renamed(dag, names)
        found = search(dag.nodes, make_d_separation_test(dag), "largest p")
        again = search(shuffled(other, rng), make_d_separation_test(other), "largest p")
        assert again.graph == renamed(found.graph, names), f"seed {seed}"
        assert again.reasons == {(names[a], names[b]): reason for (a, b), reason in found.reasons.items()}, (
            f"seed {seed}"
        )


def test_true_independent_change_directs_all_edges_between_changing_variables():
    for seed in range(40):
        rng = random.Random(seed)
        dag = random_dag(rng, 7, 3, 0.6)
        found = search(dag.nodes, make_d_separation_test(dag), "largest p", change=true_change(dag))
        without = search(dag.nodes, make_d_separation_test(dag), "largest p")
        assert without.graph.arrows <= found.graph.arrows <= dag.arrows, f"seed {seed}"
        assert not any(line <= dag.children(DOMAIN) for line in found.graph.lines), f"seed {seed}"
        assert found.dependences.keys() == {line for line in without.graph.lines if line <= dag.children(DOMAIN)}, (
            f"seed {seed}"
        )
        assert found.conflicts == (), f"seed {seed}"


@pytest.mark.parametrize("rule", RULES)
def test_noise_never_makes_a_cycle_or_breaks_knowledge(rule):
    for seed in range(100):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(2, 9), 3, rng.choice([0, 0.5]))
        knowledge = true_knowledge(rng, dag) if seed % 3 else NO_KNOWLEDGE
        test, change, alpha = noise(seed), noisy_change(seed), rng.choice([0.3, 0.6, 0.9])
        found = search(dag.nodes, test, rule, knowledge, change, alpha)
        assert found.graph.is_acyclic(), f"seed {seed}"
        assert not any(knowledge.forbids(*arrow) for arrow in found.graph.arrows), f"seed {seed}"
        assert {arrow for arrow in knowledge.required if set(arrow) <= set(dag.nodes)} <= found.graph.arrows, (
            f"seed {seed}"
        )
        assert found.reasons.keys() == found.graph.arrows, f"seed {seed}"
        assert meek_rules.apply_meek_rules(found.graph, knowledge) == (found.graph, {}), f"seed {seed}"
        assert extend_to_dag(found.graph).is_dag(), f"seed {seed}"
        assert found == search(shuffled(dag, rng), test, rule, knowledge, change, alpha), f"seed {seed}"


def test_noise_is_not_decided_by_names():
    for seed in range(30):
        rng = random.Random(seed)
        nodes = [*(f"v{i}" for i in range(7)), DOMAIN]
        names = dict(zip(nodes, (*rng.sample("abcdefg", 7), DOMAIN), strict=True))
        back = {new: old for old, new in names.items()}

        def translated(queries, back=back, seed=seed):
            asked = [
                Query(*sort_pair(frozenset((back[q.x], back[q.y]))), frozenset(map(back.get, q.given))) for q in queries
            ]
            return [replace(answer, query=q) for q, answer in zip(queries, noise(seed)(asked), strict=True)]

        found = search(nodes, noise(seed), "largest p", alpha=0.5)
        assert search(names.values(), translated, "largest p", alpha=0.5).graph == renamed(found.graph, names), (
            f"seed {seed}"
        )


def test_a_perfect_test_never_contradicts_itself():
    for seed in range(150):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(3, 9), rng.uniform(1, 4.5), rng.choice([0, 0.2, 0.5]))
        always = frozenset({DOMAIN} & {*dag.nodes}) if seed % 2 else frozenset()
        for known in (NO_KNOWLEDGE, true_knowledge(rng, dag)):
            found = find_skeleton(
                dag.nodes, make_d_separation_test(dag), 0.05, known, rules=SkeletonRules(always, remove_consistent)
            )
            assert found.graph.skeleton == dag.skeleton, f"seed {seed}"
            assert found.refused == (), f"seed {seed}"


def test_a_perfect_test_finds_the_skeleton():
    for seed in range(100):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(1, 12), rng.uniform(0.5, 4), rng.choice([0, 0.4]))
        knowledge = true_knowledge(rng, dag) if seed % 2 else Knowledge()
        found = find_skeleton(dag.nodes, make_d_separation_test(dag), 0.05, knowledge)
        assert found.graph.skeleton == dag.skeleton, f"seed {seed}"
        assert not found.graph.arrows, f"seed {seed}"
        assert found.strongest.keys() == dag.skeleton, f"seed {seed}"
        for pair, answer in found.separators.items():
            assert answer.query.pair == pair, f"seed {seed}"
            assert is_d_separated(dag, answer.query.x, answer.query.y, answer.query.given), f"seed {seed}"
