"""`python -m fedcdh`, and the command `fedcdh`."""

import os
import sys
from typing import NoReturn

from fedcdh.cli import main
from fedcdh.errors import ExitCode


def run() -> NoReturn:
    """Run the command line, and end the process with its exit code.

    The process ends at once, without taking the interpreter down. Threads of native libraries, such as those that read
    files ahead for Arrow, may still be alive. While the interpreter is taken down, a thread that calls into it is ended
    by force, which may abort the process with exit code 134. All files are closed by then.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or int(ExitCode.FILES)
    os._exit(code)


if __name__ == "__main__":
    run()
