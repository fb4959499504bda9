"""The record adds up answers of all clients, and names what was left out."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import SummaryError
from fedcdh.inference.evidence.residual_record import ResidualRecord, add_clients
from fedcdh.summaries.residuals import ResidualQuery, ResidualSums

QUERY = ResidualQuery("y", (), "ties", (), (), 1.0)


def test_the_record_names_regressions_beyond_the_limits():
    assert str(ResidualRecord({}, {}, rounds=1, entries=0, left_out=2)).endswith(
        "2 further regressions were beyond the limits"
    )


def test_answers_of_all_clients_are_added_whatever_their_order():
    answers = {name: ResidualSums(QUERY, rows, np.array([rows])) for name, rows in (("south", 3), ("north", 5))}
    assert add_clients(answers) == add_clients(dict(reversed(answers.items()))) == ResidualSums(QUERY, 8, np.array([8]))


def test_answers_to_different_queries_are_not_added():
    other = ResidualQuery("x", (), "ties", (), (), 1.0)
    answers = {"north": ResidualSums(QUERY, 5, np.array([5])), "south": ResidualSums(other, 3, np.array([3]))}
    with pytest.raises(SummaryError, match="different regressions"):
        add_clients(answers)
