"""The release gate: turns profiles, summaries and answers into entries of the ledger, or refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fedcdh.data.sources import to_source
from fedcdh.errors import DisclosureError, SecureAggregationError
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import (
    DifferencingLimits,
    answer_loads,
    count_released_numbers,
    information_loads,
)
from fedcdh.privacy.ledger._release_content import (
    LocalNames,
    categorical_names,
    count_level_pairs,
    count_prepared_levels,
    describe_encoding,
    hash_answer,
    hash_document,
    hash_summary,
    list_coarsened,
    recorded_clients,
    recorded_recipes,
    released_columns,
)
from fedcdh.privacy.ledger.differencing import check_differencing
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger, find_active_entries
from fedcdh.privacy.ledger.privacy_budget import check_privacy_budget
from fedcdh.privacy.ledger.record import (
    CELLS_KEY,
    COARSENED_KEY,
    DESCRIPTIONS_KEY,
    ENCODING_KEY,
    MASKED_KEY,
    LedgerEntry,
    Release,
)
from fedcdh.privacy.ledger.round_messages import RoundMessage
from fedcdh.privacy.ledger.row_sketches import RowSketcher, sketch_values
from fedcdh.privacy.ledger.second_sums import check_plain_after_sum, check_second_sum
from fedcdh.privacy.ledger.unattended import check_same_content, check_unattended
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.joint import JointSummary, RoundBudget
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile, profiled_kinds
from fedcdh.summaries.residuals import AskedQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.summary import Summary

PlanCheck = Callable[[Release, Sequence[LedgerEntry]], None]
"""Called with a release and the active entries of a ledger; raises an error to refuse the release."""


@dataclass(frozen=True)
class ReleaseGate:
    """The gate of a client: it records each release, and compares it with earlier ones, before it leaves.

    Releases without disclosure control are recorded as well, but never refused.

    Parameters
    ----------
    ledger : ReleaseLedger
        The ledger of the site.
    key : SigningKey, optional
        Signs the entries.
    dry_run : bool, default False
        Whether to check releases without recording them.
    max_plans : int, optional
        For a client that answers requests without a person: the largest number of plans that it answers. It then also
        refuses to release a plan, or the description of a column, with other content than before.

    See Also
    --------
    fedcdh.privacy.ledger.unattended : The rules for unattended clients.

    Examples
    --------
    >>> import tempfile
    >>> gate = ReleaseGate(ReleaseLedger(Path(tempfile.mkdtemp()) / "releases.jsonl"))
    >>> release = Release("summary", "north", "", "0" * 64, rows=500, numbers=12)
    >>> gate.record(release, Policy().differencing_limits())
    >>> len(gate.ledger.entries())
    1
    """

    ledger: ReleaseLedger
    key: SigningKey | None = None
    dry_run: bool = False
    max_plans: int | None = None

    def new_sketcher(self) -> RowSketcher:
        """Return a sketcher, to be called with the complete rows of a release."""
        return RowSketcher(self.ledger.secret())

    def record(
        self,
        release: Release,
        limits: DifferencingLimits,
        check_more: Callable[[Sequence[LedgerEntry]], None] = lambda earlier: None,
    ) -> None:
        """Record a release, or refuse it.

        Parameters
        ----------
        release : Release
            What is to leave.
        limits : DifferencingLimits
            The policy's limits for releases beside earlier ones.
        check_more : callable, optional
            Called with the active entries; refuses the release by raising.

        Raises
        ------
        DisclosureError
            If the release must not leave.
        LedgerError
            If the ledger cannot be read or written.
        """

        def check(earlier: Sequence[LedgerEntry]) -> None:
            if release.disclosure_control:
                check_differencing(release, earlier, limits)
                check_second_sum(release, earlier)
                check_plain_after_sum(release, earlier)
            check_more(earlier)

        def check_repeats(earlier: Sequence[LedgerEntry]) -> None:
            if release.disclosure_control:
                check_second_sum(release, earlier)
                check_plain_after_sum(release, earlier)
            if self.max_plans is not None and release.disclosure_control:
                check_unattended(release, earlier, self.max_plans)

        if self.dry_run:
            self.ledger.check(release, check, check_repeats=check_repeats)
        else:
            self.ledger.record(release, check, self.key, check_repeats=check_repeats)

    def record_profile(self, rows: Any, profile: Profile, policy: Policy, local_names: LocalNames) -> None:
        """Record a profile. It describes each column by itself, so the sketches are of all values of each column.

        Parameters
        ----------
        rows : table or source of rows
            The rows that were profiled.
        profile : Profile
            The profile that is to leave.
        policy : Policy
            The site's policy.
        local_names : mapping from str to str
            From variables to the site's own column names, where these differ.

        Raises
        ------
        DisclosureError
            If the profile must not leave after earlier releases.
        """
        kinds = profiled_kinds(profile)  # sketches are of the site's own values, whatever the recipes
        source = to_source(rows, f"client {profile.client!r}", only=list(kinds))
        sketches = sketch_values(source, kinds, self.ledger.secret())
        continuous = [column for column in profile.columns.values() if column.kind == "continuous"]
        columns = sorted(profile.columns.items())
        described = [(local_names.get(name, name), _describe(column)) for name, column in columns]
        release = Release(
            "profile",
            profile.client,
            "",
            hash_document(described),
            profile.rows,
            sum(2 + len(column.quantiles) for column in continuous)
            + sum(len(column.shares_below_one) for column in profile.columns.values()),
            released_columns(
                sketches, local_names, {}, {name for name, kind in kinds.items() if kind == "categorical"}
            ),
            disclosure_control=policy.disclosure_control,
            details={
                DESCRIPTIONS_KEY: {f"{name} as {column['kind']}": hash_document(column) for name, column in described},
                **recorded_recipes({name: column.recipe for name, column in columns}, local_names),
            },
        )
        self.record(release, policy.differencing_limits())

    def record_summary(
        self,
        summary: Summary,
        plan: StudyPlan,
        sketcher: RowSketcher,
        policy: Policy,
        local_names: LocalNames,
        *,
        replicates: int = 0,
        masked: bool = False,
        check_plans: PlanCheck = lambda new, earlier: None,
        values: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        exact: Summary | None = None,
    ) -> None:
        """Record a summary with its bootstrap replicates, or a summary that leaves under masks.

        Parameters
        ----------
        summary : Summary
            The summary that is to leave.
        plan : StudyPlan
            The plan that it follows.
        sketcher : RowSketcher
            Has sketched the rows of the summary.
        policy : Policy
            The site's policy.
        local_names : mapping from str to str
            From variables to the site's own column names, where these differ.
        replicates : int, default 0
            Number of bootstrap replicates that leave with the summary.
        masked : bool, default False
            Whether the summary leaves under the masks of secure aggregation.
        check_plans : callable, optional
            Called with the release and the active entries; refuses the release by raising. See `check_plan_union`.
        values : mapping from str to mapping from str to int, optional
            People with each value of continuous variables that have few values, after the recipes.
        exact : Summary, optional
            The summary before it was made coarser. The ledger compares its counts. Default: the summary is exact.

        Raises
        ------
        DisclosureError
            If the summary must not leave after earlier releases.
        """
        loads = information_loads(plan, summary.rows, replicates=replicates)
        release = Release(
            "masked" if masked else "summary",
            summary.clients[0],
            plan.fingerprint,
            hash_summary(summary, plan),
            summary.rows,
            count_released_numbers(plan) * (replicates + 1),
            released_columns(sketcher.columns, local_names, loads, categorical_names(plan)),
            complete_rows=sketcher.rows,
            replicates=replicates,
            disclosure_control=policy.disclosure_control,
            details={
                CELLS_KEY: {
                    **count_level_pairs(exact or summary, plan, sketcher, local_names),
                    **count_prepared_levels(exact or summary, plan, sketcher, local_names, values),
                },
                ENCODING_KEY: describe_encoding(plan, sketcher, local_names),
                **recorded_recipes(plan.recipes, local_names),
                **({COARSENED_KEY: list_coarsened(summary, local_names)} if summary.coarsened else {}),
                **recorded_clients(plan, masked=masked),
            },
        )
        self.record(release, policy.differencing_limits(plan), partial(check_plans, release))

    def record_noisy_summary(
        self,
        summary: Summary,
        noise: DPParameters,
        plan: StudyPlan,
        sketcher: RowSketcher,
        policy: Policy,
        local_names: LocalNames,
    ) -> None:
        """Record a summary with noise, which spends a privacy budget.

        The noise is drawn afresh each time, so the same rows spend the budget again.

        Parameters
        ----------
        summary : Summary
            The summary with its noise.
        noise : DPParameters
            The privacy budget that it spends.
        plan : StudyPlan
            The plan that it follows.
        sketcher : RowSketcher
            Has sketched the rows of the summary.
        policy : Policy
            The site's policy.
        local_names : mapping from str to str
            From variables to the site's own column names, where these differ.

        Raises
        ------
        DisclosureError
            If the privacy budget is used up, or the summary must not leave after earlier releases.
        """
        release = Release(
            "noisy",
            summary.clients[0],
            plan.fingerprint,
            summary.digest,
            summary.rows,
            0,
            released_columns(sketcher.columns, local_names, {}, categorical_names(plan)),
            complete_rows=sketcher.rows,
            epsilon=noise.epsilon,
            delta=noise.delta,
            disclosure_control=policy.disclosure_control,
            details=recorded_recipes(plan.recipes, local_names),
        )
        self.record(release, policy.differencing_limits(plan), partial(check_privacy_budget, release, policy=policy))

    def record_answer(
        self,
        answers: Sequence[JointSummary | ResidualSums],
        plan: StudyPlan,
        sketcher: RowSketcher,
        policy: Policy,
        local_names: LocalNames,
        spending: RoundSpending,
        *,
        masked_rows: int | None = None,
    ) -> None:
        """Record an answer in a further round, in the open or under masks.

        Parameters
        ----------
        answers : sequence of JointSummary or of ResidualSums
            The answers that are to leave.
        plan : StudyPlan
            The plan that they follow.
        sketcher : RowSketcher
            Has sketched the rows of the answers.
        policy : Policy
            The site's policy.
        local_names : mapping from str to str
            From variables to the site's own column names, where these differ.
        spending : RoundSpending
            The client, the request, and the round budget before and after this answer.
        masked_rows : int, optional
            Smallest number of rows of the secure sum in which the answer leaves. Default: it leaves in the open.

        Raises
        ------
        DisclosureError
            If the answer must not leave after earlier releases, or another request was answered at the same time.
        """
        request, before, after = spending.request, spending.before, spending.after
        numbers = after.count_entries(plan) - before.count_entries(plan)
        loads = answer_loads(plan, masked_rows or answers[0].rows, numbers)
        release = Release(
            "answer",
            spending.client,
            plan.fingerprint,
            hash_document([request.digest, *(hash_answer(answer) for answer in answers)]),
            answers[0].rows,
            numbers,
            released_columns(sketcher.columns, local_names, loads, categorical_names(plan)),
            complete_rows=sketcher.rows,
            disclosure_control=policy.disclosure_control,
            details={
                "request": request.digest,
                "sets": sorted(map(list, after.sets - before.sets)),
                "queries": sorted(map(list, after.queries - before.queries)),
                "bytes": after.bytes - before.bytes,
                **({MASKED_KEY: True} if masked_rows else {}),
                **recorded_clients(plan, masked=masked_rows is not None),
            },
        )
        self.record(release, policy.differencing_limits(plan), partial(_check_unchanged_budget, plan, before))

    def check_summary_released(self, summary: Summary, plan: StudyPlan) -> None:
        """Refuse where the summary of these rows was not released by this plan.

        An unattended client answers adaptive rounds only about rows whose summary it has released.

        Parameters
        ----------
        summary : Summary
            Summary of the present rows.
        plan : StudyPlan
            The plan whose adaptive round is to be answered.

        Raises
        ------
        DisclosureError
            If no summary was released by this plan, or it was of other rows.
        """
        earlier = [
            entry
            for entry in find_active_entries(self.ledger.entries())
            if entry.release.kind in ("summary", "masked")
            and entry.release.plan in plan.fingerprints
            and entry.release.client == summary.clients[0]
            and entry.release.disclosure_control
        ]
        if not earlier:
            raise DisclosureError(
                "This client has released no summary by this plan. Expected the summary before any answer in an "
                "adaptive round. Have the coordinator ask for the summary first"
            )
        check_same_content(plan.fingerprint, hash_summary(summary, plan), earlier)

    def check_secure_sum_state(
        self, plan: StudyPlan, client: str, state: Path, request: ResidualRequest | None = None
    ) -> None:
        """Refuse to begin secure aggregation again where the state of an earlier session of this plan is missing.

        Parameters
        ----------
        plan : StudyPlan
            The plan of the sum.
        client : str
            Name of the client.
        state : Path
            File in which the client keeps the state of this session.
        request : ResidualRequest, optional
            The request whose answers are added. Default: summaries are.

        Raises
        ------
        SecureAggregationError
            If the ledger knows of a masked summary by this plan, or of a masked answer to this request, and the file
            does not exist.
        """
        if state.exists():
            return
        kind, digest = ("masked", None) if request is None else ("answer", request.digest)
        for entry in self.ledger.entries():
            release = entry.release
            masked = release.is_masked and release.details.get("request") == digest
            if masked and (release.kind, release.plan, release.client) == (kind, plan.fingerprint, client):
                what = "summary by this plan" if request is None else f"answer to request {request.number}"
                raise SecureAggregationError(
                    f"By release {entry.number} of the ledger this client has masked its {what}, but "
                    f"{state} does not exist. Expected that file: it says whether the client has already helped to "
                    "unmask a sum, and two sums may differ by a single client. Continue where that file is, or name "
                    "it with --state. If it is lost, ask for a plan of another name (fedcdh plan --study)"
                )

    def check_round(self, message: RoundMessage) -> None:
        """Refuse a message of secure aggregation if another one left in its place.

        The state of a client may be set back, for instance by a backup. The ledger is another file, in another folder.

        Parameters
        ----------
        message : RoundMessage
            The message that is to leave.

        Raises
        ------
        SecureAggregationError
            If the ledger has another message of the same client in this round.
        """
        self.ledger.check(message.release, message.check)

    def record_round(self, message: RoundMessage) -> None:
        """Record a message of secure aggregation, once its state is on disk and before it leaves.

        Parameters
        ----------
        message : RoundMessage
            The message that is to leave.

        Raises
        ------
        SecureAggregationError
            If the ledger has another message of the same client in this round.
        """
        self.ledger.record(message.release, message.check, self.key)


@dataclass(frozen=True)
class RoundSpending:
    """A request of a further round, and the round budget before and after its answer.

    Parameters
    ----------
    client : str
        Name of the client.
    request : JointRequest or ResidualRequest
        The request.
    before, after : RoundBudget
        What was answered before, and with this answer.
    """

    client: str
    request: FurtherRequest
    before: RoundBudget
    after: RoundBudget


def spent_round_budget(earlier: Iterable[LedgerEntry], plan: StudyPlan) -> RoundBudget:
    """Return what a client has answered in further rounds of a plan, and of those that it follows.

    Parameters
    ----------
    earlier : iterable of LedgerEntry
        Entries of the ledger.
    plan : StudyPlan
        The plan.

    Returns
    -------
    RoundBudget
        Requests, sets of variables, queries about residuals and bytes that were used.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> spent_round_budget([], StudyPlan((Continuous("age"),), ("north",))).rounds
    0
    """
    answers = [
        entry.release.details
        for entry in earlier
        if entry.release.kind == "answer" and entry.release.plan in plan.fingerprints
    ]
    return RoundBudget(
        tuple(dict.fromkeys(str(answer["request"]) for answer in answers)),
        frozenset(tuple(names) for answer in answers for names in answer["sets"]),
        sum(int(answer["bytes"]) for answer in answers),
        frozenset(
            AskedQuery(str(digest), tuple(names), int(entries), str(question), tuple(places), *map(bool, coarse))
            for answer in answers
            for digest, names, entries, question, places, *coarse in answer.get("queries", ())
        ),
    )


def _check_unchanged_budget(plan: StudyPlan, before: RoundBudget, earlier: Sequence[LedgerEntry]) -> None:
    if spent_round_budget(earlier, plan) != before:
        raise DisclosureError(
            "The ledger has a new answer by this plan. Expected none since this one was begun: two requests were "
            "answered at the same time. Run this again"
        )


def _describe(column: ColumnProfile) -> dict[str, Any]:
    """Return the fields of a column's profile; shares of rows only where rows depend on each other."""
    left_out = ("product_share", "mean_share", "recipe")
    plain = {name: value for name, value in asdict(column).items() if name not in left_out}
    return plain | column.shares_below_one
