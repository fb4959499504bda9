"""Rivals and references: what holds for any of them, and what each is known to do."""

from __future__ import annotations

import inspect
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fedcdh
from fedcdh.data.table import to_table
from fedcdh.errors import BaselineError, DataError, MissingDependencyError, SettingsError
from fedcdh.evaluation.baselines import BASELINES, find_baseline, oracle_result, to_markdown_table, varsortability
from fedcdh.evaluation.baselines.fedcdh_methods import run_fedcdh
from fedcdh.evaluation.baselines.fedpc import (
    LOCAL_TESTS,
    FisherZTest,
    _find_colliders,
    remove_unless_kept,
    remove_when_vetoed,
    run_fedpc,
)
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, Traffic
from fedcdh.evaluation.baselines.pooled_references import (
    graph_from_endpoint_marks,
    import_causal_learn,
    run_cdnod,
    run_pc,
)
from fedcdh.evaluation.baselines.var_sort import _adaptive_lasso, sort_by_variance
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan

NAMES = ("a", "b", "z", "w")
TRUE = frozenset({("a", "z"), ("b", "z"), ("z", "w")})
FEDERATED = ("fedpc", "fedpc-veto", "fedpc-kernel", "fedpc-regression", "sort-by-variance", "fedcdh-constraint")


def collider(clients: int = 3, rows: int = 400) -> dict[str, np.ndarray]:
    """a → z ← b, z → w; the mean of w differs between clients."""
    tables = {}
    for k in range(clients):
        a, b, e, f = np.random.default_rng([7, k]).standard_normal((4, rows))
        z = a + b + 0.5 * e
        tables[f"c{k}"] = np.column_stack([a, b, z, z + 2 * k + f])
    return tables


# Laws


@pytest.mark.parametrize("name", FEDERATED)
def test_the_order_of_clients_makes_no_difference(name):
    study = simulate(clients=4, rows=[60, 70, 80, 90], seed=3)
    turned = dict(reversed(study.tables.items()))
    assert BASELINES[name](turned, study.names) == BASELINES[name](study.tables, study.names)


@pytest.mark.parametrize("name", FEDERATED)
def test_variables_may_have_other_names_and_places(name):
    study = simulate(clients=3, rows=80, seed=4)
    order = [3, 0, 5, 1, 4, 2]
    other = {old: f"n{place}" for place, old in enumerate(study.names)}
    moved = {client: table[:, order] for client, table in study.tables.items()}
    found = BASELINES[name](study.tables, study.names).augmented
    again = BASELINES[name](moved, [other[study.names[i]] for i in order]).augmented
    renamed = {**other, DOMAIN: DOMAIN}
    assert again.arrows == {(renamed[tail], renamed[head]) for tail, head in found.arrows}
    assert again.lines == {frozenset(renamed[end] for end in line) for line in found.lines}


@pytest.mark.parametrize("entry", BASELINES.values(), ids=BASELINES)
def test_every_entry_loads_and_is_a_method(entry):
    inspect.signature(entry.load()).bind({}, (), 0)
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_the_page_shows_all_methods():
    page = Path(fedcdh.__file__).parents[2] / "docs" / "rivals.md"
    assert to_markdown_table() in page.read_text(encoding="utf-8")


def test_unknown_methods_and_unusable_tables_are_refused():
    with pytest.raises(SettingsError, match="fedpc-veto"):
        find_baseline("fed-pc")
    right = collider(2, 20)
    for tables, names in (
        ({}, NAMES),
        (right, ("a", "b", "z", "z")),
        (right, NAMES[:3]),
        ({**right, "c2": np.full((5, 4), np.nan)}, NAMES),
        ({**right, "c2": np.zeros((0, 4))}, NAMES),
    ):
        with pytest.raises(DataError, match=r"found|shape"):
            BASELINES["fedpc"](tables, names)
    with pytest.raises(SettingsError, match="regression"):
        run_fedpc(right, NAMES, test="chi2")
    with pytest.raises(SettingsError, match="veto"):
        run_fedpc(right, NAMES, voting="majority")


def test_arrows_in_a_circle_stay_as_they_are():
    circle = frozenset({("a", "b"), ("b", "c"), ("c", "a")})
    assert BaselineResult(PartialGraph(("a", "b", "c"), circle)).directed == circle
    chain = BaselineResult(PartialGraph(("a", "b", "c"), frozenset({("a", "b")}), frozenset({frozenset("bc")})))
    assert chain.directed == {("a", "b"), ("b", "c")}


# FedPC


