"""`python -m fedcdh`, and the command `fedcdh`."""

import sys

from fedcdh.cli import main


def run() -> int:
    """Run the command line and return its exit code."""
    return main()


if __name__ == "__main__":
    sys.exit(run())
