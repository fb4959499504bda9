"""Adds up summaries again and again, and is killed at another line of the adding and writing code each time.

    python killed_adding.py PLAN SUMMARIES FOLDER STRIDE

Run as a program of its own: it forks, which is no good among pytest's threads. Every sum is then finished by a second
run, in the folder that the first left behind. Prints how many were killed, how many of these had left something to go
on from, and the digests of all sums.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from killing import killer

from fedcdh.cli.aggregate import aggregate_command
from fedcdh.federation.streaming import aggregate_files

WRITERS = ("aggregate_files.py", "running_sum.py", "storage.py", "_outputs.py")


def add(plan: str, summaries: str, target: Path) -> None:
    aggregate_command(Path(plan), [Path(summaries)], target, quiet=True)


def run(plan: str, summaries: str, folder: Path, stride: int) -> dict[str, Any]:
    """Kills at every so many lines, each time in a folder of its own; the last run is not killed any more."""
    os.fsync = lambda handle: None  # slow, and of no use to a process that dies while its system lives
    aggregate_files.StreamingAggregation.__init__.__defaults__ = (
        None,
        0.0,
    )  # what was added is written after every file
    add(plan, summaries, folder / "warm")  # fills the caches
    digests, journals = set(), 0
    for killed, step in enumerate(range(1, 100_000, stride)):
        place = folder / f"{step}"
        place.mkdir()
        child = os.fork()
        if child == 0:
            sys.settrace(killer(step, WRITERS))
            add(plan, summaries, place / "total")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        journals += (place / "total.adding").exists()
        if os.WIFSIGNALED(status):
            add(plan, summaries, place / "total")
        digests.add(hashlib.sha256((place / "total").read_bytes()).hexdigest())
        if os.WIFEXITED(status):
            return {"killed": killed, "journals": journals, "digests": sorted(digests)}
    raise AssertionError("the command never ended by itself")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
