"""Recipes that single people out: python -m benchmarks.attacks.hostile_recipes --help

A coordinator chooses what every site does with its columns before it sums them. Each attack here is one or more plans
about two people beyond three standard deviations of `x`: a threshold, a group or a rounding that only they pass,
or two recipes that many people pass and that differ by these two. What the attacker computes is the mean of another
column among them, from the messages alone, up to rounding. A site with the default policy and an empty ledger has to
keep the last message at least. The script fails where all messages of an attack leave.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.attacks.common import SITE, Table
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Recipe, Threshold, UnitConversion
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous, Variable

PEOPLE = 2
"""Whom the attacks are about: the first rows."""
FIRST, SECOND = 3.0, 3.2


def hospital(rows: int, seed: int) -> Table:
    """Return rows whose first two are the only ones with an x above 3, a w from 3 to 4, and the label `rare`."""
    rng = np.random.default_rng([seed, rows])
    x = np.clip(rng.standard_normal(rows), -2.9, 2.9)
    x[:PEOPLE] = 3.5, 3.7
    w = x.copy()
    w[-rows // 20 :] = rng.uniform(4.1, 4.9, len(w[-rows // 20 :]))
    ward = rng.choice(["a", "b"], rows).astype(object)
    ward[:PEOPLE] = "rare"
    ward[PEOPLE : rows // 3] = "c"
    return {"x": x, "w": w, "ward": ward, "y": 0.3 * x + rng.standard_normal(rows)}


@dataclass(frozen=True)
class Attack:
    """Recipes of one column, one plan for each, and how their messages give the mean of y among two people."""

    column: str
    recipes: tuple[Recipe | None, ...]
    read: Callable[[list[Summary], list[StudyPlan]], float]
    location: float = 0.0

    def plans(self) -> list[StudyPlan]:
        """Return the plans, with the other column in all of them."""
        return [self._plan(number, recipe) for number, recipe in enumerate(self.recipes)]

    def _plan(self, number: int, recipe: Recipe | None) -> StudyPlan:
        variable: Variable
        if isinstance(recipe, LabelRecipe):
            levels = recipe.levels or tuple(sorted({recipe.level_of(label) for label in ("a", "b", "c", "rare")}))
            variable = Categorical(self.column, levels, recipe=recipe)
        elif recipe is not None and recipe.kind == "categorical":
            variable = Categorical(self.column, ("no", "yes"), recipe=recipe)
        else:
            variable = Continuous(self.column, self.location, recipe=recipe)
        return StudyPlan((variable, Continuous("y")), (SITE,), study=f"plan {number}")


def _sums(summary: Summary, plan: StudyPlan) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the first column of x, or of its levels, alone and times y."""
    first, y = plan.layout.spans[plan.names[0]], plan.layout.spans["y"].start
    scale = 1.0 if isinstance(plan.variables[0], Categorical) else plan.clip
    moments = summary.moments.astype(np.float64) / GRID**2
    return moments[0, first] * scale, moments[first, y] * scale * plan.clip


def _level(level: str) -> Callable[[list[Summary], list[StudyPlan]], float]:
    def read(summaries: list[Summary], plans: list[StudyPlan]) -> float:
        count, total = _sums(summaries[0], plans[0])
        place = plans[0].variables[0].levels.index(level)
        return float(total[place] / count[place])

    return read


def _difference(summaries: list[Summary], plans: list[StudyPlan]) -> float:
    """Return the mean of y weighted by the difference of two versions of x."""
    place = -1 if isinstance(plans[0].variables[0], Categorical) else 0
    (count, total), (fewer, part) = (_sums(*pair) for pair in zip(summaries, plans, strict=True))
    return float((total[place] - part[place]) / (count[place] - fewer[place]))


def _rest(summaries: list[Summary], plans: list[StudyPlan]) -> float:
    """Return the mean of y among those who are in neither of two groups."""
    (count, total), (other, part) = (_sums(*pair) for pair in zip(summaries, plans, strict=True))
    whole, y = summaries[0].rows, _mean_total(summaries[0], plans[0])
    return float((y - total[0] - part[-1]) / (whole - count[0] - other[-1]))


