"""A site that sends the sums of rows it made up: python -m benchmarks.attacks.poisoning --help

Ten sites; a → b everywhere, c and e alone. One site adds rows, or changes some of its own, to forge the edge c — e. Its
sums are those of rows, so no check refuses them. `rows`: how many forge the edge, where all of them are extreme (three
standard deviations off, both ways), or where e takes the value of c in rows the site has. `sites`: whether leaving one
site out after the other names the forger, and whether its influence (`result.stability().influence`) is the largest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from benchmarks.attacks.common import Rng, Table
from fedcdh.discovery.api import discover_from
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries

FORGER, FORGED = "s0", frozenset("ce")
METHODS = ("evidence", "constraint")


def draw_honest_rows(rows: int, rng: Rng) -> Table:
    a, b, c, e = rng.standard_normal((4, rows))
    return {"a": a, "b": a + b, "c": c, "e": e}


def draw_extreme_rows(table: Table, rows: int, rng: Rng) -> Table:
    """So many rows more, far out."""
    more = draw_honest_rows(rows, rng)
    more["c"] = more["e"] = 3.0 * (-1.0) ** np.arange(rows)
    return {name: np.r_[table[name], more[name]] for name in table}


def copy_rows(table: Table, rows: int, rng: Rng) -> Table:
    """Set e to c in some rows, each of which still looks as before."""
    return {**table, "e": np.where(np.arange(len(table["e"])) < rows, table["c"], table["e"])}


def simulate_study(seed: int, rows: int, sites: int = 10) -> tuple[dict[str, Table], StudyPlan]:
    tables = {f"s{k}": draw_honest_rows(rows, np.random.default_rng([seed, k, 9])) for k in range(sites)}
    return tables, StudyPlan.from_tables(tables)


class PoisonedStudy:
    """Honest sites, and one that changes what it has."""

    def __init__(self, seed: int, rows: int) -> None:
        self.rng = np.random.default_rng([seed, 10])
        self.tables, self.plan = simulate_study(seed, rows)
        self.others = [summarize(t, self.plan, site) for site, t in self.tables.items() if site != FORGER]

    def forged(self, change: Callable[[Table, int, Rng], Table], rows: int) -> Cohort:
        false: Summary = summarize(change(self.tables[FORGER], rows, self.rng), self.plan, FORGER)
        return admit_summaries([false, *self.others], self.plan)


def rows_to_forge(seed: int, total: int, change: Callable[[Table, int, Rng], Table], method: str) -> float:
    """The fewest rows, to within a tenth, that forge the edge; infinite where all of the site's do not."""
    made = PoisonedStudy(seed, total // 10)

    def found(rows: int) -> bool:
        return FORGED in discover_from(made.forged(change, rows), made.plan, method=method).graph.skeleton

    low, high = 1, total // 10
    if not found(high):
        return np.inf
    while high - low > max(1, low // 10):
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return float(high)


def show_rows(seeds: range, sizes: tuple[int, ...]) -> None:
    print(f"rows of one site in ten that forge an edge, median (seeds {seeds[0]}..{seeds[-1]})")
    print(f"{'all rows':>10}{'method':>12}{'extreme rows':>16}{'/ sqrt(n)':>11}{'copied values':>16}{'/ sqrt(n)':>11}")
    for total in sizes:
        for method in METHODS:
            cells = ""
            for change in (draw_extreme_rows, copy_rows):
                middle = float(np.median([rows_to_forge(seed, total, change, method) for seed in seeds]))
                cells += f"{middle:16.0f}{middle / total**0.5:11.2f}"
            print(f"{total:10}{method:>12}{cells}", flush=True)


def show_sites(seeds: range, rows: int) -> None:
    print(f"\nleaving out one of ten sites of {rows} rows (seeds {seeds[0]}..{seeds[-1]}): of the forged edges, those")
    print("that are gone without the forger alone, and those where its influence is the largest; of other false edges,")
    print("those that are gone without some site")
    names = ("edge forged", "forger named", "most influence", "other false", "flagged")
    print(f"{'e is c in':>12}{'method':>12}" + "".join(f"{name:>16}" for name in names))
    for share in (0.0, 0.1, 0.3, 1.0):
        for method in METHODS:
            cells = "".join(f"{count:16}" for count in count_errors(seeds, rows, share, method))
            print(f"{share:12.0%}{method:>12}{cells}", flush=True)


def count_errors(seeds: range, rows: int, share: float, method: str) -> tuple[int, int, int, int, int]:
    forged = named = first = others = flagged = 0
    for seed in seeds:
        made = PoisonedStudy(seed, rows)
        cohort = made.forged(copy_rows, int(share * rows))
        stability = discover_from(cohort, made.plan, method=method).stability()
        for edge in stability.edges:
            pair = frozenset((edge.source, edge.target))
            if not edge.mark or pair == frozenset("ab"):
                continue
            if pair == FORGED and share:
                forged += 1
                named += edge.gone_without == (FORGER,)
                first += stability.influence[0].client == FORGER
            else:
                others += 1
                flagged += bool(edge.gone_without)
    return forged, named, first, others, flagged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rows", "sites", "both"), nargs="?", default="both")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20, help="from 1000 on (default 20)")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (3 if options.quick else options.seeds))
    if options.what != "sites":
        show_rows(seeds[:5], (1000, 10_000) if options.quick else (1000, 10_000, 100_000))
    if options.what != "rows":
        show_sites(seeds, 1000)


if __name__ == "__main__":
    main()
