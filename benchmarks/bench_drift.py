"""What differs where: do intervals hold, who is flagged wrongly, who rightly? python -m benchmarks.bench_drift --help

x and z cause y at every client, where their means differ; the mechanism of y is the same but for what the setting says.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedcdh.discovery.drift import Drift, estimate_drift
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.plan import StudyPlan

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]
ODD = "c2"
"""The client that differs, where one does."""


def normal_noise(rng: np.random.Generator, rows: int) -> Array:
    return rng.standard_normal(rows)


def heavy_tailed_noise(rng: np.random.Generator, rows: int) -> Array:
    return rng.standard_t(5, rows) / np.sqrt(5 / 3)


def skewed_noise(rng: np.random.Generator, rows: int) -> Array:
    return rng.exponential(1.0, rows) - 1


@dataclass(frozen=True)
class Setting:
    """One kind of study."""

    name: str
    clients: int = 5
    rows: int = 100
    noise: Noise = normal_noise
    uneven: bool = False  # noise differs between clients, nothing else does
    curved: bool = False  # tanh for a straight line
    label: bool = False  # y is whether the value is positive
    level: float = 0.0  # added at the odd client: to the level, to the effect of x, to the log of the noise
    slope: float = 0.0
    spread: float = 0.0

    def tables(self, seed: int) -> dict[str, dict[str, NDArray[np.generic]]]:
        return {f"c{k}": self._table(np.random.default_rng([seed, k, 31]), k) for k in range(self.clients)}

    def _table(self, rng: np.random.Generator, k: int) -> dict[str, NDArray[np.generic]]:
        odd = f"c{k}" == ODD
        x = rng.standard_normal(self.rows) + 0.3 * (k % 3)
        z = 0.5 * x + rng.standard_normal(self.rows)
        spread = np.exp(self.spread * odd + (0.3 * (k % 3) if self.uneven else 0.0))
        slope = 1 + self.slope * odd
        y = self.level * odd + slope * (np.tanh(x) if self.curved else x) - z + spread * self.noise(rng, self.rows)
        return {"x": x, "z": z, "y": np.where(y > 0, "yes", "no") if self.label else y}


def count_drifts(setting: Setting, seed: int) -> tuple[Drift, ...]:
    tables = setting.tables(seed)
    plan = StudyPlan.from_tables(tables)
    cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
    return estimate_drift(cohort, {"y": ("x", "z")})


NULLS = (
    Setting("normal, n = 8", rows=8),
    Setting("normal, n = 15", rows=15),
    Setting("normal, n = 100"),
    Setting("normal, n = 1000", rows=1000),
    Setting("normal, n = 100, 20 clients", clients=20),
    Setting("normal, n = 5, 120 clients", clients=120, rows=5),
    Setting("noise differs, n = 15", rows=15, uneven=True),
    Setting("noise differs, n = 100", uneven=True),
    Setting("t with 5 d.f., n = 100", noise=heavy_tailed_noise),
    Setting("exponential, n = 100", noise=skewed_noise),
    Setting("tanh, n = 100", curved=True),
    Setting("tanh, n = 1000", curved=True, rows=1000),
    Setting("label, n = 100", label=True),
    Setting("label, n = 1000", label=True, rows=1000),
)
TRUTH = {"effect of x": 1.0, "effect of z": -1.0}
CHANGES = tuple(
    (Setting(f"{what} by {by}, n = {rows}", rows=rows, **{field: by}), quantity)
    for what, field, quantity, sizes in (
        ("level", "level", "level", (0.3, 0.6, 3.0)),
        ("effect", "slope", "effect of x", (0.3, 0.6, 3.0)),
        ("log noise", "spread", "noise", (0.2, 0.4, 1.0)),
    )
    for by in sizes
    for rows in (100,)
)


def true_drift(setting: Setting) -> Mapping[str, float]:
    """What intervals should hold, where it is known: the same at all clients."""
    if setting.curved or setting.label:
        return {}
    return TRUTH if setting.uneven else {**TRUTH, "noise": 1.0}


def show_false_positives(seeds: range) -> None:
    print(
        f"\nThe mechanism is the same everywhere (noise apart, where it says so), seeds {seeds.start}..{seeds.stop - 1}"
    )
    print("coverage of 95 % intervals; spread of deviations (1 if normal); studies with any false flag, by quantity")
    print(f"{'setting':30}{'effects':>9}{'noise':>7}{'spread':>8}{'any':>7}{'level':>7}{'effects':>9}{'noise':>7}")
    for setting in NULLS:
        known, kept, away = true_drift(setting), {"effect": [], "noise": []}, []
        flags = dict.fromkeys(("any", "level", "effect", "noise"), 0)
        for seed in seeds:
            found = [d for d in count_drifts(setting, seed) if not (setting.uneven and d.quantity == "noise")]
            kinds = {_kind(drift) for drift in found if drift.flagged}
            for name in flags:
                flags[name] += name in kinds or (name == "any" and bool(kinds))
            away += [drift.deviation for drift in found if drift.client == "c0" and drift.deviation is not None]
            for drift in found:
                if drift.quantity in known and drift.low is not None and drift.high is not None:
                    kept[_kind(drift)].append(drift.low <= known[drift.quantity] <= drift.high)
        effects, noise = (f"{np.mean(inside):.3f}" if inside else "-" for inside in kept.values())
        shares = [count / len(seeds) for count in flags.values()]
        print(
            f"{setting.name:30}{effects:>9}{noise:>7}{np.std(away):8.2f}"
            f"{shares[0]:7.3f}{shares[1]:7.3f}{shares[2]:9.3f}{shares[3]:7.3f}",
            flush=True,
        )


def show_power(seeds: range) -> None:
    print(f"\nOne of five clients differs in one thing, seeds {seeds.start}..{seeds.stop - 1}")
    print("studies in which it is flagged for this; in which it deviates most in this; in which another is flagged")
    print(f"{'setting':30}{'flagged':>9}{'most':>7}{'others':>8}")
    for setting, quantity in CHANGES:
        flagged = most = others = 0
        for seed in seeds:
            found = count_drifts(setting, seed)
            right = [drift for drift in found if drift.quantity == quantity]
            flagged += any(drift.flagged and drift.client == ODD for drift in right)
            most += max(right, key=lambda drift: abs(drift.deviation or 0.0)).client == ODD
            others += any(drift.flagged and drift.client != ODD for drift in found)
        shares = (count / len(seeds) for count in (flagged, most, others))
        print("{:30}{:9.2f}{:7.2f}{:8.3f}".format(setting.name, *shares), flush=True)


def _kind(drift: Drift) -> str:
    first = drift.quantity.split()[0]
    return "level" if first == "share" else first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1500", help="first:last+1 (default 1000:1500)")
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    show_false_positives(seeds)
    show_power(seeds)


if __name__ == "__main__":
    main()
