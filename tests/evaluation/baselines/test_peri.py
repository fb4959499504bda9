"""PERI: regrets, worst cases, and what passes between clients and server."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider

from fedcdh.errors import BaselineError
from fedcdh.evaluation.baselines.family_messages import encode_families
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.peri import (
    RegretClient,
    WholeGraphJudge,
    WorstCaseServer,
    run_peri,
    run_peri_whole,
)
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.protocols import Family
from fedcdh.search.greedy_equivalence_search import find_equivalence_class, search_classes
from fedcdh.search.parent_sets import ParentSpace


def families_of(dag):
    return [Family(node, dag.parents(node)) for node in dag.nodes]


def test_a_collider_is_found():
    for run in (run_peri, run_peri_whole):
        assert run(collider(), NAMES).graph.arrows == TRUE
    assert run_peri(collider(), NAMES, reference="none").graph.arrows == TRUE


def test_a_client_has_no_regret_about_its_own_graph():
    for seed in range(10):
        study = simulate(variables=5, clients=2, rows=60, seed=seed)
        table = study.tables["client01"]
        own = extend_to_dag(find_equivalence_class(study.names, GaussianBic.of_table(table, study.names)).cpdag)
        client = RegretClient(table, study.names, "dag")
        answers = client.answer(encode_families(families_of(own), study.names))
        np.testing.assert_allclose(answers, 0, atol=1e-8, err_msg=f"seed {seed}")


def test_with_one_client_the_regret_of_whole_graphs_is_the_clients_own_search():
    """A constant is subtracted from the total, and nothing else changes."""
    for seed in range(10):
        study = simulate(variables=5, clients=1, rows=80, changing=0, seed=seed)
        (table,) = study.tables.values()
        own = find_equivalence_class(study.names, GaussianBic.of_table(table, study.names)).cpdag
        for found in (
            run_peri_whole(study.tables, study.names),
            run_peri(study.tables, study.names),
            run_peri(study.tables, study.names, reference="none"),
        ):
            assert found.graph == own, f"seed {seed}"


def test_the_worst_client_decides():
    class Fixed:
        def __init__(self, *answers):
            self.answers = np.array(answers)

        def answer(self, question):
            return self.answers[: len(question)]

    channel = CountingChannel(2)
    server = WorstCaseServer([Fixed(-1.0, -9.0), Fixed(-4.0, -2.0)], channel, ("x", "y"))
    assert server.worst([Family("x"), Family("y")]) == [-4.0, -9.0]
    assert channel.traffic.bytes_down == 2 * 2 * 2
    assert channel.traffic.bytes_up == 2 * 2 * 8


def test_the_judge_of_whole_graphs_knows_the_worst_regret():
    """Gains add up to the change of the smallest total, from the empty graph to the graph that is found."""
    for seed in range(6):
        study = simulate(variables=5, clients=3, rows=60, seed=seed)
        clients = [RegretClient(table, study.names, "dag") for table in study.tables.values()]
        server = WorstCaseServer(clients, CountingChannel(3), study.names)
        space = ParentSpace.of(study.names, NO_KNOWLEDGE, None, None)
        found, gains = search_classes(space, WholeGraphJudge(space, server))
        before = server.ask([Family(node) for node in study.names]).sum(axis=1).min()
        after = server.ask(families_of(extend_to_dag(found))).sum(axis=1).min()
        assert after - before == pytest.approx(sum(gains), abs=1e-6), f"seed {seed}"


def test_messages_do_not_grow_with_the_rows():
    """A byte per variable and family down, eight bytes a family up."""
    for rows in (100, 400):
        traffic = run_peri(collider(3, rows), NAMES).traffic
        assert traffic.messages_up == traffic.messages_down
        assert traffic.bytes_up == 2 * traffic.bytes_down  # eight bytes for four variables
        assert traffic.bytes_up < 3 * 8 * 4 * 2**3 + 1


def test_too_many_variables_for_whole_graphs():
    study = simulate(variables=11, clients=2, rows=20, seed=1)
    with pytest.raises(BaselineError, match="'peri'"):
        run_peri_whole(study.tables, study.names)
