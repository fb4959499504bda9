"""Check the docstrings of public names, and the words of all texts in the sources.

Usage::

    python tools/check_docstrings.py                    # every package of fedcdh
    python tools/check_docstrings.py privacy graphs     # only these packages and the packages below them

Three things are checked; every finding is printed as ``file:line: name: CODE message``, and the exit code is 1 if there
is one.

1. Every function and class that a package lists in ``__all__``, and every public method and property of such a class,
   has a numpydoc docstring: `numpydoc.validate` with the codes in `CODES`. Functions and classes in ``__all__`` have an
   example (EX01), and a function that raises has a section Raises (RS01). A class that holds data may describe its
   fields under Attributes instead of Parameters. A method without parameters whose summary begins with "Return" or
   "Yield" needs no section that says so again.
2. No docstring begins with one of `BAD_BEGINNINGS`: such a docstring is not a sentence (HS01).
3. No docstring, text or comment has one of the `BANNED` phrases (HS02).

A single check is switched off with a comment on the line of the ``def`` or ``class``: ``# numpydoc ignore=EX01``.
"""

from __future__ import annotations

import argparse
import ast
import enum
import functools
import importlib
import importlib.util
import inspect
import io
import pkgutil
import re
import sys
import textwrap
import tokenize
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, error, validate

ROOT = "fedcdh"
TOP_MODULES = ("errors", "protocols")
CODES = frozenset(
    f"{section}{number:02}"
    for section, numbers in {
        "GL": (1, 3, 5, 6, 7, 8, 10),
        "SS": range(1, 7),
        "PR": (1, 2, 3, 4, 5, 7, 8, 9, 10),
        "RT": (1, 3, 4, 5),
        "YD": (1,),
        "RS": (1,),
        "SA": (2, 3, 4),
        "EX": (1,),
    }.items()
    for number in numbers
)
BAD_BEGINNINGS = ("Of", "What", "Whether", "Those", "Some", "So")
BANNED = ("so many", "whoever", "told", "let be", "drawn anew", "smell", "smells", "stands out")
_BANNED = re.compile(r"\b(" + "|".join(phrase.replace(" ", r"\s+") for phrase in BANNED) + r")\b", re.IGNORECASE)


class Finding(NamedTuple):
    """One thing to correct."""

    path: str
    line: int
    name: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}: {self.code} {self.message}"


class PublicName(NamedTuple):
    """A name to be checked: an object, and what is demanded of its docstring."""

    name: str
    value: Any
    is_listed: bool  # in an ``__all__``, not only a method of a class that is


class HouseValidator(Validator):  # type: ignore[misc]  # numpydoc has no types
    """numpydoc's checks; fields of a class may also be described as its attributes."""

    @property
    def parameter_mismatches(self) -> list[tuple[str, str]]:
        if not inspect.isclass(self.obj):
            return list(super().parameter_mismatches)
        if not _has_own_signature(self.obj):
            return []
        expected = self.signature_parameters
        parameters = tuple(name.replace("\\", "") for name in self.doc_all_parameters)
        attributes = tuple(self._doc_parameters(["Attributes"]))
        missing = [name for name in expected if name not in parameters and name not in attributes]
        unknown = [name for name in parameters if name not in expected]
        found = [error("PR01", missing_params=", ".join(missing))] if missing else []
        return found + ([error("PR02", unknown_params=", ".join(unknown))] if unknown else [])


def _has_own_signature(kind: type) -> bool:
    """Return whether the parameters of a class are its own, and not those of enumerations, protocols or exceptions."""
    if issubclass(kind, enum.Enum) or getattr(kind, "_is_protocol", False) or typing.is_typeddict(kind):
        return False
    return not issubclass(kind, BaseException) or "__init__" in vars(kind)


def find_packages(selected: list[str]) -> Iterator[str]:
    """Yield the names of packages and top modules that are selected, all of them if none is named."""
    wanted = [_dotted(name) for name in selected]
    modules = [f"{ROOT}.{name}" for name in TOP_MODULES if importlib.util.find_spec(f"{ROOT}.{name}")]
    for name in (ROOT, *_walk(ROOT), *modules):
        if not wanted or any(name == one or (name.startswith(f"{one}.") and one != ROOT) for one in wanted):
            yield name


def _dotted(name: str) -> str:
    """Return the dotted name of a package that is given as such, with or without fedcdh, or as a path."""
    dotted = name.rstrip("/").removesuffix(".py").replace("/", ".").removeprefix("src.")
    return dotted if dotted == ROOT or dotted.startswith(f"{ROOT}.") else f"{ROOT}.{dotted}"


def _walk(package: str) -> Iterator[str]:
    paths = importlib.import_module(package).__path__
    for found in pkgutil.iter_modules(paths, f"{package}."):
        if found.ispkg:
            yield found.name
            yield from _walk(found.name)


def find_public_names(package: str) -> Iterator[PublicName]:
    """Yield what a package lists in ``__all__``, and the public methods and properties of classes therein."""
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        try:
            value = getattr(module, name)
        except ImportError as lacking:  # an optional library, such as Flower
            print(f"not checked: {package}.{name} ({lacking})", file=sys.stderr)
            continue
        if not (inspect.isclass(value) or inspect.isfunction(value)) or not value.__module__.startswith(ROOT):
            continue  # constants, aliases of types and modules have no docstring
        yield PublicName(f"{package}.{name}", value, True)
        if inspect.isclass(value):
            yield from (
                PublicName(f"{package}.{name}.{method}", member, False) for method, member in _find_members(value)
            )


