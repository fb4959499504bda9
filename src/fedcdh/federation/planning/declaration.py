"""Declarations: what the coordinator knows and decides about a study, written by hand as TOML.

A declaration alone makes a plan if it names the clients and says everything about every variable; together with
profiles it says what it wants to say, and the profiles say the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedcdh._io import strict_toml
from fedcdh._io.strict_toml import number, only, shown, texts, whole
from fedcdh.data.sources import Kind
from fedcdh.errors import PlanError
from fedcdh.graphs.convert.knowledge import parse_knowledge
from fedcdh.graphs.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import Categorical, Continuous, Variable

_FAMILIES: dict[str, type[Hermite] | type[Fourier]] = {"hermite": Hermite, "fourier": Fourier}


@dataclass(frozen=True)
class Declared:
    """What is declared about one variable; None is left to the profiles."""

    name: str
    kind: Kind | None = None
    levels: tuple[str, ...] | None = None
    location: float | None = None
    scale: float | None = None

    @property
    def variable(self) -> Variable | None:
        """The variable, if all is said about it."""
        if self.levels is not None:
            return Categorical(self.name, self.levels)
        if self.location is not None and self.scale is not None:
            return Continuous(self.name, self.location, self.scale)
        return None


@dataclass(frozen=True)
class Declaration:
    """Clients and variables in the order declared; none at all means those of the profiles."""

    clients: tuple[str, ...] = ()
    variables: tuple[Declared, ...] = ()
    knowledge: Knowledge = NOTHING_KNOWN
    family: FeatureFamily | None = None

    @classmethod
    def from_toml(cls, text: str | bytes) -> Declaration:
        """The declaration of a TOML text; PlanError with the place and what is expected there.

        >>> made = Declaration.from_toml('[variables.smoker]\\nlevels = ["no", "yes"]')
        >>> made.variables[0].kind
        'categorical'
        """
        found = strict_toml.parse(text, refuse=_refuse)
        only(found, ("clients", "variables", "knowledge", "features"), "the declaration", refuse=_refuse)
        variables = only(found.get("variables", {}), None, "[variables]", refuse=_refuse)
        return cls(
            clients=_names(found.get("clients", []), "clients"),
            variables=tuple(_declared(name, fields) for name, fields in variables.items()),
            knowledge=parse_knowledge(found.get("knowledge", {}), refuse=_refuse),
            family=_family(found["features"]) if "features" in found else None,
        )


def _refuse(reason: str) -> PlanError:
    return PlanError(f"the declaration cannot be used: {reason}; correct it there")


def _names(found: Any, where: str) -> tuple[str, ...]:
    names = texts(found, where, refuse=_refuse)
    if len(set(names)) != len(names) or "" in names:
        raise _refuse(f"{where} should be different names that are not empty, found {shown(list(names))}")
    return names


def _declared(name: str, fields: Any) -> Declared:
    where = f"[variables.{name}]"
    only(fields, ("kind", "levels", "range", "mean", "sd"), where, refuse=_refuse)
    numeric = [key for key in ("range", "mean", "sd") if key in fields]
    kind = fields.get("kind", "categorical" if "levels" in fields else "continuous" if numeric else None)
    if kind not in ("continuous", "categorical", None):
        raise _refuse(f'kind in {where} should be "continuous" or "categorical", found {shown(kind)}')
    if (kind == "continuous" and "levels" in fields) or (kind == "categorical" and numeric):
        raise _refuse(f"{where} is {kind}: levels are for categorical, range, mean and sd for continuous variables")
    if "levels" in fields:
        return Declared(name, kind, levels=_levels(fields["levels"], where))
    location, scale = _centre(fields, where) if numeric else (None, None)
    return Declared(name, kind, location=location, scale=scale)


def _levels(found: Any, where: str) -> tuple[str, ...]:
    """Labels; whole numbers are the labels that a table's column of numbers gives, 0 for "0"."""
    listed = found if isinstance(found, list) else [None]
    if not all(isinstance(level, str | int) and not isinstance(level, bool) for level in listed):
        raise _refuse(f'levels in {where} should be a list such as ["no", "yes"] or [0, 1], found {shown(found)}')
    levels = tuple(map(str, listed))
    if not levels or len(set(levels)) != len(levels):
        raise _refuse(f"levels in {where} should be one or more different labels, found {shown(found)}")
    return levels


def _centre(fields: Mapping[str, Any], where: str) -> tuple[float, float]:
    """Location and scale: mean and standard deviation, or those of values that fill the range evenly.

    Evenly is the cautious guess: real values crowd in the middle, and then this scale is up to twice their standard
    deviation, which features of all widths allowed can still resolve. Too small a scale would cut their tails.
    """
    if set(fields) - {"kind"} == {"mean", "sd"}:
        mean, sd = (number(fields[key], f"{key} in {where}", refuse=_refuse) for key in ("mean", "sd"))
        if sd <= 0:
            raise _refuse(f"sd in {where} should be positive, found {sd:g}")
        return mean, sd
    if set(fields) - {"kind"} != {"range"}:
        raise _refuse(f"{where} needs either a range, or a mean and an sd")
    found = fields["range"]
    if not isinstance(found, list) or len(found) != 2:
        raise _refuse(f"range in {where} should be two numbers such as [18, 100], found {shown(found)}")
    low, high = (number(end, f"range in {where}", refuse=_refuse) for end in found)
    location, scale = low / 2 + high / 2, (high / 2 - low / 2) / math.sqrt(3)
    if not low < high or not 0 < scale < math.inf:
        raise _refuse(f"range in {where} should go from a smaller to a larger number, found {shown(found)}")
    return location, scale


def _family(found: Any) -> FeatureFamily:
    only(found, ("family", "width", "bandwidth", "seed"), "[features]", refuse=_refuse)
    name = found.get("family", "hermite")
    if not isinstance(name, str) or name not in _FAMILIES:
        raise _refuse(f"family in [features] should be one of {', '.join(_FAMILIES)}, found {shown(name)}")
    if "seed" in found and name != "fourier":
        raise _refuse("seed in [features] is for the family fourier; hermite draws nothing at random")
    fields: dict[str, Any] = {
        key: whole(found[key], f"{key} in [features]", refuse=_refuse) for key in ("width", "seed") if key in found
    }
    if "bandwidth" in found:
        fields["bandwidth"] = number(found["bandwidth"], "bandwidth in [features]", refuse=_refuse)
    return _FAMILIES[name](**fields)
