"""What an experiment is: a TOML file that says what is varied, over which seeds, and by which methods.

A *case* is one point of the design: a value for every parameter of its kind. The sweeps of a file vary one parameter
each and leave the others at their base; parameters with several base values are crossed with everything. A *job* is one
case, one method, one seed, and gives one row of the results.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from fedcdh.errors import SettingsError

ExperimentCase = Mapping[str, Any]
"""Parameter → value; a TOML value."""

_DEFINITIONS_FOLDER = files("fedcdh.evaluation.experiments") / "definitions"
_KNOWN_KEYS = {"title", "kind", "seeds", "methods", "base", "sweep", "limits", "quick", "smallest", "remarks"}


@dataclass(frozen=True)
class MethodLimit:
    """What is asked of a slow method: only the first seeds, of cases that are not larger than this."""

    seeds: int | None
    max_values: Mapping[str, float]

    def allows(self, case: ExperimentCase, position: int) -> bool:
        if self.seeds is not None and position >= self.seeds:
            return False
        return all(case[name] <= most for name, most in self.max_values.items())


@dataclass(frozen=True)
class ExperimentJob:
    """One case, one method, one seed."""

    case: ExperimentCase
    method: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """What tells its row from all others in a file of results."""
        return (*map(str, self.case.values()), self.method, str(self.seed))


@dataclass(frozen=True)
class Experiment:
    """A design, as its file says it."""

    name: str
    title: str
    kind: str
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    base: Mapping[str, tuple[Any, ...]]
    sweeps: Mapping[str, tuple[Any, ...]]
    limits: Mapping[str, tuple[MethodLimit, ...]]  # a job that any of them allows is done
    remarks: str

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.base)

    def cases(self) -> list[ExperimentCase]:
        """Every case once, in the order of the file."""
        found: dict[tuple[str, ...], ExperimentCase] = {}
        for varied, values in self.sweeps.items() or [("", ())]:
            chosen = {name: values if name == varied else base for name, base in self.base.items()}
            for combination in product(*chosen.values()):
                case = dict(zip(chosen, combination, strict=True))
                found.setdefault(tuple(map(str, combination)), case)
        return list(found.values())

    def jobs(self) -> list[ExperimentJob]:
        """Every job, those of one seed together: a run that is stopped early has all methods on the same instances."""
        return [
            ExperimentJob(case, method, seed)
            for position, seed in enumerate(self.seeds)
            for case in self.cases()
            for method in self.methods
            if method not in self.limits or any(limit.allows(case, position) for limit in self.limits[method])
        ]

    def restrict(self, *, seeds: Iterable[int] | None = None, methods: Iterable[str] | None = None) -> Experiment:
        """The same with other seeds or fewer methods."""
        chosen = self.methods if methods is None else tuple(methods)
        if unknown := sorted({*chosen} - {*self.methods}):
            raise SettingsError(
                f"experiment {self.name!r} has no method {unknown[0]!r}; choose among {', '.join(self.methods)}"
            )
        return replace(self, seeds=self.seeds if seeds is None else tuple(seeds), methods=chosen)


def experiment_names() -> tuple[str, ...]:
    """The experiments that come with the package.

    >>> "figure-3" in experiment_names()
    True
    """
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in _DEFINITIONS_FOLDER.iterdir() if file.name.endswith(".toml"))
    )


def load_experiment(name: str, size: str = "full") -> Experiment:
    """An experiment by its name, or the one that a TOML file of yours describes.

    `size` is "full", "quick" (minutes) or "smallest" (seconds, to see that everything runs).

    >>> experiment = load_experiment("figure-3", "quick")
    >>> len(experiment.seeds) < len(load_experiment("figure-3").seeds)
    True
    """
    if name.endswith(".toml"):
        return parse_experiment(Path(name).stem, Path(name).read_text(encoding="utf-8"), size)
    if name not in experiment_names():
        raise SettingsError(
            f"there is no experiment {name!r}; choose one of {', '.join(experiment_names())}, or name a TOML file of yours"
        )
    return parse_experiment(name, (_DEFINITIONS_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), size)


def parse_experiment(name: str, text: str, size: str = "full") -> Experiment:
    """The experiment that a TOML text describes."""
    if size not in ("full", "quick", "smallest"):
        raise SettingsError(f"size is {size!r}; expected 'full', 'quick' or 'smallest'")
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SettingsError(f"experiment {name!r} is not TOML: {problem}; correct the file") from None
    if strange := sorted(said.keys() - _KNOWN_KEYS):
        raise SettingsError(
            f"experiment {name!r} has an unknown key {strange[0]!r}; expected {', '.join(sorted(_KNOWN_KEYS))}"
        )
    if lacking := sorted({"title", "kind", "seeds", "methods", "base"} - said.keys()):
        raise SettingsError(f"experiment {name!r} lacks {', '.join(lacking)}; add it to the file")
    cut = said.get(size, {}) if size != "full" else {}
    base = {key: _to_tuple(value) for key, value in {**said["base"], **cut.get("base", {})}.items()}
    sweeps = {key: _to_tuple(value) for key, value in {**said.get("sweep", {}), **cut.get("sweep", {})}.items()}
    if strange := sorted(sweeps.keys() - base.keys()):
        raise SettingsError(f"experiment {name!r} varies {strange[0]!r}, which has no value under [base]; add one")
    limits = {method: tuple(map(_read_limit, _to_tuple(limit))) for method, limit in said.get("limits", {}).items()}
    for method, rules in limits.items():
        if method not in said["methods"]:
            raise SettingsError(
                f"experiment {name!r} limits {method!r}, which is not among its methods; names with a dot need "
                'quotation marks: "notears-admm-0.3"'
            )
        if strange := sorted({key for rule in rules for key in rule.max_values} - base.keys()):
            raise SettingsError(f"experiment {name!r} limits {strange[0]!r}, which has no value under [base]; add one")
    return Experiment(
        name,
        said["title"],
        said["kind"],
        tuple(_read_seeds(cut.get("seeds", said["seeds"]))),
        tuple(cut.get("methods", said["methods"])),
        base,
        sweeps,
        limits,
        said.get("remarks", "").strip(),
    )


def parse_seeds(text: str) -> range:
    """ "1000:1010" as seeds, the last one not counted.

    >>> list(parse_seeds("1000:1003"))
    [1000, 1001, 1002]
    """
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise SettingsError(f"seeds are {text!r}; expected first:last+1, like 1000:1010")
    return range(int(first), int(last))


def _read_seeds(value: Any) -> Iterator[int]:
    yield from parse_seeds(value) if isinstance(value, str) else value


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _read_limit(value: Mapping[str, Any]) -> MethodLimit:
    return MethodLimit(value.get("seeds"), value.get("max_values", {}))