def _find_members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if isinstance(member, functools.cached_property):
            member = property(member.func, doc=member.__doc__)
        is_checked = inspect.isfunction(member) or (isinstance(member, property) and member.fget is not None)
        if is_checked and not (member.__doc__ is None and _is_inherited(kind, name)):
            yield name, member


def _is_inherited(kind: type, name: str) -> bool:
    """Return whether a base class documents the method: then a docstring need not be repeated."""
    return any(getattr(vars(base).get(name), "__doc__", None) for base in kind.__mro__[1:-1])


def check_name(public: PublicName) -> Iterator[Finding]:
    """Yield what is wrong with the docstring of one public name."""
    value, validator = public.value, HouseValidator(_parse_docstring(public.value))
    path, line = _place(validator)
    found = validate(public.name, validator_cls=lambda obj_name: validator)
    errors = [(code, message) for code, message in found["errors"] if code in CODES]
    documented = inspect.isfunction(value) or isinstance(value, property) or inspect.isclass(value)
    if found["docstring"] and documented and _raises(value) and not validator.doc["Raises"]:
        errors.append(("RS01", f"No Raises section found; it raises {', '.join(sorted(_raises(value)))}"))
    for code, message in errors:
        if not _is_exempt(code, public, validator):
            yield Finding(path, line, public.name, code, message)


def _parse_docstring(value: Any) -> Any:
    return get_doc_object(value, config={"show_class_members": False, "show_inherited_class_members": False})


def _place(validator: Validator) -> tuple[str, int]:
    path = Path(validator.source_file_name or "?")
    return (
        str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path),
        validator.source_file_def_line or 1,
    )


def _is_exempt(code: str, public: PublicName, validator: Validator) -> bool:
    value = public.value
    if code in _ignored(value):
        return True
    if code == "EX01":
        plain = inspect.isclass(value) and (
            issubclass(value, BaseException) or getattr(value, "_is_protocol", False) or issubclass(value, enum.Enum)
        )
        return not public.is_listed or plain
    if code in ("RT01", "YD01"):
        is_said = validator.summary.startswith(("Return", "Yield"))
        return not public.is_listed and not validator.signature_parameters and is_said
    return False


def _ignored(value: Any) -> set[str]:
    try:
        source = inspect.getsource(value.fget if isinstance(value, property) and value.fget else value)
    except (OSError, TypeError):
        return set()
    line = next((one for one in source.splitlines() if re.match(r"\s*(async\s+)?(def|class)\s", one)), "")
    match = re.search(r"# numpydoc ignore=([A-Z0-9, ]+)", line)
    return set(re.split(r"[,\s]+", match[1].strip())) if match else set()


def _raises(value: Any) -> set[str]:
    """Return the exceptions that the body of a function raises by name, without those of functions inside."""
    if not inspect.isfunction(value):
        return set()
    body = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]
    return {
        name
        for node in _walk_body(body)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and (name := ast.unparse(node.exc.func))
        if name.split(".")[-1][0].isupper() and name not in ("AssertionError", "NotImplementedError")
    }


def _walk_body(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _walk_body(child)


def check_texts(path: Path) -> Iterator[Finding]:
    """Yield docstrings that are no sentences, and banned phrases in docstrings, texts and comments of a file."""
    source = path.read_text(encoding="utf-8")
    shown = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            first = (ast.get_docstring(node) or "x").split()[0].rstrip(",:;.")
            if first in BAD_BEGINNINGS:
                name = getattr(node, "name", path.stem)
                line = getattr(node, "lineno", 1)
                yield Finding(shown, line, name, "HS01", f'Docstring begins with "{first}": write a sentence')
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _find_banned(shown, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _find_banned(shown, token.start[0], token.string)


def _find_banned(path: str, line: int, text: str) -> Iterator[Finding]:
    for match in _BANNED.finditer(text):
        within = line + text[: match.start()].count("\n")
        yield Finding(path, within, "text", "HS02", f'The phrase "{match[0]}" is not used here: say it plainly')


def _find_sources(packages: list[str]) -> Iterator[Path]:
    for package in packages:
        path = Path(importlib.import_module(package).__file__ or "")
        yield from sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]


def _unique(check: Callable[[PublicName], Iterator[Finding]], packages: list[str]) -> Iterator[Finding]:
    """Check every object once, under the first of its names."""
    seen: set[int] = set()
    for package in packages:
        for public in find_public_names(package):
            key = id(public.value.fget if isinstance(public.value, property) else public.value)
            if key not in seen:
                seen.add(key)
                yield from check(public)


def main() -> int:
    """Print all findings; the exit code is 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "packages", nargs="*", help="packages to check, such as privacy or fedcdh.graphs (default: all)"
    )
    parser.add_argument("--no-texts", action="store_true", help="check the docstrings of public names only")
    options = parser.parse_args()
    packages = list(find_packages(options.packages))
    if not packages:
        parser.error(f"found no package called {' '.join(options.packages)}; expected packages of {ROOT}")
    findings = list(_unique(check_name, packages))
    if not options.no_texts:
        findings += [found for path in dict.fromkeys(_find_sources(packages)) for found in check_texts(path)]
    for found in findings:
        print(found)
    print(
        f"{len(findings)} findings in {len(packages)} packages" if findings else f"{len(packages)} packages: no finding"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
