"""docs/scale.md from what was measured: tables, a figure, and what single benchmarks printed."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.scale.growth import CURVES, Point, fit_exponent
from benchmarks.scale.jobs import LEVEL
from benchmarks.scale.measure import Measured
from benchmarks.scale.peers import PeerRatio, describe_faster, format_ratio

WORDS = {"rows": "rows n", "variables": "variables d", "clients": "clients K", "width": "features h"}
BEGINNING = """# Scale

How cost grows with rows, variables, clients and features, what other programs take for the same studies, and how near
the work is to what the machine can do. `make bench` measures all of it again and makes this page from the files in
`docs/scale`; nothing here is written by hand. Seconds belong to one machine on one day: compare ratios, each of things
measured in turn in one run, on one thread unless workers are named. Seeds are 1000 and above.

"""
GROWTH = f"""## Growth

Time beside that of the smallest size, while one size grows and all others stand still (20 variables, 10 clients of 200
rows and 6 columns a variable, unless `benchmarks/scale/growth.py` says otherwise). The exponent is fitted to the larger
half of the sizes; beside it stands that of the work itself. Client: the sums of its rows. Arrival: messages as bytes,
opened, checked and added up. Server: from summaries to a graph; with more rows it takes longer where more edges are
found. Tests have the level {LEVEL} at every size, so that one and the same job grows; by default `method="constraint"`
takes a lower one with more than 30 variables, and less time. Memory is what the process holds beyond what it held
before, at the smallest and at the largest size. `python -m benchmarks.bench_scale growth`:

"""
PEERS = f"""## Beside other programs

From rows to a graph, `method="constraint"`, nonparametric and federated (profiles and summaries of all clients
included), beside programs that are given all rows at one place: their CPU seconds over ours, median over seeds (and
range). All test at the level {LEVEL}. Fisher's z and Pearson's correlation are tests for linear effects.
`python -m benchmarks.bench_scale peers`:

"""
PRINTED = (
    ("summarize", "Rows: how near to what the machine can do", "benchmarks.bench_summarize"),
    ("clusters", "Rows on a cluster", "benchmarks.bench_clusters"),
    ("sites", "Many sites", "benchmarks.bench_many_clients"),
    ("variables", "Many variables: tests", "benchmarks.bench_variables"),
    ("evidence", "Many variables: evidence", "benchmarks.bench_evidence_scale"),
    ("posterior", "Probabilities, and studies of labels", "benchmarks.bench_posterior"),
    ("costs", "Where the time goes", "benchmarks.bench_cost_profile"),
)
"""What single benchmarks print, under its heading."""


def write_points(points: Sequence[Point], path: Path) -> None:
    lines = [(p.curve, p.varied, p.value, f"{p.cost.seconds:.5g}", f"{p.cost.megabytes:.1f}") for p in points]
    _write(path, ("curve", "varied", "value", "cpu_seconds", "megabytes"), lines)


def read_points(path: Path) -> list[Point]:
    return [
        Point(curve, varied, int(value), Measured(float(seconds), float(megabytes)))
        for curve, varied, value, seconds, megabytes in _read(path)
    ]


def write_besides(found: Sequence[PeerRatio], path: Path) -> None:
    lines = [(b.case, b.program, b.seed, f"{b.ours:.5g}", f"{b.theirs:.5g}") for b in found]
    _write(path, ("case", "program", "seed", "ours", "theirs"), lines)


def read_besides(path: Path) -> list[PeerRatio]:
    return [
        PeerRatio(case, peer, int(seed), float(ours), float(theirs)) for case, peer, seed, ours, theirs in _read(path)
    ]


def render_page(folder: Path) -> str:
    """The page, from the files that are there."""
    parts = [BEGINNING]
    if (growth := folder / "growth.csv").exists():
        parts += [GROWTH, *growth_table(read_points(growth)), f"\n![growth curves]({folder.name}/growth.png)\n\n"]
    if (peers := folder / "peers.csv").exists():
        found = read_besides(peers)
        parts += [PEERS, *peers_table(found), "\n", textwrap.fill(describe_faster(found), 120), "\n\n"]
    for name, heading, module in PRINTED:
        if (text := folder / f"{name}.txt").exists():
            command, _, printed = text.read_text(encoding="utf-8").partition("\n")
            parts.append(f"## {heading}\n\n`{command or module}`:\n\n```\n{printed.strip()}\n```\n\n")
    return "".join(parts).rstrip() + "\n"


def growth_table(points: Sequence[Point]) -> Iterator[str]:
    yield "| work | grows | from | to | time, times | exponent | the work's | memory, MB |\n"
    yield "|---|---|---|---|---|---|---|---|\n"
    known = {(curve.name, curve.varied): curve.work for curve in CURVES}
    for (name, varied), found in _by_curve(points):
        first, last = found[0], found[-1]
        fitted = fit_exponent([p.value for p in found], [p.cost.seconds for p in found])
        memory = f"{max(first.cost.megabytes, 0):.0f} to {max(last.cost.megabytes, 0):.0f}"
        times = last.cost.seconds / first.cost.seconds
        yield (
            f"| {name} | {WORDS[varied]} | {first.value:,} | {last.value:,} | {times:,.1f} | {fitted:.2f} "
            f"| {known.get((name, varied), '–')} | {memory} |\n"
        )


def peers_table(found: Sequence[PeerRatio]) -> Iterator[str]:
    yield "| study | program | seeds | its time over ours |\n|---|---|---|---|\n"
    for (case, program), group in groupby(found, key=lambda one: (one.case, one.program)):
        members = list(group)
        yield f"| {case} | {program} | {len(members)} | {format_ratio(members)} |\n"


def draw_growth(points: Sequence[Point], path: Path) -> None:
    """A panel for each size that grows: time beside that of the smallest size, both axes logarithmic."""
    from matplotlib import pyplot, rc_context

    sizes = [size for size in WORDS if any(point.varied == size for point in points)]
    names = list(dict.fromkeys(point.curve for point in points))
    with rc_context({"font.size": 8, "axes.grid": True, "grid.alpha": 0.25}):
        figure, axes = pyplot.subplots(1, len(sizes), figsize=(2.7 * len(sizes), 2.9), squeeze=False)
        for ax, size in zip(axes[0], sizes, strict=True):
            for (name, _), found in _by_curve([point for point in points if point.varied == size]):
                place = names.index(name)
                values, costs = [p.value for p in found], [p.cost.seconds / found[0].cost.seconds for p in found]
                slope = fit_exponent(values, costs)
                style = {"color": COLOURS[place], "marker": MARKERS[place], "markersize": 3.5, "linewidth": 1.2}
                ax.plot(values, costs, label=f"{name}: {slope:.2f}", **style)
            ax.set_xscale("log", base=2)
            ax.set_yscale("log")
            ax.set_xlabel(WORDS[size])
            ax.legend(fontsize=6, title="exponents", title_fontsize=6, frameon=False)
        axes[0][0].set_ylabel("time, smallest size = 1")
        figure.tight_layout()
        figure.savefig(path, dpi=110, metadata={"Software": None})
        pyplot.close(figure)


COLOURS = ("#000000", "#E69F00", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKERS = "osD^vP"


def _by_curve(points: Sequence[Point]) -> Iterator[tuple[tuple[str, str], list[Point]]]:
    for key, group in groupby(points, key=lambda point: (point.curve, point.varied)):
        yield key, list(group)


def _write(path: Path, head: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(lines)


def _read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]
