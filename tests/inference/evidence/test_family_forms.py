"""The forms of a family, from the summaries alone."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from residual_studies import cohort_of, linear_pair, plan_of, score_of, unequal_sites, unlogged_pair

from fedcdh.inference.evidence.family_forms import FamilyForms, shorten
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.residual_record import add_clients
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Family

X, Y = Family("x"), Family("y")
X_TO_Y, Y_TO_X = Family("y", frozenset("x")), Family("x", frozenset("y"))
PAIR = [X, Y, X_TO_Y, Y_TO_X]


def forms_of(tables: studies.Tables) -> FamilyForms:
    known = cohort_of(tables, plan_of(tables))
    basis = Basis.of(known)
    return FamilyForms(known, basis, FamilyScore.of(known, basis))


def test_a_linear_effect_has_the_weight_of_the_regression():
    table = linear_pair("normal", 0)
    (form, *_) = forms_of({"north": table}).find([X_TO_Y])[X_TO_Y]
    expected = np.corrcoef(table["x"], table["y"])[0, 1]
    assert not form.curved
    assert form.weights == pytest.approx((expected,), rel=1e-3)
    assert form.deviation == pytest.approx((1 - expected**2) ** 0.5, rel=1e-3)


def test_a_bent_effect_has_a_nonlinear_form_unless_the_node_has_few_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    forms = forms_of({"north": {"x": x, "y": x**2 + 0.3 * rng.normal(size=600)}})
    assert forms.find([X_TO_Y])[X_TO_Y][0].curved
    assert not forms.find([X_TO_Y], few_values={"y"})[X_TO_Y][0].curved


def test_normal_scores_are_a_second_form_unless_the_node_has_few_values():
    forms = forms_of({"north": unlogged_pair(0)})
    assert [form.scored for form in forms.find([X_TO_Y])[X_TO_Y]] == [False, True]
    assert [form.scored for form in forms.find([X_TO_Y], few_values={"y"})[X_TO_Y]] == [False]


def test_a_bent_scale_has_no_curvature_on_normal_scores():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 1000))
    forms = forms_of({"north": {"x": x, "y": np.exp(0.7 * x + 0.7 * noise)}})
    assert forms.has_curvature_of_scale_only("x", "y")
    assert forms.has_curvature_of_scale_only("y", "x")


def test_a_bent_mechanism_keeps_its_curvature_on_normal_scores():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 1000))
    forms = forms_of({"north": {"x": x, "y": x**2 + x + 0.3 * noise}})
    assert "y" in forms.scores
    assert not forms.has_curvature_of_scale_only("x", "y")


def test_normal_variables_and_labels_have_no_other_scale():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1000))
    forms = forms_of({"north": {"x": x, "y": y, "sex": np.where(x > 0, "f", "m"), "crp": np.exp(x)}})
    assert not forms.has_curvature_of_scale_only("x", "y")
    assert not forms.has_curvature_of_scale_only("sex", "crp")
    assert not forms.has_curvature_of_scale_only("crp", "sex")


def test_numbers_of_requests_have_twelve_digits():
    assert shorten(1 / 3) == 0.333333333333


def test_mean_squares_are_those_of_the_rows():
    tables = unequal_sites()
    score = score_of(tables)
    score(PAIR)
    for query, answers in score.record.answers.items():
        if query.about != "shape" or query.size or query.scored or sum(query.widths) != len(query.parents):
            continue
        pooled = studies.pooled_table(tables)
        for client, answer in answers.items():
            z = (tables[client][query.node] - pooled[query.node].mean()) / pooled[query.node].std()
            for parent, weight in zip(query.parents, query.weights, strict=True):
                z = z - weight * (tables[client][parent] - pooled[parent].mean()) / pooled[parent].std()
            assert answer.mean_square == pytest.approx(((z / query.deviation) ** 2).mean(), rel=1e-3)
        assert add_clients(answers).mean_square == pytest.approx(1.0, rel=1e-3)
