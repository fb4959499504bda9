"""How long the package and the command line take to start, beside `python -c "import numpy"`.

Run with `python -m benchmarks.bench_startup`. All commands are timed in turn, in one run, so that the ratios do not
depend on how fast or how busy the machine is.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 15
REFERENCE = "import numpy"
COMMANDS = {
    "nothing": ["-c", "pass"],
    REFERENCE: ["-c", "import numpy"],
    "import fedcdh": ["-c", "import fedcdh"],
    "from fedcdh import discover": ["-c", "from fedcdh import discover"],
    "fedcdh --version": ["-m", "fedcdh", "--version"],
    "fedcdh --help": ["-m", "fedcdh", "--help"],
    "fedcdh summarize --help": ["-m", "fedcdh", "summarize", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():  # once each, for the caches of the disk
        seconds(arguments)
    for _ in range(REPEATS):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    medians = {name: statistics.median(found) for name, found in times.items()}
    print(f"{'command':<30}{'median':>10}{'ratio to import numpy':>24}")
    for name, median in medians.items():
        print(f"{name:<30}{median * 1000:>7.0f} ms{median / medians[REFERENCE]:>24.2f}")


if __name__ == "__main__":
    main()
