"""What a site has told already, on its own disk: a program that answers by itself must not be asked until it has told
everything.

The policy looks at one message. But two summaries of nearly the same rows differ by the rows that changed, and a plan
after the other looks at the same rows from ever other sides. So a site that answers unattended keeps a list: of
every plan it answered and every column it described, with a digest of what it said. The same again may leave again,
to a server that was restarted, say. Anything else is for people to decide. What it has told in further rounds of a plan
is in a ledger beside the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fedcdh._io.storage import hold_lock, read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json
from fedcdh._io.text import is_digest, to_readable_json
from fedcdh.errors import DisclosureError, FedCDHError
from fedcdh.messages.round_files import MAX_TEXT_BYTES, round_budget_from_json, round_budget_to_json
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.plan import StudyPlan

Answer = TypeVar("Answer")

FORMAT = "fedcdh-answered-1"
BYTES_AT_MOST = 16_000_000
_PLAN, _COLUMN = "plan", "column"


@dataclass(frozen=True)
class Answered:
    """The list of what was told, in a file that only this site has."""

    path: Path
    max_plans: int = 1

    def plan(self, fingerprint: str, told: str) -> None:
        """Notes the digest of the answer to a plan, or refuses that answer."""
        self._note({f"{_PLAN} {fingerprint}": told})

    def columns(self, told: Mapping[str, str]) -> None:
        """Notes the digests of columns that are described, or refuses to describe them."""
        self._note({f"{_COLUMN} {name}": one for name, one in told.items()})

    def further(self, plan: StudyPlan, answer: Callable[[RoundBudget], tuple[Answer, RoundBudget]]) -> Answer:
        """The answer in a further round, whose ledger afterwards is on disk before the answer is out of here."""
        with self._alone():
            path = self.path.with_name(f"{self.path.stem}.{plan.fingerprint}.ledger.json")
            before = self._ledger(path, plan)
            answered, after = answer(before)
            if after != before:
                write_atomically(path, round_budget_to_json(after, plan), private=True)
            return answered

    def check_plan(self, fingerprint: str, told: str) -> None:
        """Refuses where this plan was not answered, or not with what was told; to be called while answering further."""
        known = self._read().get(f"{_PLAN} {fingerprint}")
        if known is None:
            raise DisclosureError(
                "this site has sent no summary by this plan, so it answers no further questions about it. Have the "
                f"coordinator ask for the summary first. {self._advice}"
            )
        if known != told:
            raise DisclosureError(self._changed(f"{_PLAN} {fingerprint}"))

    def _note(self, told: Mapping[str, str]) -> None:
        with self._alone():
            known = self._read()
            if changed := [what for what, one in told.items() if known.get(what, one) != one]:
                raise DisclosureError(self._changed(changed[0]))
            both = {**known, **told}
            plans = sum(what.startswith(f"{_PLAN} ") for what in both)
            if plans > self.max_plans and both != known:
                raise DisclosureError(
                    f"this site has answered {plans - 1} plans, and may answer {self.max_plans} about the same "
                    f"rows. {self._advice}"
                )
            if both != known:
                write_atomically(self.path, to_readable_json({"format": FORMAT, "told": both}), private=True)

    def _changed(self, what: str) -> str:
        return (
            f"this site has answered before, and would now say something else about {what[:80]}: its rows have "
            f"changed, and the difference would tell about single rows. {self._advice}"
        )

    @property
    def _advice(self) -> str:
        return (
            "If those responsible for data protection agree, raise max_plans in the site's settings, or move "
            f"{self.path} away to begin anew"
        )

    def _read(self) -> dict[str, str]:
        if not self.path.exists():
            return {}
        content = read_regular_file(
            self.path, BYTES_AT_MOST, "the list of what this site has told", refuse=DisclosureError
        )
        found: Any = parse_json(content, refuse=self._refuse)
        if not isinstance(found, dict) or found.keys() != {"format", "told"} or found["format"] != FORMAT:
            raise self._refuse(f"it is not of the format {FORMAT!r}")
        if not isinstance(found["told"], dict) or not all(map(is_digest, found["told"].values())):
            raise self._refuse("it does not hold digests")
        return dict(found["told"])

    def _ledger(self, path: Path, plan: StudyPlan) -> RoundBudget:
        if not path.exists():
            return RoundBudget()
        content = read_regular_file(path, MAX_TEXT_BYTES, "the ledger of further rounds", refuse=DisclosureError)
        try:
            return round_budget_from_json(content, plan)
        except FedCDHError as problem:
            raise DisclosureError(f"{path} cannot be read ({problem}), so nothing more is told by this plan") from None

    def _refuse(self, reason: str) -> DisclosureError:
        return DisclosureError(f"{self.path} cannot be read ({reason}), so nothing leaves. {self._advice}")

    def _alone(self) -> AbstractContextManager[None]:
        """Two answers at once must not both be the last one allowed."""
        return hold_lock(self.path.with_name(f"{self.path.name}.lock"))
