"""The rules of a policy in words, and how each compares with the default.

A policy may come from a place that others can write to. What it says is then followed only where it is nowhere looser
than the default, so every setting needs an order: which of two values lets more leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import MIN_CELL_COUNT, MIN_ROWS

Comparison = Literal["default", "stricter", "looser", "depends on the plan"]

_SMALLER_IS_STRICTER = frozenset(
    (
        "max_rms_distance",
        "max_leverage",
        "max_feature_columns",
        "waive_counts_below_epsilon",
        "epsilon_budget",
        "max_delta",
        "max_group_leverage",
        "max_scale_ratio",
        "max_sums_per_row_and_column",
        "max_coarse_sums_per_number",
        "max_residual_rms",
        "max_coordinate_rms",
    )
)
_LARGER_IS_STRICTER = frozenset(
    ("disclosure_control", "max_discrete_values", "min_threshold_share", "min_sum_sites", "min_group_sites")
)
_NARROWER_IS_STRICTER = frozenset(("allowed_variables", "excluded_variables", "plans", "coordinator_keys"))
"""Lists: naming anything in them lets less leave than the default, which names nothing."""
_FLOOR_OF_PLANS: Mapping[str, int] = {"min_rows": MIN_ROWS, "min_cell_count": MIN_CELL_COUNT}
"""Settings whose default is what the plan needs, with the least that any plan needs."""


@dataclass(frozen=True)
class PolicyRule:
    """One setting of a policy.

    Parameters
    ----------
    setting : str
        Name of the setting in policy.toml.
    value : object
        Its value.
    comparison : {"default", "stricter", "looser", "depends on the plan"}
        How the value compares with the default.
    sentence : str
        What the rule says, with its value.

    Examples
    --------
    >>> rule = describe_policy(Policy(max_leverage=0.9))[8]
    >>> rule.comparison, rule.sentence
    ('stricter', 'No row has a leverage above 0.9.')
    """

    setting: str
    value: object
    comparison: Comparison
    sentence: str


def describe_policy(policy: Policy) -> tuple[PolicyRule, ...]:
    """Return every rule of a policy in one sentence, in the order of the settings.

    Parameters
    ----------
    policy : Policy
        The policy.

    Returns
    -------
    tuple of PolicyRule
        One rule for each setting.

    Examples
    --------
    >>> describe_policy(Policy())[0].sentence
    'A summary has at least as many rows as its plan needs (100 or more), and a profile has at least 100.'
    """
    names = [field.name for field in fields(policy)]
    return tuple(
        PolicyRule(name, getattr(policy, name), _compare_with_default(policy, name), _describe_setting(policy, name))
        for name in names
    )


def find_looser_rules(policy: Policy) -> tuple[PolicyRule, ...]:
    """Return the rules that let more leave than the default, for some plan at least.

    Parameters
    ----------
    policy : Policy
        The policy.

    Returns
    -------
    tuple of PolicyRule
        The rules; none if the policy is at least as strict as the default in every setting.

    Examples
    --------
    >>> [rule.setting for rule in find_looser_rules(Policy(min_rows=10, max_leverage=0.9))]
    ['min_rows']
    """
    return tuple(rule for rule in describe_policy(policy) if rule.comparison not in ("default", "stricter"))


def _compare_with_default(policy: Policy, name: str) -> Comparison:
    value, default = getattr(policy, name), getattr(Policy(), name)
    if value == default:
        return "default"
    if name in _FLOOR_OF_PLANS:
        # A plan may need more than any number, so a number is never certainly stricter than "what the plan needs".
        return "looser" if value <= _FLOOR_OF_PLANS[name] else "depends on the plan"
    if name == "delta_budget":  # the default falls with the rows, so any number is looser for some table
        return "depends on the plan" if value else "stricter"
    if name == "unsigned_plans":
        return "looser" if value == "accept" and policy.coordinator_keys else "default"
    if name in _NARROWER_IS_STRICTER:
        return "stricter"
    if name in _SMALLER_IS_STRICTER:
        return "stricter" if value < default else "looser"
    if name in _LARGER_IS_STRICTER:
        return "stricter" if value > default else "looser"
    return "looser"  # a setting without an order here must not pass for a strict one


def _describe_setting(policy: Policy, name: str) -> str:
    value = getattr(policy, name)
    if name in _LIST_SENTENCES:
        unset, given = _LIST_SENTENCES[name]
        return unset if value == getattr(Policy(), name) else given.format(", ".join(sorted(value)) or "none")
    if name in _SENTENCES:
        return _SENTENCES[name](value)
    return f"The setting {name} is {value}."


_LIST_SENTENCES: Mapping[str, tuple[str, str]] = {
    "allowed_variables": ("Every variable may leave that is not excluded.", "Only these variables may leave: {}."),
    "excluded_variables": ("No variable is excluded.", "These variables never leave: {}."),
    "plans": ("Every plan is accepted.", "Only plans with these fingerprints are accepted: {}."),
    "coordinator_keys": ("A plan needs no signature.", "A plan has to be signed by one of these keys: {}."),
}
"""The sentence of a list that names nothing, and of one that names something."""


def _describe_rows(value: int | None) -> str:
    if value is not None:
        return f"A summary and a profile have at least {value} rows, whatever the plan needs."
    return (
        f"A summary has at least as many rows as its plan needs ({MIN_ROWS} or more), and a profile has at least "
        f"{MIN_ROWS}."
    )


def _describe_cells(value: int | None) -> str:
    rare = "a level of fewer people is merged, and a smaller count of a pair of levels is rounded."
    if value is not None:
        return f"At least {value} people share each level and each pair of levels, whatever the plan needs; {rare}"
    return f"As many people as the plan needs ({MIN_CELL_COUNT} or more) share each level; {rare}"


def _describe_deltas(value: float | None) -> str:
    limit = "a tenth of one over the rows" if value is None else f"{value:g}"
    return f"The deltas of all noisy summaries add up to at most {limit}."


def _describe_unsigned(value: str | None) -> str:
    if value == "accept":
        return "A plan without one of these signatures is accepted all the same."
    return "Where keys of coordinators are named, a plan without one of their signatures is refused."


def _describe_control(value: bool) -> str:
    return "All limits are enforced." if value else "No limit is enforced; lists and units are checked all the same."


def _describe_waiver(value: float) -> str:
    if not value:
        return "Noise never replaces the limits on rows, cells and leverage."
    return f"Noise of an epsilon up to {value:g} replaces the limits on rows, cells and leverage."


def _describe_group(value: int) -> str:
    if value <= 1:
        return "A secure sum may open the rows, means and standard deviations of this site by itself."
    return f"A secure sum opens rows, means and standard deviations only of groups of at least {value} sites."


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "min_rows": _describe_rows,
    "min_cell_count": _describe_cells,
    "unsigned_plans": _describe_unsigned,
    "max_rms_distance": "Values lie within {:g} scales of the plan's location, in root mean square.".format,
    "max_leverage": "No row has a leverage above {:g}.".format,
    "disclosure_control": _describe_control,
    "max_discrete_values": "A continuous variable of at most {} different values is counted like levels.".format,
    "max_feature_columns": "A continuous variable has at most {} feature columns.".format,
    "waive_counts_below_epsilon": _describe_waiver,
    "epsilon_budget": "The epsilons of all noisy summaries add up to at most {:g}.".format,
    "max_delta": "A noisy summary has a delta of at most {:g}.".format,
    "delta_budget": _describe_deltas,
    "max_group_leverage": (
        "No group of 3 people or more, but fewer than share a level, has a leverage above {:g}.".format
    ),
    "max_scale_ratio": "The plan's scale is at most {:g} standard deviations of the variable at this site.".format,
    "max_sums_per_row_and_column": "All messages hold at most {:g} sums per row about one column.".format,
    "max_coarse_sums_per_number": (
        "Coarse sums about a column are at most {:g} times as many as the summary's numbers about it.".format
    ),
    "max_residual_rms": "Residuals in a request have a root mean square of at most {:g}.".format,
    "max_coordinate_rms": "Coordinates in a request have a root mean square of at most {:g}.".format,
    "min_threshold_share": "At least a share of {:g} of all sites must help to open a secure sum.".format,
    "min_sum_sites": "A secure sum is of at least {} sites.".format,
    "min_group_sites": _describe_group,
}

_EXAMPLES: Mapping[str, str] = {
    "min_rows": "300",
    "min_cell_count": "15",
    "allowed_variables": '["age", "bmi"]',
    "excluded_variables": '["postcode"]',
    "plans": '["3f786850e387"]',
    "coordinator_keys": '["ed25519:..."]',
    "unsigned_plans": '"refuse"',
    "delta_budget": "1e-6",
}
"""Examples of values where the default names nothing."""


def policy_template() -> str:
    """Return a policy.toml that changes nothing: every setting with its default, behind a comment sign.

    Returns
    -------
    str
        TOML that reads as the default policy.

    Examples
    --------
    >>> Policy.from_toml(policy_template()) == Policy()
    True
    """
    lines = [
        "# The policy of this site: what may leave it. Nobody but this site can change it.",
        "# Every setting below has its default. To change one, remove the # before it and write another value.",
        "# `fedcdh policy show` prints the policy in force; docs/command-line.md gives the reason for each rule.",
    ]
    for rule in describe_policy(Policy()):
        written = _EXAMPLES.get(rule.setting)
        shown = _to_toml(rule.value) if written is None else f"{written}  # for example"
        lines += ["", f"# {rule.sentence}", f"# {rule.setting} = {shown}"]
    return "\n".join(lines) + "\n"


def _to_toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
