"""Separations that cannot all hold: with a perfect test there are none, with a real one they must not erase an edge."""

from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.search.edge_removal import PriorFindings, remove_all, remove_consistent
from fedcdh.search.skeleton import SkeletonRules, find_skeleton


def answer(x, y, given, p_value):
    return Answer(Query(x, y, frozenset(given)), 0.0, p_value, 100)


def met(*answers):
    return {one.query.pair: one for one in answers}


CLOSE = [answer("x", "y", "z", 0.4), answer("x", "z", "y", 0.9)]
CLEARLY_DEPENDENT = met(answer("x", "y", "", 1e-9), answer("x", "z", "", 1e-9))


def test_of_two_separations_that_contradict_each_other_the_surer_one_is_believed():
    so_far = PriorFindings({}, CLEARLY_DEPENDENT, frozenset())
    assert remove_consistent(CLOSE, so_far) == met(CLOSE[1])
    assert remove_all(CLOSE, so_far) == met(*CLOSE)


def test_a_separation_can_contradict_one_of_an_earlier_level():
    later = [answer("x", "y", "zw", 0.4)]
    so_far = PriorFindings(met(CLOSE[1]), CLEARLY_DEPENDENT, frozenset())
    assert remove_consistent(later, so_far) == {}


def test_the_next_best_separation_counts_when_the_best_is_refused():
    second = answer("x", "y", "w", 0.2)
    so_far = PriorFindings({}, CLEARLY_DEPENDENT, frozenset())
    assert remove_consistent([*CLOSE, second], so_far) == met(CLOSE[1], second)


def test_a_dependence_that_was_never_clear_needs_no_explanation():
    so_far = PriorFindings({}, met(answer("x", "y", "", 0.03), answer("x", "z", "", 1e-9)), frozenset())
    assert remove_consistent(CLOSE, so_far) == met(*CLOSE)


def test_what_is_always_given_contradicts_nothing():
    asked = [answer("x", "y", [DOMAIN], 0.5)]
    so_far = PriorFindings(met(answer(DOMAIN, "x", "y", 0.6)), met(answer("x", "y", [], 1e-9)), frozenset({DOMAIN}))
    assert remove_consistent(asked, so_far) == met(*asked)


def test_a_strong_child_does_not_hide_that_its_cause_changes():
    """℧ → x → y with y almost a copy of x: each of x and y seems to explain the other's dependence on ℧."""

    def test(queries):
        p_values = {
            (DOMAIN, "x", frozenset("y")): 0.3,
            (DOMAIN, "y", frozenset("x")): 0.7,
        }
        return [Answer(q, 0.0, p_values.get((q.x, q.y, q.given - {DOMAIN}), 1e-12), 100) for q in queries]

    nodes = (DOMAIN, "x", "y")
    assert find_skeleton(nodes, test, 0.05).graph.neighbours(DOMAIN) == frozenset()
    careful = find_skeleton(nodes, test, 0.05, rules=SkeletonRules(removal=remove_consistent))
    assert careful.graph.neighbours(DOMAIN) == {"x"}
    assert [one.query.y for one in careful.refused] == ["x"]
