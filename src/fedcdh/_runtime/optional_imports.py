"""Optional libraries: imported where they are used, and asked for by the name of the extra that brings them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedcdh.errors import MissingDependencyError


@contextmanager
def optional_import(library: str, *, extra: str) -> Iterator[None]:
    """Around the import of an optional library: says what to install where it is not there.

    >>> with optional_import("a library of dragons", extra="plot"):
    ...     import dragons
    Traceback (most recent call last):
    ...
    fedcdh.errors.MissingDependencyError: this needs a library of dragons, which is not installed here (No module named \
'dragons'); install it with: pip install 'fedcdh[plot]'
    """
    try:
        yield
    except ModuleNotFoundError as problem:  # not every ImportError: a library that is there but broken says so itself
        raise MissingDependencyError(
            f"this needs {library}, which is not installed here ({problem}); "
            f"install it with: pip install 'fedcdh[{extra}]'"
        ) from problem
