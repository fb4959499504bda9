"""Makes a site's summary again and again, and is killed at another line of the writing code each time.

    python killed_writer.py PLAN DATA FOLDER

Run as a program of its own: it forks, which is no good among pytest's threads. Prints how many lines there were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from killing import killer

from fedcdh.cli import _bootstrap_files, main

WRITERS = ("_bootstrap_files.py", "storage.py", "_outputs.py")


def run(plan: str, data: str, folder: Path) -> int:
    """Kills at every line in turn, each time in a folder of its own; the last run is not killed any more."""
    write = _bootstrap_files.write_with_replicates
    main(["summarize", plan, data, "--client", "north", "-o", str(folder.parent / "warm"), "-q"])  # fills the caches

    def killed(*arguments: Any) -> Any:
        sys.settrace(killer(step, WRITERS))  # from here on: before, nothing is written
        return write(*arguments)

    _bootstrap_files.write_with_replicates = killed
    for step in range(1, 10_000):
        place = folder / f"{step}"
        place.mkdir()
        child = os.fork()
        if child == 0:
            os._exit(main(["summarize", plan, data, "--client", "north", "-o", str(place / "north.summary"), "-q"]))
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return step - 1
    raise AssertionError("the command never ended by itself")


if __name__ == "__main__":
    sys.stdout.write(str(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
