"""Which false summaries are refused, and by which check: python -m benchmarks.bench_validation --help

There are two senders of false sums. The careless one damages them by accident: the sums need not even be whole steps of
the grid. The insider knows every identity in `fedcdh.summaries.validation` and repairs, after the change, what can be
repaired number by number: steps of the grid, odd and even, counts of rows, levels that add up. Where the repair undoes
the change, or the change changes nothing, the summary is not counted. What is not a number cannot be written down in
integers at all.

For the admitted, the largest change of an entry is given, as a share of the largest that an entry can be. Fourier's
features know neither centre nor spread: there, these changes change nothing, and another scale is just other data.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedcdh.errors import FedCDHError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import validate_summary
from fedcdh.summaries.variables import Categorical, Continuous, Variable

Rng = np.random.Generator
Table = dict[str, np.ndarray]

# Honest tables of many shapes

DISTRIBUTIONS: dict[str, Callable[[int, Rng], np.ndarray]] = {
    "normal": lambda n, rng: rng.standard_normal(n),
    "uniform": lambda n, rng: rng.uniform(-1, 1, n),
    "t with 2 degrees": lambda n, rng: rng.standard_t(2, n),
    "Cauchy": lambda n, rng: rng.standard_cauchy(n),
    "Cauchy, cubed": lambda n, rng: rng.standard_cauchy(n) ** 3,
    "lognormal": lambda n, rng: np.exp(3 * rng.standard_normal(n)),
    "exponential": lambda n, rng: rng.exponential(size=n),
    "constant": lambda n, rng: np.full(n, rng.standard_normal()),
    "zero": lambda n, rng: np.zeros(n),
    "two values": lambda n, rng: rng.integers(0, 2, n).astype(float),
    "three values": lambda n, rng: rng.integers(-1, 2, n) * 10.0,
    "ties": lambda n, rng: np.round(rng.standard_normal(n), 1),
    "counts": lambda n, rng: rng.poisson(2.0, n).astype(float),
    "rare events": lambda n, rng: (rng.random(n) < 0.02).astype(float),
    "one outlier": lambda n, rng: np.where(np.arange(n) == 0, 1e9, rng.standard_normal(n)),
    "two far modes": lambda n, rng: np.where(rng.random(n) < 0.5, -40.0, 40.0) + rng.standard_normal(n),
    "huge units": lambda n, rng: 1e12 + 1e9 * rng.standard_normal(n),
    "tiny units": lambda n, rng: 1e-12 * rng.standard_normal(n),
    "far from zero": lambda n, rng: 1e8 + rng.standard_normal(n),
    "at the ends": lambda n, rng: rng.choice([-1e6, 1e6], n),
    "alternating": lambda n, rng: np.arange(n) % 2 * 2.0 - 1,
    "a ramp": lambda n, rng: np.linspace(-5, 5, n),
}
FAMILIES: tuple[FeatureFamily, ...] = (
    Hermite(), Hermite(), Hermite(2), Hermite(8), Hermite(64), Hermite(4, 0.3), Hermite(5, 30.0), Hermite(4, 1e-3),
    Fourier(), Fourier(2), Fourier(8, 0.5, 3), Fourier(64), Fourier(5, 0.01), Fourier(5, 50.0),
)  # fmt: skip
ROW_COUNTS = (1, 2, 3, 5, 9, 20, 50, 200, 1000)
LEVELS = ("a", "b", "c")


def draw_honest_summary(seed: int) -> tuple[Summary, StudyPlan]:
    """A summary of some table: one to three columns of any shape and a label, in a plan that may fit it badly."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice(ROW_COUNTS))
    shapes = rng.choice(list(DISTRIBUTIONS), int(rng.integers(1, 4)))
    table = {f"v{j} {shape}": DISTRIBUTIONS[shape](n, rng) for j, shape in enumerate(shapes)}
    if len(table) == 3:
        table[next(iter(table))] = 2 * list(table.values())[1] + 1  # collinear
    variables: list[Variable] = [_fit_range(name, column, rng) for name, column in table.items()]
    label = np.array(LEVELS)[rng.integers(0, rng.integers(1, 4), n)]
    family = FAMILIES[int(rng.integers(len(FAMILIES)))]
    plan = StudyPlan(
        (*variables, Categorical("g", LEVELS)), ("here",), family, float(rng.choice([30.0, 30.0, 1.0, 100.0]))
    )
    for column in table.values():
        column[1:][rng.random(n - 1) < 0.1] = np.nan
    return summarize({**table, "g": label}, plan, "here", max_missing_share=1.0), plan