@pytest.mark.parametrize("name", ["fedpc", "fedpc-veto", "fedpc-regression"])
def test_fedpc_finds_a_collider(name):
    found = BASELINES[name](collider(), NAMES)
    assert found.graph.arrows == TRUE
    assert found.changing is None


def test_fedpc_tells_votes_and_sets_only():
    """Levels 0 to 2 (z keeps three neighbours), then three pairs without an edge: ab, aw and bw."""
    clients, pairs, levels, unshielded, variables = 3, 6, 3, 3, 4
    assert run_fedpc(collider(), NAMES).traffic == Traffic(
        messages_up=clients * (levels + 2),
        bytes_up=clients * (levels * pairs + unshielded * (8 + variables)),
        messages_down=clients * (levels + 1),
        bytes_down=clients * (levels + 1) * pairs,
    )
    apart = {"c": np.random.default_rng(0).standard_normal((500, 2))}
    assert run_fedpc(apart, ("x", "y")).traffic == Traffic(1, 1, 1, 1)


@pytest.mark.parametrize("seed", range(12))
def test_with_one_client_fedpc_has_the_skeleton_of_pc(seed):
    """With five variables no set is larger than the three that FedPC allows; beyond that, PC may remove more."""
    pytest.importorskip("causallearn")
    study = simulate(variables=5, clients=1, rows=150, edges=6, changing=0, seed=seed)
    assert run_fedpc(study.tables, study.names).graph.skeleton == run_pc(study.tables, study.names).graph.skeleton


def test_fishers_z_is_that_of_residuals():
    table = collider(1, 60)["c0"]
    design = np.column_stack([np.ones(60), table[:, 2]])
    residuals = table - design @ np.linalg.lstsq(design, table, rcond=None)[0]
    asked = [(0, 1, (2,)), (0, 3, (2,)), (1, 3, (2,))]
    for (a, b, _), (strength, p_value) in zip(asked, FisherZTest(table)(asked), strict=True):
        r = np.corrcoef(residuals[:, a], residuals[:, b])[0, 1]
        assert strength == pytest.approx(abs(r))
        assert p_value == pytest.approx(2 * stats.norm.sf(np.sqrt(60 - 4) * abs(np.arctanh(r))))


def test_too_few_rows_and_constants_separate_nothing_or_all():
    few = np.random.default_rng(0).standard_normal((4, 3))
    assert FisherZTest(few)([(0, 1, (2,))])[0][1] == 0.0
    assert FisherZTest(np.column_stack([np.ones(50), np.arange(50.0)]))([(0, 1, ())]) == [(0.0, 1.0)]
    assert len(run_fedpc({"c": few[:3]}, ("x", "y", "z")).graph.skeleton) == 3


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(np.inf, ()), (np.inf, ())], []),  # nobody knows what separates 0 and 1
        ([(np.inf, ()), (0.3, ())], [(0, 2, 1), (0, 3, 1)]),
        ([(np.inf, ()), (0.3, (2,))], [(0, 3, 1)]),
        ([(0.2, (2, 3)), (0.3, ())], []),
    ],
)
def test_a_pair_that_nobody_can_separate_tells_no_direction(told, expected):
    """0 and 1 are not joined, 2 and 3 are joined to all others."""

    class Teller:
        def __init__(self, strength, chosen):
            self.told = np.array([strength]), np.isin(np.arange(4), chosen)[None]

        def best_sets(self, joined):
            return self.told

    joined = ~np.eye(4, dtype=np.bool_)
    joined[0, 1] = joined[1, 0] = False
    assert list(_find_colliders([Teller(*each) for each in told], CountingChannel(2), joined)) == expected


def test_the_two_readings_of_thirty_percent():
    ten, two = np.arange(11), np.arange(3)
    assert np.flatnonzero(remove_unless_kept(ten, 10)).tolist() == [8, 9, 10]
    assert np.flatnonzero(remove_when_vetoed(ten, 10)).tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    assert np.flatnonzero(remove_unless_kept(two, 2)).tolist() == [2]
    assert np.flatnonzero(remove_when_vetoed(two, 2)).tolist() == [1, 2]


def test_a_client_that_dissents_alone_does_not_decide():
    """Three clients in ten keep an edge; two do not."""
    apart = np.random.default_rng(0).standard_normal((200, 2))
    joined = apart + np.arange(200.0)[:, None]
    assert LOCAL_TESTS["fisherz"](apart, 0)([(0, 1, ())])[0][1] > 0.05
    for keeping, edges in ((2, 0), (3, 1)):
        tables = {f"c{k}": joined if k < keeping else apart for k in range(10)}
        assert len(run_fedpc(tables, ("x", "y")).graph.skeleton) == edges


