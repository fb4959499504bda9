"""Two plans about the same rows, and one person's values from both: python -m benchmarks.attacks.two_plans --help

Sums are linear, and exact. With the columns φ of one plan and ψ of another, and a number g that both plans have alike,
Σ (φ − ψ) g is the sum of g over the rows in which the two plans round another number x differently. A coordinator who
writes both plans chooses these rows:

- "thresholds": the scale of x is so large that rounding leaves only whether x exceeds a threshold. The thresholds of
  the two plans lie above and below one person.
- "roundings": the two plans are alike, but for the location of x, by 1e-7 of its scale at 1000 rows. A few values of x
  lie so near the middle between two steps of the grid that they are rounded up by one plan, and down by the other. In
  about a third of all attempts that is one person.

Each summary passes the policy by itself. The site is asked for both, with its default policy and one ledger; with
--ledgers two, each goes through a ledger of its own, so that nothing compares the plans. The script fails (exit code 1)
if both summaries leave one ledger, and a person's values are read off to within 0.1 standard deviations.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.attacks.common import SITE, Array, Table, normal_rows, plan_of
from benchmarks.bench_leverage import DISTRIBUTIONS
from fedcdh.errors import DisclosureError
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Continuous

NEAR = 0.1
"""Standard deviations within which a value counts as read off."""
TwoPlans = tuple[StudyPlan, StudyPlan]


@dataclass(frozen=True)
class Outcome:
    """How far an attack came: summaries that left, and the errors of the person's other numbers, in sd."""

    left: int
    errors: Array

    @property
    def succeeded(self) -> bool:
        return self.left == 2 and bool(np.median(np.abs(self.errors)) <= NEAR)


def threshold_plans(table: Table) -> TwoPlans:
    """Plans in which v0 says who is among the two, and among the three, with the largest values."""
    honest, values = plan_of(table), np.sort(table["v0"])
    scale = 150_000.0 * float(values.std())  # a step of the grid is then 17 standard deviations
    step = scale * honest.clip / GRID

    def plan_with(number: int) -> StudyPlan:
        threshold = float(values[-number - 1] + values[-number]) / 2
        location = threshold - 0.5 * step
        return with_first(honest, Continuous("v0", location, scale, location, scale))

    return plan_with(2), plan_with(3)


def rounding_plans(table: Table) -> TwoPlans:
    """Plans that differ in the location of v0, by so little that about one row is rounded differently."""
    honest = plan_of(table)
    first = honest.variables[0]
    assert isinstance(first, Continuous)
    shift = first.scale * honest.clip / GRID / len(table["v0"])
    moved = replace(first, location=first.location + shift, centre=first.centre_and_spread[0])
    return with_first(honest, replace(first, centre=first.centre_and_spread[0])), with_first(honest, moved)


def with_first(plan: StudyPlan, variable: Continuous) -> StudyPlan:
    return replace(plan, variables=(variable, *plan.variables[1:]))


ATTACKS: dict[str, Callable[[Table], TwoPlans]] = {"thresholds": threshold_plans, "roundings": rounding_plans}


