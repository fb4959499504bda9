"""Coverage and width of the intervals of effects: python -m benchmarks.bench_effects --help

Part `given`: the graph is given. Six variables, z → x, i → x, x → m → y, z → y, p → y, linear, with a level of its own
for every variable at every site. Noise has several shapes; "varies with the cause" has noise of y and m whose size
depends on their first cause. Sites are alike, or the arrow m → y has a strength of its own at every site and y has
noise of its own size (the truth is then the mean strength over all sites that there might be). Total effects of x, z
and i on y and m are estimated.

Part `learned`: the graph is found by `discover` in studies of `simulate`. Truth is that of the simulation, the mean
over sites. "No path" are pairs with an effect for which the found graph says 0. "Possible" are pairs whose effect is
not identifiable; covered means that one of the possible intervals holds the truth.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

import fedcdh
from fedcdh.discovery.effect import Effect
from fedcdh.discovery.effect_estimation import estimate_effect
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.summaries import Continuous, StudyPlan
from fedcdh.summaries.aggregation import Cohort

NAMES = ("i", "z", "p", "x", "m", "y")
GRAPH = PartialGraph.from_dag(NAMES, [("z", "x"), ("i", "x"), ("x", "m"), ("m", "y"), ("z", "y"), ("p", "y")])
STRENGTHS = {("z", "x"): 0.8, ("i", "x"): 0.7, ("x", "m"): 0.9, ("m", "y"): 0.8, ("z", "y"): 0.6, ("p", "y"): 0.9}
PAIRS = (("x", "y"), ("z", "y"), ("i", "y"), ("x", "m"), ("z", "m"))
SIZES = {
    "2 x 300": (300, 300),
    "5 unequal": (40, 60, 100, 200, 600),
    "10 x 100": (100,) * 10,
    "20 x 30": (30,) * 20,
}
SPREAD = 0.3
"""Standard deviation of the strength of m → y over sites that differ."""
Sampler = Callable[[np.random.Generator, int], np.ndarray]
SHAPES: Mapping[str, Sampler] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n) * 3**0.5,
    "exponential": lambda rng, n: rng.exponential(1.0, n) - 1,
    "t, 5 degrees": lambda rng, n: rng.standard_t(5, n) / (5 / 3) ** 0.5,
    "varies with the cause": lambda rng, n: rng.standard_normal(n),
}
VARYING = "varies with the cause"


@dataclass(frozen=True)
class Tally:
    """Counts of the intervals of one kind."""

    covered: list[bool]
    widths: list[float]
    errors: list[float]

    def row(self) -> str:
        """Return count, coverage, mean error and median width."""
        if not self.covered:
            return "      0"
        return (
            f"{len(self.covered):7d} {np.mean(self.covered):9.3f} {np.mean(self.errors):+9.4f} "
            f"{np.median(self.widths):9.3f}"
        )


def new_tally() -> Tally:
    """Return an empty tally."""
    return Tally([], [], [])


def count(tally: Tally, interval: tuple[float, float], value: float, truth: float) -> None:
    """Add one interval."""
    tally.covered.append(interval[0] <= truth <= interval[1])
    tally.widths.append(interval[1] - interval[0])
    tally.errors.append(value - truth)


def draw_site(rng: np.random.Generator, rows: int, shape: str, differs: bool) -> dict[str, np.ndarray]:
    """Draw the rows of one site."""
    strengths = dict(STRENGTHS)
    size = 1.0
    if differs:
        strengths["m", "y"] += SPREAD * rng.standard_normal()
        size = rng.uniform(0.7, 1.5)
    columns: dict[str, np.ndarray] = {}
    for name in NAMES:
        noise = SHAPES[shape](rng, rows)
        if shape == VARYING and name in ("m", "y"):
            first = columns["x" if name == "m" else "m"]
            noise = noise * np.sqrt(0.4 + 0.6 * (first - first.mean()) ** 2 / first.var())
        column = rng.standard_normal() + noise * (size if name == "y" else 1.0)
        for (tail, head), strength in strengths.items():
            if head == name:
                column = column + strength * columns[tail]
        columns[name] = column
    return columns


def truth_of(cause: str, outcome: str) -> float:
    """Return the total effect, by paths."""
    number = {name: place for place, name in enumerate(NAMES)}
    weights = np.zeros((len(NAMES), len(NAMES)))
    for (tail, head), strength in STRENGTHS.items():
        weights[number[tail], number[head]] = strength
    return float(np.linalg.inv(np.eye(len(NAMES)) - weights)[number[cause], number[outcome]])


def draw_cohort(seed: int, size: str, shape: str, differs: bool) -> Cohort:
    """Draw a study."""
    rng = np.random.default_rng([seed, sorted(SIZES).index(size), sorted(SHAPES).index(shape), differs])
    sites = [f"site{number:02d}" for number in range(len(SIZES[size]))]
    plan = StudyPlan(tuple(Continuous(name, 0.0, 2.0) for name in NAMES), tuple(sites))
    tables = zip(sites, SIZES[size], strict=True)
    return fedcdh.add_up(
        [fedcdh.summarize(draw_site(rng, rows, shape, differs), plan, site) for site, rows in tables], plan
    )


def estimates(cohort: Cohort, changing: frozenset[str], adjust: str) -> Iterator[tuple[Effect, float]]:
    """Yield all effects of one study, with their truth."""
    for cause, outcome in PAIRS:
        yield estimate_effect(cohort, GRAPH, cause, outcome, adjust=adjust, changing=changing), truth_of(cause, outcome)


def run_given(seeds: range) -> None:
    """Print the coverage with the true graph."""
    print("\nGiven graph, 95 % intervals, total effects (parents of the cause adjusted for, unless it says optimal)")
    print(f"{'sites':10s} {'size':10s} {'noise':22s} {'interval':10s}  number  coverage      bias     width")
    pooled: dict[tuple[str, str], Tally] = defaultdict(new_tally)
    for differs in (False, True):
        kind = "differ" if differs else "alike"
        for size in SIZES:
            for shape in SHAPES:
                found: dict[str, Tally] = defaultdict(new_tally)
                for seed in seeds:
                    cohort = draw_cohort(seed, size, shape, differs)
                    changing = frozenset({"y"}) if differs else frozenset[str]()
                    for name in ("parents", "optimal"):
                        for effect, truth in estimates(cohort, changing, name):
                            if effect.value is None or effect.interval is None:
                                continue
                            if name == "optimal":
                                count(found["optimal"], effect.interval, effect.value, truth)
                                continue
                            count(found["headline"], effect.interval, effect.value, truth)
                            for pooling in ("fixed", "random"):
                                one = getattr(effect, pooling)
                                if one is not None:
                                    count(found[pooling], one.interval, one.value, truth)
                for name in ("headline", "fixed", "random", "optimal"):
                    print(f"{kind:10s} {size:10s} {shape:22s} {name:10s} {found[name].row()}", flush=True)
                    if name in ("headline", "optimal"):
                        _merge(pooled[kind, name], found[name])
                        _merge(pooled[f"{kind}, {shape}", name], found[name])
    print()
    for (kind, name), tally in pooled.items():
        print(f"{kind:34s} {name:10s} {tally.row()}")


def _merge(whole: Tally, part: Tally) -> None:
    whole.covered.extend(part.covered)
    whole.widths.extend(part.widths)
    whole.errors.extend(part.errors)


def run_learned(seeds: range) -> None:
    """Print the coverage with a graph that was found in the same data."""
    print("\nLearned graph, studies of `simulate` (6 variables, 10 sites of 100 rows, 2 mechanisms differ)")
    print(f"{'model':10s} {'pairs':34s}  number  coverage      bias     width")
    for model in ("linear", "general"):
        found: dict[str, Tally] = defaultdict(new_tally)
        states: dict[str, int] = defaultdict(int)
        for seed in seeds:
            study = fedcdh.simulate(model, seed=seed).standardised()
            result = fedcdh.discover(study.columns("site"), domain="site")
            _count_study(study, result, found, states)
        for name in ("estimated", "estimated, effect not 0", "no path", "possible"):
            print(f"{model:10s} {name:34s} {found[name].row()}")
        print(f"{model:10s} " + ", ".join(f"{name}: {number}" for name, number in sorted(states.items())))


def _count_study(study: object, result: object, found: dict[str, Tally], states: dict[str, int]) -> None:
    """Count the effects of one study."""
    for cause, outcome in permutations(study.names, 2):  # type: ignore[attr-defined]
        truth = study.effect(cause, outcome)  # type: ignore[attr-defined]
        effect = result.effect(cause, outcome)  # type: ignore[attr-defined]
        if not effect.identifiable:
            states["not identifiable"] += 1
            ends = [one.interval for one in effect.possible if one.interval is not None]
            if ends:
                inside = any(low <= truth <= high for low, high in ends)
                whole = min(low for low, _ in ends), max(high for _, high in ends)
                found["possible"].covered.append(inside)
                found["possible"].widths.append(whole[1] - whole[0])
                found["possible"].errors.append(0.0)
        elif effect.adjusted_for is None:
            if abs(truth) > 1e-9:
                states["no path found, but there is an effect"] += 1
                count(found["no path"], (0.0, 0.0), 0.0, truth)
            else:
                states["no path found, and none there"] += 1
        elif effect.value is not None and effect.interval is not None:
            states["estimated"] += 1
            count(found["estimated"], effect.interval, effect.value, truth)
            if abs(truth) > 1e-9:
                count(found["estimated, effect not 0"], effect.interval, effect.value, truth)


def run_rounding(seeds: range) -> None:
    """Print how far slopes of encoded rows are from those of the rows themselves."""
    largest = 0.0
    for seed in seeds:
        rng = np.random.default_rng([seed, 7])
        tables = {f"site{number}": draw_site(rng, 200, "t, 5 degrees", differs=True) for number in range(4)}
        plan = StudyPlan.from_tables(tables)
        cohort = fedcdh.add_up([fedcdh.summarize(table, plan, site) for site, table in tables.items()], plan)
        effect = estimate_effect(cohort, GRAPH, "x", "y", adjust="parents")
        within = {
            name: np.concatenate([table[name] - table[name].mean() for table in tables.values()]) for name in NAMES
        }
        design = np.column_stack([within[name] for name in ("x", "i", "z")])
        slope = np.linalg.lstsq(design, within["y"], rcond=None)[0][0]
        if effect.fixed is not None:
            largest = max(largest, abs(effect.fixed.value - slope) / effect.fixed.standard_error)
    print(
        f"\nRounding to the grid, {len(seeds)} studies of 4 x 200 rows: slopes are at most {largest:.1e} standard "
        "errors from those of the rows"
    )


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="+", default=["given", "learned", "rounding"], choices=["given", "learned", "rounding"]
    )
    parser.add_argument("--seeds", default="1000:1020", help="first:end, for the given graph")
    parser.add_argument("--learned-seeds", default="1000:1010", help="first:end, for the learned graph")
    options = parser.parse_args()
    given, learned = (range(*map(int, text.split(":"))) for text in (options.seeds, options.learned_seeds))
    print(f"bench_effects: seeds {options.seeds} (given), {options.learned_seeds} (learned)")
    if "given" in options.parts:
        run_given(given)
    if "learned" in options.parts:
        run_learned(learned)
    if "rounding" in options.parts:
        run_rounding(given)


if __name__ == "__main__":
    main()
