"""The policy of a site: what may leave it. It is read, and it decides, where the data are.

The reasons for its rules (`docs/command-line.md` has the numbers): from the summary of too few rows, every row can be
computed. A level that few people have discloses their values, however many rows there are. And the coordinator who
writes the plan decides what is computed.

Bootstrap replicates are further messages about the same rows. The seed of the resampling never leaves, but weights that
are small integers might be solved for, so they count as known. The summary and its B replicates then release B + 1
times as many numbers about the same values, so the limits on rows and cell counts are multiplied by B + 1. Leverage
grows as well: with the weights w_b of a row, the columns w_b φ are further columns. In them the odds h/(1 − h) become
1 + Σ (w_b − 1)² times as large, on average B + 1 times, as long as many other rows lie in that direction. The limit is
applied to the average before rows are resampled, and by `check_replicates` to the weights that were drawn. Where few
other rows lie in that direction, a replicate may leave them out, so `check_replicate` checks each replicate as well.

A few people who share an extreme value are separated from all others as well as people with a level are, and so are
people whom rounding to the grid leaves with a value of their own. Groups of people are therefore held to a limit of
leverage as single rows are, and the plan's scale to a multiple of the site's own standard deviation.

A continuous variable of few different values (0 and 1, say) is categorical in all but name: its values are counted like
levels.

Two summaries of nearly the same rows differ by the rows that changed. A policy sees one message; earlier messages are
in the ledger of the site (`fedcdh.privacy.ledger`), whose limits come from here. The counts and levels in a refusal are
for the site only, and must not be forwarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from fedcdh._io.storage import read_regular_file
from fedcdh._runtime.array_types import Array
from fedcdh.errors import DisclosureError, PlanMismatchError
from fedcdh.privacy.disclosure._findings import feasible_replicates, raise_findings
from fedcdh.privacy.disclosure._policy_file import parse_policy
from fedcdh.privacy.disclosure._policy_settings import PolicySettings
from fedcdh.privacy.disclosure.group_leverage import GroupLeverage, check_groups
from fedcdh.privacy.disclosure.joint_risk import JointRisk
from fedcdh.privacy.disclosure.leverage import compute_leverages
from fedcdh.privacy.disclosure.rare_cells import RareLevel, coarsen_summary
from fedcdh.privacy.disclosure.residual_counts import (
    check_all_numbers,
    check_numbers_by_column,
    check_repetitions,
)
from fedcdh.privacy.disclosure.residual_risk import ResidualLimits
from fedcdh.privacy.disclosure.rules import (
    check_cell_counts,
    check_discrete_values,
    check_feature_resolution,
    check_leverage,
    check_location,
    check_profile_counts,
    describe_small_cell,
    describe_too_few_rows,
    find_small_variables,
)
from fedcdh.privacy.disclosure.scale_bounds import check_scales, scale_ratios
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.joint.request import VariableSet
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

MAX_POLICY_BYTES = 1 << 20
_DRAW_AGAIN_ADVICE = "run it again to resample afresh, or ask for fewer replicates"
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Policy(PolicySettings):
    """Limits and lists that a plan, a profile and a summary have to keep to.

    Parameters
    ----------
    min_rows : int, optional
        Smallest number of rows. Default: what the plan needs, see `required_rows`.
    min_cell_count : int, optional
        Fewest people who may share a level, and with a pair of levels whose number is sent exactly. Default: what the
        plan needs for a level, see `required_cell_count`, and 8 for a pair.
    allowed_variables : frozenset of str, optional
        The only columns that may leave. Default: any.
    excluded_variables : frozenset of str, default empty
        Columns that never leave.
    plans : frozenset of str, optional
        Fingerprints of accepted plans, or at least their first 12 digits. Default: any.
    coordinator_keys : frozenset of str, default empty
        Public keys that may sign a plan.
    unsigned_plans : {"accept", "refuse"}, optional
        Default: refuse as soon as there are `coordinator_keys`.
    max_rms_distance : float, default 10.0
        Largest root mean square distance from the plan's location, in scales; beyond it the units are doubted.
    max_leverage : float, default 0.99
        Largest leverage of a single row.
    disclosure_control : bool, default True
        Whether the limits are enforced. If not, messages say so; lists and the check of units hold in any case.
    max_discrete_values : int, default 20
        Continuous variables with at most this many different values are counted like categorical ones; 0 for none.
    max_feature_columns : int, default 16
        Largest number of feature columns of a continuous variable, besides its value and its square.
    waive_counts_below_epsilon : float, default 0.0
        Up to this epsilon, noise replaces the limits on rows, cells and leverage; 0 for never.
    epsilon_budget : float, default 8.0
        Largest sum of epsilons of all noisy summaries in the ledger.
    max_delta : float, default 1e-5
        Largest delta of a noisy summary.
    delta_budget : float, optional
        Largest sum of deltas of all noisy summaries in the ledger. Default: a tenth of one over the number of rows.
    max_sums_per_row_and_column : float, default 0.65
        Largest number of sums about one column in all messages, per row.
    max_coarse_sums_per_number : float, default 3.0
        Largest number of coarse sums about one column, per number of the summary about it.
    max_residual_rms : float, default 2.0
        Largest root mean square of the standardised residuals that sums are asked for.
    max_coordinate_rms : float, default 10.0
        Largest root mean square of the coordinates in a request about residuals.
    min_threshold_share : float, default 0.66
        Smallest threshold of a secure sum, as a share of all clients.
    min_sum_sites : int, default 3
        Fewest clients in a secure sum, this one included.
    min_group_sites : int, default 1
        Fewest clients whose rows, means and standard deviations a secure sum opens together.
    max_group_leverage : float, default 0.98
        Largest leverage of a group of 3 people or more, but fewer than the minimum cell count; 1 for no limit. For 2
        people it is `max_leverage`.
    max_scale_ratio : float, default 300.0
        Largest ratio of the plan's scale, or spread, to the standard deviation of a variable at the site.

    Raises
    ------
    SettingsError
        If a value is out of range.

    Examples
    --------
    >>> Policy.from_toml('excluded_variables = ["postcode"]').excluded_variables
    frozenset({'postcode'})
    """

    @classmethod
    def from_toml(cls, text: str | bytes) -> Policy:
        """Read a policy from TOML.

        Parameters
        ----------
        text : str or bytes
            One key for each limit that differs from the default.

        Returns
        -------
        Policy
            The policy.

        Raises
        ------
        SettingsError
            If a key is unknown or outdated, or a value is wrong.
        """
        return cls(**parse_policy(text, [field.name for field in fields(cls)]))

    @classmethod
    def from_file(cls, path: Path) -> Policy:
        """Read a policy from a file.

        Parameters
        ----------
        path : Path
            A policy.toml.

        Returns
        -------
        Policy
            The policy.

        Raises
        ------
        SettingsError
            If its content is no policy.
        """
        return cls.from_toml(read_regular_file(path, MAX_POLICY_BYTES, "a policy", refuse=DisclosureError))

    def check_plan(
        self, plan: StudyPlan, signed_by: str | None = None, local_names: Mapping[str, str] = _NO_NAMES
    ) -> None:
        """Refuse a plan before any rows are read.

        Parameters
        ----------
        plan : StudyPlan
            The plan that the client is asked to follow.
        signed_by : str, optional
            Public key whose signature was verified.
        local_names : mapping from str to str, optional
            From variables to the site's own column names, where these differ.

        Raises
        ------
        DisclosureError
            With one line for each finding.
        """
        always = [*self._check_lists(plan.names, local_names), *self._check_origin(plan, signed_by)]
        findings = chain(check_feature_resolution(plan, self.max_feature_columns), self._check_noise(plan.noise))
        raise_findings("This plan is not followed here", always, findings, self.disclosure_control)

    def check_noise(self, noise: DPParameters, rows: int) -> None:
        """Refuse noise that protects too little by itself, whatever left before.

        Parameters
        ----------
        noise : DPParameters
            Noise that the plan asks for.
        rows : int
            Exact number of rows.

        Raises
        ------
        DisclosureError
            If delta, or epsilon, is too large for these rows.
        """
        raise_findings(
            "This noisy summary must not leave", (), self._check_noise_of_rows(noise, rows), self.disclosure_control
        )

    def check_request(self, signed_by: str | None) -> None:
        """Refuse a request that comes before the plan, unless it is signed by somebody who may sign a plan.

        Parameters
        ----------
        signed_by : str or None
            Public key whose signature was verified.

        Raises
        ------
        DisclosureError
            If the policy demands another signature.
        """
        raise_findings("This request is not answered here", self._check_signer("request", signed_by), iter(()), True)

    def check_profile(self, profile: Profile, local_names: Mapping[str, str] = _NO_NAMES) -> None:
        """Refuse a profile with too few values, with rare levels (they may be names), or with excluded columns.

        Parameters
        ----------
        profile : Profile
            The profile that is to leave.
        local_names : mapping from str to str, optional
            From variables to the site's own column names, where these differ.

        Raises
        ------
        DisclosureError
            With one line for each finding.
        """
        findings = check_profile_counts(profile, self._min_rows(None), self._min_cell_count(None))
        always = self._check_lists(profile.columns, local_names)
        raise_findings("This profile must not leave", always, findings, self.disclosure_control)

    def check_partial_rows(self, values: Mapping[str, int]) -> None:
        """Refuse a profile that covers a few rows which a summary will leave out.

        Parameters
        ----------
        values : mapping from str to int
            For every column, its number of values in rows that lack another value.

        Raises
        ------
        DisclosureError
            If a column has a few such values.
        """
        minimum = self.differencing_limits().profile_rows
        few = [(count, name) for name, count in values.items() if 0 < count < minimum]
        if not few:
            return
        count, name = min(few)
        more = f" (and {len(few) - 1} other variables have few as well)" if len(few) > 1 else ""
        finding = (
            f"variable {name!r} has {count} values in rows that lack another value{more}, expected none or at least "
            f"{minimum}: a summary leaves these rows out, and the difference of the two would disclose them; profile "
            "with --complete (online: complete = true in site.toml), name the columns of the study with --variables, "
            "or fill in the missing values"
        )
        raise_findings("This profile must not leave", (), iter([finding]), self.disclosure_control)

    def check_row_count(
        self, rows: int, plan: StudyPlan, replicates: int = 0, noise: DPParameters | None = None
    ) -> None:
        """Refuse a table with too few rows, before its summary is computed.

        Parameters
        ----------
        rows : int
            Number of rows, those with missing values included.
        plan : StudyPlan
            The plan that the client is asked to follow, without its noise.
        replicates : int, default 0
            Number of bootstrap replicates that are to leave.
        noise : DPParameters, optional
            Noise that will be added.

        Raises
        ------
        DisclosureError
            If there are too few rows.
        """
        least = self._min_rows(plan) * (replicates + 1)
        findings = iter([describe_too_few_rows(rows, least)] if rows < least else [])
        enforced = self.disclosure_control and not self._is_waived(noise)
        raise_findings("This summary must not leave", (), findings, enforced)

    def check_observed_values(
        self, observed: Mapping[str, int], plan: StudyPlan, replicates: int = 0, noise: DPParameters | None = None
    ) -> None:
        """Refuse a summary with imputed values if a variable has fewer values of its own than a summary needs rows.

        Parameters
        ----------
        observed : mapping from str to int
            Number of rows in which each variable has a value.
        plan : StudyPlan
            The plan of the summary.
        replicates : int, default 0
            Number of bootstrap replicates that are to leave.
        noise : DPParameters, optional
            Noise that will be added.

        Raises
        ------
        DisclosureError
            If there are too few values.
        """
        least = self._min_rows(plan) * (replicates + 1)
        findings = (
            f"{name!r} has a value in {count} rows, expected at least {least}: the other values were drawn, and from "
            "fewer, single ones may be computed; leave the variable out of the study, or set min_rows in policy.toml, "
            "after asking the person responsible for data protection"
            for name, count in observed.items()
            if count < least
        )
        raise_findings(
            "This summary must not leave", (), findings, self.disclosure_control and not self._is_waived(noise)
        )

    def coarsen(
        self, summary: Summary, plan: StudyPlan, *, replicates: int = 0, noise: DPParameters | None = None
    ) -> tuple[Summary, tuple[RareLevel, ...]]:
        """Merge rare levels and round the counts of rare pairs, so that these alone do not keep a summary from leaving.

        With bootstrap replicates the counts of rare pairs would be known from their mean, and noise is drawn for exact
        sums. There the summary stays as it is, and `check_summary` refuses rare levels and pairs.

        Parameters
        ----------
        summary : Summary
            Exact summary of the rows.
        plan : StudyPlan
            The plan that it follows.
        replicates : int, default 0
            Number of bootstrap replicates that are to leave with it.
        noise : DPParameters, optional
            Noise that will be added.

        Returns
        -------
        summary : Summary
            The summary that is to leave, with marks of what is coarser in it.
        merged : tuple of RareLevel
            The levels that were merged.
        """
        if not self.disclosure_control or replicates or noise is not None or not summary.rows:
            return summary, ()
        return coarsen_summary(summary, plan, self._min_cell_count(plan), self._min_pair_count())

    def check_summary(
        self,
        summary: Summary,
        plan: StudyPlan,
        extremes: Mapping[str, Array] = MappingProxyType({}),
        local_names: Mapping[str, str] = _NO_NAMES,
        *,
        replicates: int = 0,
        cells: Mapping[str, int] = MappingProxyType({}),
        groups: Mapping[str, GroupLeverage] = MappingProxyType({}),
        noise: DPParameters | None = None,
    ) -> None:
        """Refuse a summary of too few rows, with small cells, with people of high leverage, or in other units.

        Parameters
        ----------
        summary : Summary
            The summary that is to leave, without its noise.
        plan : StudyPlan
            The plan that it follows.
        extremes : mapping from str to array, optional
            Extreme values of every continuous variable, from `ExtremeValues`.
        local_names : mapping from str to str, optional
            From variables to the site's own column names, where these differ.
        replicates : int, default 0
            Number of bootstrap replicates that are to leave with it. They raise the limits.
        cells : mapping from str to int, optional
            People in each cell of discrete variables, from `CellCounter`.
        groups : mapping from str to GroupLeverage, optional
            Leverage of groups of people, from `measure_groups`.
        noise : DPParameters, optional
            Noise that will be added. The limits hold all the same, unless the policy waives them for this epsilon.

        Raises
        ------
        DisclosureError
            With one line for each finding.
        PlanMismatchError
            If the summary follows another plan.
        """
        if summary.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"This summary follows plan {summary.plan[:12]}, expected {plan.fingerprint[:12]}. Make it again"
            )
        leverages = compute_leverages(summary, plan, extremes) if self.disclosure_control else {}
        ratios = scale_ratios(summary, plan)

        def findings(replicates: int) -> Iterator[str]:
            enough = summary.rows >= self._min_rows(plan)  # else all cells are small, and a refusal would list them
            times = replicates + 1
            rows, cell_count = self._min_rows(plan) * times, self._min_cell_count(plan) * times
            limit = self.leverage_limit(replicates)
            known = {name for name, leverage in leverages.items() if leverage > limit}
            known |= {name for name, ratio in ratios.items() if ratio > self.max_scale_ratio}
            known |= find_small_variables(cells if enough else {}, plan.names, cell_count)
            return chain(
                check_cell_counts(summary, plan, rows, cell_count, self._min_pair_count(replicates, plan)),
                check_discrete_values(cells if enough else {}, cell_count),
                check_scales(ratios, self.max_scale_ratio),
                check_leverage(leverages, limit, times),
                check_groups(groups if enough else {}, self.group_limits(plan, replicates), known),
            )

        always = [*self._check_lists(plan.names, local_names), *check_location(summary, plan, self.max_rms_distance)]
        what = "This summary must not leave" + (f" with {replicates} bootstrap replicates" if replicates else "")
        advised = chain(feasible_replicates(replicates, findings), findings(replicates))
        raise_findings(what, always, advised, self.disclosure_control and not self._is_waived(noise))

    def check_row_leverage(self, leverage: float, replicates: int = 0, noise: DPParameters | None = None) -> None:
        """Refuse a summary in which a row has a high leverage by all its values together.

        Parameters
        ----------
        leverage : float
            Largest leverage of a row in all columns, from `HighLeverageRows`.
        replicates : int, default 0
            Number of bootstrap replicates that leave with the summary.
        noise : DPParameters, optional
            Noise that will be added.

        Raises
        ------
        DisclosureError
            If the leverage exceeds the limit.
        """
        limit = self.leverage_limit(replicates)
        finding = (
            f"one row has a high leverage by its values of all variables together ({leverage:.4f}, expected at most "
            f"{limit:.4g}): its value of one variable could be computed from the others; cut extreme values, or leave "
            "variables out"
        )
        enforced = self.disclosure_control and not self._is_waived(noise)
        raise_findings("This summary must not leave", (), iter([finding] if leverage > limit else []), enforced)

    def check_replicates(self, leverages: Mapping[str, float]) -> None:
        """Refuse bootstrap replicates if a row has a high leverage in all of them and the summary together.

        Parameters
        ----------
        leverages : mapping from str to float
            Largest joint leverage by variable, from `ReplicateLeverage.joint`.

        Raises
        ------
        DisclosureError
            If a leverage exceeds the limit.
        """
        what = f"These bootstrap replicates must not leave together ({_DRAW_AGAIN_ADVICE})"
        raise_findings(what, (), check_leverage(leverages, self.max_leverage, 1), self.disclosure_control)

    def check_replicate(
        self,
        replicate: Summary,
        plan: StudyPlan,
        extremes: Mapping[str, Array],
        weights: Mapping[str, Array],
        groups: Mapping[str, GroupLeverage] = MappingProxyType({}),
    ) -> None:
        """Refuse a bootstrap replicate in which a row or a small group of people has a high leverage.

        Parameters
        ----------
        replicate : Summary
            The replicate that is to leave.
        plan : StudyPlan
            The plan that it follows.
        extremes : mapping from str to array
            Extreme values of every continuous variable in this replicate, from `ReplicateLeverage`.
        weights : mapping from str to array
            How often the rows with these values count.
        groups : mapping from str to GroupLeverage, optional
            Leverage of groups of people in this replicate, from `ReplicateGroups`.

        Raises
        ------
        DisclosureError
            If a leverage exceeds the limit.
        """
        leverages = compute_leverages(replicate, plan, extremes, weights)
        known = {name for name, leverage in leverages.items() if leverage > self.max_leverage}
        findings = chain(
            check_leverage(leverages, self.max_leverage, 1), check_groups(groups, self.group_limits(plan), known)
        )
        what = f"Bootstrap replicate {replicate.replicate} must not leave ({_DRAW_AGAIN_ADVICE})"
        raise_findings(what, (), findings, self.disclosure_control)

    def check_answer(
        self,
        plan: StudyPlan,
        rows: int,
        budget: RoundBudget,
        risks: Mapping[VariableSet, JointRisk],
        local_names: Mapping[str, str] = _NO_NAMES,
    ) -> None:
        """Refuse an answer in an adaptive round.

        Answers are further releases about the same rows: everything that the client has released, including the
        summary, has to stay below what the rows can hide. A `min_rows` of the policy is raised in proportion.

        Parameters
        ----------
        plan : StudyPlan
            The plan that it follows.
        rows : int
            Number of rows.
        budget : RoundBudget
            Everything that was answered, including this answer.
        risks : mapping from tuple of str to JointRisk
            Risk of each set of variables in the answer.
        local_names : mapping from str to str, optional
            From variables to the site's own column names, where these differ.

        Raises
        ------
        DisclosureError
            With one line for each finding.
        """
        too_many = check_all_numbers(plan, rows, budget, self.min_rows)
        findings = chain(too_many, self._check_joint_risks(plan, risks))
        always = self._check_lists(plan.names, local_names)
        raise_findings("This answer must not leave", always, findings, self.disclosure_control)

    def check_residuals(
        self,
        plan: StudyPlan,
        rows: int,
        budget: RoundBudget,
        risks: Iterable[str],
        local_names: Mapping[str, str] = _NO_NAMES,
    ) -> None:
        """Refuse an answer about residuals.

        Parameters
        ----------
        plan : StudyPlan
            The plan that it follows.
        rows : int
            Number of rows that the sums are about: those of all clients where only the total is seen.
        budget : RoundBudget
            Everything that was answered, including this answer.
        risks : iterable of str
            Findings about the rows, from `check_residual_risks` and `check_coordinates`.
        local_names : mapping from str to str, optional
            From variables to the site's own column names, where these differ.

        Raises
        ------
        DisclosureError
            With one line for each finding.
        """
        too_many = check_all_numbers(plan, rows, budget, self.min_rows)
        by_column = check_numbers_by_column(
            plan, rows, budget, self.max_sums_per_row_and_column, self.max_coarse_sums_per_number
        )
        findings = chain(too_many, by_column, check_repetitions(budget), risks)
        always = self._check_lists(plan.names, local_names)
        raise_findings("This answer must not leave", always, findings, self.disclosure_control)

    def residual_limits(self, plan: StudyPlan) -> ResidualLimits:
        """Return the limits for requests about residuals.

        Parameters
        ----------
        plan : StudyPlan
            The plan of the study.

        Returns
        -------
        ResidualLimits
            The limits.
        """
        return ResidualLimits(self.max_residual_rms, self.max_coordinate_rms, self._min_cell_count(plan))

    def _check_joint_risks(self, plan: StudyPlan, risks: Mapping[VariableSet, JointRisk]) -> Iterator[str]:
        for names, risk in risks.items():
            if risk.people and risk.people < self._min_cell_count(plan):
                yield describe_small_cell(risk.cell, risk.people, self._min_cell_count(plan))
            if risk.leverage > self.max_leverage:
                yield (
                    f"one row has a high leverage by its values of {', '.join(map(repr, names))} together "
                    f"({risk.leverage:.4f}, expected at most {self.max_leverage:g}): its other values could be "
                    "computed approximately; cut extreme values, or plan the study with fewer rounds"
                )
