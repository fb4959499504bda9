"""Sites whose disk was set back during a secure sum: python -m benchmarks.attacks.set_back --help

A site of a secure sum signs one list of survivors. The server lets some sites sign a list with the victim, and others a
list without it. Sites that were set back after round 3, for example to a backup, do not remember the first list, and
sign both. If enough sites sign each list, both sums are unmasked, and their difference is the summary of the victim.

With n sites and the threshold t, both lists have t signatures as soon as 2t − n sites sign both. The script sets back
more and more sites: the state files alone, or the whole disks with the ledgers. It fails (exit code 1) if state files
alone are enough, or if whole disks are enough for fewer sites than 2t − n.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.common import Table, normal_rows
from benchmarks.attacks.secure_sum_terms import ANY_TERMS
from fedcdh.errors import SecureAggregationError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
from fedcdh.privacy.secure_aggregation.messages import Roster, SecAggTerms, SurvivorList
from fedcdh.privacy.secure_aggregation.server import SecAggServer
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

PARTS = ("state files", "whole disks")


@dataclass
class Site:
    """A site with its key, its rows, and a folder that can be set back."""

    name: str
    key: SigningKey
    table: Table
    folder: Path
    saved: dict[Path, bytes] = field(default_factory=dict)

    def answer(self, study: Study, request: Any) -> Any:
        client = SecAggClient(study, self.name, self.key, limits=ANY_TERMS)
        gate = ReleaseGate(ReleaseLedger(self.folder / "settings" / "releases.jsonl"))
        state = ClientStateFile(self.folder / "state.json")
        return state.answer(client, request, lambda: (self.summary(study.plan), True), gate)

    def summary(self, plan: StudyPlan) -> Summary:
        return summarize(self.table, plan, self.name)

    def save(self) -> None:
        self.saved = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def set_back(self, part: str) -> None:
        for path, content in self.saved.items():
            if part == "whole disks" or path.name == "state.json":
                path.write_bytes(content)


@dataclass
class HostileServer:
    """A server that collects what sites send in the first three rounds, and then asks for two sums."""

    study: Study
    sites: dict[str, Site]
    threshold: int
    masked: dict[str, Any] = field(default_factory=dict)
    shares: dict[str, Any] = field(default_factory=dict)

    def begin(self) -> tuple[Roster, SurvivorList]:
        honest = SecAggServer(self.study)
        terms = SecAggTerms.of(self.study, threshold=self.threshold)
        roster = honest.build_roster(terms, [site.answer(self.study, terms) for site in self.sites.values()])
        self.shares = {name: site.answer(self.study, roster) for name, site in self.sites.items()}
        delivery = honest.build_delivery(roster, self.shares.values())
        self.masked = {name: site.answer(self.study, delivery) for name, site in self.sites.items()}
        return roster, honest.list_survivors(roster, self.masked)

    def open(self, roster: Roster, present: SurvivorList, asked: list[str]) -> Aggregate:
        """Return the sum over the list, with the help of the sites that are asked."""
        honest = SecAggServer(self.study)
        confirmed = [self.sites[name].answer(self.study, present) for name in asked]
        confirmations = honest.collect_confirmations(roster, present, confirmed)
        opened = [self.sites[name].answer(self.study, confirmations) for name in asked]
        masked = [self.masked[name] for name in present.clients]
        return honest.unmask_sum(roster, self.shares, masked, present, opened)


def make_sites(number: int, folder: Path, seed: int) -> tuple[Study, dict[str, Site]]:
    names = [f"site{k:02d}" for k in range(number)]
    tables = {name: normal_rows(60, 2, np.random.default_rng([seed, k])) for k, name in enumerate(names)}
    keys = {name: SigningKey.generate() for name in names}
    study = Study(StudyPlan.from_tables(tables), keys={name: key.public for name, key in keys.items()})
    return study, {name: Site(name, keys[name], tables[name], folder / name) for name in names}


def open_victim(number: int, threshold: int, set_back: int, part: str, seed: int) -> bool:
    """Return whether the victim's summary is the difference of two sums, with so many sites set back."""
    with tempfile.TemporaryDirectory() as folder:
        study, sites = make_sites(number, Path(folder), seed)
        victim, *others = sites
        back, rest = others[:set_back], others[set_back:]
        server = HostileServer(study, sites, threshold)
        roster, everybody = server.begin()
        for name in back:
            sites[name].save()
        first = [victim, *back, *rest][:threshold]
        second = [*back, *(name for name in rest if name not in first)]
        without = replace(everybody, clients=tuple(name for name in everybody.clients if name != victim))
        try:
            one = server.open(roster, everybody, first)
            for name in back:
                sites[name].set_back(part)
            other = server.open(roster, without, second)
        except SecureAggregationError:
            return False
        return np.array_equal(one.total.moments - other.total.moments, sites[victim].summary(study.plan).moments)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[3, 5, 7])
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    failed = False
    print(f"Fewest sites that have to be set back until one summary is read off, seed {options.seed}")
    print(f"{'sites':>6}{'threshold':>11}{'2t - n':>8}" + "".join(f"{part:>14}" for part in PARTS))
    for n in options.sites:
        for threshold in sorted({max(n // 2 + 1, 3), 2 * n // 3 + 1}):
            least = {part: fewest_set_back(n, threshold, part, options.seed) for part in PARTS}
            cells = "".join(f"{'none' if found is None else found:>14}" for found in least.values())
            print(f"{n:6}{threshold:11}{2 * threshold - n:8}{cells}", flush=True)
            whole = least["whole disks"]
            failed |= least["state files"] is not None or (whole is not None and whole < 2 * threshold - n)
    return int(failed)


def fewest_set_back(n: int, threshold: int, part: str, seed: int) -> int | None:
    """The fewest sites that have to be set back; None if all others together are not enough."""
    return next((count for count in range(n) if open_victim(n, threshold, count, part, seed)), None)


if __name__ == "__main__":
    sys.exit(main())
