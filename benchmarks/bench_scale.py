"""How cost grows, and what others take: python -m benchmarks.bench_scale --help

`growth` and `peers` measure; `summarize`, `clusters`, `sites`, `variables`, `evidence`, `posterior` and `costs` run the
benchmark of that name and keep what it prints; `page` makes docs/scale.md of what is there; `small` is what continuous
integration runs: a minute, and ratios only. Without a word, all but the last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.bench_summarize import print_small_ratios as near_the_machine
from benchmarks.scale.growth import CURVES, measure_curve
from benchmarks.scale.page import PRINTED, draw_growth, read_points, render_page, write_besides, write_points
from benchmarks.scale.peers import CASES, SMALL, compare, format_ratio

FOLDER = Path("docs/scale")
QUICK_OPTIONS: Mapping[str, tuple[str, ...]] = {"summarize": ("--rows", "200000"), "costs": ("--only", "arrival")}
"""Options of single benchmarks for a short run, where it is not --quick."""


def measure_growth(folder: Path, quick: bool) -> None:
    points = []
    for point in measure_curve(curve.quick() if quick else curve for curve in CURVES):
        points.append(point)
        print(f"{point.curve:20} {point.varied:10} {point.value:9,} {point.cost.seconds:9.4f} s", flush=True)
    write_points(points, folder / "growth.csv")


def measure_peers(folder: Path, quick: bool) -> None:
    found = []
    with threadpool_limits(1):
        for one in compare(SMALL if quick else CASES):
            found.append(one)
            print(f"{one.case:40} {one.program:28} {one.seed} {one.ratio:9.2f}", flush=True)
    write_besides(found, folder / "peers.csv")


def record_benchmark(folder: Path, quick: bool, *, name: str, module: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["python", "-m", module, *(QUICK_OPTIONS.get(name, ("--quick",)) if quick else ())]
    print("$", *command, flush=True)
    run = subprocess.run([sys.executable, *command[1:]], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{module} ended with {run.returncode}")
    print(run.stdout, flush=True)
    (folder / f"{name}.txt").write_text(" ".join(command) + "\n" + run.stdout, encoding="utf-8")


def write_page(folder: Path, quick: bool) -> None:
    if (points := folder / "growth.csv").exists():
        draw_growth(read_points(points), folder / "growth.png")
    target = folder.with_suffix(".md")
    target.write_text(render_page(folder), encoding="utf-8")
    print(f"written: {target}")


def print_small_ratios() -> None:
    """Print ratios only, to be compared with those of the last run of continuous integration."""
    with threadpool_limits(1):
        near_the_machine()
        if find_spec("causallearn") is None:
            print("causal-learn is not installed: no ratio beside it")
            return
        print(f"d = 30, causal-learn's linear cdnod over ours, nonparametric: {format_ratio(list(compare(SMALL)))}")


PARTS: Mapping[str, Callable[[Path, bool], None]] = {
    "growth": measure_growth,
    "peers": measure_peers,
    **{name: partial(record_benchmark, name=name, module=module) for name, _, module in PRINTED},
    "page": write_page,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = [*PARTS, "small"]
    parser.add_argument(
        "parts", nargs="*", choices=[*words, []], metavar="PART", help=f"{', '.join(words)} (default: all but small)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only: a trial of the programs, not a result")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help=f"folder (default {FOLDER})")
    options = parser.parse_args()
    os.environ["TQDM_DISABLE"] = "1"  # peers' bars would count as their time
    for part in options.parts or PARTS:
        if part == "small":
            print_small_ratios()
        else:
            PARTS[part](options.output, options.quick)


if __name__ == "__main__":
    main()
