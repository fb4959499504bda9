"""The reference: which names are public, read from the `__all__` of every package.

`conf.py` hands the names to the template of autosummary, which makes one page for each package. The list of packages in
`api/index.md` is written by `python docs/_api.py`, after a package was added; a test compares the two.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from pathlib import Path

import fedcdh

INDEX = Path(__file__).parent / "api" / "index.md"
LAYERS = (
    "errors",
    "protocols",
    "data",
    "graphs",
    "summaries",
    "search",
    "inference",
    "messages",
    "discovery",
    "privacy",
    "reporting",
    "federation",
    "evaluation",
    "cli",
)
"""From the ground up; what a package has inside follows it."""
KINDS = ("functions", "classes", "exceptions", "data", "aliases")


def public_packages() -> list[str]:
    """Return the packages, and the two modules of the ground, that have public names."""
    names = [module.name for module in pkgutil.walk_packages(fedcdh.__path__, "fedcdh.") if _is_listed(module)]
    return sorted((name for name in names if getattr(_load(name), "__all__", ())), key=_position)


def public_names(package: str) -> dict[str, list[str]]:
    """Return the names in `__all__` of a package, by what they are."""
    module = _load(package)
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if not inspect.ismodule(value):
            found[_kind(value)].append(name)
    return found


def context() -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return what the template needs, for every package: its names by kind, and those that an earlier page has too."""
    found: dict[str, dict[str, list[str]]] = {}
    seen: set[int] = set()
    for package in ("fedcdh", *public_packages()):
        found[package] = public_names(package)
        found[package]["meanings"] = [_meaning(getattr(_load(package), name)) for name in found[package]["aliases"]]
        values = {name: id(getattr(_load(package), name)) for kind in KINDS[:3] for name in found[package][kind]}
        found[package]["again"] = [name for name, value in values.items() if value in seen]
        seen |= {*values.values()}
    return {"public": found}


def write_index() -> None:
    """Put the list of packages into the page of the reference."""
    text = INDEX.read_text(encoding="utf-8")
    head, _, rest = text.rpartition("   :template: package.rst\n\n")
    listed = "".join(f"   {package}\n" for package in public_packages())
    INDEX.write_text(f"{head}   :template: package.rst\n\n{listed}{rest[rest.index('```') :]}", encoding="utf-8")


def listed_packages() -> list[str]:
    """Return the packages that the page of the reference lists, without `fedcdh` itself."""
    return re.findall(r"^   (fedcdh\.[\w.]+)$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)


def _is_listed(module: pkgutil.ModuleInfo) -> bool:
    private = any(part.startswith("_") for part in module.name.split("."))
    return not private and (module.ispkg or module.name.count(".") == 1)


def _position(name: str) -> tuple[int, str]:
    part = name.split(".")[1]
    return LAYERS.index(part) if part in LAYERS else len(LAYERS), name


def _load(name: str):
    return importlib.import_module(name)


def _meaning(alias: object) -> str:
    """Return an alias of a type as it is written, without the names of modules."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", repr(alias))


def _kind(value: object) -> str:
    if typing.get_origin(value) is not None:
        return "aliases"  # of types, which autodoc cannot show
    if inspect.isclass(value):
        return "exceptions" if issubclass(value, BaseException) else "classes"
    return "functions" if inspect.isroutine(value) else "data"


if __name__ == "__main__":
    write_index()
