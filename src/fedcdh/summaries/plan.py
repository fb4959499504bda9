"""What all parties agree on before any data is touched: the study plan."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from fedcdh._io.text import cut_repr, describe_text_problem
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import PlanError
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.column_profiles import MAX_LEVELS
from fedcdh.summaries.dp_parameters import MAX_NOISY_COLUMNS as MOST_NOISY
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite, bounded
from fedcdh.summaries.profiles import Profile, merge_profiles, profile

FORMAT = "fedcdh-plan-2"
POWER_COLUMNS = 2
"""Columns of a continuous variable before its family's: the clipped value, target of all regressions, and its square,
which tells how heavy the tails are."""
DEFAULT_FAMILY = Hermite()
DEFAULT_CLIP = 30.0
"""Values beyond so many scales are cut: far out, because a cut effect no longer follows from its causes."""
MAX_MAGNITUDE = 1e300
"""Locations and scales beyond are no numbers to calculate with."""
MAX_COLUMNS = 20_000
"""The moment matrix then takes 3.2 GB."""
MAX_LIMIT = 1 << 40
"""Rounds, bytes or rows: beyond, a limit is none."""
_FAMILIES: dict[str, type[Hermite] | type[Fourier]] = {"hermite": Hermite, "fourier": Fourier}


@dataclass(frozen=True)
class Continuous:
    """A number. All clients subtract the same location and divide by the same scale: local standardisation would
    erase the differences between clients that the method lives on.

    Centre and spread say where the bulk of the values lies, which is where nonlinear features have to look closely;
    left out, they are location and scale.
    """

    name: str
    location: float = 0.0
    scale: float = 1.0
    centre: float | None = None
    spread: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.name, "the name of a variable")
        numbers = (self.location, self.scale, *self.centre_and_spread)
        if not (
            all(abs(number) < MAX_MAGNITUDE for number in numbers) and min(self.scale, self.centre_and_spread[1]) > 0
        ):
            raise PlanError(
                f"variable {self.name!r} needs a finite location and a positive, finite scale (centre and spread "
                f"likewise), found {', '.join(map(str, numbers[:3]))} and {numbers[3]}"
            )
        centre, spread = self.centre_and_spread
        # 60, 60.0 and numpy's 60.0 are one number and must give one fingerprint; so must 0.0 and -0.0
        object.__setattr__(self, "location", float(self.location) + 0.0)
        object.__setattr__(self, "scale", float(self.scale))
        object.__setattr__(self, "centre", float(centre) + 0.0)
        object.__setattr__(self, "spread", float(spread))

    @property
    def centre_and_spread(self) -> tuple[float, float]:
        """Centre and spread."""
        return (
            self.location if self.centre is None else self.centre,
            self.scale if self.spread is None else self.spread,
        )


@dataclass(frozen=True)
class Categorical:
    """A label out of a fixed list of levels, in a fixed order."""

    name: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_name(self.name, "the name of a variable")
        object.__setattr__(self, "levels", tuple(self.levels))
        if len(self.levels) > MAX_LEVELS:
            raise PlanError(
                f"variable {self.name!r} has {len(self.levels)} levels, expected at most {MAX_LEVELS}; group them"
            )
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise PlanError(f"variable {self.name!r} needs one or more different levels, found {cut_repr(self.levels)}")
        for level in self.levels:
            _check_name(level, f"a level of variable {self.name!r}")


Variable = Continuous | Categorical


@dataclass(frozen=True)
class StudyPlan:
    """Variables with their kinds, the feature family, the clients. Same plan and data, same bytes.

    >>> plan = StudyPlan((Continuous("age", 60, 15), Categorical("smoker", ("no", "yes"))), ("north", "south"))
    >>> StudyPlan.from_json(plan.to_json()) == plan
    True
    """

    variables: tuple[Variable, ...]
    clients: tuple[str, ...]
    family: FeatureFamily = DEFAULT_FAMILY
    clip: float = DEFAULT_CLIP  # in units of scale: bounds what one row can contribute
    study: str = ""  # its name, if it has one: sets it apart from an older study with the same plan
    max_rounds: int = 0  # of further questions that a site answers (`rounds`); 0: its summary is all it sends
    max_bytes: int = 0  # that a site sends in all of its answers
    max_rows_per_client: int = (
        0  # that count of one client: who says how many rows it has could say any number; 0: no limit
    )
    noise: DPParameters | None = None  # for differential privacy: with it, features are those of `features.ball`

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "clients", tuple(sorted(self.clients)))
        names = [variable.name for variable in self.variables]
        for what, found in (("variables", names), ("clients", list(self.clients))):
            if not found or len(set(found)) != len(found) or "" in found:
                raise PlanError(
                    f"a plan needs one or more {what} with different, non-empty names, found {cut_repr(found)}"
                )
        for client in self.clients:
            _check_name(client, "the name of a client")
        _check_name(self.study, "the name of the study")
        if DOMAIN in names:
            raise PlanError(f"the name {DOMAIN!r} is taken by the client index; rename that variable")
        whole = isinstance(self.family.width, int) and 2 <= self.family.width <= 64
        if not whole or not 0 < self.family.bandwidth < math.inf or not 1 <= self.clip <= 100:
            raise PlanError(
                "feature width must be a whole number in 2..64, bandwidth positive and clip in 1..100 scales, "
                f"found {self.family.width}, {self.family.bandwidth} and {self.clip}"
            )
        for limit in ("max_rounds", "max_bytes", "max_rows_per_client"):
            most = getattr(self, limit)
            if not isinstance(most, int) or isinstance(most, bool) or not 0 <= most <= MAX_LIMIT:
                raise PlanError(f"{limit} is {cut_repr(most)}; expected a whole number from 0 to {MAX_LIMIT}")
        if self.noise is not None:
            self._check_noise(self.noise)
        if self.columns > MAX_COLUMNS:
            raise PlanError(
                f"the variables of this plan take {self.columns} columns of features, expected at most "
                f"{MAX_COLUMNS}; leave variables out, group levels, or choose a smaller feature width"
            )

    def _check_noise(self, noise: DPParameters) -> None:
        if self.family != DEFAULT_FAMILY or self.clip > 10:
            raise PlanError(
                f"a plan with noise has features of its own and cuts values at 10 scales or before, found "
                f"{self.family} and a clip of {self.clip:g}; leave the family out, and set clip={bounded.BOUNDED_CLIP:g}"
            )
        if self.max_rounds or self.max_bytes:
            raise PlanError("noise covers the summary, not answers to further questions; leave max_rounds out")
        if self.columns > MOST_NOISY:
            raise PlanError(
                f"with noise, variables take at most {MOST_NOISY} columns of features, found {self.columns}; leave "
                "variables out, group levels, or lower degree of the noise"
            )
        if noise.honest > len(self.clients):
            raise PlanError(
                f"{noise.honest} sites are to be honest, but there are {len(self.clients)}; lower honest of the noise"
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """What every variable is, in the order of the variables."""
        return {v.name: "categorical" if isinstance(v, Categorical) else "continuous" for v in self.variables}

    def width(self, variable: Variable) -> int:
        """Columns of one variable: linear, square and those of the family; or one per level."""
        if isinstance(variable, Categorical):
            return len(variable.levels)
        return POWER_COLUMNS + self.family.width if self.noise is None else self.noise.degree

    @cached_property
    def unit(self) -> float:
        """What a continuous variable's first column is divided by, in scales: the clip, or the radius of the ball."""
        if self.noise is None:
            return float(self.clip)
        labels = sum(isinstance(variable, Categorical) for variable in self.variables)
        return bounded.compute_radius(len(self.variables) - labels, labels, self.noise.degree, self.noise.rows)

    def spans(self) -> dict[str, slice]:
        """Where each variable's columns stand in the moment matrix; column 0 is the constant."""
        spans, start = {}, 1
        for variable in self.variables:
            spans[variable.name] = slice(start, start := start + self.width(variable))
        return spans

    @cached_property
    def columns(self) -> int:
        return 1 + sum(self.width(variable) for variable in self.variables)

    @cached_property
    def client_set(self) -> frozenset[str]:
        """The clients, to be asked whether one of ten thousand is among them."""
        return frozenset(self.clients)

    def __hash__(self) -> int:
        """Of the fingerprint, which is known: what is kept for a plan is then found without a look at every client."""
        return hash(self.fingerprint)

    def to_json(self) -> str:
        """Canonical: the same plan always gives the same text, and `from_json` gives the same plan back."""
        document = {
            "format": FORMAT,
            "clients": self.clients,
            "clip": float(self.clip),
            "family": {
                "name": type(self.family).__name__.lower(),
                **asdict(self.family),
                "bandwidth": float(self.family.bandwidth),
            },
            "variables": [{"kind": type(v).__name__.lower(), **asdict(v)} for v in self.variables],
            **({"study": self.study} if self.study else {}),
            **({"max_rounds": self.max_rounds} if self.max_rounds else {}),
            **({"max_bytes": self.max_bytes} if self.max_bytes else {}),
            **({"max_rows_per_client": self.max_rows_per_client} if self.max_rows_per_client else {}),
            **({"noise": asdict(self.noise)} if self.noise else {}),
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> StudyPlan:
        """The plan that `to_json` wrote; PlanError for anything else."""
        try:
            document = json.loads(text)
            _reject_strings(document["clients"], *(v.get("levels") for v in document["variables"]))
            if document.pop("format") != FORMAT:
                raise PlanError(f"this plan was not written in the format {FORMAT!r}; update fedcdh or the plan")
            family = dict(document.pop("family"))
            if "noise" in document:
                document["noise"] = DPParameters(**document["noise"])
            return cls(
                variables=tuple(_variable_from_json(v) for v in document.pop("variables")),
                family=_FAMILIES[family.pop("name")](**family),
                **document,
            )
        except PlanError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as problem:
            raise PlanError(
                f"this is not a study plan ({cut_repr(problem)}); ask the coordinator for the file again"
            ) from None

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, Any],
        *,
        kinds: Mapping[str, ColumnKind] | None = None,
        family: FeatureFamily = DEFAULT_FAMILY,
    ) -> StudyPlan:
        """The plan of the clients' tables, by way of their profiles."""
        profiles = [profile(table, client, kinds=kinds) for client, table in tables.items()]
        return cls.from_profiles(profiles, family=family)

    @classmethod
    def from_profiles(
        cls,
        profiles: Iterable[Profile],
        *,
        family: FeatureFamily = DEFAULT_FAMILY,
        clip: float = DEFAULT_CLIP,
    ) -> StudyPlan:
        """The plan of the clients' profiles: pooled location and scale, and the union of their levels."""
        profiles = sorted(profiles, key=lambda one: one.client)
        pooled = merge_profiles(profiles)
        variables: list[Variable] = [
            Categorical(name, column.levels)
            if (column := pooled[name]).kind == "categorical"
            else Continuous(name, column.location, column.scale, column.centre, column.spread)
            for name in pooled
        ]
        return cls(tuple(variables), tuple(one.client for one in profiles), family, clip)


def _check_name(text: object, whose: str) -> None:
    if wrong := describe_text_problem(text):
        raise PlanError(f"{whose} cannot be used: {wrong}; rename it")


def _reject_strings(*lists: object) -> None:
    """A text where a list belongs would fall apart into letters."""
    for found in lists:
        if isinstance(found, str):
            raise TypeError(f"expected a list, found {cut_repr(found)}")


def _variable_from_json(document: Mapping[str, Any]) -> Variable:
    fields = dict(document)
    kinds: dict[str, type[Variable]] = {"continuous": Continuous, "categorical": Categorical}
    return kinds[fields.pop("kind")](**fields)
