"""The settings of a policy, and the limits and lists that follow from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from fedcdh._io.strict_toml import abbreviate
from fedcdh._io.text import is_key, suggest_name
from fedcdh.privacy.disclosure._policy_file import policy_error
from fedcdh.privacy.disclosure.group_leverage import MAX_GROUP_LEVERAGE, GroupLimits
from fedcdh.privacy.disclosure.residual_counts import MAX_COARSE_SUMS_PER_NUMBER, MAX_SUMS_PER_ROW_AND_COLUMN
from fedcdh.privacy.disclosure.residual_risk import MAX_COORDINATE_RMS, MAX_RESIDUAL_RMS
from fedcdh.privacy.disclosure.scale_bounds import MAX_SCALE_RATIO
from fedcdh.privacy.disclosure.thresholds import (
    MIN_CELL_COUNT,
    MIN_PAIR_COUNT,
    MIN_ROWS,
    DifferencingLimits,
    required_cell_count,
    required_rows,
)
from fedcdh.privacy.secure_aggregation.limits import (
    MIN_GROUP_SITES,
    MIN_SUM_SITES,
    MIN_THRESHOLD_SHARE,
    SecureSumLimits,
)
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.plan import StudyPlan

MAX_WAIVER_EPSILON = 2.0
"""With a larger epsilon, noise never replaces the limits on counts, whatever a policy says."""
_ASK_FIRST = "after asking the person responsible for data protection"
_ROWS_PER_DELTA = 10
"""By default, all deltas together times the rows are at most the inverse of this."""
_POSITIVE_SETTINGS = (
    "epsilon_budget",
    "max_delta",
    "max_rms_distance",
    "max_scale_ratio",
    "max_sums_per_row_and_column",
    "max_coarse_sums_per_number",
    "max_residual_rms",
    "max_coordinate_rms",
    "min_sum_sites",
    "min_group_sites",
)


@dataclass(frozen=True)
class PolicySettings:
    """The settings of a `Policy`, which documents them."""

    min_rows: int | None = None
    min_cell_count: int | None = None
    allowed_variables: frozenset[str] | None = None
    excluded_variables: frozenset[str] = frozenset()
    plans: frozenset[str] | None = None
    coordinator_keys: frozenset[str] = frozenset()
    unsigned_plans: Literal["accept", "refuse"] | None = None
    max_rms_distance: float = 10.0
    max_leverage: float = 0.99
    disclosure_control: bool = True
    max_discrete_values: int = 20
    max_feature_columns: int = 16
    waive_counts_below_epsilon: float = 0.0
    epsilon_budget: float = 8.0
    max_delta: float = 1e-5
    delta_budget: float | None = None
    max_sums_per_row_and_column: float = MAX_SUMS_PER_ROW_AND_COLUMN
    max_coarse_sums_per_number: float = MAX_COARSE_SUMS_PER_NUMBER
    max_residual_rms: float = MAX_RESIDUAL_RMS
    max_coordinate_rms: float = MAX_COORDINATE_RMS
    min_threshold_share: float = MIN_THRESHOLD_SHARE
    min_sum_sites: int = MIN_SUM_SITES
    min_group_sites: int = MIN_GROUP_SITES
    max_group_leverage: float = MAX_GROUP_LEVERAGE
    max_scale_ratio: float = MAX_SCALE_RATIO

    def __post_init__(self) -> None:
        for key in sorted(self.coordinator_keys):
            if not is_key(key):
                raise policy_error(
                    f'coordinator_keys has {abbreviate(key)}, expected "ed25519:" and 32 bytes in base64'
                )
        for plan in sorted(self.plans or ()):
            if not re.fullmatch("[0-9a-f]{12,64}", plan):
                raise policy_error(
                    f"plans has {abbreviate(plan)}, expected fingerprints, or at least 12 digits of them"
                )
        if self.unsigned_plans not in ("accept", "refuse", None):
            raise policy_error(f'unsigned_plans is {abbreviate(self.unsigned_plans)}, expected "accept" or "refuse"')
        if self.unsigned_plans == "refuse" and not self.coordinator_keys:
            raise policy_error("it refuses unsigned plans, but names no coordinator_keys that could sign one")
        for name in ("max_leverage", "max_group_leverage"):
            if not 0 < getattr(self, name) <= 1:
                raise policy_error(
                    f"{name} is {abbreviate(getattr(self, name))}, expected a number above 0 and up to 1"
                )
        if not 0 <= self.waive_counts_below_epsilon <= MAX_WAIVER_EPSILON:
            found = abbreviate(self.waive_counts_below_epsilon)
            raise policy_error(
                f"waive_counts_below_epsilon is {found}, expected an epsilon from 0 to {MAX_WAIVER_EPSILON:g}"
            )
        if not 0.5 <= self.min_threshold_share <= 1:
            found = abbreviate(self.min_threshold_share)
            raise policy_error(f"min_threshold_share is {found}, expected a share from 0.5 to 1")
        for name in _POSITIVE_SETTINGS:
            if not getattr(self, name) > 0:
                raise policy_error(f"{name} is {abbreviate(getattr(self, name))}, expected a positive number")
        if self.delta_budget is not None and not self.delta_budget > 0:
            raise policy_error(f"delta_budget is {abbreviate(self.delta_budget)}, expected a positive number")

    def leverage_limit(self, replicates: int = 0) -> float:
        """Return the largest leverage of a row where bootstrap replicates leave with the summary.

        The replicates multiply the odds of the leverage. Without replicates the limit is `max_leverage` itself.

        Parameters
        ----------
        replicates : int, default 0
            Number of bootstrap replicates.

        Returns
        -------
        float
            A leverage.

        Examples
        --------
        >>> round(PolicySettings(max_leverage=0.9).leverage_limit(replicates=8), 6)
        0.5
        """
        if not replicates:
            return self.max_leverage
        return self.max_leverage / (self.max_leverage + (replicates + 1) * (1 - self.max_leverage))

    def delta_limit(self, rows: int) -> float:
        """Return the largest sum of the deltas of all noisy summaries.

        Delta is the probability with which a mechanism may fail to protect a row. So among n rows, delta times n rows
        may be expected to be unprotected. By default that is at most a tenth of a row.

        Parameters
        ----------
        rows : int
            Largest number of rows of a noisy summary.

        Returns
        -------
        float
            The `delta_budget`, or 1/(10 n).

        Examples
        --------
        >>> PolicySettings().delta_limit(2000)
        5e-05
        """
        return 1 / (_ROWS_PER_DELTA * max(rows, 1)) if self.delta_budget is None else self.delta_budget

    def group_limits(self, plan: StudyPlan, replicates: int = 0) -> GroupLimits:
        """Return the limits for groups of fewer people than the minimum cell count.

        Parameters
        ----------
        plan : StudyPlan
            The plan of the summary.
        replicates : int, default 0
            Number of bootstrap replicates that leave with the summary. They raise the minimum cell count.

        Returns
        -------
        GroupLimits
            The limits.
        """
        people = self._min_cell_count(plan) * (replicates + 1) - 1
        return GroupLimits(self.max_group_leverage, self.max_leverage, people, replicates)

    def differencing_limits(self, plan: StudyPlan | None = None) -> DifferencingLimits:
        """Return the limits for a release beside earlier ones.

        Parameters
        ----------
        plan : StudyPlan, optional
            The plan of the release. Default: the limits of a profile.

        Returns
        -------
        DifferencingLimits
            The limits.
        """
        strictness = 1.0
        if plan is not None and self.min_rows is not None:
            strictness = self.min_rows / required_rows(plan)
        cell_count, profile_rows = self._min_cell_count(plan), self._min_cell_count(None)
        return DifferencingLimits(self._min_rows(plan), cell_count, profile_rows, strictness)

    def secure_sum_limits(self) -> SecureSumLimits:
        """Return what the site asks of the terms of a secure sum.

        Returns
        -------
        SecureSumLimits
            The limits.
        """
        return SecureSumLimits(self.min_threshold_share, self.min_sum_sites, self.min_group_sites)

    def _is_waived(self, noise: DPParameters | None) -> bool:
        """Return whether the policy lets this noise replace its limits on counts and leverage."""
        return noise is not None and not noise.distributed and noise.epsilon <= self.waive_counts_below_epsilon

    def _min_rows(self, plan: StudyPlan | None) -> int:
        if self.min_rows is not None:
            return self.min_rows
        return MIN_ROWS if plan is None else required_rows(plan)

    def _min_cell_count(self, plan: StudyPlan | None) -> int:
        if self.min_cell_count is not None:
            return self.min_cell_count
        return MIN_CELL_COUNT if plan is None else required_cell_count(plan)

    def _check_noise_of_rows(self, noise: DPParameters, rows: int) -> Iterator[str]:
        yield from self._check_noise(noise)
        if noise.delta > self.delta_limit(rows):
            yield (
                f"the noise has a delta of {noise.delta:g}, expected at most {self.delta_limit(rows):g} for {rows} "
                "rows: the noise may fail to protect as many people as delta times the rows; ask the coordinator for a "
                f"smaller delta, or set delta_budget in policy.toml, {_ASK_FIRST}"
            )
        if noise.epsilon > self.epsilon_budget:
            yield (
                f"the noise has an epsilon of {noise.epsilon:g}, expected at most {self.epsilon_budget:g} for all "
                f"noisy summaries together; ask the coordinator for a smaller one, or raise epsilon_budget in "
                f"policy.toml, {_ASK_FIRST}"
            )

    def _check_noise(self, noise: DPParameters | None) -> Iterator[str]:
        if noise is not None and noise.delta > self.max_delta:
            yield (
                f"the plan has noise with a delta of {noise.delta:g}, expected at most {self.max_delta:g}: with that "
                "probability the noise may fail to protect a person; ask the coordinator for a smaller delta (1e-6 is "
                "usual), or "
                f"raise max_delta in policy.toml, {_ASK_FIRST}"
            )

    def _min_pair_count(self, replicates: int = 0, plan: StudyPlan | None = None) -> int:
        """Return the fewest people with two levels whose number leaves exactly.

        Replicates are further counts of the same people, and are not rounded: the limits of levels hold for pairs then.
        """
        if replicates:
            return self._min_cell_count(plan) * (replicates + 1)
        return MIN_PAIR_COUNT if self.min_cell_count is None else self.min_cell_count

    def _check_lists(self, names: Iterable[str], local_names: Mapping[str, str]) -> Iterator[str]:
        """Check the site's own column names, so that renaming a column does not evade the lists."""
        for name in names:
            column = local_names.get(name, name)
            called = repr(name) if column == name else f"{name!r} (here {column!r})"
            if {name, column} & self.excluded_variables:
                yield (
                    f"variable {called} is among the excluded_variables of the policy; leave it out of the study, or "
                    "leave this site out"
                )
            elif self.allowed_variables is not None and column not in self.allowed_variables:
                near = suggest_name(column, self.allowed_variables)
                yield (
                    f"variable {called} is not among the allowed_variables of the policy{near}; leave it out, or add "
                    "it there"
                )

    def _check_origin(self, plan: StudyPlan, signed_by: str | None) -> Iterator[str]:
        if self.plans is not None and not any(map(plan.fingerprint.startswith, self.plans)):
            yield (
                f"the plan's fingerprint is {plan.fingerprint[:12]}, which the policy does not accept; compare it with "
                "the coordinator's, and add it to plans in policy.toml"
            )
        yield from self._check_signer("plan", signed_by)

    def _check_signer(self, what: str, signed_by: str | None) -> Iterator[str]:
        if self.coordinator_keys and self.unsigned_plans != "accept" and signed_by not in self.coordinator_keys:
            found = "is not signed" if signed_by is None else f"is signed by the key {signed_by!r}"
            yield f"the {what} {found}, expected one of the coordinator_keys; ask the coordinator for the signature"