def _fit_range(name: str, column: np.ndarray, rng: Rng) -> Continuous:
    """As profiles would have it; or that of another client, whose units may be anything."""
    location, scale, centre = float(column.mean()), float(column.std()) or 1.0, float(np.median(column))
    far = 10.0 ** rng.uniform(-9, 9, 2) if rng.random() < 0.2 else np.ones(2)
    return Continuous(name, location, scale * far[0], centre, scale * far[1] * 10 ** rng.uniform(-1.0, 0.0))


# A study, and what may happen to its sums


@dataclass(frozen=True)
class Sums:
    """What is sent, the rows it is of, and other rows."""

    plan: StudyPlan
    moments: np.ndarray
    table: Table
    other: Table

    def of(self, table: Table, plan: StudyPlan | None = None) -> np.ndarray:
        """The moments of some rows, under another plan if one is given."""
        return summarize(table, plan or self.plan, "here").moments.copy()

    def under(self, change: Callable[[Continuous], Continuous]) -> np.ndarray:
        """The moments with another plan for the first variable, sent under the fingerprint of the right one."""
        first, *rest = self.plan.variables
        assert isinstance(first, Continuous)
        return self.of(self.table, replace(self.plan, variables=(change(first), *rest)))


def simulate_sums(seed: int, family: FeatureFamily, labels: int, d: int = 6, n: int | None = None) -> Sums:
    """Return sums of d dependent variables, some of them categorical, with n between 150 and 1500."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(150, 1501))
    both = []
    weights = rng.standard_normal((d, d)) * (rng.random((d, d)) < min(0.4, 4 / d))
    for _ in range(2):
        x = np.zeros((n, d))
        for j in range(d):
            cause = x[:, :j] @ weights[j, :j]
            x[:, j] = np.tanh(cause) + 0.3 * cause + (rng.standard_t(4, n) if j % 3 else rng.standard_normal(n))
        table = {f"v{j}": 10.0 ** (j % 5 - 2) * (x[:, j] + j) for j in range(d - labels)}
        both.append(table | {f"v{j}": np.array(LEVELS)[np.digitize(x[:, j], [-0.5, 1])] for j in range(d - labels, d)})
    plan = StudyPlan.from_tables({"here": both[0], "there": both[1]}, family=family)
    return Sums(plan, summarize(both[0], plan, "here").moments, both[0], both[1])


Change = Callable[[Sums, Rng], np.ndarray]


def _change_rows(factor: float, more: int) -> Change:
    def change(sums: Sums, rng: Rng) -> np.ndarray:
        found = sums.moments.copy()
        found[0, 0] = int(found[0, 0] / GRID**2 * factor + more) * GRID**2
        return found

    return change


def _change_entry(where: str, shift: float | None) -> Change:
    """One entry (and its twin) moved by a share of its bound, or its sign changed."""

    def change(sums: Sums, rng: Rng) -> np.ndarray:
        found = sums.moments.copy()
        i, j = rng.choice(np.arange(1, len(found)), 2, replace=False)
        i, j = {"first": (0, j), "product": (i, j), "square": (j, j)}[where]
        sign = 1 if where == "square" else rng.choice([-1, 1])
        found[i, j] = -found[i, j] if shift is None else found[i, j] + int(sign * shift * found[0, 0])
        found[j, i] = found[i, j]
        return found

    return change


def _add_noise(size: float) -> Change:
    def change(sums: Sums, rng: Rng) -> np.ndarray:
        noise = np.rint(rng.normal(0, size, sums.moments.shape) * sums.moments[0, 0])
        noise = np.triu(noise) + np.triu(noise, 1).T
        noise[0, 0] = 0
        return sums.moments + noise.astype(np.int64)

    return change


def _add_direction(size: float) -> Change:
    """± a share of the bound of one direction of the features: keeps the matrix definite where it adds."""

    def change(sums: Sums, rng: Rng) -> np.ndarray:
        u = rng.standard_normal(len(sums.moments))
        u[0] = 0.0
        u /= np.linalg.norm(u)
        return sums.moments + np.rint(size * sums.moments[0, 0] * np.outer(u, u)).astype(np.int64)

    return change


def _double_sums(sums: Sums, rng: Rng) -> np.ndarray:
    found = 2 * sums.moments
    found[0, 0] //= 2
    return found


def _change_first_moments(sums: Sums, rng: Rng) -> np.ndarray:
    found = sums.moments.copy()
    found[0] = found[:, 0] = sums.of(sums.other)[0]
    return found


def _halve_products(sums: Sums, rng: Rng) -> np.ndarray:
    found = 2 * sums.of({name: column[::2] for name, column in sums.table.items()})
    found[0] = found[:, 0] = sums.moments[0]
    return found


def _change_pair(sums: Sums, rng: Rng) -> np.ndarray:
    """The products of two variables from other rows."""
    found, other, spans = sums.moments.copy(), sums.of(sums.other), list(sums.plan.layout.spans.values())
    a, b = (spans[k] for k in rng.choice(len(spans), 2, replace=False))
    found[a, b], found[b, a] = other[a, b], other[b, a]
    return found


def _flip_bit(sums: Sums, rng: Rng) -> np.ndarray:
    found = sums.moments.copy()
    i, j = rng.integers(0, len(found), 2)
    found[i, j] = found[j, i] = found[i, j] ^ (1 << int(rng.integers(0, int(found[0, 0]).bit_length())))
    return found


def _swap_columns(sums: Sums, rng: Rng) -> np.ndarray:
    """Two features of one variable in the wrong order."""
    order = np.arange(len(sums.moments))
    start = next(iter(sums.plan.layout.spans.values())).start
    order[[start + 2, start + 3]] = order[[start + 3, start + 2]]
    return sums.moments[np.ix_(order, order)]


def _use_other_family(sums: Sums, rng: Rng) -> np.ndarray:
    """Another seed, where there are seeds; another bandwidth otherwise."""
    family = sums.plan.family
    other = replace(family, seed=7) if isinstance(family, Fourier) else replace(family, bandwidth=1.5)
    return sums.of(sums.table, replace(sums.plan, family=other))


def _permute_columns(sums: Sums, rng: Rng) -> np.ndarray:
    """Two columns of the table under each other's names, in the units the plan has for these."""
    first, second = sums.plan.variables[:2]
    assert isinstance(first, Continuous)
    assert isinstance(second, Continuous)
    a, b = (sums.table[v.name] for v in (first, second))
    swapped = {first.name: (b - second.location) / second.scale * first.scale + first.location,
               second.name: (a - first.location) / first.scale * second.scale + second.location}  # fmt: skip
    return sums.of({**sums.table, **swapped})


