"""The text of a policy: TOML with one key for each limit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fedcdh._io.strict_toml import abbreviate, expect_integer, expect_number, expect_strings, expect_table, parse_toml
from fedcdh.errors import SettingsError

RENAMED_KEYS: Mapping[str, str] = {
    "smallest_rows": "min_rows",
    "smallest_level": "min_cell_count",
    "loneliest": "max_leverage",
    "farthest": "max_rms_distance",
    "widest": "max_feature_columns",
    "few_values": "max_discrete_values",
    "enough_noise": "waive_counts_below_epsilon",
    "most_epsilon": "epsilon_budget",
    "withheld": "excluded_variables",
    "variables": "allowed_variables",
    "research": "disclosure_control",
}
"""Keys of earlier versions of policy.toml, and what they are called now."""
_INTEGER_KEYS = (
    "min_rows",
    "min_cell_count",
    "max_discrete_values",
    "max_feature_columns",
    "min_sum_sites",
    "min_group_sites",
)
_NUMBER_KEYS = (
    "max_rms_distance",
    "max_leverage",
    "waive_counts_below_epsilon",
    "epsilon_budget",
    "max_delta",
    "delta_budget",
    "max_sums_per_row_and_column",
    "max_coarse_sums_per_number",
    "max_residual_rms",
    "max_coordinate_rms",
    "max_group_leverage",
    "max_scale_ratio",
    "min_threshold_share",
)


def parse_policy(text: str | bytes, known: Collection[str]) -> dict[str, Any]:
    """Return the settings in a TOML text by key; raise SettingsError for an unknown key or a wrong value."""
    found = parse_toml(text, refuse=policy_error)
    for key in found:
        if key in RENAMED_KEYS:
            raise policy_error(_describe_renamed(key))
    expect_table(found, known, "the policy", refuse=policy_error)
    return {key: _parse_setting(key, value) for key, value in found.items()}


def policy_error(reason: str) -> SettingsError:
    """Return the error that a policy cannot be used."""
    return SettingsError(f"The policy cannot be used: {reason}. Correct policy.toml")


def _describe_renamed(key: str) -> str:
    new = RENAMED_KEYS[key]
    if key == "research":
        return (
            "it has the key 'research' of an earlier version of fedcdh, expected 'disclosure_control' with the "
            "opposite meaning: write disclosure_control = false for research = true"
        )
    return f"it has the key {key!r} of an earlier version of fedcdh, expected {new!r}: rename the key"


def _parse_setting(key: str, value: Any) -> Any:
    if key in _INTEGER_KEYS:
        return expect_integer(value, key, refuse=policy_error)
    if key in _NUMBER_KEYS:
        return expect_number(value, key, refuse=policy_error)
    if key == "disclosure_control" and not isinstance(value, bool):
        raise policy_error(f"disclosure_control is {abbreviate(value)}, expected true or false")
    if key in ("disclosure_control", "unsigned_plans"):
        return value
    return frozenset(expect_strings(value, key, refuse=policy_error))
