"""Notes a release again and again, and is killed at another line of the code that does so each time.

    python killed_ledger.py FOLDER

Run as a program of its own: it forks, which is no good among pytest's threads. Every time, the ledger already holds one
release, and a file `sent` is written where the message would leave. Prints how many lines there were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from killing import killer

from fedcdh.privacy.ledger import Release, ReleaseLedger

WRITERS = ("ledger_file.py", "storage.py")


def released(number: int) -> Release:
    return Release("noisy", "north", "", f"{number:064x}", 100, 0, epsilon=1.0, delta=1e-6)


def run(folder: Path) -> int:
    """Kills at every line in turn, each time in a folder of its own; the last run is not killed any more."""
    os.fsync = lambda handle: None  # slow, and of no use to a process that dies while its system lives
    for step in range(1, 10_000):
        place = folder / f"{step}"
        ledger = ReleaseLedger(place / "releases.jsonl")
        if step % 2:  # every other time, the ledger is new
            ledger.record(released(1))
        child = os.fork()
        if child == 0:
            sys.settrace(killer(step, WRITERS))
            ledger.record(released(2))
            sys.settrace(None)
            (place / "sent").write_text("the message")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return step - 1
    raise AssertionError("the command never ended by itself")


if __name__ == "__main__":
    sys.stdout.write(str(run(Path(sys.argv[1]))))
