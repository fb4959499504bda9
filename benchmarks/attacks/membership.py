"""Whether somebody whose values are known was at a site: python -m benchmarks.attacks.membership --help

The attacker has the site's summary, that of a large public population with the same distribution, and a person's
values. The score is (mean at the site − mean of the population)ᵀ C⁻¹ (the person − mean of the population), over all
sums of features and of their products, C being their covariance in the population: the most powerful one for large n.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.attacks.common import Array, Attacker, Rng, normal_rows, plan_of
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID

PUBLIC, SAMPLE, ASKED = 1_000_000, 20_000, 2000
_BLOCK = 20_000


class MembershipTest:
    """What the public population tells."""

    def __init__(self, d: int, rng: Rng, public: int = PUBLIC) -> None:
        self.plan = plan_of(normal_rows(SAMPLE, d, rng))
        self.attacker = Attacker(self.plan)
        self.upper = np.triu_indices(self.plan.layout.n_columns)
        blocks = (summarize(normal_rows(_BLOCK, d, rng), self.plan, "here") for _ in range(public // _BLOCK))
        self.mean = sum(block.moments.astype(np.float64) for block in blocks)[self.upper] / public / GRID**2
        sample = self.products(self.attacker.scaled(normal_rows(SAMPLE, d, rng))) - self.mean
        eigenvalues, vectors = np.linalg.eigh(sample.T @ sample / SAMPLE)
        told = eigenvalues > 1e-9 * eigenvalues[-1]
        self.whiten = vectors[:, told] / np.sqrt(eigenvalues[told])

    def products(self, rows: Array) -> Array:
        features = self.attacker.features(rows) / GRID
        return features[:, self.upper[0]] * features[:, self.upper[1]]

    def scores(self, moments: Array, rows: Array) -> Array:
        """Higher: more likely one of these."""
        away = (moments[self.upper] / moments[0, 0] - self.mean) @ self.whiten
        return np.asarray((self.products(rows) - self.mean) @ self.whiten @ away)


def attack_power(tester: MembershipTest, n: int, d: int, rng: Rng) -> tuple[float, float]:
    """AUC, and the share of those who were there that is found when 1 % of others are wrongly said to have been."""
    table = normal_rows(n, d, rng)
    moments = summarize(table, tester.plan, "here").moments.astype(np.float64)
    there = tester.attacker.scaled({name: column[:ASKED] for name, column in table.items()})
    inside = tester.scores(moments, there)
    outside = np.sort(tester.scores(moments, tester.attacker.scaled(normal_rows(ASKED, d, rng))))
    auc = np.searchsorted(outside, inside).mean() / len(outside)
    return float(auc), float((inside > np.quantile(outside, 0.99)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, help="sites of each size, from 1000 on (default 3)")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (1 if options.quick else options.seeds))
    tester = MembershipTest(6, np.random.default_rng([1000, 6]))
    print(f"6 numbers, {tester.whiten.shape[1]} directions, population of {PUBLIC:,}, seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'n':>9}{'AUC':>8}{'found at 1 %':>15}")
    for n in (50, 232, 10_000) if options.quick else (50, 100, 232, 500, 1000, 5000, 20_000, 100_000):
        auc, found = np.mean(
            [attack_power(tester, n, 6, np.random.default_rng([seed, n, 6])) for seed in seeds], axis=0
        )
        print(f"{n:9}{auc:8.3f}{100 * found:13.1f} %", flush=True)


if __name__ == "__main__":
    main()