def _change_units(sums: Sums, rng: Rng) -> np.ndarray:
    name = sums.plan.names[0]
    return sums.of({**sums.table, name: 1000 * sums.table[name]})


def _count_rows_twice(sums: Sums, rng: Rng) -> np.ndarray:
    return 2 * sums.moments


def _invent_moments(sums: Sums, rng: Rng) -> np.ndarray:
    return sums.of({name: rng.permutation(column) for name, column in sums.table.items()})


FALSE_SUMMARIES: dict[str, Change] = {
    "n halved": _change_rows(0.5, 0),
    "n doubled": _change_rows(2, 0),
    "n + 1 %": _change_rows(1.01, 1),
    "n + 1": _change_rows(1, 1),
    "n − 1": _change_rows(1, -1),
    "all but n doubled": _double_sums,
    "sign of a sum": _change_entry("first", None),
    "sign of a product": _change_entry("product", None),
    "sums of other rows": _change_first_moments,
    "products of half the rows": _halve_products,
    "a pair's products of other rows": _change_pair,
    "noise of 1 %": _add_noise(0.01),
    "noise of 0.01 %": _add_noise(1e-4),
    "a direction − 2 %": _add_direction(-0.02),
    "a direction + 2 %": _add_direction(0.02),
    "a sum ± 0.5 %": _change_entry("first", 0.005),
    "a product ± 5 %": _change_entry("product", 0.05),
    "a product ± 0.5 %": _change_entry("product", 0.005),
    "a square + 5 %": _change_entry("square", 0.05),
    "a square + 0.5 %": _change_entry("square", 0.005),
    "one bit flipped": _flip_bit,
    "two features swapped": _swap_columns,
    "other seed or bandwidth": _use_other_family,
    "other clip": lambda sums, rng: sums.of(sums.table, replace(sums.plan, clip=6.0)),
    "one scale × 1000": lambda sums, rng: sums.under(lambda v: replace(v, scale=1000 * v.scale)),
    "one centre + 1 spread": lambda sums, rng: sums.under(lambda v: replace(v, centre=sum(v.centre_and_spread))),
    "one spread + 10 %": lambda sums, rng: sums.under(lambda v: replace(v, spread=1.1 * v.centre_and_spread[1])),
}
UNDETECTABLE_CHANGES: dict[str, Change] = {
    "two variables swapped": _permute_columns,
    "data in units × 1000": _change_units,
    "all rows twice": _count_rows_twice,
    "columns shuffled": _invent_moments,
}


