"""Public names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def attach(package: str, exports: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose names are loaded on first use.

    Parameters
    ----------
    package : str
        Name of the package, `__name__`.
    exports : mapping from str to str
        Public name to the module that defines it; a module that is itself the public name ends in a dot and that name.

    Returns
    -------
    tuple of two functions
        To be bound to `__getattr__` and `__dir__` in the package's `__init__`.

    Examples
    --------
    >>> getattribute, names = attach("fedcdh", {"compare": "fedcdh.graphs.metrics"})
    >>> getattribute("compare").__module__
    'fedcdh.graphs.metrics'
    >>> names()
    ['compare']
    """

    def load(name: str) -> object:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = exports[name]
        value = import_module(home) if home.endswith(f".{name}") else getattr(import_module(home), name)
        vars(import_module(package))[name] = value  # the next access does not come here
        return value

    def names() -> list[str]:
        return sorted(exports)

    return load, names
