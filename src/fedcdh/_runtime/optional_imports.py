"""Optional libraries: imported where they are used, with an error that says what to install if one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedcdh.errors import MissingDependencyError


@contextmanager
def optional_import(library: str, *, extra: str) -> Iterator[None]:
    """Turn a failed import into an error that names the extra to install.

    >>> with optional_import("dragons", extra="plot"):
    ...     import dragons
    Traceback (most recent call last):
    ...
    fedcdh.errors.MissingDependencyError: this needs dragons, which is not installed here (No module named 'dragons'); \
install it with: pip install 'fedcdh[plot]'
    """
    try:
        yield
    except ModuleNotFoundError as problem:  # not every ImportError: a broken library reports its own problem
        raise MissingDependencyError(
            f"this needs {library}, which is not installed here ({problem}); "
            f"install it with: pip install 'fedcdh[{extra}]'"
        ) from problem
