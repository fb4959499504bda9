"""The grid of noise shapes: its studies have the noise, the graph and the truth that they state."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bench_noise_shapes import judge
from benchmarks.noise_shapes.programs import PROGRAMS, Found, oracle_class
from fedcdh.evaluation.experiments.noise_shape_data import (
    EDGES,
    LABEL_SCORES,
    NOISES,
    SIZES,
    Cell,
    draw,
    further_cells,
    grid,
    special_cells,
)

CELLS = [*grid(("10 x 100",)), *special_cells(), *further_cells(), Cell("t5", "curved", "1 x 1000")]


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_mean_zero_and_variance_one(noise):
    values = NOISES[noise](np.random.default_rng(1), 200_000)
    assert abs(values.mean()) < 0.02
    assert abs(values.var() - 1) < 0.05


def test_a_seed_has_one_study_and_the_same_graph_in_every_cell_of_a_size():
    reference = draw(Cell(), 3)
    for cell in CELLS:
        study, again = draw(cell, 3), draw(cell, 3)
        assert study.arrows == again.arrows == reference.arrows, cell
        for client, table in study.tables.items():
            for name, column in table.items():
                assert np.array_equal(column, again.tables[client][name], equal_nan=column.dtype.kind == "f"), cell


def test_numbers_are_standardised_over_all_rows():
    for cell in grid(("10 x 100",)):
        rows = np.concatenate(list(draw(cell, 1).matrices().values()))
        assert np.allclose(rows.mean(0), 0, atol=1e-9), cell
        assert np.allclose(rows.std(0), 1), cell


def test_every_true_edge_is_counted_once():
    study = draw(Cell("exponential"), 2)
    reverse = Found(frozenset(arrow[::-1] for arrow in study.arrows))
    for found in (oracle_class(study), reverse, Found(frozenset()), Found(study.arrows)):
        counts = judge(study, found)
        assert sum(counts[outcome] for outcome in ("right", "reversed", "open", "missed")) == EDGES
    assert judge(study, Found(study.arrows))["right"] == EDGES
    assert judge(study, reverse)["reversed"] == EDGES


def test_the_class_of_the_truth_has_no_reversed_arrow():
    for seed in range(30):
        study = draw(Cell(), seed)
        counts = judge(study, oracle_class(study))
        assert counts["reversed"] == counts["missed"] == counts["extra"] == 0, seed


def test_by_file_small_sites_answer_with_coarse_sums_and_masks_with_exact_ones():
    study = draw(Cell("laplace", "linear", "10 x 300"), 701)
    by_file, summed = PROGRAMS["evidence, by file"](study), PROGRAMS["evidence, secure sum"](study)
    for found in (by_file, summed):
        assert found.sums > 0
        assert judge(study, found)["right"] > judge(study, PROGRAMS["evidence, one message"](study))["right"]


def test_the_sum_of_summaries_is_what_a_secure_sum_gives():
    study = draw(Cell("gaussian", "linear", "10 x 300"), 701)
    masked, plain = PROGRAMS["evidence, secure sum"](study), PROGRAMS["evidence, sum"](study)
    assert plain.arrows == masked.arrows
    assert plain.lines == masked.lines
    assert plain.changing == masked.changing


def test_further_cells_have_the_clients_rows_and_values_that_they_state():
    for cell in further_cells():
        study = draw(cell, 4)
        assert [len(table["v1"]) for table in study.tables.values()] == [SIZES[cell.size][1]] * SIZES[cell.size][0]
        columns = [np.concatenate([table[name] for table in study.tables.values()]) for name in study.names]
        labels = [column for column in columns if column.dtype.kind == "U"]
        numbers = np.concatenate([column for column in columns if column.dtype.kind == "f"])
        assert len(labels) == (4 if cell.special == "more labels" else 0), cell
        assert all(len(set(column)) == len(LABEL_SCORES) for column in labels), cell
        assert (len(set(numbers)) == 3) == (cell.special == "three levels"), cell
        assert np.isnan(numbers).mean() == pytest.approx(0.1 if cell.special == "missing 10 %" else 0, abs=0.02), cell


def test_values_differ_between_clients_in_further_cases_where_a_mechanism_changes():
    """A variable without parents that changes has another mean at each client."""
    for seed in range(20):
        study = draw(Cell(special="missing 10 %"), seed)
        for name in study.changing - {head for _, head in study.arrows}:
            means = [np.nanmean(table[name]) for table in study.tables.values()]
            assert np.std(means) > 0.2, (seed, name)
