"""The command line: the only module that prints."""

from __future__ import annotations

import argparse
import io
import sys
import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from fedcdh.demo import hospital_study
from fedcdh.discovery import discover
from fedcdh.errors import FedCDHError
from fedcdh.files import edges_csv, write_whole
from fedcdh.metrics import Score, compare, compare_changing


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all went well, 1 with a message if not."""
    parser = argparse.ArgumentParser(prog="fedcdh", description="Federated causal discovery from heterogeneous data.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="find the causal graph of a simulated study of five hospitals")
    demo.add_argument("-o", "--output", type=Path, default=Path("fedcdh-demo"), help="folder for the report")
    demo.add_argument("--seed", type=int, default=0, help="another seed, other patients")
    parser.add_argument("--version", action="version", version=f"fedcdh {version('fedcdh')}")
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without arrows shows question marks, and all the rest
    try:
        return _demo(options.output, options.seed)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 0
    except OSError as problem:
        print(f"fedcdh: cannot write to {options.output} ({problem}); choose another folder with -o", file=sys.stderr)
    except (FedCDHError, ValueError) as problem:
        print(f"fedcdh: {problem}", file=sys.stderr)
    return 1


def _demo(output: Path, seed: int) -> int:
    study = hospital_study(seed)
    print(textwrap.fill(study.description, 100), end="\n\n")
    result = discover(study.columns(), domain="hospital")
    print(result, end="\n\n")
    score = compare(result.graph.arrows, study.arrows, result.graph.lines).skeleton
    changing = compare_changing(result.changing, study.changing)
    print(f"Against the truth of this simulation: {_found(score)} edges, {_found(changing)} changing mechanisms.")
    write_whole(output / "graph.txt", f"{result}\n")
    write_whole(output / "edges.csv", edges_csv(result))
    print(f"The report: {output / 'graph.txt'}, and {output / 'edges.csv'} with the evidence for every pair.")
    return 0


def _found(score: Score) -> str:
    return f"{score.correct} of {score.true} (and {score.claimed - score.correct} false)"
