"""Log Bayes factors of shape and size, from answers of clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from residual_studies import interacting_causes, score_of, split_rows, varying_size_pair

from fedcdh.inference.evidence.noise_shape import ShapeMoments, shape_evidence
from fedcdh.inference.evidence.product_terms import PRODUCT_PRICE
from fedcdh.inference.evidence.residual_factors import NOT_ASKED, noise_factors, shape_factors
from fedcdh.inference.evidence.residual_record import AskedForm, add_clients
from fedcdh.protocols import Family
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.residuals.functions import MAX_LARGE_RESIDUAL, SHAPE_FUNCTIONS, shape_bounds

X_TO_Y = Family("y", frozenset("x"))


def test_answers_of_different_numbers_of_rows_are_weighed_by_their_own():
    """A client may answer about constant size, and be silent when asked about varying size."""
    score = score_of(split_rows(varying_size_pair(0), 2))
    score([X_TO_Y])
    form = score.record.families[X_TO_Y][0]
    plain, sized = (add_clients(score.record.answers[query]) for query in (form.plain, form.sized))
    only = score.record.answers[form.plain]["site0"]
    weigh = lambda *answers: dict(zip((one.query for one in answers), shape_factors(answers), strict=True))  # noqa: E731
    (mixed,) = noise_factors([form], weigh(only, sized))
    means = only.sums[:SHAPE_FUNCTIONS] / (GRID * only.rows) * shape_bounds()
    (alone,) = shape_evidence(ShapeMoments(means[None], np.array([only.mean_square]), np.array([float(only.rows)])))
    (both,) = noise_factors([form], weigh(plain, sized))
    assert noise_factors([form], weigh(only)) == pytest.approx([alone])
    assert mixed == pytest.approx(both, abs=10)  # the size decides, and its answer is the same


def test_factors_without_answers():
    score = score_of(split_rows(varying_size_pair(0), 1))
    score([X_TO_Y])
    form = score.record.families[X_TO_Y][0]
    assert noise_factors([form, AskedForm(curved=False, scored=False)], {}) == [NOT_ASKED, 0.0]


def test_a_product_is_weighed_by_the_residuals_that_it_leaves():
    """Smaller residuals are a gain in log likelihood, less what one more weight costs, and its price."""
    score, family = score_of(interacting_causes((500, 400))), Family("y", frozenset("ab"))
    score([family])
    form = score.record.families[family][0]
    answer = add_clients(score.record.answers[form.with_product])
    means = answer.sums[:SHAPE_FUNCTIONS] / (GRID * answer.rows) * shape_bounds()
    square = answer.sums[SHAPE_FUNCTIONS] / (GRID * answer.rows) * MAX_LARGE_RESIDUAL**2
    rows = float(answer.rows)
    (shape,) = shape_evidence(ShapeMoments(means[None], np.array([square]), np.array([rows])))
    gain = -rows / 2 * np.log(square - means[0] ** 2) - np.log(rows) / 2
    assert shape_factors([answer]) == pytest.approx([shape + gain], abs=1e-6)
    factors = {form.plain: 0.0, form.with_product: 50.0}
    assert noise_factors([form], factors) == pytest.approx([50.0 - PRODUCT_PRICE])
    assert noise_factors([form], {form.with_product: 50.0}) == [NOT_ASKED]


def test_rows_that_come_twice_and_count_half_weigh_as_once():
    score = score_of(split_rows(varying_size_pair(0), 2))
    score([X_TO_Y])
    form = score.record.families[X_TO_Y][0]
    for query in (form.plain, form.sized):
        answer = add_clients(score.record.answers[query])
        twice = replace(answer, sums=2 * answer.sums, rows=2 * answer.rows)
        assert shape_factors([twice], 0.5) == pytest.approx(shape_factors([answer]), abs=1e-6)
        assert shape_factors([twice]) != pytest.approx(shape_factors([answer]), abs=1)
