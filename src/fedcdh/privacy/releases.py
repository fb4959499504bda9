"""Releases of a client: its rows become a profile, a summary or an answer, if policy and ledger let it leave.

By file or online, from a terminal or from a program that answers a server: what may leave is decided here, with one
function for each kind of release.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.excluded_columns import exclude_columns
from fedcdh.data.ordered_source import with_order_column
from fedcdh.data.prepared_source import PreparedSource, source_kinds
from fedcdh.data.recipe_file import NO_RECIPES, Recipes
from fedcdh.data.sources import (
    ColumnKind,
    CompleteCaseSource,
    TableSource,
    check_rereadable,
    is_partitioned,
    to_source,
)
from fedcdh.data.table import Table
from fedcdh.errors import DisclosureError, SettingsError
from fedcdh.messages.profile_file import ProfileMessage
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.privacy.differential.mechanism import add_noise, add_noise_share
from fedcdh.privacy.disclosure.group_leverage import ReplicateGroups, measure_groups
from fedcdh.privacy.disclosure.joint_risk import assess_joint_risk
from fedcdh.privacy.disclosure.leverage import ReplicateLeverage
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.recoded_rows import recode_rows
from fedcdh.privacy.disclosure.residual_risk import assess_residual_risk, check_coordinates, check_residual_risks
from fedcdh.privacy.disclosure.row_count import count_rows_of_wide_plan
from fedcdh.privacy.disclosure.row_scan import RowScan, ScanOptions, scan_rows
from fedcdh.privacy.ledger.gate import ReleaseGate, RoundSpending
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger, default_ledger
from fedcdh.privacy.plan_comparison import check_plan_union
from fedcdh.privacy.recipe_changes import check_plan_recipes, check_profile_recipes
from fedcdh.privacy.release_context import ReleaseContext, check_invitation, invert_renames
from fedcdh.summaries.accumulator import check_summary_arguments, summarize
from fedcdh.summaries.bootstrap import bootstrap_summaries, check_replicate_count, validate_replicate
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.imputation.imputed_source import ImputedSource, impute_rows
from fedcdh.summaries.joint import JointRequest, JointSummary, RoundBudget, answer_request
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile, profile, profiled_kinds
from fedcdh.summaries.residuals import ResidualRequest, ResidualSums, answer_residuals
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import validate_summary

__all__ = [
    "ReleaseContext",
    "check_invitation",
    "invert_renames",
    "release",
    "release_answer",
    "release_profile",
    "release_summary",
    "try_summary",
]


def release_profile(
    rows: Any,
    context: ReleaseContext,
    *,
    variables: Sequence[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, ColumnKind] | None = None,
    draft: str | None = None,
    complete: bool = False,
    order_by: str | None = None,
    key: SigningKey | None = None,
    recipes: Recipes = NO_RECIPES,
) -> ProfileMessage:
    """Make the profile of a client's rows, if policy and ledger let it leave.

    Parameters
    ----------
    rows : table or source of rows
        The rows.
    context : ReleaseContext
        The client and its rules.
    variables : sequence of str, optional
        Columns to describe. Default: all.
    exclude : collection of str, default ()
        Columns that are no variables, such as identifiers.
    kinds : mapping from str to {"continuous", "categorical"}, optional
        How to read columns. Default: as their values suggest.
    draft : str, optional
        Fingerprint of the plan whose variables the profile follows.
    complete : bool, default False
        Whether to describe complete rows only. A summary of the same variables is then of the same rows.
    order_by : str, optional
        Column with the time of each row, see `fedcdh.summaries.profile`. It stays at the site.
    key : SigningKey, optional
        Key of the client; the message names its public key.
    recipes : Recipes, optional
        What is done with columns before they are described.

    Returns
    -------
    ProfileMessage
        The profile, recorded in the ledger if there is a gate.

    Raises
    ------
    DataError
        If a column cannot be used, or one to exclude is not there.
    DisclosureError
        If the profile must not leave.

    Examples
    --------
    >>> release_profile({"age": range(30, 80)}, ReleaseContext("north"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: This profile must not leave, by the policy of this site:
    - there are 50 rows, expected at least 100: ...
    """
    policy, gate = context.policy, context.gate
    if exclude:
        kinds, recipes = exclude_columns(rows, exclude, kinds or {}, recipes)
    if complete:
        rows = _complete_cases(rows, context, with_order_column(variables, order_by), kinds or {}, recipes)
    found = profile(rows, context.client, variables=variables, kinds=kinds, order_by=order_by, recipes=recipes)
    policy.check_profile(found, context.local_names)
    check_profile_recipes(rows, found, context)
    if gate is not None and policy.disclosure_control:
        policy.check_partial_rows(_count_values_in_partial_rows(rows, found))
    if gate is not None:
        gate.record_profile(rows, found, policy, context.local_names)
    return ProfileMessage(found, draft, key.public if key else None)


def _complete_cases(
    rows: Any,
    context: ReleaseContext,
    wanted: Sequence[str] | None,
    kinds: Mapping[str, ColumnKind],
    recipes: Recipes,
) -> CompleteCaseSource:
    """Return the rows that lack none of the columns that are described."""
    source = to_source(rows, context.label, only=wanted)
    present = {name: kind for name, kind in source.kinds().items() if name not in recipes.excluded}
    chosen = present if wanted is None else {name: present[name] for name in wanted if name in present}
    declared = {name: kind for name, kind in kinds.items() if name in chosen}
    return CompleteCaseSource(source, source_kinds({**chosen, **declared}, recipes.by_variable))


def _count_values_in_partial_rows(rows: Any, found: Profile) -> dict[str, int]:
    """Return, for every column, its number of values in rows that lack another value."""
    values = dict.fromkeys(found.columns, 0)
    if not any(column.missing for column in found.columns.values()):
        return values
    kinds = profiled_kinds(found)
    for table in to_source(rows, f"client {found.client!r}", only=list(kinds)).batches(kinds):
        partial_rows = np.logical_or.reduce([column.missing for column in table.columns.values()])
        for name, column in table.columns.items():
            values[name] += int((partial_rows & ~column.missing).sum())
    return values


def release_summary(
    rows: Any,
    plan: StudyPlan,
    context: ReleaseContext,
    *,
    replicates: int = 0,
    masked: bool = False,
) -> tuple[Summary, tuple[Summary, ...]]:
    """Make the summary of a client's rows and its bootstrap replicates, if policy and ledger let them leave.

    They are validated as the server will validate them, so that a site does not learn from others that something is
    wrong. Rows are read once, by several threads or where they lie; replicates, which resample row by row, by one.

    Parameters
    ----------
    rows : table or source of rows
        The rows.
    plan : StudyPlan
        The plan to follow.
    context : ReleaseContext
        The client and its rules.
    replicates : int, default 0
        Number of bootstrap replicates.
    masked : bool, default False
        Whether the summary will leave under the masks of secure aggregation.

    Returns
    -------
    summary : Summary
        The summary, with its noise if the plan asks for noise. If there is a gate, the ledger holds it.
    replicates : tuple of Summary
        The bootstrap replicates.

    Raises
    ------
    DisclosureError
        If they must not leave.

    See Also
    --------
    release : The file of a summary, with the default ledger.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> rows = np.random.default_rng(0).normal(60, 15, 300)
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> summary, replicates = release_summary({"age": rows}, plan, ReleaseContext("north"), replicates=1)
    >>> summary.rows, len(replicates)
    (300, 1)
    """
    if replicates:
        check_replicate_count(plan, replicates)
        check_rereadable(rows, context.label, "a summary with bootstrap replicates")
    check_summary_arguments(plan, context.client, context.max_missing_share)
    _check_rows_of_wide_plan(rows, plan, context, replicates)
    if plan.noise is not None:
        return _release_noisy_summary(rows, plan, plan.noise, context), ()
    policy, gate = context.policy, context.gate
    used = impute_rows(rows, plan, context.client)
    scan, exact, summary = _scan_and_check(used, plan, context, replicates=replicates)
    check_plan_recipes(rows, plan, context)
    resampled = _draw_replicates(used, plan, summary, context, replicates)
    validate_summary(summary, plan)
    if gate is not None and scan.sketcher is not None:
        gate.record_summary(
            summary,
            plan,
            scan.sketcher,
            policy,
            context.local_names,
            replicates=replicates,
            masked=masked,
            check_plans=partial(check_plan_union, rows, plan, context, scan.sketcher.hash_text),
            values=scan.cells.counts_by_value,
            exact=exact,
        )
    return summary, resampled


def try_summary(rows: Any, plan: StudyPlan, context: ReleaseContext) -> tuple[str, ...]:
    """Return what the policy of the site finds against the summary of these rows. Nothing is recorded, nothing leaves.

    Parameters
    ----------
    rows : table or source of rows
        The rows.
    plan : StudyPlan
        The plan to follow.
    context : ReleaseContext
        The client and its rules; its ledger is not asked.

    Returns
    -------
    tuple of str
        One sentence for each finding. They hold counts, and are for the site only.

    Raises
    ------
    DataError
        If the rows cannot be summarised by this plan.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> try_summary({"age": range(30, 80)}, plan, ReleaseContext("north"))[0][:45]
    'there are 50 rows, expected at least 100: fro'
    """
    plain, alone = replace(plan, noise=None), replace(context, gate=None)
    try:
        _scan_and_check(rows, plain, alone, noise=plan.noise)
    except DisclosureError as refused:
        return refused.findings or (str(refused),)
    return ()


def _check_rows_of_wide_plan(rows: Any, plan: StudyPlan, context: ReleaseContext, replicates: int = 0) -> None:
    """Refuse too few rows for a plan with very many columns before memory is taken for these."""
    found = count_rows_of_wide_plan(rows, plan, context.label, workers=context.workers)
    if found is not None:
        context.policy.check_row_count(found, replace(plan, noise=None), replicates, plan.noise)


def _scan_options(plan: StudyPlan, context: ReleaseContext, replicates: int = 0) -> ScanOptions:
    """Return what policy and ledger have to know about the rows."""
    policy, secret = context.policy, None if context.gate is None else context.gate.ledger.secret()
    if not policy.disclosure_control:
        return ScanOptions(secret=secret)
    people = policy.group_limits(plan, replicates).max_people
    return ScanOptions(policy.max_discrete_values, policy.leverage_limit(replicates), secret, max(people, 1))


def _scan_and_check(
    rows: Any, plan: StudyPlan, context: ReleaseContext, *, replicates: int = 0, noise: DPParameters | None = None
) -> tuple[RowScan, Summary, Summary]:
    """Return the scan of the rows, their exact summary, and the one that may leave; refuse if the policy does."""
    options = _scan_options(plan, context, replicates)
    scan = scan_rows(rows, plan, context.client, options, workers=context.workers)
    exact = scan.summary(context.max_missing_share)
    summary, merged = context.policy.coarsen(exact, plan, replicates=replicates, noise=noise)
    recoded = scan
    if merged:  # all rules are about the rows as they are sent
        check_rereadable(rows, context.label, "a summary in which rare levels are merged")
        again = replace(options, secret=None, merged=merged)
        recoded = scan_rows(rows, plan, context.client, again, workers=context.workers)
    _check_scan(recoded, summary, plan, context, replicates=replicates, noise=noise)
    return scan, exact, summary


def _check_scan(
    scan: RowScan,
    summary: Summary,
    plan: StudyPlan,
    context: ReleaseContext,
    *,
    replicates: int = 0,
    noise: DPParameters | None = None,
) -> None:
    """Refuse the summary of scanned rows, exact or made coarser, unless the policy lets it leave."""
    policy, high, exact = context.policy, scan.high_leverage, scan.summary(context.max_missing_share)
    if plan.missing == "impute":  # what was drawn is computed from the other values: only these are people's own
        observed = {name: exact.rows_read - count for name, count in exact.missing.items()}
        policy.check_observed_values(observed, plan, replicates, noise)
    people = policy.group_limits(plan, replicates).max_people
    groups = {} if high is None else measure_groups(high.rows(exact), exact, plan, people)
    policy.check_summary(
        summary,
        plan,
        scan.extremes.values,
        context.local_names,
        replicates=replicates,
        cells=scan.cells.cells,
        groups=groups,
        noise=noise,
    )
    if high is not None:
        policy.check_row_leverage(high.largest(exact), replicates, noise)


def _release_noisy_summary(rows: Any, plan: StudyPlan, noise: DPParameters, context: ReleaseContext) -> Summary:
    """Return the summary with its noise, or with its share where only masked sums leave.

    The policy checks what would leave without noise, by the same plan otherwise: its limits stay what they are.
    """
    check_rereadable(rows, context.label, "a summary with noise")
    plain = replace(plan, noise=None)
    scan, exact, _ = _scan_and_check(rows, plain, context, noise=noise)
    context.policy.check_noise(noise, exact.rows)
    check_plan_recipes(rows, plan, context)
    exact = summarize(rows, plan, context.client, max_missing_share=context.max_missing_share, workers=context.workers)
    summary = add_noise(exact, plan) if not noise.distributed else add_noise_share(exact, plan)
    if not noise.distributed:
        validate_summary(summary, plan)
    gate = context.gate
    if gate is not None and scan.sketcher is not None:
        gate.record_noisy_summary(summary, noise, plan, scan.sketcher, context.policy, context.local_names)
    return summary


def release(
    table: Any,
    plan: StudyPlan,
    client: str,
    *,
    policy: Policy | str | Path | None = None,
    ledger: str | Path | None = None,
    key: SigningKey | None = None,
    max_missing_share: float = 0.5,
    workers: int = 1,
) -> bytes:
    """Make the file of a client's summary, to be sent, under the site's policy and with an entry in its ledger.

    `summarize` gives the same numbers to those who hold the rows anyway; what leaves a site goes through here.

    Parameters
    ----------
    table : table or source of rows
        The rows of the client.
    plan : StudyPlan
        The plan to follow.
    client : str
        Name of the client.
    policy : Policy, str or Path, optional
        A policy, or a policy.toml. Default: the default limits.
    ledger : str or Path, optional
        File of the site's ledger. Default: that of the command line (`docs/command-line.md`).
    key : SigningKey, optional
        Signs the entry of the ledger.
    max_missing_share : float, default 0.5
        Largest share of rows that may be left out for missing values.
    workers : int, default 1
        Number of threads. It does not change what leaves.

    Returns
    -------
    bytes
        Content of the summary file.

    Raises
    ------
    DisclosureError
        If the summary must not leave. It says what was found, what was expected, and what to do.
    LedgerError
        If the ledger cannot be read or written.

    See Also
    --------
    fedcdh.summarize : The summary for those who hold the rows.

    Examples
    --------
    >>> import tempfile
    >>> from fedcdh.summaries import Continuous
    >>> rows = np.random.default_rng(0).normal(60, 15, 300)
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> ledger = Path(tempfile.mkdtemp()) / "releases.jsonl"
    >>> message = release({"age": rows}, plan, "north", ledger=ledger)
    >>> message == release({"age": rows}, plan, "north", ledger=ledger)  # a repetition adds nothing
    True
    >>> release({"age": rows[1:]}, plan, "north", ledger=ledger)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: This summary must not leave after the releases in this site's ledger:
    - 1 or a few more rows changed since release 1 ...
    """
    rules = policy if isinstance(policy, Policy) else Policy() if policy is None else Policy.from_file(Path(policy))
    gate = ReleaseGate(default_ledger() if ledger is None else ReleaseLedger(Path(ledger)), key)
    rules.check_plan(plan)
    context = ReleaseContext(client, rules, gate=gate, max_missing_share=max_missing_share, workers=workers)
    summary, _ = release_summary(table, plan, context)
    return pack_summary(SummaryMessage(summary, rules.disclosure_control), plan)


def release_answer(
    rows: Any,
    plan: StudyPlan,
    context: ReleaseContext,
    request: FurtherRequest,
    spent: RoundBudget,
    *,
    require_summary: bool = False,
    masked_with: int = 0,
) -> tuple[tuple[JointSummary | ResidualSums, ...], RoundBudget]:
    """Answer a request of a further round, if plan, policy and ledger let the answer leave.

    Parameters
    ----------
    rows : table or source of rows
        The rows.
    plan : StudyPlan
        The plan of the study.
    context : ReleaseContext
        The client and its rules.
    request : JointRequest or ResidualRequest
        The request of the coordinator.
    spent : RoundBudget
        What was answered before.
    require_summary : bool, default False
        Whether to refuse unless the ledger holds the summary of these rows by this plan. An answer about residuals
        always requires it, where there is a ledger.
    masked_with : int, default 0
        Smallest number of other clients whose answers are in the same secure sum; 0 if the answer leaves in the open.
        Sums are then counted against the rows of all of them, of which each has as many as the policy demands.

    Returns
    -------
    answers : tuple of JointSummary or of ResidualSums
        The answers.
    budget : RoundBudget
        What was answered, including this answer. It has to be kept before the answer leaves.

    Raises
    ------
    DisclosureError
        If the answer must not leave.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> draw = np.random.default_rng(0).standard_normal
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), max_rounds=1, max_bytes=10**6)
    >>> request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    >>> table = {"a": draw(3000), "b": draw(3000)}
    >>> answers, budget = release_answer(table, plan, ReleaseContext("north"), request, RoundBudget())
    >>> answers[0].names, budget.rounds
    (('a', 'b'), 1)
    """
    policy, gate, what = context.policy, context.gate, "an answer in a further round"
    check_rereadable(rows, context.label, what)
    source = _sequential_source(rows, plan, context.label, what)
    _check_rows_of_wide_plan(source, plan, context)
    source = impute_rows(source, plan, context.client)
    scan = scan_rows(source, plan, context.client, ScanOptions(secret=gate.ledger.secret() if gate else None))
    summary, merged = policy.coarsen(scan.summary(1.0), plan)
    if merged:
        recode = partial(recode_rows, merged=merged)
        if isinstance(source, ImputedSource):
            source = source.followed_by(recode)
        else:
            source = PreparedSource(source, plan.recipes, context.client, recode)
    required = require_summary or isinstance(request, ResidualRequest)
    if required and gate is not None and policy.disclosure_control:
        gate.check_summary_released(summary, plan)
    answers: tuple[JointSummary | ResidualSums, ...]
    if isinstance(request, JointRequest):
        answers, budget = _answer_joint(source, plan, context, request, spent, summary)
    else:
        answers, budget = _answer_residuals(source, plan, context, request, spent, summary, masked_with)
    if gate is not None and scan.sketcher is not None:
        spending = RoundSpending(context.client, request, spent, budget)
        masked_rows = _count_summed_rows(summary, plan, policy, masked_with) if masked_with else None
        gate.record_answer(answers, plan, scan.sketcher, policy, context.local_names, spending, masked_rows=masked_rows)
    return answers, budget


def _answer_joint(
    source: TableSource,
    plan: StudyPlan,
    context: ReleaseContext,
    request: JointRequest,
    spent: RoundBudget,
    summary: Summary,
) -> tuple[tuple[JointSummary, ...], RoundBudget]:
    """Return the joint features that are asked for, if the policy lets them leave."""
    answers, budget = answer_request(source, plan, context.client, request, spent, summary.rows)
    risks = assess_joint_risk(source, plan, summary, answers)
    context.policy.check_answer(plan, summary.rows, budget, risks, context.local_names)
    for answer in answers:
        answer.check(plan, summary)
    return answers, budget


def _answer_residuals(
    source: TableSource,
    plan: StudyPlan,
    context: ReleaseContext,
    request: ResidualRequest,
    spent: RoundBudget,
    summary: Summary,
    masked_with: int,
) -> tuple[tuple[ResidualSums, ...], RoundBudget]:
    """Return the sums of residuals that are asked for, if the policy lets them leave."""
    budget = spent.charge(request, plan, summary.rows)
    limits = context.policy.residual_limits(plan)
    risks = chain(
        check_coordinates(request, plan, summary, limits.max_coordinate_rms),
        check_residual_risks(assess_residual_risk(source, plan, summary, request), limits),
    )
    rows = _count_summed_rows(summary, plan, context.policy, masked_with)
    context.policy.check_residuals(plan, rows, budget, risks, context.local_names)
    return answer_residuals(source, plan, context.client, request, summary), budget


def _count_summed_rows(summary: Summary, plan: StudyPlan, policy: Policy, others: int) -> int:
    """Return the fewest rows of a sum with as many other clients, each with the rows that the policy demands."""
    return summary.rows + others * policy.differencing_limits(plan).rows


def _draw_replicates(
    rows: Any, plan: StudyPlan, summary: Summary, context: ReleaseContext, replicates: int
) -> tuple[Summary, ...]:
    """Return bootstrap replicates of the summary that the policy lets leave; their seed is secret and not kept."""
    if not replicates:
        return ()
    source = _sequential_source(rows, plan, context.label, "a bootstrap replicate")
    policy, single = context.policy, ReplicateLeverage(plan, summary)
    groups = ReplicateGroups(plan, summary, policy.group_limits(plan))

    def observe(block: Table, times: Array) -> None:
        single(block, times)
        groups(block, times)

    drawn = bootstrap_summaries(source, plan, context.client, replicates, secrets.randbits(128), observer=observe)
    policy.check_replicates(single.joint)
    for one in drawn:
        extremes, weights = single.extremes[one.replicate], single.weights[one.replicate]
        policy.check_replicate(one, plan, extremes, weights, groups.measure(one))
        validate_summary(one, plan)
        validate_replicate(one, summary, plan)  # also finds rows that changed since the summary was made
    return drawn


def _sequential_source(rows: Any, plan: StudyPlan, label: str, what: str) -> TableSource:
    """Return the rows for what needs all of them in their order."""
    if is_partitioned(rows) and not isinstance(rows, TableSource):
        raise SettingsError(
            f"The rows are a {type(rows).__name__}, which gives them in no order. Expected rows in their order, which "
            f"{what} needs. Pass the table, or its files with fedcdh.open_tables(...)"
        )
    return to_source(rows, label, only=plan.names)
