"""What a site notes of everything that leaves it: from profiles, summaries and answers to entries of its ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.data.sources import to_source
from fedcdh.errors import DisclosureError, SecureAggregationError
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import count_released_numbers, information_loads, joint_information_loads
from fedcdh.privacy.ledger import (
    CELLS_KEY,
    DifferencingLimits,
    LedgerEntry,
    Release,
    ReleasedColumn,
    ReleaseLedger,
    RowSketcher,
    ValueSketch,
    check_differencing,
    sketch_values,
    spent_epsilon,
)
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import JointRequest, JointSummary, RoundBudget
from fedcdh.summaries.plan import Categorical, StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary


@dataclass(frozen=True)
class ReleaseGate:
    """Where this site notes what leaves, and looks up what left, before anything does; entries are signed with the key.

    Research is noted as well, and held to nothing. Who is `only_asking` whether something may leave notes nothing.
    """

    ledger: ReleaseLedger
    key: SigningKey | None = None
    only_asking: bool = False

    def sketcher(self) -> RowSketcher:
        """Is to be called with the complete rows of what leaves."""
        return RowSketcher(self.ledger.secret())

    def record(
        self,
        release: Release,
        limits: DifferencingLimits,
        further: Callable[[Sequence[LedgerEntry]], None] = lambda earlier: None,
    ) -> None:
        """Notes the release, or refuses it; `further` may refuse when it sees what left before."""

        def check(earlier: Sequence[LedgerEntry]) -> None:
            further(earlier)
            if not release.research:
                check_differencing(release, earlier, limits)

        if self.only_asking:
            self.ledger.ask(release, check)
        else:
            self.ledger.record(release, check, self.key)

    def record_profile(self, rows: Any, profile: Profile, policy: Policy, own: Mapping[str, str]) -> None:
        """A profile describes every column by itself: all its values count, not those of complete rows."""
        kinds = {name: column.kind for name, column in profile.columns.items()}
        source = to_source(rows, f"client {profile.client!r}", only=list(kinds))
        sketches = sketch_values(source, kinds, self.ledger.secret())
        numbers = [column for column in profile.columns.values() if column.kind == "continuous"]
        release = Release(
            "profile",
            profile.client,
            "",
            _hash_document([(own.get(name, name), asdict(profile.columns[name])) for name in sorted(profile.columns)]),
            profile.rows,
            sum(2 + len(column.quantiles) for column in numbers),
            _released_columns(sketches, own, {}, {name for name, kind in kinds.items() if kind == "categorical"}),
            research=policy.research,
        )
        self.record(release, policy.limits())

    def record_summary(
        self,
        summary: Summary,
        plan: StudyPlan,
        seen: RowSketcher,
        policy: Policy,
        own: Mapping[str, str],
        *,
        copies: int = 0,
        masked: bool = False,
    ) -> None:
        """A summary with its bootstrap copies, or one that leaves under masks; `seen` has seen its rows."""
        release = Release(
            "masked" if masked else "summary",
            summary.clients[0],
            plan.fingerprint,
            _hash_summary(summary, plan),
            summary.rows,
            count_released_numbers(plan) * (copies + 1),
            _released_columns(
                seen.columns, own, information_loads(plan, summary.rows, copies=copies), _categorical_names(plan)
            ),
            whole=seen.rows,
            copies=copies,
            research=policy.research,
            about={CELLS_KEY: _count_level_pairs(summary, plan, seen, own)},
        )
        self.record(release, policy.limits(plan))

    def record_noisy_summary(
        self,
        summary: Summary,
        noise: DPParameters,
        plan: StudyPlan,
        seen: RowSketcher,
        policy: Policy,
        own: Mapping[str, str],
    ) -> None:
        """A summary with noise: it spends epsilon and delta. Noise is new every time, so the same rows spend again."""
        told = _released_columns(seen.columns, own, {}, _categorical_names(plan))
        release = Release(
            "noisy",
            summary.clients[0],
            plan.fingerprint,
            summary.digest,
            summary.rows,
            0,
            told,
            whole=seen.rows,
            epsilon=noise.epsilon,
            delta=noise.delta,
            research=policy.research,
        )
        self.record(release, policy.limits(plan), partial(_check_epsilon_budget, release, policy))

    def record_answer(
        self,
        request: JointRequest,
        answers: Sequence[JointSummary],
        plan: StudyPlan,
        seen: RowSketcher,
        policy: Policy,
        own: Mapping[str, str],
        spent: RoundBudget,
        told: RoundBudget,
    ) -> None:
        """An answer in a further round: what was told in rounds before it, and with it."""
        new = told.sets - spent.sets
        release = Release(
            "answer",
            answers[0].client,
            plan.fingerprint,
            _hash_document([request.digest, *(_hash_answer(answer) for answer in answers)]),
            answers[0].rows,
            told.numbers(plan) - spent.numbers(plan),
            _released_columns(
                seen.columns, own, joint_information_loads(plan, answers[0].rows, new), _categorical_names(plan)
            ),
            whole=seen.rows,
            research=policy.research,
            about={"request": request.digest, "sets": sorted(map(list, new)), "bytes": told.bytes - spent.bytes},
        )
        self.record(release, policy.limits(plan), partial(_check_unchanged_budget, plan, spent))

    def check_secure_sum_state(self, plan: StudyPlan, client: str, memory: Path) -> None:
        """Refuses to begin a masked sum anew where what this site remembers of one by the same plan is gone."""
        if memory.exists():
            return
        for entry in self.ledger.entries():
            release = entry.release
            if (release.kind, release.plan, release.client) == ("masked", plan.fingerprint, client):
                raise SecureAggregationError(
                    f"by release {entry.number} of the ledger, this site has masked its numbers by this plan, but "
                    f"{memory}, which tells whether it opened a sum, is not there: two sums may differ by a single "
                    "site. Go on where that file is, or name it with --state; if it is lost, ask for a plan of another "
                    "name (fedcdh plan --study)"
                )


def _check_epsilon_budget(release: Release, policy: Policy, earlier: Sequence[LedgerEntry]) -> None:
    before = spent_epsilon(release, earlier)
    if before + release.epsilon > policy.epsilon_budget and not policy.research:
        raise DisclosureError(
            f"this noisy summary must not leave: it spends an epsilon of {release.epsilon:g}, and {before:g} was spent "
            f"on rows in common with it; expected at most {policy.epsilon_budget:g} in all. Send the file that was made "
            "then, which tells nothing new, or set epsilon_budget in policy.toml, after asking who is responsible for "
            "data protection"
        )


def spent_round_budget(earlier: Iterable[LedgerEntry], plan: StudyPlan) -> RoundBudget:
    """What a site has answered in further rounds of this plan."""
    answers = [e.release.about for e in earlier if e.release.kind == "answer" and e.release.plan == plan.fingerprint]
    return RoundBudget(
        tuple(dict.fromkeys(str(answer["request"]) for answer in answers)),
        frozenset(tuple(names) for answer in answers for names in answer["sets"]),
        sum(int(answer["bytes"]) for answer in answers),
    )


def _check_unchanged_budget(plan: StudyPlan, spent: RoundBudget, earlier: Sequence[LedgerEntry]) -> None:
    if spent_round_budget(earlier, plan) != spent:
        raise DisclosureError("another request of this plan was answered at the same time; run this again")


def _released_columns(
    sketches: Mapping[str, ValueSketch], own: Mapping[str, str], load: Mapping[str, float], labels: Collection[str]
) -> dict[str, ReleasedColumn]:
    """What the ledger remembers of every column, under this site's own names."""
    return {
        own.get(name, name): ReleasedColumn(sketch, load.get(name, 0.0), name in labels)
        for name, sketch in sketches.items()
    }