@pytest.mark.parametrize("test", ["kernel", "regression"])
def test_a_square_is_seen_by_tests_that_see_more_than_lines(test):
    """Rows come in mirrored pairs (x, y) and (−x, y), so that x and y = x² + e are exactly uncorrelated."""
    tables = {}
    for k in range(3):
        x, e = np.random.default_rng(k).standard_normal((2, 80))
        y = x**2 + 0.5 * e
        tables[f"c{k}"] = np.column_stack([np.concatenate([x, -x]), np.concatenate([y, y])])
    assert not run_fedpc(tables, ("x", "y")).graph.skeleton
    assert run_fedpc(tables, ("x", "y"), test=test).graph.skeleton


def test_kci_at_the_clients():
    pytest.importorskip("causallearn")
    tables = {client: table[:60, :3] for client, table in collider(2).items()}
    assert BASELINES["fedpc-kci"](tables, NAMES[:3]).graph.arrows == {("a", "z"), ("b", "z")}


# Central references


def test_the_marks_of_causal_learn():
    marks = np.zeros((5, 5))
    marks[0, 1], marks[1, 0] = -1, 1  # a → b
    marks[1, 2], marks[2, 1] = -1, -1  # b — z
    marks[2, 3], marks[3, 2] = 1, 1  # z ↔ w
    marks[4, 3], marks[3, 4] = -1, 1  # ℧ → w
    marks[4, 0], marks[0, 4] = 1, -1  # a → ℧ cannot be
    found = BaselineResult(graph_from_endpoint_marks(marks, ("a", "b", "z", "w", DOMAIN)))
    assert found.graph.arrows == {("a", "b")}
    assert found.graph.lines == {frozenset("bz"), frozenset("zw")}
    assert found.changing == {"a", "w"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("test", ["fisherz", "rcit"])
def test_cdnod_finds_a_collider_and_what_changes(test):
    pytest.importorskip("causallearn")
    tables = collider(2)
    found = BASELINES[f"cdnod-{test}"](tables, NAMES)
    assert found.graph.skeleton >= {frozenset(arrow) for arrow in TRUE}
    assert {("a", "z"), ("b", "z")} <= found.directed
    assert found.changing is not None
    assert found.changing >= {"w"}
    assert found.traffic == Traffic(messages_up=2, bytes_up=2 * 400 * 4 * 8)


def test_pc_knows_nothing_of_clients():
    pytest.importorskip("causallearn")
    found = BASELINES["pc-fisherz"](collider(2), NAMES)
    assert found.changing is None
    assert {("a", "z"), ("b", "z")} <= found.graph.arrows
    assert found.traffic.bytes_up == 2 * 400 * 4 * 8


def test_what_causal_learn_raises_is_one_error():
    pytest.importorskip("causallearn")
    twice = {client: table[:, [0, 0, 2, 3]] for client, table in collider(2).items()}
    for search in (run_cdnod, run_pc):
        with pytest.raises(BaselineError, match=r"gave up on these rows: .*singular.*; look for constant"):
            search(twice, NAMES)


def test_causal_learn_leaves_the_common_generator_as_it_was():
    pytest.importorskip("causallearn")
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    run_pc(collider(2, 50), NAMES, 1)
    assert np.random.random() == expected  # noqa: NPY002


def test_what_to_install_where_causal_learn_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn.search.ConstraintBased.PC", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[experiments\]'"):
        run_pc(collider(2, 50), NAMES)
    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", None)
    with pytest.raises(MissingDependencyError, match="causal-learn"):
        import_causal_learn("utils.cit", "CIT")


def test_the_oracle_says_what_tests_can_tell():
    study = simulate(seed=2)
    best = oracle_result(study.names, study.augmented)
    assert best.changing == study.changing
    assert best.graph.skeleton == {frozenset(arrow) for arrow in study.arrows}
    assert best.graph.arrows <= study.arrows
    chain = oracle_result(("x", "y", "z"), {("x", "y"), ("y", "z")})
    assert len(chain.graph.lines) == 2


# Sorting by variance


def test_sorting_needs_sums_only():
    """One client or many: the same graph, from 1 + d + d(d + 1)/2 numbers each."""
    study = simulate(clients=5, rows=60, seed=6)
    pooled = {"all": np.concatenate(list(study.tables.values()))}
    found = sort_by_variance(study.tables, study.names)
    assert found.graph == sort_by_variance(pooled, study.names).graph
    assert found.traffic == Traffic(messages_up=5, bytes_up=5 * 8 * (1 + 6 + 21))


