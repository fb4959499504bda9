"""The unlogged laboratory value: the study is what it states, and only one column differs between its two forms."""

from __future__ import annotations

import numpy as np

from benchmarks.bench_unlogged import EDGES, LABELS, LOG_SPREAD, NAMES, SITES, draw, main


def test_a_study_has_the_stated_sites_variables_edges_and_changes():
    for seed in range(20):
        study = draw(seed).logged
        assert {site: len(table["age"]) for site, table in study.tables.items()} == SITES
        assert set(study.names) == set(NAMES)
        assert len(study.arrows) == EDGES
        assert len(study.changing) == 2
        assert not study.changing & LABELS


def test_arrows_follow_the_causal_order():
    for seed in range(20):
        for tail, head in draw(seed).logged.arrows:
            assert NAMES.index(tail) < NAMES.index(head)


def test_only_the_laboratory_value_differs_and_its_logarithm_is_a_line():
    for seed in range(10):
        study = draw(seed)
        logged, unlogged = (
            np.concatenate([table[study.laboratory] for table in one.tables.values()])
            for one in (study.logged, study.unlogged)
        )
        assert abs(np.log(unlogged).std() - LOG_SPREAD) < 1e-9
        assert abs(np.corrcoef(np.log(unlogged), logged)[0, 1] - 1) < 1e-9
        for site, table in study.logged.tables.items():
            for name in set(NAMES) - {study.laboratory}:
                assert np.array_equal(table[name], study.unlogged.tables[site][name])


def test_a_seed_has_one_study():
    first, second = draw(4), draw(4)
    assert first.laboratory == second.laboratory
    for site, table in first.unlogged.tables.items():
        for name, column in table.items():
            assert np.array_equal(column, second.unlogged.tables[site][name])


def test_it_prints_both_forms_of_every_program(capsys):
    main(["--seeds", "0:1", "--workers", "1", "--programs", "constraint"])
    printed = capsys.readouterr().out
    assert "constraint, logged" in printed
    assert "constraint, unlogged" in printed
    for bends in ("mild", "clear"):
        assert f"{bends} bends, 6 edges, seeds 0:1" in printed
