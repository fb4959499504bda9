"""python -m fedcdh, and the command fedcdh."""

import sys


def run() -> int:
    """The command line, or what is needed for it."""
    try:
        from fedcdh.cli import main
    except ModuleNotFoundError as lacking:
        if (lacking.name or "").startswith("fedcdh"):
            raise
        print(
            f"fedcdh: the command line needs {lacking.name}; install it with pip install 'fedcdh[cli]'", file=sys.stderr
        )
        return 1
    return main()


if __name__ == "__main__":
    sys.exit(run())
