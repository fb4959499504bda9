"""Directions under noise of any shape, engine by engine: python -m benchmarks.bench_noise_shapes --help

Counts true edges whose arrow is right, reversed, open or missed, edges that are not there, and mechanisms that are
said to differ but do not. For our methods it also prints the mean number of sums and rounds after the summary. Choose
settings on seeds below 1000; report on others. Programs that take rows get the rows of all clients. PC, CD-NOD, GES and
BOSS need `pip install 'fedcdh[experiments]'`, LiNGAM needs `pip install 'fedcdh[peers]'`.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from benchmarks.noise_shapes.programs import PROGRAMS, Found
from fedcdh.evaluation.experiments.noise_shape_data import Cell, GridStudy, draw, grid, special_cells

STRENGTHS = (3.0, 10.0, 30.0, 100.0)
"""Logs of Bayes factors that divide arrows by strength."""


def judge(study: GridStudy, found: Found) -> Counter[str]:
    """Count what is right and wrong in one graph."""
    true_pairs = {frozenset(arrow) for arrow in study.arrows}
    counts: Counter[str] = Counter(studies=1, edges=len(study.arrows))
    for tail, head in study.arrows:
        counts[_outcome(tail, head, found)] += 1
    counts["extra"] = sum(pair not in true_pairs for pair in _pairs(found))
    counts["sums"], counts["rounds"] = found.sums, found.rounds
    counts["constant"] = len(study.names) - len(study.changing)
    counts["changing"] = len(study.changing)
    if found.changing is not None:
        counts["false change"] = len(found.changing - study.changing)
        counts["missed change"] = len(study.changing - found.changing)
    for arrow, (reason, strength) in found.reasons.items():
        outcome = "right" if arrow in study.arrows else "reversed" if arrow[::-1] in study.arrows else "extra"
        counts[f"{reason}/{_bracket(strength)}/{outcome}"] += 1
    return counts


def _outcome(tail: str, head: str, found: Found) -> str:
    if (tail, head) in found.arrows:
        return "right"
    if (head, tail) in found.arrows:
        return "reversed"
    return "open" if frozenset((tail, head)) in found.lines else "missed"


def _pairs(found: Found) -> Iterable[frozenset[str]]:
    yield from (frozenset(arrow) for arrow in found.arrows)
    yield from found.lines


def _bracket(strength: float | None) -> str:
    if strength is None:
        return "no factor"
    return f"above {max((limit for limit in STRENGTHS if strength >= limit), default=0):g}"


def run(cell: Cell, programs: tuple[str, ...], seed: int) -> dict[str, Counter[str]]:
    """Run every program on one study."""
    study = draw(cell, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: judge(study, PROGRAMS[name](study)) for name in programs}


def figures(counts: Counter[str]) -> str:
    """Return one line: counts of arrows, F1 of skeleton and directions, false changes."""
    edges, drawn = counts["edges"], counts["right"] + counts["reversed"]
    linked = drawn + counts["open"]
    skeleton = 2 * linked / max(1, linked + counts["extra"] + edges)
    direction = 2 * counts["right"] / max(1, linked + counts["extra"] + edges)
    share = counts["reversed"] / max(1, drawn)
    return (
        f"{counts['right']:6d}{counts['reversed']:6d}{counts['open']:6d}{counts['missed']:7d}{counts['extra']:6d}"
        f"{100 * share:9.0f} %{skeleton:9.2f}{direction:9.2f}"
        f"{counts['false change']:8d} of {counts['constant']:<4d}"
        f"{counts['sums'] / max(1, counts['studies']):7.0f}{counts['rounds'] / max(1, counts['studies']):8.1f}"
    )


HEADING = (
    f"{'':36}{'right':>6}{'rev.':>6}{'open':>6}{'missed':>7}{'extra':>6}{'reversed':>11}{'skel F1':>9}{'dir F1':>9}"
    f"{'false changes':>15}{'sums':>8}{'rounds':>8}"
)


def show(title: str, results: dict[str, Counter[str]]) -> None:
    print(f"\n{title}\n{HEADING}")
    for name, counts in results.items():
        print(f"{name:36}{figures(counts)}", flush=True)


def show_reasons(results: dict[str, Counter[str]]) -> None:
    """Print how often arrows of our engines are right, by the reason and the strength of each."""
    print("\nArrows by reason and log Bayes factor: right, reversed, extra")
    for name, counts in results.items():
        for key in sorted({k.rsplit("/", 1)[0] for k in counts if k.count("/") == 2}):
            right, wrong, extra = (counts[f"{key}/{outcome}"] for outcome in ("right", "reversed", "extra"))
            print(f"{name:16}{key:48}{right:6d}{wrong:6d}{extra:6d}")


def add_up(results: Iterable[dict[str, Counter[str]]]) -> dict[str, Counter[str]]:
    total: dict[str, Counter[str]] = {}
    for one in results:
        for name, counts in one.items():
            total.setdefault(name, Counter()).update(counts)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010", help="first:last+1 (default 1000:1010)")
    parser.add_argument("--cells", default="", help="parts of names of cells, separated by semicolons (default: all)")
    parser.add_argument("--sizes", default="10 x 100,5 x 400", help="clients x rows (default: 10 x 100,5 x 400)")
    parser.add_argument("--special", action="store_true", help="the special cases instead of the grid")
    parser.add_argument("--programs", default="evidence;constraint;oracle class", help="; ".join(PROGRAMS))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    programs = tuple(name.strip() for name in options.programs.split(";"))
    cells = special_cells() if options.special else grid(tuple(options.sizes.split(",")))
    wanted = [part.strip() for part in options.cells.split(";")]
    cells = [cell for cell in cells if any(part in str(cell) for part in wanted)]
    by_mechanism: dict[str, list[dict[str, Counter[str]]]] = {}
    with ProcessPoolExecutor(options.workers) as pool:
        for cell in cells:
            job: Callable[[int], dict[str, Counter[str]]] = partial(run, cell, programs)
            found = add_up(pool.map(job, range(first, last)))
            show(f"{cell}, seeds {first}..{last - 1}", found)
            by_mechanism.setdefault(f"{cell.mechanism}, {cell.size}", []).append(found)
    for title, parts in by_mechanism.items():
        show(f"All cells of {title}", add_up(parts))
    everything = add_up(part for parts in by_mechanism.values() for part in parts)
    show("All cells", everything)
    show_reasons(everything)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