def _count_level_pairs(
    summary: Summary, plan: StudyPlan, seen: RowSketcher, own: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    """How many people have each pair of labels, the labels under names that do not show them."""
    spans, found = plan.spans(), {}
    labels = [(own.get(v.name, v.name), v) for v in plan.variables if isinstance(v, Categorical)]
    labels.sort(key=lambda label: label[0])
    for (one, first), (other, second) in combinations(labels, 2):
        counts = summary.moments[spans[first.name], spans[second.name]] // GRID**2
        found[f"{one!r} and {other!r}"] = {
            seen.hash_text(to_canonical_json([first.levels[i], second.levels[j]])): int(counts[i, j])
            for i, j in zip(*counts.nonzero(), strict=True)
        }
    return found


def _categorical_names(plan: StudyPlan) -> frozenset[str]:
    return frozenset(name for name, kind in plan.kinds.items() if kind == "categorical")


def _hash_document(said: Any) -> str:
    return hashlib.sha256(to_canonical_json(said).encode("utf-8")).hexdigest()


def _hash_summary(summary: Summary, plan: StudyPlan) -> str:
    """The same by all plans that look at rows in the same way, whoever takes part and whatever the study is called."""
    way = replace(plan, clients=("one",), study="", max_rounds=0, max_bytes=0).fingerprint
    return replace(summary, plan=way).digest


def _hash_answer(answer: JointSummary) -> str:
    return hashlib.sha256(answer.own.tobytes() + answer.cross.tobytes()).hexdigest()
