"""A site that sends the sums of rows it made up: python -m benchmarks.attacks.poisoning --help

Ten sites; a → b everywhere, c and e alone. One site adds rows, or changes some of its own, to forge the edge c — e. Its
sums are those of rows, so no check refuses them. `rows`: how many forge the edge, where all of them are extreme (three
standard deviations off, both ways), or where e takes the value of c in rows the site has. `sites`: whether leaving one
site out after the other names the forger, and whether its influence (`result.stability().influence`) is the largest.

`swap`: one site of ten swaps two columns by mistake. How often arrows between other columns change, how often a note
names the site and both columns, and how many honest studies have such a note. `tails`: one site moves 1 % of its rows
far out in c and e. How often the edge is forged, and what names the site. Both end with an error if fewer are named,
or more honest studies are blamed, than the limits below.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple, get_args

import numpy as np

from benchmarks.attacks.common import Rng, Table
from fedcdh.discovery.api import discover_from
from fedcdh.evaluation.simulation import MechanismModel, simulate
from fedcdh.inference.heterogeneity.unlike_clients import find_long_tails, find_swapped_columns
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries

FORGER, FORGED = "s0", frozenset("ce")
METHODS = ("evidence", "constraint")
SIZES = ((10, 100, 6), (10, 300, 6), (5, 300, 6), (3, 300, 6), (10, 300, 12))
"""Sites, rows of each, and variables."""
MIN_NAMED = {10: 0.5, 5: 0.5, 3: 0.25}
"""Smallest share of swaps that have to be named. Columns with the same distribution cannot be distinguished."""
MAX_BLAMED = 0.1
"""Largest share of honest studies with a note."""


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


def study_tables(kind: MechanismModel, seed: int, sites: int, rows: int, variables: int) -> dict[str, Table]:
    """Simulate sites of which two mechanisms differ, standardised."""
    study = simulate(kind, variables=variables, clients=sites, rows=rows, changing=2, seed=seed).standardised()
    return {site: dict(zip(study.names, table.T, strict=True)) for site, table in study.tables.items()}


def cohort_of(tables: dict[str, Table]) -> Cohort:
    names = list(next(iter(tables.values())))
    plan = StudyPlan.from_tables(tables, accept_differences=names)  # as with a declared plan, which sees no ranges
    return admit_summaries([summarize(table, plan, site) for site, table in tables.items()], plan)


def swap_columns(tables: dict[str, Table], seed: int) -> tuple[dict[str, Table], str, tuple[str, str]]:
    """Swap two columns at the first site."""
    site, table = next(iter(tables.items()))
    places = sorted(np.random.default_rng([seed, 5]).choice(len(table), 2, replace=False).tolist())
    one, other = (list(table)[place] for place in places)
    return {**tables, site: {**table, one: table[other], other: table[one]}}, site, (one, other)


def turned_elsewhere(honest: Cohort, swapped: Cohort, columns: tuple[str, str]) -> bool:
    """Return whether edges or arrows between other columns than these differ."""
    graphs = [discover_from(cohort, cohort.plan).graph for cohort in (honest, swapped)]
    arrows, lines = (
        [{edge for edge in edges if not {*edge} & {*columns}} for edges in some]
        for some in ([graph.arrows for graph in graphs], [graph.lines for graph in graphs])
    )
    return arrows[0] != arrows[1] or lines[0] != lines[1]


class SwapOutcome(NamedTuple):
    """The outcome of a study in which one site swaps two columns."""

    named: bool  # a note names site and columns
    others: bool  # a note names others
    honest: bool  # the honest study has a note
    turned: bool  # edges or arrows between other columns differ


def try_swap(kind: MechanismModel, seed: int, size: tuple[int, int, int], search: bool) -> SwapOutcome:
    """Swap two columns at a site; search for graphs only where that is asked for."""
    tables = study_tables(kind, seed, *size)
    swapped, site, columns = swap_columns(tables, seed)
    honest, cohort = cohort_of(tables), cohort_of(swapped)
    found = [(one.client, one.columns) for one in find_swapped_columns(cohort)]
    named = (site, columns) in found
    turned = search and turned_elsewhere(honest, cohort, columns)
    return SwapOutcome(named, len(found) > named, bool(find_swapped_columns(honest)), turned)


def show_swaps(seeds: range) -> list[str]:
    print(f"\ntwo columns swapped at one site (seeds {seeds[0]}..{seeds[-1]}): studies in which a note names site and")
    print(
        "columns, in which one names others, honest studies with a note, and of the first ten those whose other arrows"
    )
    print("change and those among them with a note")
    heads = ("named", "others", "honest", "turned", "and named")
    print(f"{'':10}{'sites':>7}{'rows':>7}{'variables':>11}" + "".join(f"{name:>11}" for name in heads))
    failures = []
    for kind in get_args(MechanismModel):
        for size in SIZES:
            tried = [try_swap(kind, seed, size, size[2] <= 6 and seed in seeds[:10]) for seed in seeds]
            counts = [sum(one[place] for one in tried) for place in range(4)]
            counts.append(sum(one.turned and one.named for one in tried))
            shown = "".join(f"{count:11}" for count in (counts if size[2] <= 6 else counts[:3]))
            print(f"{kind:10}{size[0]:7}{size[1]:7}{size[2]:11}{shown}", flush=True)
            if counts[0] < MIN_NAMED[size[0]] * len(seeds) or counts[2] > MAX_BLAMED * len(seeds):
                failures.append(f"swap, {kind}, {size[0]} sites: {counts[0]} named, {counts[2]} honest with a note")
    return failures


def move_rows_out(size: float) -> Callable[[Table, int, Rng], Table]:
    """Return a change of some rows: c and e are set to `size` standard deviations, positive and negative in turn."""

    def change(table: Table, rows: int, rng: Rng) -> Table:
        far = np.r_[size * (-1.0) ** np.arange(rows), np.full(len(table["c"]) - rows, np.nan)]
        return {**table, **{name: np.where(np.isnan(far), table[name], far) for name in "ce"}}

    return change


def try_tails(seed: int, rows: int, size: float) -> tuple[bool, bool, bool, bool]:
    """Return whether the edge is forged, the tails name the forger, leaving out does, and an honest study is blamed."""
    made = PoisonedStudy(seed, rows)
    cohort = made.forged(move_rows_out(size), rows // 100)
    honest = admit_summaries([summarize(made.tables[FORGER], made.plan, FORGER), *made.others], made.plan)
    result = discover_from(cohort, made.plan)
    forged = FORGED in result.graph.skeleton
    named = {(one.client, one.variable) for one in find_long_tails(cohort)} == {(FORGER, "c"), (FORGER, "e")}
    gone = forged and any(
        frozenset((edge.source, edge.target)) == FORGED and edge.gone_without == (FORGER,)
        for edge in result.stability().edges
    )
    return forged, named, gone, bool(find_long_tails(honest))


def show_tails(seeds: range) -> list[str]:
    print(f"\n1 % of the rows of one of ten sites far out in c and e (seeds {seeds[0]}..{seeds[-1]}): edges forged,")
    print("forgers named by their tails, by leaving them out, and honest studies with such a note")
    print(f"{'rows':>7}{'sd':>5}{'forged':>10}{'tails':>10}{'left out':>10}{'honest':>10}")
    failures = []
    for rows in (100, 1000):
        for size in (3.0, 10.0, 30.0):
            tried = [try_tails(seed, rows, size) for seed in seeds]
            forged, named, gone, blamed = (sum(one[place] for one in tried) for place in range(4))
            print(f"{rows:7}{size:5g}{forged:10}{named:10}{gone:10}{blamed:10}", flush=True)
            if (forged and (named < 0.8 * forged or gone < 0.8 * forged)) or blamed > MAX_BLAMED * len(seeds):
                failures.append(f"tails, {rows} rows, {size:g} sd: {forged} forged, {named} and {gone} named")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rows", "sites", "swap", "tails", "all"), nargs="?", default="all")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20, help="from 1000 on (default 20)")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (3 if options.quick else options.seeds))
    if options.what in ("rows", "all"):
        show_rows(seeds[:5], (1000, 10_000) if options.quick else (1000, 10_000, 100_000))
    if options.what in ("sites", "all"):
        show_sites(seeds, 1000)
    failures = show_swaps(seeds) if options.what in ("swap", "all") else []
    failures += show_tails(seeds) if options.what in ("tails", "all") else []
    if failures:
        raise SystemExit("beyond its limit:\n- " + "\n- ".join(failures))


if __name__ == "__main__":
    main()
