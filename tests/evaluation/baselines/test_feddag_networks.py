"""The mechanisms of FedDAG: gradients, precision, and what a mask hides."""

from __future__ import annotations

import numpy as np
import pytest
from feddag_cases import KINDS, mechanism_of, point, rows, steepest

from fedcdh.evaluation.baselines.feddag_networks import LinearMechanism, NetworkMechanism


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_of_mechanisms_are_those_of_their_loss(kind):
    mechanism = mechanism_of(kind)
    parameters, mask = point(mechanism)
    found = mechanism.slopes(parameters, mask)
    of_parameters = steepest(lambda p: mechanism.slopes(p, mask).loss, parameters)
    np.testing.assert_allclose(found.parameters, of_parameters, rtol=1e-5, atol=1e-7)
    off = ~np.identity(4, dtype=bool)
    of_mask = steepest(lambda m: mechanism.slopes(parameters, m).loss, mask)
    np.testing.assert_allclose(found.mask[off], of_mask[off], rtol=1e-5, atol=1e-7)


def test_single_precision_gives_the_slopes_of_double():
    double = mechanism_of("mlp")
    parameters, mask = point(double)
    single = NetworkMechanism(rows(), 3, 5).slopes(parameters.astype(np.float32), mask)
    assert single.parameters.dtype == np.float32
    np.testing.assert_allclose(single.parameters, double.slopes(parameters, mask).parameters, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_what_the_mask_hides_does_not_matter(kind):
    shown, hidden = rows(), rows()
    hidden[:, 2] += 5 * np.random.default_rng(9).standard_normal(len(hidden))
    build = LinearMechanism if kind == "linear" else lambda table: NetworkMechanism(table, 3, 5, np.float64)
    first, second = build(shown), build(hidden)
    parameters, mask = point(first)
    mask[2] = 0
    mine, other = (found.slopes(parameters, mask).parameters for found in (first, second))
    if kind == "mlp":  # the first layer has networks × width × inputs
        mine, other = (part[: 4 * 5 * 4].reshape(4, 5, 4) for part in (mine, other))
        np.testing.assert_allclose(mine[[0, 1, 3]], other[[0, 1, 3]])
        assert not np.allclose(mine[2], other[2])
    else:
        mine, other = mine.reshape(4, 4), other.reshape(4, 4)
        np.testing.assert_allclose(mine[:, [0, 1, 3]], other[:, [0, 1, 3]])
        assert not np.allclose(mine[:, 2], other[:, 2])
