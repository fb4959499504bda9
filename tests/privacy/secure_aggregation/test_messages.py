"""Messages cannot be changed."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from masked_studies import Room


def test_values_cannot_be_changed():
    terms = Room.of(3).terms()
    assert isinstance(terms.groups, MappingProxyType)
    with pytest.raises(AttributeError):
        terms.threshold = 2