def repair_moments(moments: np.ndarray, plan: StudyPlan) -> np.ndarray:
    """What an insider does after a change: whole steps, odd and even, levels that add up."""
    found = moments.copy()
    labels = np.zeros(len(found), dtype=bool)
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Categorical):
            labels[span] = True
            counts = np.rint(found[0, span] / GRID**2).astype(np.int64)
            counts[0] += found[0, 0] // GRID**2 - counts.sum()
            found[span, span] = np.diag(counts) * GRID**2
            found[0, span] = found[span, 0] = counts * GRID**2
            last = found[0] - found[span][1:].sum(axis=0)
            keep = found[span, span].copy()
            found[span.start], found[:, span.start] = last, last
            found[span, span] = keep
    for step, rows in ((GRID, labels), (GRID, np.arange(len(found)) == 0)):
        found[rows] = found[rows] // step * step
        found[:, rows] = found[rows].T
    odd = (found.diagonal() ^ (found[0] // GRID)) & 1
    found[np.diag_indices(len(found))] += np.where(labels, 0, odd)
    return found


def judge_moments(moments: np.ndarray, plan: StudyPlan) -> str:
    """The name of the error, or "admitted"."""
    rows = int(moments[0, 0]) // GRID**2
    try:
        validate_summary(Summary(plan.fingerprint, ("here",), moments, rows, dict.fromkeys(plan.names, 0)), plan)
    except FedCDHError as problem:
        return type(problem).__name__
    return "admitted"


def try_change(
    change: Change, repair: Callable[..., np.ndarray], family: FeatureFamily, labels: int, seeds: range
) -> str:
    """How many are admitted, how false at most, and who refused the others."""
    found: Counter[str] = Counter()
    largest = 0.0
    for seed in seeds:
        sums = simulate_sums(seed, family, labels)
        moments = repair(change(sums, np.random.default_rng([seed, 1])), sums.plan)
        if np.array_equal(moments, sums.moments):
            continue
        found[answer := judge_moments(moments, sums.plan)] += 1
        if answer == "admitted":
            largest = max(largest, float(np.abs(moments - sums.moments).max() / sums.moments[0, 0]))
    count, admitted = found.total(), found.pop("admitted", 0)
    refused = ", ".join(f"{who} {many}" for who, many in found.most_common())
    return f"{admitted:>4} of {count:<5}" + (f"({largest:.0e}) " if admitted else "") + refused


def show(kinds: dict[str, Change], family: FeatureFamily, labels: int, seeds: range) -> None:
    for name, change in kinds.items():
        cells = [
            try_change(change, repair, family, labels, seeds)
            for repair in (lambda moments, plan: moments, repair_moments)
        ]
        print(f"  {name:32}{cells[0]:66}{cells[1]}", flush=True)


def show_false_rows(seeds: range) -> None:
    print(f"\nfalse numbers of rows that are admitted, by an insider; 2 variables, seeds {seeds[0]}..{seeds[-1]}")
    wrong = {"+ 1": (1, 1), "+ 0.01 %": (1.0001, 1), "+ 0.1 %": (1.001, 1), "− 1": (1, -1), "− 0.1 %": (0.999, 0)}
    print(f"  {'n':22}" + "".join(f"{name:>12}" for name in wrong))
    for family in (Hermite(), Fourier()):
        for n in (1000, 10_000, 100_000, 1_000_000):
            some = [simulate_sums(seed, family, 0, 2, n) for seed in seeds[: 10**6 // n + 3]]
            rng = np.random.default_rng(0)
            counts = (
                sum(judge_moments(_change_rows(*by)(s, rng), s.plan) == "admitted" for s in some)
                for by in wrong.values()
            )
            cells = "".join(f"{f'{count} of {len(some)}':>12}" for count in counts)
            print(f"  {type(family).__name__:10}{n:>12}{cells}", flush=True)


def show_times() -> None:
    print("\nmilliseconds per summary: the first of a plan, and each further one (n = 2000)")
    for d in (6, 30, 100):
        for family in (Hermite(), Fourier()):
            sums = simulate_sums(0, family, 0, d, 2000)
            spent = []
            for _ in range(4):
                start = time.perf_counter()
                assert judge_moments(sums.moments, sums.plan) == "admitted"
                spent.append(1e3 * (time.perf_counter() - start))
            print(f"  d = {d:3}, {type(family).__name__.lower():8}{spent[0]:8.0f}{min(spent[1:]):8.1f}", flush=True)


def show_honest(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        summary, plan = draw_honest_summary(seed)
        try:
            validate_summary(summary, plan)
        except FedCDHError as problem:
            refused += 1
            print(f"  seed {seed}: {problem}")
    print(
        f"\nhonest summaries wrongly refused: {refused} of {len(seeds)} ({len(DISTRIBUTIONS)} shapes of columns)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=50, help="summaries of every kind (default 50)")
    parser.add_argument("--honest", type=int, default=2000, help="honest summaries (default 2000)")
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000: not tuned on)")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.each)
    for family, labels in ((Hermite(), 0), (Fourier(), 0), (Hermite(), 2)):
        print(f"\n{type(family).__name__}, 6 variables ({labels} labels), n = 150..1500, seeds {seeds[0]}..{seeds[-1]}")
        print(f"  {'':32}{'admitted of the careless':66}admitted of the insider")
        show(FALSE_SUMMARIES, family, labels, seeds)
        print("  valid sums of other rows than they should be: nothing in the sums can tell")
        show(UNDETECTABLE_CHANGES, family, labels, seeds)
    show_false_rows(seeds)
    show_honest(range(options.first, options.first + options.honest))
    show_times()


if __name__ == "__main__":
    main()