def test_sorting_finds_any_order_that_variances_have():
    x, e, f = np.random.default_rng(0).standard_normal((3, 500))
    chain = np.column_stack([x, x + e, x + e + f])
    arrows = {("x", "y"), ("y", "z")}
    assert sort_by_variance({"c": chain}, ("x", "y", "z")).graph.arrows == arrows
    against = {"c": chain * [9.0, 3.0, 1.0]}
    assert sort_by_variance(against, ("x", "y", "z")).graph.arrows >= {("z", "y"), ("y", "x")}
    assert varsortability({"c": chain}, ("x", "y", "z"), arrows) == 1.0
    assert varsortability(against, ("x", "y", "z"), arrows) == 0.0
    assert varsortability({"c": chain / chain.std(axis=0)}, ("x", "y", "z"), arrows) == 0.5
    with pytest.raises(DataError, match="no arrow"):
        varsortability({"c": chain}, ("x", "y", "z"), [])


def test_sorting_lives_on_the_scale_alone():
    raw, scaled = [], []
    for seed in range(10):
        study = simulate(seed=seed)
        for scores, tables in ((raw, study.tables), (scaled, study.standardised().tables)):
            scores.append(compare(sort_by_variance(tables, study.names, seed).directed, study.arrows).direction.f1)
    assert np.mean(raw) > 0.8
    assert np.mean(scaled) < 0.6


@pytest.mark.filterwarnings("ignore")
def test_the_lasso_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        width = int(rng.integers(1, 9))
        x = rng.standard_normal((150, width)) @ rng.standard_normal((width, width))
        y = x @ (rng.standard_normal(width) * (rng.random(width) < 0.5)) + rng.standard_normal(150)
        x, y = x - x.mean(axis=0), y - y.mean()
        weight = np.abs(np.linalg.lstsq(x, y, rcond=None)[0])
        expected = weight * linear_model.LassoLarsIC(criterion="bic").fit(x * weight, y).coef_
        np.testing.assert_allclose(_adaptive_lasso(x.T @ x, x.T @ y, float(y @ y), 150), expected, atol=1e-7)


def test_sorting_needs_rows_and_does_without_variance():
    with pytest.raises(DataError, match="found 3 rows of 4 variables"):
        sort_by_variance(collider(1, 3), NAMES)
    still = np.column_stack([np.zeros(50), np.ones(50), np.arange(50.0)])
    assert not sort_by_variance({"c": still}, ("x", "y", "z")).graph.skeleton


# Ours


@pytest.mark.parametrize("engine", ["evidence", "constraint", "paper"])
def test_ours_is_discover(engine):
    study = simulate("general", variables=5, clients=4, rows=70, seed=8)
    result = fedcdh.discover(dict(study.tables), names=study.names, method=engine, seed=8)
    found = BASELINES[f"fedcdh-{engine}"](study.tables, study.names, 8)
    assert found.augmented == result.augmented
    assert found.graph == result.graph
    assert found.changing == result.changing
    assert found.directed == result.to_dag().arrows


@pytest.mark.parametrize(("engine", "family"), [("paper", Fourier(7, seed=9)), ("constraint", Hermite(7))])
def test_ours_counts_the_files(engine, family):
    study = simulate(variables=4, clients=3, rows=50, seed=9)
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    profiles = [fedcdh.profile(table, client) for client, table in tables.items()]
    plan = StudyPlan.from_profiles(profiles, family=family)
    summaries = [fedcdh.summarize(table, plan, client) for client, table in tables.items()]
    up = [profile_to_json(ProfileMessage(one)).encode() for one in profiles]
    up += [pack_summary(SummaryMessage(one), plan) for one in summaries]
    down = len(Study(plan).to_json().encode())
    found = run_fedcdh(study.tables, study.names, 9, method=engine, width=7)
    assert found.traffic == Traffic(6, sum(map(len, up)), 3, 3 * down)
    assert found.augmented == fedcdh.discover_from(summaries, plan, method=engine, seed=9).augmented


def test_ours_reads_codes_as_labels():
    study = simulate(variables=3, clients=3, rows=80, seed=2)
    tables = {client: np.column_stack([table[:, :2], table[:, 2] > 0]) for client, table in study.tables.items()}
    kinds = {study.names[2]: "categorical"}
    result = fedcdh.discover(tables, names=study.names, kinds=kinds)
    found = run_fedcdh(tables, study.names, kinds=kinds)
    assert found.augmented == result.augmented
    assert found.traffic != run_fedcdh(tables, study.names).traffic
