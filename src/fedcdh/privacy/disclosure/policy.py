"""The policy of a site: what may leave it. It is read, and it decides, where the data are.

Why these rules (`docs/command-line.md` has the figures): from the summary of too few rows, every row can
be computed; a label that few people have gives these people's values away at any number of rows; and whoever writes
the plan chooses what is looked at.

Bootstrap copies are further messages about the same rows. The seed of the draws never leaves, but weights that are
small whole numbers might be solved for, so they are counted as known. Then the summary and its B copies tell B + 1
times as many numbers about the same values: figures of rows and of people with a label are multiplied by B + 1. And
who stands out stands out more: with the weights w_b of a row beside 1, the columns w_b φ are further columns, in which
its odds h/(1 − h) become 1 + Σ (w_b − 1)² times as large, on average B + 1 times, as long as many other rows lie in its
direction. They are held to the limit on average before rows are drawn, and, by `check_together`, as they were drawn.
Where few other rows do, a copy may leave them out, so `check_copy` looks at the leverage in every copy as well.

A number of few different values (0 and 1, say) is a label by another name: its values are counted like labels.

Two summaries of nearly the same rows differ by the rows that changed. A policy sees one message; what left before is in
the ledger of the site (`releases`), whose figures come from here. Figures and labels in a refusal are for the site; it
must not be forwarded as it is.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from fedcdh._io import strict_toml
from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_toml import abbreviate, expect_integer, expect_number, expect_strings, expect_table, suggest_name
from fedcdh._io.text import is_key
from fedcdh._runtime.array_types import Array
from fedcdh.errors import DisclosureError, PlanMismatchError, SettingsError
from fedcdh.privacy.disclosure.joint_risk import JointRisk
from fedcdh.privacy.disclosure.leverage import compute_leverages
from fedcdh.privacy.disclosure.rules import (
    check_cell_counts,
    check_discrete_values,
    check_feature_resolution,
    check_leverage,
    check_location,
    check_profile_counts,
    describe_small_cell,
)
from fedcdh.privacy.disclosure.thresholds import (
    MIN_CELL_COUNT,
    MIN_ROWS,
    count_released_numbers,
    required_cell_count,
    required_rows,
)
from fedcdh.privacy.ledger.differencing import DifferencingLimits
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.joint.request import VariableSet
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

MAX_WAIVER_EPSILON = 2.0
"""With a larger epsilon, noise does not stand in for rules about few people, whatever a policy says."""
MAX_POLICY_BYTES = 1 << 20
"""Bytes of a policy."""
_MAX_LISTED_FINDINGS = 20
_DRAW_AGAIN_ADVICE = "run it again for other draws, or ask for fewer copies"


@dataclass(frozen=True)
class Policy:
    """Figures and lists that a plan, a profile and a summary have to keep to.

    With `research`, figures of privacy are not enforced, and the summary says so; lists, and the check of units, are.
    """

    min_rows: int | None = None  # None: what the plan needs, see `rows_needed`
    min_cell_count: int | None = None  # None: what the plan needs, see `level_needed`
    variables: frozenset[str] | None = None  # the only variables that may leave; None: any
    withheld: frozenset[str] = frozenset()  # variables that never leave
    plans: frozenset[str] | None = None  # accepted fingerprints, or at least 12 leading digits of them
    coordinator_keys: frozenset[str] = frozenset()  # public keys whose signature on a plan counts
    unsigned_plans: Literal["accept", "refuse"] | None = None  # None: refuse as soon as there are coordinator_keys
    farthest: float = 10.0  # root mean square distance from the plan's location, in scales: beyond, units are doubted
    max_leverage: float = 0.99  # the largest leverage of a single row, see `standing_out`
    research: bool = False
    few_values: int = 20  # numbers with up to so many different values are counted like labels; 0: none are
    widest: int = 16  # feature columns of a number, besides its value and its square
    waive_counts_below_epsilon: float = (
        0.0  # epsilon up to which noise stands in for smallest numbers of rows and people; 0: never
    )
    epsilon_budget: float = 8.0  # of all noisy summaries that have rows in common

    def __post_init__(self) -> None:
        for key in sorted(self.coordinator_keys):
            if not is_key(key):
                raise _policy_error(
                    f'coordinator_keys needs "ed25519:" and the base64 of 32 bytes, found {abbreviate(key)}'
                )
        for plan in sorted(self.plans or ()):
            if not re.fullmatch("[0-9a-f]{12,64}", plan):
                raise _policy_error(
                    f"plans needs fingerprints, or their first 12 or more digits, found {abbreviate(plan)}"
                )
        if self.unsigned_plans not in ("accept", "refuse", None):
            raise _policy_error(
                f'unsigned_plans should be "accept" or "refuse", found {abbreviate(self.unsigned_plans)}'
            )
        if self.unsigned_plans == "refuse" and not self.coordinator_keys:
            raise _policy_error("unsigned plans are refused, but no coordinator_keys are named that could sign one")
        if not 0 < self.max_leverage <= 1:
            raise _policy_error(
                f"max_leverage should be a leverage, above 0 and up to 1, found {abbreviate(self.max_leverage)}"
            )
        if not 0 <= self.waive_counts_below_epsilon <= MAX_WAIVER_EPSILON:
            raise _policy_error(
                f"waive_counts_below_epsilon should be an epsilon up to {MAX_WAIVER_EPSILON:g}, found {abbreviate(self.waive_counts_below_epsilon)}"
            )
        if not self.epsilon_budget > 0:
            raise _policy_error(f"epsilon_budget should be positive, found {abbreviate(self.epsilon_budget)}")
        if not self.farthest > 0:
            raise _policy_error(f"farthest should be positive, found {abbreviate(self.farthest)}")

    @classmethod
    def from_toml(cls, text: str | bytes) -> Policy:
        """The policy of a TOML text; SettingsError with the place and what is expected there.

        >>> Policy.from_toml('withheld = ["postcode"]').withheld
        frozenset({'postcode'})
        """
        found = strict_toml.parse_toml(text, refuse=_policy_error)
        expect_table(found, [field.name for field in fields(cls)], "the policy", refuse=_policy_error)
        return cls(**{key: _parse_setting(key, value) for key, value in found.items()})

    @classmethod
    def from_file(cls, path: Path) -> Policy:
        """The policy in a file."""
        return cls.from_toml(read_regular_file(path, MAX_POLICY_BYTES, "a policy", refuse=DisclosureError))

    def check_plan(
        self, plan: StudyPlan, signed_by: str | None = None, own: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Refuses a plan before any data are read.

        `signed_by` is the public key whose signature was verified; `own` leads from variables to this site's own
        names of their columns, where these differ.
        """
        _raise_findings(
            "this plan is not followed here",
            [*self._lists(plan.names, own), *self._origin(plan, signed_by)],
            check_feature_resolution(plan, self.widest),
            self.research,
        )

    def check_request(self, signed_by: str | None) -> None:
        """Refuses what an online site is asked for before there is a plan, if not by who may sign a plan."""
        _raise_findings(
            "this request is not answered here", self._signer("request", signed_by), iter(()), self.research
        )

    def check_profile(self, profile: Profile, own: Mapping[str, str] = MappingProxyType({})) -> None:
        """Refuses a profile before it leaves: too few values, labels that few have (they may be names), lists."""
        found = check_profile_counts(profile, self._rows(None), self._level(None))
        _raise_findings("this profile must not leave", self._lists(profile.columns, own), found, self.research)

    def check_partial_rows(self, values: Mapping[str, int]) -> None:
        """Refuses a profile that tells of a few rows which a summary will leave out: how many values each column has
        in rows with a gap elsewhere."""
        least = self.limits().described
        few = [(count, name) for name, count in values.items() if 0 < count < least]
        if not few:
            return
        count, name = min(few)
        more = f" (and {len(few) - 1} other variables have as few)" if len(few) > 1 else ""
        figure = (
            f"variable {name!r} has {count} values in rows that lack another one{more}, expected none or at least "
            f"{least}: a summary leaves these rows out, and the difference of the two would tell about them; profile "
            "with --complete (online: complete = true in site.toml), name the columns of the study with --variables, "
            "or fill the gaps"
        )
        _raise_findings("this profile must not leave", (), iter([figure]), self.research)

    def check_summary(
        self,
        summary: Summary,
        plan: StudyPlan,
        outermost: Mapping[str, Array] = MappingProxyType({}),
        own: Mapping[str, str] = MappingProxyType({}),
        *,
        copies: int = 0,
        cells: Mapping[str, int] = MappingProxyType({}),
        noise: DPParameters | None = None,
    ) -> None:
        """Refuses a summary before a byte leaves: too few rows, or people with a label or a pair of labels; units.

        Of the outermost values (`standing_out.Outermost` notes them), those whose owner stands out. `cells` are the
        people with each value of numbers that have few different ones (`few_values`). Bootstrap copies that are to
        leave with the summary raise the figures; a refusal says how many of them could. With `noise`, which is to be
        added to it, figures are held to as well, unless the policy says that so much noise is enough.
        """
        if summary.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"this summary follows plan {summary.plan[:12]}, not {plan.fingerprint[:12]}; make it again"
            )
        known = {} if self.research else compute_leverages(summary, plan, outermost)

        def figures(copies: int) -> Iterator[str]:
            enough = summary.rows >= self._rows(plan)  # else all values are few, and a refusal would tell them
            rows, least = self._rows(plan) * (copies + 1), self._level(plan) * (copies + 1)
            return chain(
                check_cell_counts(summary, plan, rows, least),
                check_discrete_values(cells if enough else {}, least),
                check_leverage(known, self.lonely(copies), copies + 1),
            )

        always = [*self._lists(plan.names, own), *check_location(summary, plan, self.farthest)]
        what = "this summary must not leave" + (f" with {copies} bootstrap copies" if copies else "")
        spared = self.research or self._enough(noise)
        _raise_findings(what, always, chain(_feasible_replicates(copies, figures), figures(copies)), spared)

    def lonely(self, copies: int = 0) -> float:
        """The largest leverage that a row may have where so many bootstrap copies leave with the summary.

        Its odds are multiplied by the messages; the limit of one message is the figure itself, without rounding.
        """
        return (
            self.max_leverage / (self.max_leverage + (copies + 1) * (1 - self.max_leverage))
            if copies
            else self.max_leverage
        )

    def check_row_leverage(self, leverage: float, copies: int = 0, noise: DPParameters | None = None) -> None:
        """Refuses a summary in which somebody stands out by all values together (`standing_out.LonelyRows`)."""
        most = self.lonely(copies)
        alone = (
            f"one row stands out by its values of all variables together (leverage {leverage:.4f}, expected at most "
            f"{most:.4g}): what it has in one of them could be computed from the others; cut extreme values, or leave "
            "variables out"
        )
        broken = iter([alone] if leverage > most else [])
        _raise_findings("this summary must not leave", (), broken, self.research or self._enough(noise))

    def check_replicates(self, known: Mapping[str, float]) -> None:
        """Refuses bootstrap copies in all of which, and the summary, somebody stands out (`WatchedCopies.together`)."""
        what = f"these bootstrap copies must not leave, taken together ({_DRAW_AGAIN_ADVICE})"
        _raise_findings(what, (), check_leverage(known, self.max_leverage, 1), self.research)

    def check_copy(
        self, copy: Summary, plan: StudyPlan, outermost: Mapping[str, Array], times: Mapping[str, Array]
    ) -> None:
        """Refuses a bootstrap copy in which somebody stands out (`standing_out.WatchedCopies` notes who may)."""
        figures = check_leverage(compute_leverages(copy, plan, outermost, times), self.max_leverage, 1)
        _raise_findings(f"bootstrap copy {copy.copy} must not leave ({_DRAW_AGAIN_ADVICE})", (), figures, self.research)

    def check_answer(
        self,
        plan: StudyPlan,
        rows: int,
        told: RoundBudget,
        close: Mapping[VariableSet, JointRisk],
        own: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Refuses an answer in a further round before a byte leaves; `told` counts it in, `close` is about its sets.

        Answers are further releases about the same rows: all that the site has told, the summary included, has to stay
        below what the rows hold. Where the policy states its own number of rows, that is raised in proportion.
        """
        needed = required_rows(plan, told.sets)
        if self.min_rows is not None:
            needed = math.ceil(self.min_rows * needed / required_rows(plan))

        def figures() -> Iterator[str]:
            if rows < needed:
                yield (
                    f"with this answer the site would tell {count_released_numbers(plan, told.sets)} numbers about {rows} rows, "
                    f"expected at least {needed} rows for so many; the study has to do with fewer rounds"
                )
            for names, found in close.items():
                if found.people and found.people < self._level(plan):
                    yield describe_small_cell(found.cell, found.people, self._level(plan))
                if found.leverage > self.max_leverage:
                    yield (
                        f"one row stands out by its values of {', '.join(map(repr, names))} together (leverage "
                        f"{found.leverage:.4f}, expected at most {self.max_leverage:g}): its other values could be "
                        "computed nearly; cut extreme values, or have the study do with fewer rounds"
                    )

        _raise_findings("this answer must not leave", self._lists(plan.names, own), figures(), self.research)

    def limits(self, plan: StudyPlan | None = None) -> DifferencingLimits:
        """The figures for a release beside earlier ones; without a plan, those of a profile."""
        strict = plan is not None and self.min_rows is not None
        times = (self.min_rows or 0) / required_rows(plan) if plan is not None and strict else 1.0
        return DifferencingLimits(self._rows(plan), self._level(plan), self._level(None), times)

    def _enough(self, noise: DPParameters | None) -> bool:
        """Whether the policy leaves rules about few people to this noise."""
        return noise is not None and noise.shared == "each" and noise.epsilon <= self.waive_counts_below_epsilon

    def _rows(self, plan: StudyPlan | None) -> int:
        if self.min_rows is not None:
            return self.min_rows
        return MIN_ROWS if plan is None else required_rows(plan)

    def _level(self, plan: StudyPlan | None) -> int:
        if self.min_cell_count is not None:
            return self.min_cell_count
        return MIN_CELL_COUNT if plan is None else required_cell_count(plan)

    def _lists(self, names: Iterable[str], own: Mapping[str, str]) -> Iterator[str]:
        """Lists speak of this site's own columns: a mapping of names that came with the plan is no way around them."""
        for name in names:
            column = own.get(name, name)
            called = repr(name) if column == name else f"{name!r} (here {column!r})"
            if {name, column} & self.withheld:
                yield f"variable {called} is withheld by this site; leave it out of the study, or this site"
            elif self.variables is not None and column not in self.variables:
                near = suggest_name(column, self.variables)
                yield f"variable {called} is not among the variables of the policy{near}; leave it out, or add it there"

    def _origin(self, plan: StudyPlan, signed_by: str | None) -> Iterator[str]:
        if self.plans is not None and not any(map(plan.fingerprint.startswith, self.plans)):
            yield (
                f"the plan's fingerprint is {plan.fingerprint[:12]}, which the policy does not accept; compare it with "
                "the coordinator's, and add it to plans in policy.toml"
            )
        yield from self._signer("plan", signed_by)

    def _signer(self, what: str, signed_by: str | None) -> Iterator[str]:
        if self.coordinator_keys and self.unsigned_plans != "accept" and signed_by not in self.coordinator_keys:
            found = "is not signed" if signed_by is None else f"is signed by the key {signed_by!r}"
            yield f"the {what} {found}; expected one of the coordinator_keys; ask the coordinator for the signature"


def _feasible_replicates(copies: int, figures: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """How many copies could leave, where so many cannot: more copies never break fewer figures."""
    if copies and any(figures(copies)):
        refused = bisect_left(range(copies), True, key=lambda fewer: any(figures(fewer)))
        yield (
            "no number of bootstrap copies changes that: the summary alone must not leave"
            if refused == 0
            else "without bootstrap copies the summary may leave"
            if refused == 1
            else f"with up to {refused - 1} bootstrap copies the summary may leave"
        )


def _raise_findings(what: str, always: Iterable[str], figures: Iterator[str], research: bool) -> None:
    broken = [*always, *(() if research else figures)]
    if broken:
        more = [f"and {len(broken) - _MAX_LISTED_FINDINGS} more"] if len(broken) > _MAX_LISTED_FINDINGS else []
        raise DisclosureError(
            f"{what}, says the policy of this site:\n- " + "\n- ".join([*broken[:_MAX_LISTED_FINDINGS], *more])
        )


def _policy_error(reason: str) -> SettingsError:
    return SettingsError(f"the policy cannot be used: {reason}; correct policy.toml")


def _parse_setting(key: str, value: Any) -> Any:
    if key in ("min_rows", "min_cell_count", "few_values", "widest"):
        return expect_integer(value, key, refuse=_policy_error)
    if key in ("farthest", "max_leverage", "waive_counts_below_epsilon", "epsilon_budget"):
        return expect_number(value, key, refuse=_policy_error)
    if key == "research" and not isinstance(value, bool):
        raise _policy_error(f"research should be true or false, found {abbreviate(value)}")
    if key in ("research", "unsigned_plans"):
        return value
    return frozenset(expect_strings(value, key, refuse=_policy_error))
