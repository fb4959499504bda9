"""The search by evidence, on data: directions, support of edges, and knowledge that is obeyed."""

from __future__ import annotations

import random

import numpy as np
import pytest
import studies
from oracle import obeys, random_dag, true_knowledge

from fedcdh.discovery.api import discover
from fedcdh.discovery.score_search import ScoreSearch
from fedcdh.discovery.settings import Settings
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN
from fedcdh.search.edge_support import (
    measure_directions,
)

PAIR = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))


BENDS = {
    "square": lambda x, e: x**2 + 0.5 * e,
    "tanh": lambda x, e: np.tanh(2 * x) + 0.3 * e,
    "cube": lambda x, e: x + x**3 / 3 + 0.5 * e,
    "sin": lambda x, e: np.sin(2 * x) + 0.4 * e,
}


def directed(mechanism, seed: int, clients: int = 3, rows: int = 150) -> dict[tuple[str, str], float]:
    tables = {}
    for k in range(clients):
        x, noise = np.random.default_rng([seed, k]).standard_normal((2, rows))
        tables[f"c{k}"] = {"x": x, "y": mechanism(x, noise)}
    cohort = studies.cohort_of(tables)
    basis = Basis.of(cohort)
    return measure_directions(PAIR, FamilyScore.of(cohort, basis), FamilyScore.of(cohort, basis, curved=False))


@pytest.mark.parametrize("clients", [2, 3])
@pytest.mark.parametrize("name", BENDS)
def test_curved_effects_tell_their_direction(name, clients):
    """Measured: 130 and more with 3 clients of 200 rows."""
    for seed in range(5):
        ((arrow, strength),) = directed(BENDS[name], seed, clients).items()
        assert arrow == ("x", "y")
        assert strength > 30


def test_straight_effects_do_not_tell_their_direction():
    strengths = [value for seed in range(12) for value in directed(lambda x, e: x + e, seed).values()]
    assert len(strengths) == 12
    assert max(strengths) < 1


def reasons(result) -> set[str]:
    return set(result.orientation.reasons.values())


def tables_of(seed: int, model: str = "general", **settings) -> studies.Tables:
    study = simulate(model, seed=seed, **settings)
    return {client: dict(zip(study.names, table.T, strict=True)) for client, table in study.tables.items()}


def test_binary_columns_have_only_the_arrows_of_their_class():
    """A number with two values has no curvature. What the class of the best graph directs need not be likely enough."""
    arrows = 0
    for seed in range(4):
        tables = {
            client: {name: (column > np.median(column)).astype(float) for name, column in table.items()}
            for client, table in tables_of(seed, "linear", clients=1, rows=400, changing=0).items()
        }
        kinds = dict.fromkeys(tables["client01"], "continuous")
        result = discover(tables, method="evidence", kinds=kinds)
        known = to_cpdag(result.search_result.climbed)
        assert result.augmented.arrows <= known.arrows
        assert result.augmented.skeleton <= known.skeleton
        assert reasons(result) <= {"collider", "meek-1", "meek-2", "meek-3"}
        arrows += len(result.augmented.skeleton)
    assert arrows > 10


def test_curvature_directs_where_residuals_are_known_and_nothing_in_one_message():
    studied = [tables_of(seed, variables=5, clients=1, rows=400, changing=0) for seed in range(4)]
    assert any({"evidence", "noise"} & reasons(discover(tables, method="evidence")) for tables in studied)
    for tables in studied:
        assert not {"evidence", "noise"} & reasons(discover(tables, method="evidence", rounds="one"))


def test_to_dag_directs_lines_as_in_the_best_dag():
    lines = 0
    for seed in range(6):
        result = discover(tables_of(seed, "linear", variables=5, clients=3), method="evidence")
        dag, best = result.to_dag(), result.search_result.best
        assert dag.is_dag()
        if not result.search_result.orientation.conflicts and result.augmented == to_cpdag(best):
            assert dag == best.drop(DOMAIN)
            lines += len(result.graph.lines)
    assert lines > 0


