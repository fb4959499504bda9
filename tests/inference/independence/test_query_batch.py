"""Queries as arrays are those that were asked."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.inference.independence.query_batch import QueryBatch
from fedcdh.protocols import DOMAIN, Query

names = st.sampled_from("abcdef")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(names, names, st.frozensets(st.sampled_from([*"abcdef", DOMAIN]), max_size=4)), min_size=1))
def test_questions_as_numbers_are_those_asked(asked):
    questions = [Query(x, y, given_) for x, y, given_ in asked]
    order = [*"abcdef", DOMAIN]
    found = QueryBatch.of(questions, "abcdef")
    positions = np.arange(len(questions))[::2]
    for some, chosen in ((found, questions), (found.part(positions), questions[::2])):
        told = zip(some.x, some.y, some.given, some.within[some.which], strict=True)
        for question, (x, y, members, within) in zip(chosen, told, strict=True):
            assert (order[x], order[y], within) == (question.x, question.y, DOMAIN in question.given)
            assert {order[number] for number in members} - {DOMAIN} == question.given - {DOMAIN}
