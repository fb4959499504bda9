"""The definition of an experiment: a TOML file with parameters, seeds and methods.

A *case* is one point of the design: a value for every parameter of its kind. The sweeps of a file vary one parameter
each and leave the others at their base; parameters with several base values are crossed with everything. A *job* is one
case, one method and one seed, and gives one row of the results.
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
"""The value of every parameter, as TOML has it."""

_DEFINITIONS_FOLDER = files("fedcdh.evaluation.experiments") / "definitions"
EVERY_METHOD = "every"
"""The key of limits that all methods share."""
_KNOWN_KEYS = {
    "title",
    "question",
    "kind",
    "seeds",
    "methods",
    "base",
    "sweep",
    "limits",
    "quick",
    "smallest",
    "remarks",
}


@dataclass(frozen=True)
class MethodLimit:
    """The limit of a method: the first seeds, cases that are not larger than this, and cases with these values."""

    seeds: int | None
    max_values: Mapping[str, float]
    values: Mapping[str, tuple[Any, ...]]

    def allows(self, case: ExperimentCase, position: int) -> bool:
        """Return whether the method is run on this case with the seed at this position."""
        if self.seeds is not None and position >= self.seeds:
            return False
        if any(case[name] not in listed for name, listed in self.values.items()):
            return False
        return all(case[name] <= most for name, most in self.max_values.items())


@dataclass(frozen=True)
class ExperimentJob:
    """One case, one method and one seed."""

    case: ExperimentCase
    method: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """Return what identifies its row in a file of results."""
        return (*map(str, self.case.values()), self.method, str(self.seed))


@dataclass(frozen=True)
class Experiment:
    """The design of an experiment.

    Parameters
    ----------
    name : str
        Name of the experiment, and of its file without the ending.
    title : str
        Heading on the page of results.
    kind : str
        Kind of experiment, such as "graphs"; `fedcdh.evaluation.experiments.kinds` has them.
    seeds : tuple of int
        Seeds, each of which gives one instance per case.
    methods : tuple of str
        Methods to compare.
    base : mapping from str to tuple
        Base values of every parameter. Several values are crossed with everything.
    sweeps : mapping from str to tuple
        Values of the parameters that are varied, one at a time.
    limits : mapping from str to tuple of MethodLimit
        Limits of methods that are slow, or made for some cases only. A job that any of them allows is done. Those of
        "every" hold for all methods besides.
    remarks : str
        Text below the heading.
    question : str
        The question that the experiment answers, as the page of results lists it; the title unless given.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments import load_experiment
    >>> experiment = load_experiment("figure-3", "smallest")
    >>> experiment.kind, len(experiment.cases())
    ('graphs', 3)
    """

    name: str
    title: str
    kind: str
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    base: Mapping[str, tuple[Any, ...]]
    sweeps: Mapping[str, tuple[Any, ...]]
    limits: Mapping[str, tuple[MethodLimit, ...]]  # a job is done if any of them allows it
    remarks: str
    question: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(self.base)

    def cases(self) -> list[ExperimentCase]:
        """List every case once, in the order of the file.

        Returns
        -------
        list of mapping
            The cases: for each parameter its value.
        """
        found: dict[tuple[str, ...], ExperimentCase] = {}
        for varied, values in self.sweeps.items() or [("", ())]:
            chosen = {name: values if name == varied else base for name, base in self.base.items()}
            for combination in product(*chosen.values()):
                case = dict(zip(chosen, combination, strict=True))
                found.setdefault(tuple(map(str, combination)), case)
        return list(found.values())

    def jobs(self) -> list[ExperimentJob]:
        """List every job, with those of one seed together.

        A run that is stopped early then has all methods on the same instances.

        Returns
        -------
        list of ExperimentJob
            The jobs that no limit excludes.
        """
        return [
            ExperimentJob(case, method, seed)
            for position, seed in enumerate(self.seeds)
            for case in self.cases()
            for method in self.methods
            if self._allows(method, case, position)
        ]

    def _allows(self, method: str, case: ExperimentCase, position: int) -> bool:
        """Return whether a method has a job: within a limit of its own and within one of those of every method."""
        rules = [self.limits[name] for name in (EVERY_METHOD, method) if name in self.limits]
        return all(any(limit.allows(case, position) for limit in listed) for listed in rules)

    def restrict(self, *, seeds: Iterable[int] | None = None, methods: Iterable[str] | None = None) -> Experiment:
        """Choose other seeds, or fewer methods.

        Parameters
        ----------
        seeds : iterable of int, optional
            Seeds in place of those of the design.
        methods : iterable of str, optional
            Some of the methods of the design.

        Returns
        -------
        Experiment
            The restricted design.

        Raises
        ------
        SettingsError
            If the design has no method of this name.
        """
        chosen = self.methods if methods is None else tuple(methods)
        if unknown := sorted({*chosen} - {*self.methods}):
            raise SettingsError(
                f"experiment {self.name!r} has no method {unknown[0]!r}; expected some of {', '.join(self.methods)}; "
                "choose among these"
            )
        return replace(self, seeds=self.seeds if seeds is None else tuple(seeds), methods=chosen)


def experiment_names() -> tuple[str, ...]:
    """List the experiments that come with the package.

    Returns
    -------
    tuple of str
        Their names, sorted.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments import experiment_names
    >>> "figure-3" in experiment_names()
    True
    """
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in _DEFINITIONS_FOLDER.iterdir() if file.name.endswith(".toml"))
    )


def load_experiment(name: str, size: str = "full") -> Experiment:
    """Load an experiment by its name, or from a TOML file.

    Parameters
    ----------
    name : str
        One of `experiment_names`, or the path of a file that ends in ".toml".
    size : {"full", "quick", "smallest"}, default "full"
        "quick" takes minutes, "smallest" seconds: enough to see that everything runs.

    Returns
    -------
    Experiment
        The design.

    Raises
    ------
    SettingsError
        If there is no such experiment, or if its file is wrong.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments import load_experiment
    >>> experiment = load_experiment("figure-3", "quick")
    >>> len(experiment.seeds) < len(load_experiment("figure-3").seeds)
    True
    """
    if name.endswith(".toml"):
        return parse_experiment(Path(name).stem, Path(name).read_text(encoding="utf-8"), size)
    if name not in experiment_names():
        raise SettingsError(
            f"found no experiment {name!r}; expected one of {', '.join(experiment_names())}, or your own TOML file; "
            "choose one of these"
        )
    return parse_experiment(name, (_DEFINITIONS_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), size)


def parse_experiment(name: str, text: str, size: str = "full") -> Experiment:
    r"""Read the experiment that a TOML text describes.

    Parameters
    ----------
    name : str
        Name of the experiment.
    text : str
        The text of its file.
    size : {"full", "quick", "smallest"}, default "full"
        Size of the design; see `load_experiment`.

    Returns
    -------
    Experiment
        The design.

    Raises
    ------
    SettingsError
        If the text is not TOML, or has unknown, missing or contradictory keys.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments import parse_experiment
    >>> text = 'title = "Mine"\nkind = "graphs"\nseeds = "1:4"\nmethods = ["fedpc"]\n[base]\nrows = 30'
    >>> parse_experiment("mine", text).seeds
    (1, 2, 3)
    """
    if size not in ("full", "quick", "smallest"):
        raise SettingsError(f"the size is {size!r}; expected 'full', 'quick' or 'smallest'; choose one of these")
    document = _read_document(name, text)
    smaller = document.get(size, {}) if size != "full" else {}
    base = {key: _to_tuple(value) for key, value in {**document["base"], **smaller.get("base", {})}.items()}
    sweep = {**document.get("sweep", {}), **smaller.get("sweep", {})}
    sweeps = {key: _to_tuple(value) for key, value in sweep.items()}
    _check_base(name, "varies", sweeps, base)
    return Experiment(
        name,
        document["title"],
        document["kind"],
        tuple(_read_seeds(smaller.get("seeds", document["seeds"]))),
        tuple(smaller.get("methods", document["methods"])),
        base,
        sweeps,
        _read_limits(name, document, base),
        document.get("remarks", "").strip(),
        document.get("question", document["title"]),
    )


def _read_document(name: str, text: str) -> dict[str, Any]:
    """Return the TOML document, whose keys are known and complete."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SettingsError(f"experiment {name!r} is not TOML ({problem}); expected a TOML file; correct it") from None
    if unknown := sorted(document.keys() - _KNOWN_KEYS):
        raise SettingsError(
            f"experiment {name!r} has the unknown key {unknown[0]!r}; expected {', '.join(sorted(_KNOWN_KEYS))}; "
            "remove or correct it"
        )
    if lacking := sorted({"title", "kind", "seeds", "methods", "base"} - document.keys()):
        raise SettingsError(
            f"experiment {name!r} lacks {', '.join(lacking)}, which every experiment has; add it to the file"
        )
    return document


