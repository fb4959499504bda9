"""Partial correlations with subjects as observations."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bench_rows_in_time import SERIES, load, main, separate, subject_correlations
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, available_studies


def chains(subjects=30, rows=200, direct=0.0):
    """Return x → y → z at every subject, with a direct effect of x on z."""
    parts = []
    for subject in range(subjects):
        x, e, f = np.random.default_rng(subject).standard_normal((3, rows))
        y = x + e
        parts.append(np.stack([x, y, y + direct * x + f]))
    columns = dict(zip("xyz", np.concatenate(parts, axis=1), strict=True))
    return columns | {DOMAIN_COLUMN: np.repeat([f"s{subject:02}" for subject in range(subjects)], rows)}


def test_a_chain_is_separated_by_its_middle():
    names, correlations = subject_correlations(chains(), 3)
    assert correlations.shape == (30, 3, 3)
    found = separate(names, correlations, frozenset("xz"))
    assert found.given == ("y",)
    assert abs(found.t) < 3


def test_a_direct_effect_is_not_separated():
    assert abs(separate(*subject_correlations(chains(direct=0.3), 3), frozenset("xz")).t) > 8


def test_domains_of_a_subject_are_one_observation():
    columns = chains(subjects=6)
    columns[DOMAIN_COLUMN] = np.array([{"s00": "p1L", "s01": "p1R"}.get(name, name) for name in columns[DOMAIN_COLUMN]])
    assert len(subject_correlations(columns, 2)[1]) == 2


def test_simulated_scans_have_no_false_edges(capsys):
    name = "fmri_sim_net5"
    if not list(available_studies([name], lambda text: None)):
        pytest.skip("the data of fmri_sim_net5 are not here (FEDCDH_SHARED names the folder that holds data/)")
    assert len(load(SERIES[0])[1]) == 4
    main(["--studies", name])
    assert "4 found, 0 false" in capsys.readouterr().out