def test_what_a_result_says_of_its_edges_is_how_sure_they_are():
    result = discover(tables_of(3, "linear", variables=5), method="evidence")
    best, edges = result.search_result.best, result.edges()
    assert len(edges) == 15
    for edge in edges:
        assert edge.log_bayes_presence is not None
        assert edge.log_bayes_presence > -1e-9  # the best DAG cannot be made better by one arrow
        assert bool(edge.mark) == (frozenset((edge.source, edge.target)) in best.skeleton)
        if edge.log_bayes_direction is not None:  # positive for the direction that the best DAG has
            sign = 1 if (edge.source, edge.target) in best.arrows else -1
            assert sign * edge.log_bayes_direction > -1e-9


@pytest.fixture(scope="module")
def chain() -> studies.Tables:
    """v1 → v2 → v3 → v4; the second mechanism differs between clients."""
    return studies.numbers(0, (80, 70, 60))


def found(tables: studies.Tables, **known) -> PartialGraph:
    knowledge = Knowledge(**known)
    result = studies.found(tables, method="evidence", knowledge=knowledge)
    assert obeys(PartialGraph(result.augmented.nodes, result.augmented.arrows), knowledge)
    assert not any(knowledge.excludes(pair) for pair in result.augmented.skeleton)
    return result.augmented


def test_without_knowledge_the_chain_is_found(chain):
    graph = found(chain)
    assert graph.skeleton >= {frozenset(pair) for pair in (("v1", "v2"), ("v2", "v3"), ("v3", "v4"), (DOMAIN, "v2"))}
    assert not graph.is_adjacent("v1", "v4")
    assert not graph.is_adjacent(DOMAIN, "v4")


@pytest.mark.parametrize("arrow", [("v3", "v4"), ("v4", "v3"), ("v1", "v4"), ("v4", "v1"), (DOMAIN, "v4")])
def test_required_arrows_are_there_true_or_not(chain, arrow):
    assert arrow in found(chain, required=[arrow]).arrows


@pytest.mark.parametrize("arrow", [("v1", "v2"), ("v2", "v3"), (DOMAIN, "v2")])
def test_forbidden_arrows_are_not_there_true_or_not(chain, arrow):
    assert arrow not in found(chain, forbidden=[arrow]).arrows
    assert not found(chain, forbidden=[arrow, arrow[::-1]]).is_adjacent(*arrow)


@pytest.mark.parametrize("turn", [1, -1], ids=["true", "wrong"])
def test_tiers_are_obeyed_true_or_not(chain, turn):
    tiers = [["v1", "v2"], ["v3"], ["v4"]][::turn]
    graph = found(chain, tiers=tiers)
    place = {name: i for i, tier in enumerate(tiers) for name in tier}
    assert all(place[tail] <= place[head] for tail, head in graph.drop(DOMAIN).arrows)
    assert graph.is_adjacent("v3", "v4")
    assert not graph.has_line("v3", "v4")


def test_no_edges_within_a_tier(chain):
    assert not found(chain, tiers=[["v1", "v2"], ["v3", "v4"]], forbid_within_tier=[0]).is_adjacent("v1", "v2")


def test_any_knowledge_is_obeyed():
    for seed in range(8):
        tables = tables_of(seed, "general" if seed % 2 else "linear", variables=5, clients=4, rows=60)
        rng = random.Random(seed)
        other = random_dag(rng, 5, 2.5, 0.5)  # has nothing to do with the data
        names = dict(zip((f"v{i}" for i in range(5)), (f"v{i}" for i in range(1, 6)), strict=True)) | {DOMAIN: DOMAIN}
        known = true_knowledge(rng, other)
        found(
            tables,
            required=[(names[a], names[b]) for a, b in known.required],
            forbidden=[(names[a], names[b]) for a, b in known.forbidden],
            tiers=[[names[name] for name in tier] for tier in known.tiers],
            forbid_within_tier=known.forbid_within_tier,
        )


TABLES = studies.mixed(0, sizes=(80, 60, 40))


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_causes_are_limited(limit):
    batches = []
    result = studies.found(
        TABLES, method="evidence", max_conditioning_size=limit, progress=lambda done, new: batches.append((done, new))
    )
    dag = result.to_dag()
    assert max(len(dag.parents(name)) for name in dag.nodes) <= limit
    assert [done for done, _ in batches] == [sum(new for _, new in batches[:i]) for i in range(len(batches))]


