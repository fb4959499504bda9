"""A PostgreSQL server in a temporary folder, which listens on a socket there and on nothing else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

USER = "postgres"  # the server refuses to run as root


def why_no_server() -> str:
    """Return why no server can be started here; the empty text if one can."""
    if not _programs():
        return "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    if os.getuid() == 0 and USER not in {entry.pw_name for entry in pwd.getpwall()}:
        return f"PostgreSQL refuses to run as root, and there is no user {USER}"
    return ""


def _programs() -> list[Path]:
    return sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@contextmanager
def run_server() -> Iterator[str]:
    """Start a server, yield its address, and stop it."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: the name of a socket has at most 107 letters
    options: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    if os.getuid() == 0:
        owner = pwd.getpwnam(USER)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        options["user"] = USER
    programs = _programs()[-1].parent
    control = [programs / "pg_ctl", "-D", folder / "data"]
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    try:
        subprocess.run([programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres"], **options)
        subprocess.run([*control, "-o", settings, "-l", folder / "log", "-w", "start"], **options)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