def _mean_total(summary: Summary, plan: StudyPlan) -> float:
    return float(summary.moments[0, plan.layout.spans["y"].start] / GRID**2 * plan.clip)


def _mean_of_others_zero(summaries: list[Summary], plans: list[StudyPlan]) -> float:
    """Return the mean of y weighted by x, which is 0 for everybody else."""
    count, total = _sums(summaries[0], plans[0])
    return float(total[0] / count[0])


def _groups(**groups: list[str]) -> LabelRecipe:
    return LabelRecipe(tuple((name, tuple(labels)) for name, labels in groups.items()))


ATTACKS = {
    "threshold of few": Attack("x", (NumberRecipe(threshold=Threshold(FIRST)),), _level("yes")),
    "list of few": Attack("ward", (LabelRecipe((("yes", ("rare",)),), (), "no"),), _level("yes")),
    "clip to few": Attack("x", (NumberRecipe(clip=(FIRST, FIRST + 0.4)),), _mean_of_others_zero, FIRST),
    "round to few": Attack("x", (NumberRecipe(clip=(0, 9), step=6.2),), _mean_of_others_zero),
    "two thresholds": Attack(
        "w", (NumberRecipe(threshold=Threshold(FIRST)), NumberRecipe(threshold=Threshold(4.0))), _difference
    ),
    "two groupings": Attack(
        "ward", (_groups(p=["a", "b"], q=["c", "rare"]), _groups(p=["a", "b", "rare"], q=["c"])), _rest
    ),
    "two clips": Attack("x", (NumberRecipe(clip=(-9, SECOND)), NumberRecipe(clip=(-9, FIRST))), _difference),
    "clip and none": Attack("x", (None, NumberRecipe(clip=(-9, FIRST))), _difference),
    "two roundings": Attack(
        "w",
        (
            NumberRecipe(clip=(2.95, 9), step=2.0),
            NumberRecipe(conversion=UnitConversion(1.0, -0.95), clip=(2, 9), step=2.0),
        ),
        _difference,
    ),
}


def run(attack: Attack, table: Table) -> tuple[float, int, str]:
    """Return the error in standard deviations of y, the number of messages that left, and why nothing is in them."""
    plans = attack.plans()
    summaries = [summarize(table, plan, SITE) for plan in plans]
    error = abs(attack.read(summaries, plans) - _target(attack, table)) / float(np.std(table["y"]))
    with tempfile.TemporaryDirectory() as folder:
        context = ReleaseContext(SITE, Policy(), gate=ReleaseGate(ReleaseLedger(Path(folder, "releases.jsonl"))))
        sent = []
        for number, plan in enumerate(plans):
            try:
                context.policy.check_plan(plan)
                sent.append(release_summary(table, plan, context)[0])
            except DisclosureError as refused:
                return error, number, str(refused).splitlines()[1].removeprefix("- ")
    with np.errstate(invalid="ignore", divide="ignore"):
        read = attack.read(sent, plans)
    return error, len(plans), "" if np.isfinite(read) else "the level was merged, so nobody has it in the summary"


def _target(attack: Attack, table: Table) -> float:
    """Return the mean of y among the two, weighted as the messages weight them."""
    x, y = table["x"][:PEOPLE], table["y"][:PEOPLE]
    weights = np.ones(PEOPLE)
    if attack is ATTACKS["clip and none"]:
        weights = x - FIRST
    return float(weights @ y / weights.sum())


def main(arguments: list[str] | None = None) -> int:
    """Print what every attack learns, and whether its messages leave; return 1 if all of one attack do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000, 1001, 1002])
    options = parser.parse_args(arguments)
    succeeded = 0
    print(f"{'attack':18} {'seed':>5} {'error (sd)':>11} {'left':>5}  refused, or nothing in it, because")
    for name, attack in ATTACKS.items():
        for seed in options.seeds:
            error, left, reason = run(attack, hospital(options.rows, seed))
            succeeded += not reason
            print(f"{name:18} {seed:5} {error:11.2g} {left:2} of {len(attack.recipes)}  {reason[:90] or 'NOT REFUSED'}")
    return 1 if succeeded else 0


if __name__ == "__main__":
    sys.exit(main())
