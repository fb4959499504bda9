"""The text of a policy: an outdated key names its successor."""

from __future__ import annotations

import pytest

from fedcdh.errors import SettingsError
from fedcdh.privacy.disclosure._policy_file import RENAMED_KEYS
from fedcdh.privacy.disclosure.policy import Policy


def test_every_outdated_key_names_a_key_of_today():
    for old, new in RENAMED_KEYS.items():
        with pytest.raises(SettingsError, match=f"has the key '{old}' of an earlier version.*expected '{new}'"):
            Policy.from_toml(f"{old} = 1")
        assert hasattr(Policy(), new), new


def test_the_opposite_of_research_is_said():
    with pytest.raises(SettingsError, match="write disclosure_control = false for research = true"):
        Policy.from_toml("research = true")
    assert Policy.from_toml("disclosure_control = false") == Policy(disclosure_control=False)
