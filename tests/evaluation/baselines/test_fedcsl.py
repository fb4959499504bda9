"""FedCSL: weights, numbers of neighbours, asymmetric pairs and directions."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider

from fedcdh.evaluation.baselines.fedcsl import run_fedcsl, select_skeleton
from fedcdh.evaluation.baselines.interface import Traffic


def candidates(*clients):
    """Build the array (client, variable, candidate) from texts such as "0:12 1:0"."""
    found = np.zeros((len(clients), 4, 4), dtype=np.bool_)
    for k, text in enumerate(clients):
        for part in text.split():
            target, others = part.split(":")
            found[k, int(target), [int(other) for other in others]] = True
    return found


def edges(matrix):
    assert (matrix == matrix.T).all()
    return {(i, j) for i, j in np.argwhere(np.triu(matrix)).tolist()}


def test_fedcsl_finds_a_collider():
    assert run_fedcsl(collider(), NAMES).graph.arrows == TRUE


def test_what_is_sent():
    """Candidates and a weight up, the skeleton down, a matrix of marks up."""
    assert run_fedcsl(collider(), NAMES).traffic == Traffic(3 * 3, 3 * (16 + 8 + 16), 3, 3 * 16)


def test_clients_who_agree_have_their_skeleton():
    agreed = "0:1 1:02 2:1"
    assert edges(select_skeleton(candidates(agreed, agreed), np.array([0.4, 0.9]))) == {(0, 1), (1, 2)}


@pytest.mark.parametrize(("weights", "expected"), [((1, 1, 1), {(0, 1)}), ((3, 1, 1), {(0, 1), (0, 2)})])
def test_the_number_of_neighbours_has_the_largest_weight(weights, expected):
    candidate_sets = candidates("0:12 1:0 2:0", "0:1 1:0", "0:1 1:0")
    assert edges(select_skeleton(candidate_sets, np.array(weights, dtype=float))) == expected


@pytest.mark.parametrize(("weights", "kept"), [((1, 3, 1), False), ((3, 1, 1), True), ((1, 1, 9), True)])
def test_an_asymmetric_pair_is_settled_by_clients_with_one_mind(weights, kept):
    """The third client has 1 beside 0, but not 0 beside 1; it makes the pair asymmetric and has no vote on it."""
    candidate_sets = candidates("0:1 1:0", "", "0:1 1:2 2:1")
    found = select_skeleton(candidate_sets, np.array(weights, dtype=float))
    if weights == (1, 3, 1):
        candidate_sets = candidates("0:1 1:0", "1:2 2:1", "0:1 1:2 2:1")
        found = select_skeleton(candidate_sets, np.array([1.0, 1.5, 1.0]))
    assert ((0, 1) in edges(found)) == kept


def test_a_client_of_noise_weighs_less():
    """Tests of independent variables have p-values all over the range; those of strong dependence are all decided."""
    from fedcdh.evaluation.baselines.fedcsl import _find_own_candidates
    from fedcdh.evaluation.baselines.local_structure import NumberRows

    draw = np.random.default_rng(2)
    noise = draw.standard_normal((200, 4))
    strong = noise[:, :1] + 0.3 * draw.standard_normal((200, 4))
    weak, firm = (float(_find_own_candidates(NumberRows(rows), 4, 0.01)[1]) for rows in (noise, strong))
    assert firm == pytest.approx(1.0, abs=1e-6)
    assert weak < 0.8
