"""Dataclasses as JSON objects: every field comes back with its type, or the object is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.messages._fields import fields_to_document, restore_fields
from fedcdh.summaries.residuals import ResidualQuery

NUMBERS = st.floats(-5, 5)


@given(NUMBERS, st.floats(0.1, 5), st.booleans(), st.lists(NUMBERS, max_size=3).map(tuple))
def test_fields_come_back_as_they_were(weight, deviation, differs, size):
    query = ResidualQuery("y", ("x",), "shape", (weight,), (1,), deviation, differs, size=size)
    assert restore_fields(ResidualQuery, json.loads(json.dumps(fields_to_document(query)))) == query


@pytest.mark.parametrize(
    "change", [{"deviation": 1}, {"differs": 1}, {"weights": 0.5}, {"weights": ["a"]}, {"more": 1}, {"node": None}]
)
def test_other_fields_and_types_are_refused(change):
    document = fields_to_document(ResidualQuery("y", (), "shape", (), (), 1.0))
    with pytest.raises(TypeError):
        restore_fields(ResidualQuery, document | change)
    with pytest.raises(TypeError):
        restore_fields(ResidualQuery, [*document])
