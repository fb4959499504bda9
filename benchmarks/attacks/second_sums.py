"""Two secure sums over other clients, and plain summaries after one: python -m benchmarks.attacks.second_sums --help

A secure sum hides each summary among those of all clients. The coordinator has one sum over all sites, and then asks
for more about the same rows, to subtract it:

- "follows": a sum by a later plan without the victim, made as `fedcdh plan --like` makes it;
- "no history": a sum by a plan without the victim, which does not say that it follows the first;
- "other name", "other scales": such a plan of another study name, or with other scales of all numbers;
- "plain": no second sum, but the summary of every other site without masks, by a plan that does not follow the first;
- "plain scales": the same, with other scales.

The first sum minus the second, or minus the plain summaries, is the summary of the victim: the script reads the number
of its rows and its means. Every site follows its default policy and one ledger; with --ledgers new, each request meets
an empty ledger, so that nothing is compared. The script fails (exit code 1) if the means are read off to within 0.01
standard deviations although each site has one ledger.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.common import Array, normal_rows
from benchmarks.attacks.secure_sum_terms import ANY_TERMS
from benchmarks.attacks.set_back import HostileServer, Site
from fedcdh.errors import DisclosureError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
from fedcdh.summaries.client_changes import change_clients
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Continuous

NEAR = 0.01
"""Standard deviations within which a mean counts as read off."""


@dataclass
class GatedSite(Site):
    """A site whose summaries leave by its policy and its ledger, as they do by the commands."""

    ledgers: str = "one"

    def answer(self, study: Study, request: Any) -> Any:
        client = SecAggClient(study, self.name, self.key, limits=ANY_TERMS)
        state = ClientStateFile(self.folder / f"state-{study.plan.fingerprint[:12]}.json")
        gate = self.gate(study.plan)
        return state.answer(client, request, lambda: (self.release(study.plan, masked=True), True), gate)

    def gate(self, plan: StudyPlan) -> ReleaseGate:
        name = "releases" if self.ledgers == "one" else f"releases-{plan.fingerprint[:12]}"
        return ReleaseGate(ReleaseLedger(self.folder / f"{name}.jsonl"))

    def release(self, plan: StudyPlan, *, masked: bool = False) -> Summary:
        context = ReleaseContext(self.name, gate=self.gate(plan))
        return release_summary(self.table, plan, context, masked=masked)[0]


def rescale(plan: StudyPlan) -> StudyPlan:
    scaled = tuple(replace(v, scale=1.01 * v.scale) if isinstance(v, Continuous) else v for v in plan.variables)
    return replace(plan, variables=scaled)


def without(plan: StudyPlan, victim: str) -> StudyPlan:
    return replace(plan, clients=tuple(name for name in plan.clients if name != victim))


LATER_PLANS: dict[str, Callable[[StudyPlan, str], StudyPlan]] = {
    "follows": lambda plan, victim: change_clients(plan, without=[victim]),
    "no history": without,
    "other name": lambda plan, victim: replace(without(plan, victim), study="again"),
    "other scales": lambda plan, victim: rescale(without(plan, victim)),
    "plain": without,
    "plain scales": lambda plan, victim: rescale(without(plan, victim)),
}


def read_totals(plan: StudyPlan, moments: Iterable[np.ndarray]) -> Array:
    """The number of rows and the sum of every number, in the units of the sites."""
    first = sum(np.asarray(one[0], dtype=object) for one in moments)
    places = [plan.layout.spans[name].start for name in plan.names]
    rows = float(first[0]) / GRID**2
    numbers = [v for v in plan.variables if isinstance(v, Continuous)]
    sums = [
        v.location * rows + v.scale * plan.clip * float(first[place]) / GRID**2
        for v, place in zip(numbers, places, strict=True)
    ]
    return np.array([rows, *sums])


def open_sum(study: Study, sites: dict[str, GatedSite]) -> np.ndarray:
    server = HostileServer(study, dict(sites), threshold=2 * len(sites) // 3 + 1)
    roster, present = server.begin()
    return server.open(roster, present, list(sites)).total.moments


@dataclass(frozen=True)
class Outcome:
    """Sums that the coordinator got, and the error of the victim's means read off them, in standard deviations."""

    got: bool
    error: float
    refusal: str = ""

    @property
    def succeeded(self) -> bool:
        return self.got and self.error <= NEAR


def attack(kind: str, sites: int, rows: int, seed: int, ledgers: str = "one") -> Outcome:
    """Have a sum over all sites opened, ask for the rest, and subtract."""
    names = [f"site{k:02d}" for k in range(sites)]
    tables = {name: normal_rows(rows + 10 * k, 3, np.random.default_rng([seed, k])) for k, name in enumerate(names)}
    keys = {name: SigningKey.generate() for name in names}
    study = Study(StudyPlan.from_tables(tables), keys={name: key.public for name, key in keys.items()})
    victim, *others = names
    with tempfile.TemporaryDirectory() as folder:
        gated = {n: GatedSite(n, keys[n], tables[n], Path(folder) / n, ledgers=ledgers) for n in names}
        for site in gated.values():
            site.folder.mkdir()
        everybody = read_totals(study.plan, [open_sum(study, gated)])
        plan = LATER_PLANS[kind](study.plan, victim)
        asked = {name: gated[name] for name in others}
        try:
            if kind.startswith("plain"):
                moments = [site.release(plan).moments for site in asked.values()]
            else:
                moments = [open_sum(Study(plan, keys={name: keys[name].public for name in others}), asked)]
        except DisclosureError as refused:
            return Outcome(False, np.inf, str(refused))
    found = everybody - read_totals(plan, moments)
    true = np.stack([*tables[victim].values()], axis=-1)
    errors = np.abs(found[1:] / found[0] - true.mean(axis=0)) / true.std(axis=0)
    return Outcome(True, float(errors.max()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3, help="from 1000 on (default 3)")
    parser.add_argument("--ledgers", choices=("one", "new"), default="one", help="new: nothing compares the requests")
    options = parser.parse_args()
    seeds = range(1000, 1000 + options.seeds)
    print(f"{options.sites} sites, {options.rows} rows, seeds {seeds[0]}..{seeds[-1]}, {options.ledgers} ledger(s)")
    print(f"{'second request':16}{'answered':>10}{'read off':>10}{'largest error':>15}")
    succeeded = False
    for kind in LATER_PLANS:
        found = [attack(kind, options.sites, options.rows, seed, options.ledgers) for seed in seeds]
        answered, read = sum(one.got for one in found), sum(one.succeeded for one in found)
        error = f"{max(one.error for one in found if one.got):.1e} sd" if answered else "-"
        print(f"{kind:16}{answered:10}{read:10}{error:>15}", flush=True)
        succeeded |= bool(read)
    return int(succeeded and options.ledgers == "one")


if __name__ == "__main__":
    sys.exit(main())
