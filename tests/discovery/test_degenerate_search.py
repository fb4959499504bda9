"""Copies and totals change nothing else in a graph, and no arrow is drawn that cannot be known."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import given
from hypothesis import strategies as st

import fedcdh
from fedcdh.discovery.algorithm import SearchResult
from fedcdh.discovery.degenerate_search import (
    describe_copies,
    describe_few_valued,
    describe_functions,
    describe_mostly_constant,
    isolate,
    join_outside,
    open_directions,
)
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.degenerate_variables import CopyGroup, DeterministicSet, FewValued, MostlyConstant
from fedcdh.search.orientation import Orientation
from fedcdh.search.skeleton import Skeleton
from fedcdh.summaries.aggregation import Aggregate

WAYS = (
    {},
    {"rounds": "one"},
    {"method": "constraint"},
    {"method": "constraint", "rounds": "one"},
    {"method": "paper"},
)
MANY = range(6)


def columns_of(seed: int) -> studies.Table:
    return {name: np.asarray(column) for name, column in fedcdh.simulate(seed=seed).columns("site").items()}


def study(seed: int = 1, **new: np.ndarray) -> studies.Table:
    return {**columns_of(seed), **new}


def found(columns: studies.Table, **ways: object) -> fedcdh.Discovery:
    return studies.found(columns, domain="site", **ways)


def result_of(graph: PartialGraph) -> SearchResult:
    reasons = dict.fromkeys(graph.arrows, "collider")
    return SearchResult(
        Skeleton(PartialGraph(graph.nodes, lines=graph.skeleton), {}, {}, ()), Orientation(graph, reasons)
    )


class TestCopies:
    @pytest.mark.parametrize("ways", WAYS, ids=str)
    @pytest.mark.parametrize("seed", MANY)
    def test_a_copy_changes_nothing_else(self, seed, ways):
        columns, name = columns_of(seed), f"v{1 + seed % 6}"
        without = found(columns, **ways)
        result = found({**columns, "copy": 2.54 * columns[name] - 3}, **ways)
        assert result.augmented.drop("copy") == without.augmented
        assert result.to_dag().drop("copy") == without.to_dag()
        assert result.graph.has_line(name, "copy")
        assert result.graph.neighbours("copy") == {name}
        assert any(note.startswith(f"copy is a copy of {name}") for note in result.notes)

    @pytest.mark.parametrize("ways", WAYS[:4], ids=str)
    def test_recoded_labels(self, ways):
        tables = fedcdh.demo.hospital_study().tables
        without = studies.found(tables, **ways)
        code = {"yes": "1", "no": "0"}
        coded = {
            client: {**table, "code": np.array([code.get(value) for value in table["smoker"]], dtype=object)}
            for client, table in tables.items()
        }
        result = studies.found(coded, **ways)
        assert result.augmented.drop("code") == without.augmented
        assert result.graph.neighbours("code") == {"smoker"}
        assert result.graph.has_line("code", "smoker")

    def test_a_near_copy_is_part_of_the_search(self):
        columns = columns_of(1)
        rng = np.random.default_rng(1)
        noise = rng.standard_normal(len(columns["v1"])) * columns["v1"].std()
        near = 0.999 * columns["v1"] + np.sqrt(1 - 0.999**2) * noise
        result = found({**columns, "near": near}, rounds="one")
        assert not result.search_result.assumed
        assert not any("copy" in note for note in result.notes)

    def test_a_sum_of_summaries_is_enough(self):
        columns = columns_of(1)
        cohort = found({**columns, "copy": 1 - columns["v1"]}, rounds="one").cohort
        result = fedcdh.discover_from(Aggregate.of(cohort), cohort.plan)
        assert studies.sound(result)
        assert result.graph.neighbours("copy") == {"v1"}

    def test_stability_leaves_copies_out_as_well(self):
        columns = columns_of(1)
        result = found({**columns, "copy": 1 - columns["v1"]})
        edges = [edge for edge in result.stability().edges if "copy" in (edge.source, edge.target)]
        assert {edge.same for edge in edges} == {1.0}
        assert {frozenset((edge.source, edge.target)) for edge in edges if edge.adjacent} == {frozenset({"v1", "copy"})}

    def test_a_copy_of_a_changing_variable_is_not_said_to_change(self):
        columns, changing = columns_of(1), sorted(fedcdh.simulate(seed=1).changing)[0]
        result = found({**columns, "copy": 5 * columns[changing]})
        assert changing in result.changing
        assert "copy" not in result.changing


class TestKnowledge:
    @pytest.mark.parametrize("ways", WAYS[:4], ids=str)
    def test_required_arrows_at_a_copy_stay(self, ways):
        known = Knowledge(required=[("copy", "v3")])
        result = found(study(copy=3 * columns_of(1)["v1"]), knowledge=known, **ways)
        assert ("copy", "v3") in result.graph.arrows
        assert result.graph.neighbours("copy") == {"v1", "v3"}
        assert any("apart from required arrows" in note for note in result.notes)

    @pytest.mark.parametrize("known", [Knowledge(tiers=[["v1"], ["copy"]]), Knowledge(required=[("v1", "copy")])])
    def test_knowledge_directs_the_line(self, known):
        result = found(study(copy=3 * columns_of(1)["v1"]), knowledge=known, rounds="one")
        assert ("v1", "copy") in result.graph.arrows
        assert result.orientation.reasons["v1", "copy"] == "knowledge"

    def test_knowledge_excludes_the_line(self):
        known = Knowledge(forbidden=[("v1", "copy"), ("copy", "v1")])
        result = found(study(copy=3 * columns_of(1)["v1"]), knowledge=known, rounds="one")
        assert result.graph.neighbours("copy") == frozenset()

    @given(st.sets(st.sampled_from("abc")), st.sets(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"))))
    def test_only_required_arrows_remain_at_isolated_variables(self, outside, required):
        known = isolate(Knowledge(required=required), sorted(outside), "abcd")
        known.check("abcd")
        for a, b in [(a, b) for a in "abcd" for b in "abcd" if a < b]:
            kept = outside.isdisjoint((a, b)) or (a, b) in required
            assert known.excludes(frozenset((a, b))) == (not kept)

    def test_without_variables_to_leave_out_knowledge_is_the_same(self):
        known = Knowledge(required=[("a", "b")])
        assert isolate(known, (), "ab") is known


class TestTotals:
    @pytest.mark.parametrize("ways", WAYS[:4], ids=str)
    @pytest.mark.parametrize("seed", MANY)
    def test_directions_among_parts_and_total_stay_open(self, seed, ways):
        columns = columns_of(seed)
        result = found({**columns, "total": columns["v1"] + columns["v2"]}, **ways)
        assert all(len({"v1", "v2", "total"}.intersection(arrow)) < 2 for arrow in result.graph.arrows)
        assert any("determine each other exactly" in note for note in result.notes)

    @pytest.mark.parametrize("ways", WAYS[:4], ids=str)
    def test_a_total_that_is_left_out_changes_nothing_among_others(self, ways):
        columns = columns_of(3)
        without = found(columns, **ways).graph
        result = found({**columns, "total": 2 * columns["v1"] + columns["v2"]}, **ways)
        graph = result.graph.drop("total")
        assert graph.skeleton == without.skeleton
        assert graph.arrows == {arrow for arrow in without.arrows if {*arrow} != {"v1", "v2"}}
        assert {frozenset(("total", part)) for part in ("v1", "v2")} <= result.graph.lines

    def test_nobody_is_promised_that_a_second_message_decides(self):
        columns = columns_of(3)
        result = found({**columns, "total": 2 * columns["v1"] + columns["v2"]}, rounds="one")
        promises = [note for note in result.notes if note.startswith("a second message")]
        assert not any("total" in note for note in promises)

    def test_arrows_of_knowledge_stay(self):
        known = Knowledge(required=[("v1", "total"), ("v2", "total")])
        columns = columns_of(3)
        result = found({**columns, "total": columns["v1"] + columns["v2"]}, knowledge=known, rounds="one")
        assert {("v1", "total"), ("v2", "total")} <= result.graph.arrows

    def test_arrows_become_lines_and_a_dag_keeps_them(self):
        graph = PartialGraph("abcx", frozenset({("a", "c"), ("b", "c"), ("x", "a")}))
        opened = open_directions(result_of(graph), [DeterministicSet(("a", "b", "c"), ("a", "b", "c"))], NO_KNOWLEDGE)
        assert opened.orientation.graph.arrows == {("x", "a")}
        assert opened.orientation.reasons == {("x", "a"): "collider"}
        assert opened.orientation.graph.orient_all(opened.assumed) == graph

    def test_knowledge_that_would_close_a_cycle_directs_nothing(self):
        known = Knowledge(forbidden=[("b", "a")])
        joined = join_outside(result_of(PartialGraph("abx", frozenset({("b", "x"), ("x", "a")}))), {"b": "a"}, known)
        assert joined.orientation.graph.has_line("a", "b")
        assert joined.assumed == frozenset()


class TestNotes:
    def test_several_copies(self):
        (note,) = describe_copies([CopyGroup("a", ("b", "c"))], NO_KNOWLEDGE)
        assert note.startswith("b and c are copies of a: ")

    def test_kinds_of_functions(self):
        notes = describe_functions(
            [
                DeterministicSet(("city", "country"), ("country",)),
                DeterministicSet(("a", "b", "x"), ("a", "b")),
            ],
            (),
        )
        assert list(notes) == [
            "country follows exactly from city: directions among them cannot be known",
            "of a, b and x, each of a and b follows from the others: directions among them cannot be known",
        ]

    def test_nothing_to_say(self):
        assert not [*describe_copies([], NO_KNOWLEDGE), *describe_functions([], ()), *describe_few_valued([])]
        assert not [*describe_mostly_constant([])]

    def test_few_values(self):
        (note,) = describe_few_valued([FewValued("visits", 3, 0.5)])
        assert note == "few values: visits (3 values); noise says nothing about directions at this number"

    def test_constants(self):
        variables = [MostlyConstant("x", ("a", "b"), ("c",)), MostlyConstant("y", ("a", "b", "c"), ())]
        assert list(describe_mostly_constant(variables)) == [
            "constant at most clients: x (at 2 of 3); its links rest on the other clients",
            "constant at every client: y; only differences between clients are known",
        ]

    def test_a_result_has_them(self):
        tables = studies.numbers(sizes=(60, 60, 60))
        for k, (table, rng) in enumerate(zip(tables.values(), map(np.random.default_rng, range(3)), strict=True)):
            table["few"] = rng.integers(0, 3, 60).astype(float)
            table["rare"] = rng.standard_normal(60) if k == 0 else np.zeros(60)
            table["height"] = np.full(60, 10.0 * k)
        notes = studies.found(tables).notes
        assert any(note.startswith("few values: few (3 values)") for note in notes)
        assert any(note.startswith("constant at most clients: rare (at 2 of 3)") for note in notes)
        assert any(note.startswith("constant at every client: height") for note in notes)


@pytest.mark.parametrize(
    ("known", "forward"), [({}, 0.5), ({"forbidden": [("copy", "v1")]}, 1.0), ({"forbidden": [("v1", "copy")]}, 0.0)]
)
def test_the_edge_of_a_copy_is_certain_and_directed_by_knowledge_only(known, forward):
    columns = fedcdh.simulate(seed=1).columns("site")
    columns["copy"] = [100 * value + 3 for value in columns["v1"]]
    result = fedcdh.discover(columns, domain="site", knowledge=Knowledge(**known))
    assert result.graph.neighbours("copy") == {"v1"}
    assert result.posterior.probability_of_edge("copy", "v1") == 1.0
    assert result.posterior.arrows["v1", "copy"] == forward
    assert result.posterior.arrows["copy", "v1"] == 1 - forward