def test_the_truth_is_found_where_it_is_plain():
    """v2 → v1 ← v3, all strong, with clients that differ in the mean of v2 and the spread of v3."""
    right = 0
    for seed in range(5):
        tables = {}
        for k in range(6):
            rng = np.random.default_rng([seed, k])
            v2, v3 = 1.5 * k + rng.standard_normal(200), (1 + k) / 3 * rng.standard_normal(200)
            tables[f"c{k}"] = {"v1": v2 + 2 * np.tanh(v3) + rng.standard_normal(200), "v2": v2, "v3": v3}
        result = studies.found(tables)
        arrows = result.graph.arrows == {("v2", "v1"), ("v3", "v1")} and not result.graph.lines
        right += arrows and result.changing == {"v2", "v3"}
    assert right >= 4


# Limits of what is drawn


def searched(tables: studies.Tables, **limits):
    return ScoreSearch()(studies.cohort_of(tables), Settings("evidence", **limits), None)


def test_edges_that_explain_too_little_are_left_out_and_noted():
    """An effect of 0.2 % of the variance among 20000 rows is certain, and too small by default."""
    tables = {}
    for client in range(2):
        x, noise = np.random.default_rng(client).standard_normal((2, 10000))
        tables[f"c{client}"] = {"x": x, "y": 0.045 * x + noise}
    default, every = searched(tables), searched(tables, min_effect=0.0)
    assert every.orientation.graph.is_adjacent("x", "y")
    assert every.posterior.probability_of_edge("x", "y") > 0.5
    assert not default.orientation.graph.is_adjacent("x", "y")
    assert default.posterior.probability_of_edge("x", "y") == 0.0
    assert any("too weak to be drawn" in note and "x — y" in note for note in default.notes)
    assert not any("too weak" in note for note in every.notes)
    assert [*default.strengths.values()] == pytest.approx([0.002], abs=0.0015)
    required = searched(tables, knowledge=Knowledge(required=[("y", "x")]))
    assert ("y", "x") in required.orientation.graph.arrows


def test_higher_limits_draw_less():
    tables = studies.numbers(0, (80, 70, 60))
    few, many = searched(tables, min_probability=0.95, min_arrow_probability=0.99), searched(tables)
    assert few.posterior.arrows == many.posterior.arrows
    assert few.orientation.graph.skeleton <= many.orientation.graph.skeleton
    assert few.orientation.graph.arrows <= many.orientation.graph.arrows
    for pair in few.orientation.graph.skeleton:
        assert few.posterior.probability_of_edge(*pair) >= 0.95


def feedback_in_time(seed, clients=8, rows=400):
    """Return b → c ⇄ d ← a over time: no DAG over values of one time is right, and the best one has further edges."""
    tables = {}
    for client in range(clients):
        random = np.random.default_rng([seed, client])
        values, now = np.empty((rows, 4)), np.zeros(4)
        effects = 0.7 * np.eye(4)
        effects[2, 1], effects[2, 3], effects[3, 2], effects[3, 0] = 0.35, 0.3, 0.3, 0.35
        for row in range(rows):
            now = effects @ now * 0.9 + random.standard_normal(4)
            values[row] = now
        tables[f"c{client}"] = dict(zip("abcd", values.T, strict=True))
    return tables


def test_feedback_in_time_makes_no_false_edges():
    true = {frozenset("ad"), frozenset("cd"), frozenset("bc")}
    for seed in range(3):
        found = discover(feedback_in_time(seed)).graph.skeleton
        assert found <= true
        assert len(found) >= 2


def test_clients_that_disagree_leave_a_direction_open():
    """Half of the clients have x → y, half y → x: their sum decides by chance, their disagreement does not."""

    def pair(seed, turned):
        x, noise = np.random.default_rng(seed).exponential(size=(2, 300)) - 1
        y = 0.8 * x + 0.6 * noise
        return {"x": y, "y": x} if turned else {"x": x, "y": y}

    for seed in range(4):
        turned = [0, 0, 0, 0, 1, 1, 1]
        tables = {f"c{k}": pair([seed, k], bool(turn)) for k, turn in enumerate(turned)}
        (edge,) = (edge for edge in discover(tables).edges() if DOMAIN not in (edge.source, edge.target))
        agreed = {name: pair([seed, k], turned=False) for k, name in enumerate(tables)}
        (sure,) = (edge for edge in discover(agreed).edges() if DOMAIN not in (edge.source, edge.target))
        likelier = max(edge.probability_forward, edge.probability - edge.probability_forward)
        assert likelier < max(sure.probability_forward, sure.probability - sure.probability_forward)