def release_both(table: Table, plans: TwoPlans, ledgers: int) -> list[Summary]:
    """The summaries that leave a site which is asked for one after the other."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, plan in enumerate(plans):
            gate = ReleaseGate(ReleaseLedger(Path(folder) / f"releases-{number % ledgers}.jsonl"))
            context = ReleaseContext(SITE, gate=gate)
            try:
                context.policy.check_plan(plan)
                found.append(release_summary(table, plan, context)[0])
            except DisclosureError:
                break
    return found


def read_difference(summaries: list[Summary], plans: TwoPlans) -> Array | None:
    """The other numbers of the one row that the plans encode differently; None if it is not one row."""
    spans = plans[0].layout.spans
    first = spans["v0"].start
    linear = [spans[name].start for name in plans[0].names[1:]]
    one, other = (summary.moments for summary in summaries)
    changed = int(one[0, first] - other[0, first]) // GRID
    if abs(changed) != 1:
        return None
    numbers = [variable for variable in plans[0].variables[1:] if isinstance(variable, Continuous)]
    scaled = changed * (one[first, linear] - other[first, linear]) / GRID * plans[0].clip
    return np.array([v.location + v.scale * z for v, z in zip(numbers, scaled, strict=True)])


def attack(name: str, n: int, d: int, seed: int, ledgers: int = 1) -> Outcome:
    """Ask one site for two summaries, and compare what they disclose with the nearest row."""
    table = normal_rows(n, d, np.random.default_rng([seed, n, d]))
    plans = ATTACKS[name](table)
    summaries = release_both(table, plans, ledgers)
    read = read_difference(summaries, plans) if len(summaries) == 2 else None
    if read is None:
        return Outcome(len(summaries), np.full(d - 1, np.inf))
    others = np.stack([table[f"v{j}"] for j in range(1, d)], axis=-1)
    errors = (others - read) / others.std(axis=0)
    return Outcome(2, errors[np.abs(errors).max(axis=1).argmin()])


def chance_of_a_row(n: int, d: int, seeds: range) -> float:
    """The share of random rows whose numbers all lie that near to those of one of n others."""
    hits = 0
    for seed in seeds:
        rows = np.stack([*normal_rows(n + 1, d, np.random.default_rng([seed, n, d, 1])).values()], axis=-1)[:, 1:]
        hits += bool((np.abs((rows[1:] - rows[0]) / rows.std(axis=0)) <= NEAR).all(axis=1).any())
    return hits / len(seeds)


def honest_plans(table: Table, change: str) -> TwoPlans:
    """A plan from profiles, and one of a later study: with other ranges, fewer variables, or rounded ranges."""
    first = plan_of(table)
    numbers = [variable for variable in first.variables if isinstance(variable, Continuous)]
    if change == "other ranges":  # as from the profiles of other sites
        moved = [Continuous(v.name, v.location + 0.07 * v.scale, 1.1 * v.scale) for v in numbers]
    elif change == "fewer variables":
        moved = [Continuous(v.name, v.location, v.scale, *v.centre_and_spread) for v in numbers[::2]]
    else:  # as somebody declares them
        moved = [Continuous(v.name, round(v.location, 1), float(f"{v.scale:.1g}")) for v in numbers]
    return first, replace(first, variables=tuple(moved))


def show_honest(seeds: range, rows: list[int]) -> None:
    """Print how many second summaries by honest plans are refused for their columns together."""
    changes = ("other ranges", "fewer variables", "rounded ranges")
    print(f"6 numbers, seeds {seeds[0]}..{seeds[-1]}: second summaries by an honest plan that are refused for")
    print("all columns together, of those that pass with a ledger of their own")
    print(f"{'':32}{'n':>8}" + "".join(f"{change:>18}" for change in changes))
    for name, draw in DISTRIBUTIONS.items():
        for n in rows:
            cells = []
            for change in changes:
                tables = [{f"v{j}": draw(np.random.default_rng([seed, j]), n) for j in range(6)} for seed in seeds]
                pairs = [(table, honest_plans(table, change)) for table in tables]
                alone = [pair for pair in pairs if len(release_both(*pair, 2)) == 2]
                refused = sum("all columns" in reason_of_refusal(*pair) for pair in alone)
                cells.append(f"{refused} of {len(alone)}")
            print(f"{name:32}{n:8}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def reason_of_refusal(table: Table, plans: TwoPlans) -> str:
    """Why the second summary does not leave after the first; "" if it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        gate = ReleaseGate(ReleaseLedger(Path(folder) / "releases.jsonl"))
        try:
            for plan in plans:
                release_summary(table, plan, ReleaseContext(SITE, gate=gate))
        except DisclosureError as refused:
            return str(refused)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("attack", "honest"), nargs="?", default="attack")
    parser.add_argument("--seeds", type=int, default=20, help="from 1000 on (default 20)")
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--numbers", type=int, default=6)
    parser.add_argument("--ledgers", choices=("one", "two"), default="one", help="two: nothing compares the plans")
    options = parser.parse_args()
    if options.what == "honest":
        show_honest(range(1000, 1000 + options.seeds), options.rows)
        return 0
    seeds, ledgers = range(1000, 1000 + options.seeds), 1 if options.ledgers == "one" else 2
    print(f"{options.numbers} numbers, seeds {seeds[0]}..{seeds[-1]}, {options.ledgers} ledger(s), default policy")
    print(
        f"{'plans':12}{'n':>8}{'first left':>12}{'both left':>11}{'read off':>10}{'median error':>15}{'by chance':>11}"
    )
    succeeded = False
    for name in ATTACKS:
        for n in options.rows:
            found = [attack(name, n, options.numbers, seed, ledgers) for seed in seeds]
            read = [one for one in found if one.succeeded]
            error = f"{np.median(np.abs(np.concatenate([one.errors for one in read]))):.1e} sd" if read else "-"
            left = [sum(one.left >= count for one in found) for count in (1, 2)]
            chance = chance_of_a_row(n, options.numbers, seeds)
            print(f"{name:12}{n:8}{left[0]:12}{left[1]:11}{len(read):10}{error:>15}{100 * chance:9.0f} %", flush=True)
            succeeded |= bool(read)
    return int(succeeded and ledgers == 1)


if __name__ == "__main__":
    sys.exit(main())
