"""The estimator follows the rules of scikit-learn, and finds what `discover` finds."""

import importlib.util
import pickle
import sys

import numpy as np
import pytest
from studies import mixed

pytest.importorskip("sklearn", reason="scikit-learn is not installed; pip install 'fedcdh[sklearn]'")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import fedcdh
from fedcdh import Knowledge, discover
from fedcdh.discovery.estimator import FedCDH
from fedcdh.errors import DataError, MissingDependencyError, SettingsError

CLIENTS = mixed()
DOMAIN_LABELS = np.repeat(list(CLIENTS), [len(table["age"]) for table in CLIENTS.values()])
POOLED = {name: np.concatenate([table[name] for table in CLIENTS.values()]) for name in CLIENTS["clinic a"]}


@parametrize_with_checks([FedCDH(), FedCDH(method="constraint")])
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """All of them: none is expected to fail."""
    check(estimator)


def frame(library):
    return pytest.importorskip(library).DataFrame(POOLED)


@pytest.mark.parametrize(
    ("data", "domain"),
    [
        (lambda: CLIENTS, None),
        (lambda: {**POOLED, "clinic": DOMAIN_LABELS}, "clinic"),
        (lambda: POOLED, DOMAIN_LABELS),
        (lambda: POOLED, DOMAIN_LABELS.tolist()),
        (lambda: frame("pandas"), DOMAIN_LABELS),
        (lambda: frame("polars"), DOMAIN_LABELS),
        (lambda: frame("pandas").assign(clinic=DOMAIN_LABELS), "clinic"),
    ],
)
def test_it_finds_what_discover_finds(data, domain):
    expected, found = discover(CLIENTS), FedCDH().fit(data(), domain=domain)
    assert found.graph_ == expected.graph
    assert found.augmented_ == expected.augmented
    assert found.changing_ == expected.changing
    assert found.edges_ == expected.edges()
    assert found.adjacency_.to_graph() == found.graph_
    assert found.feature_names_in_.tolist() == list(POOLED)
    assert found.n_features_in_ == 6
    assert found.result_.notes == expected.notes


def test_the_limits_of_what_is_drawn_are_those_of_discover():
    limits = {"min_probability": 0.9, "min_arrow_probability": 0.95, "min_effect": 0.3}
    found = FedCDH(**limits).fit(CLIENTS)
    assert found.edges_ == discover(CLIENTS, **limits).edges()
    assert found.result_.settings.min_effect == 0.3
    assert len(found.graph_.arrows) < len(discover(CLIENTS, min_effect=0).graph.arrows)


def series_in_time(rows: int = 200) -> dict[str, dict[str, np.ndarray]]:
    """Two sites with rows that depend on the rows before them, stored in random order."""
    rng = np.random.default_rng(5)
    sites = {}
    for site in ("north", "south"):
        noise = rng.normal(size=(rows, 3))
        for row in range(1, rows):
            noise[row] += 0.8 * noise[row - 1]
        order = rng.permutation(rows)
        sites[site] = {name: noise[order, place] for place, name in enumerate("abc")} | {"week": order.astype(float)}
    return sites


@pytest.mark.parametrize("pooled", [False, True], ids=["per site", "pooled"])
def test_rows_are_put_in_the_order_of_time_as_by_discover(pooled):
    sites = series_in_time()
    data, domain = sites, None
    if pooled:
        data = {name: np.concatenate([site[name] for site in sites.values()]) for name in sites["north"]}
        domain = np.repeat([*sites], 200)
    found = FedCDH(order_by="week").fit(data, domain=domain)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.n_features_in_ == 3
    expected = discover(sites, order_by="week")
    assert found.edges_ == expected.edges()
    assert found.result_.notes == expected.notes
    assert any("depend on" in note for note in found.result_.notes)
    without = FedCDH().fit({site: {n: x for n, x in table.items() if n != "week"} for site, table in sites.items()})
    assert not any("depend on" in note for note in without.result_.notes)


def test_a_column_of_times_that_is_not_there_is_named():
    with pytest.raises(DataError, match="week"):
        FedCDH(order_by="week").fit(POOLED, domain=DOMAIN_LABELS)


def test_one_table_is_one_client():
    found = FedCDH().fit(np.column_stack([POOLED["age"], POOLED["dose"], POOLED["score"]]))
    assert found.graph_.nodes == ("x1", "x2", "x3")
    assert found.changing_ == frozenset()
    assert not hasattr(found, "feature_names_in_")
    assert "only one client" in found.result_.notes[0]


def test_names_of_an_earlier_fit_are_forgotten():
    found = FedCDH().fit(POOLED, domain=DOMAIN_LABELS)
    found.fit(np.column_stack([POOLED["age"], POOLED["dose"]]), domain=DOMAIN_LABELS)
    assert found.n_features_in_ == 2
    assert not hasattr(found, "feature_names_in_")


def test_parameters_can_be_read_set_and_cloned():
    known = Knowledge(required=[("age", "dose")])
    made = FedCDH(alpha=0.01, knowledge=known)
    assert made.get_params()["knowledge"] == known
    assert repr(FedCDH(alpha=0.01)) == "FedCDH(alpha=0.01)"
    assert clone(made).set_params(method="constraint").get_params() == {**made.get_params(), "method": "constraint"}
    assert ("age", "dose") in made.fit(CLIENTS).graph_.arrows
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(made))


def test_a_fitted_estimator_can_be_pickled():
    found = FedCDH().fit(CLIENTS)
    again = pickle.loads(pickle.dumps(found))
    assert again.edges_ == found.edges_
    assert again.result_.cohort.summaries == found.result_.cohort.summaries
    assert again.result_.cohort.summaries[0].moments.flags.writeable is False


@pytest.mark.parametrize(
    ("data", "domain", "message"),
    [
        (CLIENTS, "clinic", "leave domain out"),
        (CLIENTS, DOMAIN_LABELS, "leave domain out"),
        (POOLED, DOMAIN_LABELS[:-1], "expected one name per row"),
        (POOLED, "clinic", "there is no column 'clinic'"),
        (POOLED, [None] * len(DOMAIN_LABELS), "is empty in"),
        ({**POOLED, "__domain__": DOMAIN_LABELS}, DOMAIN_LABELS, "a name that this package uses itself"),
        ({"age": [1.0], "dose": [2.0]}, None, "n_samples = 1"),
    ],
)
def test_what_cannot_be_fitted_is_refused(data, domain, message):
    with pytest.raises(DataError, match=message):
        FedCDH().fit(data, domain=domain)


def test_settings_are_checked_when_they_are_used():
    with pytest.raises(SettingsError, match="alpha"):
        FedCDH(alpha=2).fit(CLIENTS)


def test_it_is_a_public_name():
    assert fedcdh.FedCDH is FedCDH


def test_without_scikit_learn_the_class_is_there_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    spec = importlib.util.find_spec("fedcdh.discovery.estimator")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # not a reload: the class of the other tests stays as it is
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[sklearn\]'"):
        module.FedCDH(method="evidence")
