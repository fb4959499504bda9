"""The command line: the only module that prints."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from fedcdh.demo import hospital_study
from fedcdh.discovery import discover
from fedcdh.errors import FedCDHError
from fedcdh.files import edges_csv, write_whole
from fedcdh.metrics import compare, compare_changing


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all went well, 1 with a message if not."""
    parser = argparse.ArgumentParser(prog="fedcdh", description="Federated causal discovery from heterogeneous data.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="find the causal graph of a simulated study of five hospitals")
    demo.add_argument("-o", "--output", type=Path, default=Path("fedcdh-demo"), help="folder for the report")
    demo.add_argument("--seed", type=int, default=0, help="another seed, other patients")
    options = parser.parse_args(arguments)
    try:
        return _demo(options.output, options.seed)
    except (FedCDHError, OSError) as problem:
        print(f"fedcdh: {problem}", file=sys.stderr)
        return 1


def _demo(output: Path, seed: int) -> int:
    study = hospital_study(seed)
    print(textwrap.fill(study.description, 100), end="\n\n")
    result = discover(study.columns(), domain="hospital")
    print(result, end="\n\n")
    score = compare(result.to_dag().arrows, study.arrows)
    changing = compare_changing(result.changing, study.changing)
    print(
        f"Against the truth of this simulation: {score.skeleton.correct} of {score.skeleton.true} edges found "
        f"({score.skeleton.claimed - score.skeleton.correct} false), {score.direction.correct} of them with the right "
        f"direction in the extended graph; {changing.correct} of {changing.true} changing mechanisms found "
        f"({changing.claimed - changing.correct} false)."
    )
    write_whole(output / "graph.txt", f"{result}\n")
    write_whole(output / "edges.csv", edges_csv(result))
    print(f"The report: {output / 'graph.txt'}, and {output / 'edges.csv'} with the evidence for every pair.")
    return 0
