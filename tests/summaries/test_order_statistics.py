"""Order statistics are those of sorting, however little is kept."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.summaries import _order_statistics
from fedcdh.summaries._order_statistics import RankSelection

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


ordinary = st.one_of(finite, st.floats(-100, 100), st.integers(-3, 3).map(float), st.sampled_from([0.0, -0.0, 1e-320]))


cuts = st.lists(st.integers(0, 40), max_size=5)


def parts(items, places) -> list:
    edges = sorted({0, len(items), *(min(place, len(items)) for place in places)})
    return [items[a:b] for a, b in pairwise(edges)] or [items]


@settings(deadline=None)
@given(st.lists(ordinary, min_size=1, max_size=40), cuts, st.sampled_from([0, 1, 3, 1000]))
def test_ranks_are_those_of_sorting_however_little_is_kept(numbers, places, kept):
    ranks = sorted({0, len(numbers) // 3, len(numbers) // 2, len(numbers) - 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_order_statistics, "MAX_BUFFERED_VALUES", kept)
        selection, found, passes = RankSelection(), None, 0
        while found is None:
            for part in parts(np.array(numbers), places):
                selection.add(part)
            found, passes = selection.narrow(ranks), passes + 1
    assert passes <= 6
    assert found == {rank: sorted(numbers)[rank] for rank in ranks}
