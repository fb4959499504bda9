"""A search for hidden common causes: its result, its settings, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import fedcdh
from fedcdh.discovery.hidden_causes import join_outside, name_method, name_rounds, restrict
from fedcdh.errors import SettingsError
from fedcdh.graphs.ancestral_graph import AncestralGraph


def confounded(seed=1, clients=4, rows=600, shift=1.0):
    """x → y ← h → z ← w with h unmeasured: FCI finds x ○→ y ↔ z ←○ w."""
    rng = np.random.default_rng(seed)
    tables = {}
    for client in range(clients):
        x, h, w = rng.normal(size=(3, rows))
        y = x + h + 0.5 * rng.normal(size=rows)
        z = h + w + 0.5 * rng.normal(size=rows) + shift * client
        tables[f"c{client}"] = {"w": w, "x": x, "y": y, "z": z}
    return tables


TABLES = confounded()
RESULT = fedcdh.discover(TABLES, hidden=True)


def test_a_hidden_cause_is_found_where_the_default_draws_an_arrow_or_a_line():
    assert str(RESULT.graph) == "w ○→ z\nx ○→ y\ny ↔ z"
    assert RESULT.graph.marks("y", "z") == ("arrow", "arrow")
    assert RESULT.changing == {"z"}
    assert RESULT.augmented.marks(fedcdh.DOMAIN, "z") == ("tail", "arrow")
    assert fedcdh.discover(TABLES, rounds="one").graph.is_adjacent("y", "z")


def test_edges_have_marks_and_the_answers_behind_them():
    edges = {frozenset((edge.source, edge.target)): edge for edge in RESULT.edges()}
    assert len(edges) == 10
    both = edges[frozenset("yz")]
    assert (both.mark, both.mark_at_source, both.mark_at_target, both.separating_set) == ("↔", "arrow", "arrow", None)
    assert both.p_value < 0.05
    apart = edges[frozenset("xz")]
    assert apart.mark == ""
    assert apart.p_value > 0.05
    assert fedcdh.DOMAIN in apart.separating_set
    assert edges[frozenset((fedcdh.DOMAIN, "z"))].visible


def test_the_federated_run_finds_what_the_tables_give():
    plan = fedcdh.StudyPlan.from_tables(TABLES)
    summaries = [fedcdh.summarize(table, plan, client) for client, table in TABLES.items()]
    found = fedcdh.discover_from(reversed(summaries), plan, hidden=True)
    assert found.augmented == RESULT.augmented
    assert found.edges() == RESULT.edges()
    total = fedcdh.Aggregate.of(fedcdh.add_up(summaries, plan))
    assert fedcdh.discover_from(total, plan, hidden=True).augmented == RESULT.augmented


def test_what_is_printed_names_the_marks_and_the_clients():
    text = str(RESULT)
    assert text.splitlines()[0] == (
        "4 variables, 4 clients, 2400 rows (method constraint, hidden causes allowed, alpha 0.05)"
    )
    assert "y ↔ z" in text
    assert "mechanisms that differ between clients: z" in text
    assert "y ↔ z" in RESULT._repr_html_()
    assert repr(RESULT) == "<AncestralDiscovery of 3 edges; print it to see them>"


@pytest.mark.parametrize(
    "name",
    ["to_dag", "sample_dags", "drift", "effect", "effects", "stability", "report", "plot", "probability_of_change"],
)
def test_what_makes_no_sense_is_refused_with_what_works(name):
    with pytest.raises(SettingsError, match=rf"{name} is not there with hidden causes: .*These work: print"):
        getattr(RESULT, name)
    with pytest.raises(AttributeError):
        _ = RESULT.nothing_of_this_name


@pytest.mark.parametrize("method", ["evidence", "paper"])
def test_other_methods_are_refused(method):
    with pytest.raises(SettingsError, match="expected 'auto' or 'constraint'"):
        fedcdh.discover(TABLES, hidden=True, method=method)
    assert name_method("auto") == "constraint"


def test_residuals_are_refused_and_adaptive_rounds_are_asked():
    with pytest.raises(SettingsError, match="residuals"):
        fedcdh.discover(TABLES, hidden=True, rounds="residuals")
    found = fedcdh.discover(TABLES, hidden=True, rounds="adaptive")
    assert found.graph == RESULT.graph
    assert found.settings.rounds == "adaptive"
    assert name_rounds("auto") == "one"


def test_knowledge_decides_marks_and_is_never_contradicted():
    known = fedcdh.Knowledge(required=[("x", "y")], tiers=[["w"], ["x", "y", "z"]])
    graph = fedcdh.discover(TABLES, hidden=True, knowledge=known).graph
    assert graph.marks("x", "y") == ("tail", "arrow")
    assert graph.marks("w", "z")[1] == "arrow"


def test_no_conditioning_leaves_more_edges():
    anytime = fedcdh.discover(TABLES, hidden=True, max_conditioning_size=0)
    assert RESULT.graph.skeleton <= anytime.graph.skeleton


def test_progress_is_reported():
    calls = []
    fedcdh.discover(TABLES, hidden=True, progress=lambda size, queries: calls.append((size, queries)))
    assert calls[0][0] == 0


def test_copies_are_joined_to_what_they_copy_only():
    tables = {client: {**table, "copy": 100 * table["x"] + 3} for client, table in TABLES.items()}
    found = fedcdh.discover(tables, hidden=True)
    assert found.graph.neighbours("copy") == {"x"}
    assert found.graph.marks("copy", "x") == ("circle", "circle")
    assert "copy is a copy of x" in " ".join(found.notes)
    known = fedcdh.Knowledge(forbidden=[("copy", "x")])
    assert fedcdh.discover(tables, hidden=True, knowledge=known).graph.marks("copy", "x") == ("arrow", "circle")


def test_one_client_has_no_domain():
    found = fedcdh.discover({"all": TABLES["c0"]}, hidden=True)
    assert found.changing == frozenset()
    assert "only one client" in str(found)


def test_knowledge_of_nodes_that_are_left_out_is_left_out():
    known = fedcdh.Knowledge(required=[("a", "gone")], tiers=[["gone"], ["a"], ["b"]])
    kept = restrict(known, ["a", "b"])
    kept.check(["a", "b"])
    assert kept.forbids("b", "a")
    assert not kept.forbids("a", "b")


def test_required_arrows_at_left_out_nodes_are_drawn():
    graph = join_outside(AncestralGraph(("a",), {}), {"b": ("a",)}, fedcdh.Knowledge(required=[("b", "a")]), ("a", "b"))
    assert str(graph) == "b → a"


def test_the_estimator_takes_the_setting():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed; pip install 'fedcdh[sklearn]'")
    fitted = fedcdh.FedCDH().fit(TABLES)
    assert hasattr(fitted, "adjacency_")
    fitted.set_params(hidden=True).fit(TABLES)
    assert fitted.graph_ == RESULT.graph
    assert not hasattr(fitted, "adjacency_")