def _read_limits(
    name: str, document: Mapping[str, Any], base: Mapping[str, tuple[Any, ...]]
) -> dict[str, tuple[MethodLimit, ...]]:
    """Return the limits of slow methods."""
    limits = {}
    for method, rules in document.get("limits", {}).items():
        if method not in (EVERY_METHOD, *document["methods"]):
            raise SettingsError(
                f"experiment {name!r} limits {method!r}, which is not among its methods; expected one of them, or "
                f'{EVERY_METHOD!r}; write names with a dot in quotation marks: "notears-admm-0.3"'
            )
        limits[method] = tuple(_read_limit(name, method, rule) for rule in _to_tuple(rules))
        limited = {key for limit in limits[method] for key in (*limit.max_values, *limit.values)}
        _check_base(name, "limits", limited, base)
    return limits


def _read_limit(name: str, method: str, rule: Mapping[str, Any]) -> MethodLimit:
    if unknown := sorted(rule.keys() - {"seeds", "max_values", "values"}):
        raise SettingsError(
            f"experiment {name!r} limits {method!r} by {unknown[0]!r}; expected seeds, max_values or values; correct it"
        )
    values = {key: _to_tuple(listed) for key, listed in rule.get("values", {}).items()}
    return MethodLimit(rule.get("seeds"), rule.get("max_values", {}), values)


def _check_base(name: str, verb: str, parameters: Iterable[str], base: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse parameters that have no base value."""
    if unknown := sorted({*parameters} - base.keys()):
        raise SettingsError(
            f"experiment {name!r} {verb} {unknown[0]!r}, which has no value under [base]; expected a base value for "
            "it; add one"
        )


def parse_seeds(text: str) -> range:
    """Read "1000:1010" as seeds; the last one is not included.

    >>> list(parse_seeds("1000:1003"))
    [1000, 1001, 1002]
    """
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise SettingsError(f"the seeds are {text!r}; expected first:last+1, such as 1000:1010; correct them")
    return range(int(first), int(last))


def _read_seeds(value: Any) -> Iterator[int]:
    yield from parse_seeds(value) if isinstance(value, str) else value


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
