"""Which summaries leave under the default policy, and what that costs: python -m benchmarks.bench_release_gate --help

heart: the four hospitals of the UCI heart disease data, with codes as labels, each under the default policy. Rows are
those that have all variables. Steps of one round of advice are added one after the other: chol is left out, since one
hospital has none and another few; oldpeak is whether it is above 0, since one hospital writes few values; levels of cp
and restecg are grouped; numbers have two feature columns instead of four (`fedcdh plan --feature-columns 2`).

labels: simulated tables of six numbers and four labels, one of which has a level that 5 % have (`labelled_tables`),
four sites. How many sites leave, how many by the rule before (12 people with every level and every pair of levels, or
nothing), and how the graph from what leaves compares with the one from exact summaries of all rows: F1 of skeleton and
directions, and edges that are not true. Where no site leaves there is no graph, which counts as 0.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks import rare_pairs, red_team
from benchmarks.attacks.common import Attacker, is_within, recover_rows_jointly
from benchmarks.labelled_tables import Table, simulate_labelled
from fedcdh.discovery.api import discover_from
from fedcdh.errors import DisclosureError
from fedcdh.evaluation.experiments.real_data import data_folder
from fedcdh.graphs.metrics import compare_graph
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.rules import check_cell_counts
from fedcdh.privacy.disclosure.thresholds import required_cell_count, required_rows
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

ATTACK_STEPS = 100
"""Steps of the attack on all rows of a hospital."""
HEART_LABELS = ("sex", "cp", "fbs", "restecg", "exang", "num")
GROUPS = {"cp": {"1": "1/2", "2": "1/2"}, "restecg": {"1": "1/2", "2": "1/2"}}


@dataclass(frozen=True)
class Advice:
    """What a study of the heart data follows."""

    name: str
    without: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()  # numbers of which only the sign is used, as a label
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: int = 4


HEART_STEPS = (
    Advice("all variables"),
    Advice("without chol", ("chol",)),
    Advice("and oldpeak > 0", ("chol",), ("oldpeak",)),
    Advice("and levels grouped", ("chol",), ("oldpeak",), GROUPS),
    Advice("and two feature columns", ("chol",), ("oldpeak",), GROUPS, 2),
    Advice("two columns, no groups, without trestbps", ("chol", "trestbps"), ("oldpeak",), {}, 2),
)


def heart_folder() -> Path:
    """Where the data are unless a folder is named: in that of the other real data."""
    return data_folder() / "heart_4hospitals"


def read_heart(path: Path, advice: Advice) -> dict[str, Table]:
    """The complete rows of every hospital, prepared as advised."""
    with (path / "data.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("domain", *advice.without)]
    tables: dict[str, Table] = {}
    for site in sorted({row["domain"] for row in rows}):
        own = [row for row in rows if row["domain"] == site and all(row[name] for name in names)]
        if own:
            tables[site] = {name: _column(name, [row[name] for row in own], advice) for name in names}
    return tables


def _column(name: str, texts: Sequence[str], advice: Advice) -> np.ndarray[Any, Any]:
    if name in advice.positive:
        return np.array(["yes" if float(text) > 0 else "no" for text in texts])
    if name not in HEART_LABELS:
        return np.array([float(text) for text in texts])
    groups = advice.groups.get(name, {})
    return np.array([groups.get(code, code) for code in (f"{float(text):.0f}" for text in texts)])


def try_release(tables: Mapping[str, Table], plan: StudyPlan) -> dict[str, Summary | str]:
    """What leaves each site under the default policy, or why nothing does."""
    found: dict[str, Summary | str] = {}
    for site, table in tables.items():
        try:
            Policy().check_plan(plan)
            found[site], _ = release_summary(table, plan, ReleaseContext(site))
        except DisclosureError as refused:
            found[site] = str(refused).splitlines()[1].removeprefix("- ").split(":")[0]
    return found


def leaves_by_counts(summary: Summary, plan: StudyPlan) -> bool:
    """Whether the rule before, of levels and pairs alike, finds nothing."""
    people = required_cell_count(plan)
    return not any(check_cell_counts(summary, plan, required_rows(plan), people, people))


def show_heart(path: Path) -> None:
    print("heart disease, four hospitals, codes as labels, default policy")
    for advice in HEART_STEPS:
        tables = {site: table for site, table in read_heart(path, advice).items() if len(table["age"]) > 1}
        plan = StudyPlan.from_tables(tables, family=Hermite(advice.columns))
        found = try_release(tables, plan)
        sent = {site: one for site, one in found.items() if isinstance(one, Summary)}
        print(f"\n{advice.name}: {len(sent)} of 4 hospitals, {len(plan.names)} of 11 variables leave")
        print(f"  rows needed {required_rows(plan)}, people with a level {required_cell_count(plan)}")
        for site, one in found.items():
            rows = len(tables[site]["age"])
            if isinstance(one, str):
                print(f"  {site} ({rows} rows): {one}")
            else:
                levels = sum(count for names, count in one.coarsened.items() if len(names) == 1)
                counts = sum(count for names, count in one.coarsened.items() if len(names) == 2)
                print(f"  {site} ({rows} rows): leaves; {levels} levels merged, {counts} counts rounded")
        if len(sent) > 1:
            _compare_with_exact(tables, sent, plan)
            _attack_rare_pairs([tables[site] for site in sent], plan)
            _attack_numbers({site: tables[site] for site in sent}, sent, plan)


def _attack_rare_pairs(tables: Sequence[Table], plan: StudyPlan) -> None:
    """Print what `benchmarks.attacks.rare_pairs` finds about people with rare pairs of labels in what left."""
    total = rare_pairs.add_up(one for table in tables for one in rare_pairs.attack_site(table, plan, certain=False))
    for attack in sorted({attack for attack, _ in total}):
        (found, of), (guessed, _) = total[attack, "sent"], total[attack, "guess"]
        p = rare_pairs.p_value(total, attack, "sent")
        print(f"  rare pairs, {attack}: {found} of {of} found, {guessed} guessed, p = {p:.2g}")


def _attack_numbers(tables: Mapping[str, Table], sent: Mapping[str, Summary], plan: StudyPlan) -> None:
    """Print how many rows are found from the sums, and what follows about who is outermost; beside guesses."""
    attacker, hits = Attacker(plan), {"rows": red_team.Hits(), "who is outermost": red_team.Hits()}
    for number, (site, table) in enumerate(sorted(tables.items())):
        rng = np.random.default_rng([1000, number])
        true, guesses = attacker.scaled(table), attacker.guesses(sent[site], len(table["age"]), rng)
        found = recover_rows_jointly([(attacker, sent[site])], rng, restarts=1, steps=ATTACK_STEPS)
        near = (is_within(true, one, red_team.NEAR) for one in (found, guesses))
        hits["rows"] += red_team.count_hits(*near)
        hits["who is outermost"] += red_team.extreme_people(table, attacker, sent[site], rng)
    for attack, one in hits.items():
        print(f"  {attack}: {one.found} of {one.of} found, {one.guessed} guessed, p = {one.p_value:.2g}")


def _compare_with_exact(tables: Mapping[str, Table], sent: Mapping[str, Summary], plan: StudyPlan) -> None:
    """Print how many edges the graph from what left shares with the one from exact summaries of the same sites."""
    absent = set(plan.clients) - set(sent)
    exact = add_up([summarize(tables[site], plan, site) for site in sent], plan, without=absent)
    ours, theirs = (
        {frozenset(edge) for edge in discover_from(known, plan, rounds="one").graph.skeleton}
        for known in (add_up(list(sent.values()), plan, without=absent), exact)
    )
    print(f"  edges: {len(ours)}, from exact summaries of the same sites {len(theirs)}, in both {len(ours & theirs)}")


def show_labels(sizes: Sequence[int], seeds: range, columns: int) -> None:
    print(f"six numbers, four labels, a level of 5 %, four sites; seeds {seeds[0]}..{seeds[-1]}, {columns} columns")
    heads = ("n", "sites", "before", "leave", "levels", "counts", "skeleton", "", "direction", "", "false edges", "")
    print("".join(f"{head:>9}" for head in heads) + "  (of what leaves, and exact)")
    for n in sizes:
        before = leave = levels = counts = sites = 0
        scores = []
        for seed in seeds:
            study = simulate_labelled(n, seed)
            plan = StudyPlan.from_tables(study.tables, family=Hermite(columns))
            exact = {site: summarize(table, plan, site) for site, table in study.tables.items()}
            found = try_release(study.tables, plan)
            sent = {site: one for site, one in found.items() if isinstance(one, Summary)}
            sites += len(exact)
            before += sum(leaves_by_counts(exact[site], plan) for site in sent)
            leave += len(sent)
            marks = [(len(names), count) for one in sent.values() for names, count in one.coarsened.items()]
            levels += sum(count for width, count in marks if width == 1)
            counts += sum(count for width, count in marks if width == 2)
            scores.append([*_score(sent, plan, study.arrows), *_score(exact, plan, study.arrows)])
        mean = np.mean(scores, axis=0)
        shown = "".join(f"{mean[k]:9.3f}{mean[k + 3]:9.3f}" for k in range(3))
        print(f"{n:9}{sites:9}{before:9}{leave:9}{levels:9}{counts:9}{shown}", flush=True)


def _score(summaries: Mapping[str, Summary], plan: StudyPlan, arrows: frozenset[tuple[str, str]]) -> list[float]:
    if not summaries:
        return [0.0, 0.0, 0.0]
    known = add_up(list(summaries.values()), plan, without=set(plan.clients) - set(summaries))
    found = compare_graph(discover_from(known, plan, rounds="one").graph, arrows)
    return [found.skeleton.f1, found.direction.f1, float(found.skeleton.claimed - found.skeleton.correct)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("heart", "labels"))
    parser.add_argument("--data", type=Path, default=heart_folder(), help="folder of the data")
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 300, 500, 1000])
    parser.add_argument("--columns", type=int, default=4, help="feature columns of a number (default 4)")
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000)")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    if options.part == "labels":
        show_labels(options.rows, range(options.first, options.first + options.seeds), options.columns)
    elif (options.data / "data.csv").is_file():
        show_heart(options.data)
    else:
        raise SystemExit(f"{options.data} holds no data.csv; name the folder of the heart data with --data")


if __name__ == "__main__":
    main()
