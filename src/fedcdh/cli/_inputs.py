"""Files that commands read: names and patterns resolved, plans and profiles opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path

from fedcdh._io.storage import read_regular_file
from fedcdh.cli._console import Output, to_single_line
from fedcdh.cli._file_kinds import refuse_other_kind
from fedcdh.cli._keys import check_signer, describe_signature, find_signer, read_public_key
from fedcdh.errors import FedCDHError, PlanError, SettingsError, SignatureError, SummaryFormatError
from fedcdh.messages.profile_file import MAX_PROFILE_BYTES, ProfileMessage, profile_from_json
from fedcdh.messages.signing import key_fingerprint
from fedcdh.messages.study_file import MAX_STUDY_BYTES, Study
from fedcdh.messages.summary_header import LENGTH_PREFIX

MAX_SMALL_FILE_BYTES = 1 << 20
"""Bytes of files that people write, such as declarations."""
MAX_REFUSALS = 20
"""Files that cannot be used and are named one by one."""
_RUNNING_SUM_PREFIX = b'{"__metadata__":{"fedcdh":"{\\"added\\":['
"""First bytes of the header of a running sum; its format follows a list of any length."""


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Put the name of this file before the text of an error."""
    try:
        yield
    except FedCDHError as problem:
        if str(path) in str(problem):
            raise
        raise type(problem)(f"{to_single_line(str(path))}: {problem}", parameter=problem.parameter) from None


def refuse_files(refused: Sequence[tuple[Path, FedCDHError]]) -> None:
    """Raise one error about all files that cannot be used, since each takes a letter to a site."""
    if not refused:
        return
    if len(refused) == 1:
        raise refused[0][1]
    shown = [to_single_line(describe_refusal(path, problem)) for path, problem in refused[:MAX_REFUSALS]]
    more = [f"... and {len(refused) - MAX_REFUSALS} more"] if len(refused) > MAX_REFUSALS else []
    heading = f"{len(refused)} files cannot be used:"
    raise type(refused[0][1])("\n- ".join([heading, *shown, *more]))


def describe_refusal(path: Path, problem: FedCDHError) -> str:
    """Return the text of an error about a file, with the file's name."""
    return problem.message if str(path) in problem.message else f"{path}: {problem.message}"


def refuse_running_sum(content: bytes) -> None:
    """Refuse the file in which `fedcdh aggregate` keeps an unfinished sum."""
    if content.startswith(_RUNNING_SUM_PREFIX, LENGTH_PREFIX.size):
        raise SummaryFormatError(
            "This is an unfinished sum of `fedcdh aggregate`. Run that command again (with --go-on, it leaves out "
            "the clients that are missing) and use the sum that it writes."
        )


def read_study(path: Path) -> tuple[Study, str | None]:
    """Read a plan file; return it with the public key that signed it."""
    refuse_other_kind(path, "a plan", PlanError)
    content = read_regular_file(path, MAX_STUDY_BYTES, "a plan file", refuse=PlanError)
    with naming_file(path):
        return Study.from_json(content), find_signer(path, content, "plan")


def read_trusted_study(path: Path, key: str | None, output: Output) -> Study:
    """Read a plan file, which the given key must have signed, and say who signed it."""
    study, signer = read_study(path)
    if key is not None and signer != (expected := read_public_key(key)):
        raise SignatureError(
            f"{path} is {describe_signature(signer)}. Expected a signature of {key_fingerprint(expected)}. "
            "Ask the coordinator who made it."
        )
    output.say(f"Plan {study.plan.fingerprint[:12]}, {describe_signature(signer)}.")
    return study


def read_profile(path: Path) -> tuple[str, ProfileMessage]:
    """Read a profile; if it names a key, that key must have signed it."""
    refuse_other_kind(path, "a profile", PlanError)
    content = read_regular_file(path, MAX_PROFILE_BYTES, "a profile")
    with naming_file(path):
        message = profile_from_json(content)
        signer = check_signer(path, content, "profile", message.key)
    if signer is not None and message.key is None:
        raise SignatureError(
            f"{path} is signed by {key_fingerprint(signer)} but names no key itself. Ask the site to make the profile "
            "again with its key."
        )
    return str(path), message


def expand_paths(patterns: list[Path], within: str = "") -> list[Path]:
    """Return the files that were named: patterns are resolved, folders stand for the files `within` them.

    Hidden files in a folder are left out, as in a shell: systems leave their own beside what they copy.
    """
    return [path for pattern in patterns for path in _expand_path(pattern, within)]


def _expand_path(pattern: Path, within: str) -> list[Path]:
    shown = to_single_line(str(pattern))
    if within and pattern.is_dir():
        found = sorted(path for path in pattern.glob(within) if not path.name.startswith("."))
        if not found:
            raise SettingsError(f"The folder {shown} holds no {within}. Name another folder, or single files.")
        return found
    if pattern.exists() or not has_magic(str(pattern)):
        return [pattern]
    found = [Path(path) for path in sorted(glob(str(pattern), recursive=True))]  # noqa: PTH207 (may be absolute)
    if not found:
        raise SettingsError(f"No file matches {shown}. Name existing files, or their folder.")
    return found
