"""A server that opens mixtures of sites, with helpers: python -m benchmarks.attacks.domain_mixtures --help

The server has the total of the sites' sums of features, some mixtures of them (Σ ±x), and the sums of sites that help
it. It looks for the sums of a single other site in two ways. By linear algebra it looks for a combination that leaves
one site. By trial it looks for all counts of a level that fit: a count is a whole number, and is found if one value
fits. The table shows both, and the second also for mixtures with random weights of 30 bits in the place of signs. It
ends with an error if a site's sums are found where the rule of the sites admits the mixtures and no more helpers take
part than the rule allows for. It also ends with an error if none are found where one more helps, or where there are as
many sums as sites: an attack that never succeeds shows nothing. Helpers are those who help most, of all sets of sites.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fedcdh.errors import SecureAggregationError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.terms import SecAggTerms
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.domain_mixtures import MAX_MIXTURES, DomainMixtures, find_smallest_sum, select_signs
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers
from fedcdh.summaries.variables import Categorical, Continuous

ROWS = 12
"""Rows of a site: few, so that all counts can be tried."""


@dataclass(frozen=True)
class Outcome:
    """The result of one attack; sites are admitted where their rule lets the mixtures be opened."""

    sites: int
    mixtures: int
    smallest: int
    is_admitted: bool
    helpers: int
    read: int  # sites whose means are computed
    counted: int  # sites whose count is found by trial
    counted_by_weights: int  # the same, with weights of 30 bits

    @property
    def is_failure(self) -> bool:
        """Return whether a site is read though the rule holds, or none is where there are as many sums as sites."""
        if self.helpers <= self.smallest - 2:
            return self.is_admitted and bool(self.read or self.counted)
        return self.read == 0


def make_cohort(sites: int, seed: int) -> Cohort:
    """Return sites with one number and one level that 3 to 9 of their 12 rows have."""
    rng = np.random.default_rng([seed, sites, 55])
    plan = StudyPlan((Continuous("x"), Categorical("y", ("no", "yes"))), tuple(f"s{k:02}" for k in range(sites)))
    summaries = []
    for client in plan.clients:
        ill = np.arange(ROWS) < rng.integers(3, 10)
        table = {"x": rng.standard_normal(ROWS) + rng.standard_normal(), "y": np.where(ill, "yes", "no")}
        summaries.append(summarize(table, plan, client))
    return add_up(summaries, plan)


def read_means(known: Aggregate, helping: dict[str, Integers]) -> dict[str, Integers]:
    """Return the first moments of single sites that follow from the sum, the mixtures and what helpers know."""
    assert known.mixtures is not None
    clients = known.total.clients
    weights = np.vstack([np.ones(len(clients)), known.mixtures.signs])
    sums = np.vstack([known.total.moments[0], known.mixtures.sums]).astype(np.float64)
    honest = [place for place, client in enumerate(clients) if client not in helping]
    for place, client in enumerate(clients):
        if client in helping:
            sums -= np.outer(weights[:, place], helping[client])
    found = {}
    for place, wanted in zip(honest, np.eye(len(honest)), strict=True):
        combination = np.linalg.lstsq(weights[:, honest].T, wanted, rcond=None)[0]
        if np.allclose(combination @ weights[:, honest], wanted, atol=1e-8):
            found[clients[place]] = np.rint(combination @ sums).astype(np.int64)
    return found


def count_read(known: Aggregate, cohort: Cohort, helping: tuple[str, ...]) -> int:
    """Return of how many single sites all means are right, if these sites help."""
    firsts = dict(zip(cohort.clients, cohort.first_moments, strict=True))
    found = read_means(known, {client: firsts[client] for client in helping})
    return sum(np.abs(means - firsts[client]).max() <= 1e-6 * GRID**2 * ROWS for client, means in found.items())


def count_by_trial(weights: Integers, counts: Integers, rows: int) -> int:
    """Return for how many sites only one count fits the sums, weights @ counts."""
    target = tuple((weights @ counts).tolist())
    found = 0
    for place in range(len(counts)):
        others = np.delete(weights, place, axis=1)
        reachable = {tuple([0] * len(weights))}
        for column in others.T:
            steps = [tuple((column * count).tolist()) for count in range(rows + 1)]
            reachable = {tuple(map(sum, zip(one, step, strict=True))) for one in reachable for step in steps}
        values = [
            count
            for count in range(rows + 1)
            if tuple((np.array(target) - weights[:, place] * count).tolist()) in reachable
        ]
        found += len(values) == 1
    return found


def attack(sites: int, mixtures: int, helpers: int, seed: int = 0, *, trial: bool = True) -> Outcome:
    """Run both attacks on a sum with mixtures, whether sites would admit it or not."""
    cohort = make_cohort(sites, seed)
    plan = cohort.plan
    known = Aggregate.from_total(cohort.total, plan, DomainMixtures.of(cohort.summaries, plan, mixtures))
    signs = select_signs(plan, mixtures, plan.clients)
    read, helping = max((count_read(known, cohort, chosen), chosen) for chosen in combinations(plan.clients, helpers))
    honest = [client not in helping for client in plan.clients]
    counts = cohort.first_moments[honest][:, plan.layout.spans["y"]][:, -1] // GRID**2
    long = np.random.default_rng([seed, 30]).integers(1 << 30, size=signs.shape)
    by_trial = [
        count_by_trial(np.vstack([np.ones(sites, dtype=np.int64), one])[:, honest], counts, ROWS) if trial else 0
        for one in (signs, long)
    ]
    smallest = find_smallest_sum(signs)
    return Outcome(sites, mixtures, smallest, _is_admitted(plan, mixtures), helpers, read, *by_trial)


def _is_admitted(plan: StudyPlan, mixtures: int) -> bool:
    study = Study(plan, keys={client: SigningKey.generate().public for client in plan.clients})
    try:
        SecAggTerms.of(study, mixtures=mixtures)
    except SecureAggregationError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[4, 5, 6, 7, 8, 10])
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    print("        |          |          |         | single sites of which is found")
    print("  sites | mixtures | smallest | helpers |  means | a count | a count, weights of 30 bits")
    failures = []
    for sites in options.sites:
        for mixtures in range(1, min(sites, MAX_MIXTURES + 1)):
            smallest = attack(sites, mixtures, 0, options.seed, trial=False).smallest
            for helpers in sorted({0, 1, max(smallest - 2, 0), max(smallest - 1, 0)}):
                if helpers > sites - 2:
                    continue
                trial = sites - helpers <= 5
                found = attack(sites, mixtures, helpers, options.seed, trial=trial)
                counted = [str(one) if trial else "-" for one in (found.counted, found.counted_by_weights)]
                verdict = "" if found.is_admitted else "  refused by sites"
                print(
                    f"{sites:7} |{mixtures:9} |{smallest:9} |{helpers:8} |{found.read:7} |{counted[0]:>8} |"
                    f"{counted[1]:>8}{verdict}"
                )
                if found.is_failure:
                    failures.append(f"{sites} sites, {mixtures} mixtures, {helpers} helpers")
    if failures:
        raise SystemExit("the rule does not say what is found with:\n- " + "\n- ".join(failures))


if __name__ == "__main__":
    main()
