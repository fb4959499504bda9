"""The command `fedcdh` as a process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import fedcdh


def run_process(code: str, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", textwrap.dedent(code), *words]
    return subprocess.run(command, text=True, check=False, timeout=60, capture_output=True)


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["nonsense"], 2)])
def test_the_exit_code_is_that_of_the_command(words, code):
    done = subprocess.run([sys.executable, "-m", "fedcdh", *words], text=True, check=False, capture_output=True)
    assert done.returncode == code
    assert done.stdout == (f"fedcdh {fedcdh.__version__}\n" if code == 0 else "")
    assert bool(done.stderr) == (code != 0)


def test_a_thread_that_is_still_alive_does_not_keep_the_process_or_change_its_exit_code():
    """The interpreter would wait for this thread, and end others by force."""
    done = run_process(
        """
        import sys, threading
        from fedcdh.__main__ import run
        threading.Thread(target=threading.Event().wait).start()
        sys.stdout.write("before ")
        sys.argv = ["fedcdh", "--version"]
        run()
        """
    )
    assert (done.returncode, done.stdout) == (0, f"before fedcdh {fedcdh.__version__}\n")
