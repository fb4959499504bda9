"""Steps of the search for advice: changes of one variable, with the information that each loses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.recipe_file import OTHER
from fedcdh.data.recipe_merging import name_group
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Recipe, Threshold
from fedcdh.data.table import Table
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.variables import Categorical

# bits of information that are taken to be lost; an order of preference rather than a measurement
_LOGARITHM_BITS, _CLIP_BITS, _THRESHOLD_BITS = 0.05, 0.2, 2.5
_EXCLUDED_NUMBER_BITS, _EXCLUDED_LABEL_BITS = 4.0, 1.0  # the latter on top of the variable's entropy


@dataclass(frozen=True)
class Step:
    """A change of one variable; without a recipe, it is excluded."""

    name: str
    recipe: Recipe | None
    bits: float


def exclude_number(name: str) -> Step:
    """Return the step that excludes a number."""
    return Step(name, None, _EXCLUDED_NUMBER_BITS)


def exclude_labels(name: str, counts: Mapping[str, int]) -> Step:
    """Return the step that excludes a categorical variable."""
    return Step(name, None, _EXCLUDED_LABEL_BITS + _entropy(counts.values()))


def plain_number(recipe: Recipe | None) -> NumberRecipe:
    """Return the part of a recipe that converts units."""
    base = recipe if isinstance(recipe, NumberRecipe) else NumberRecipe()
    return replace(base, clip=None, step=None, logarithm="none", threshold=None)


def number_steps(name: str, recipe: Recipe | None, values: Array, fewest: int) -> Iterator[Step]:
    """Yield steps for a number with these sorted values; clips have at least `fewest` people beyond each end."""
    base = recipe if isinstance(recipe, NumberRecipe) else NumberRecipe()
    if len(values) < 2 or values[0] == values[-1]:
        return
    if base.logarithm == "none" and (values[0] > 0 or (base.clip is not None and base.clip[0] > 0)):
        yield Step(name, replace(base, logarithm="log"), _LOGARITHM_BITS)
    elif base.logarithm == "none" and values[0] >= 0:
        yield Step(name, replace(base, logarithm="log1p"), _LOGARITHM_BITS)
    for people in (fewest, 2 * fewest):
        clip = _tail_clip(values, people)
        if clip is not None and clip != base.clip and (clip[0] > 0 or base.logarithm != "log"):
            yield Step(name, replace(base, clip=clip), _CLIP_BITS * people / fewest)
    if values[0] == 0.0:  # any other threshold would contradict that of another site
        yield Step(name, replace(plain_number(recipe), threshold=Threshold(0.0)), _THRESHOLD_BITS)


def count_levels(tables: Sequence[Table]) -> dict[str, int]:
    """Count the people with each level that occurs."""
    counts: dict[str, int] = {}
    for table in tables:
        (column,) = table.columns.values()
        texts = column.to_categorical()
        found = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.levels)).tolist()
        for level, count in zip(texts.levels, found, strict=True):
            counts[level] = counts.get(level, 0) + count
    return {level: count for level, count in counts.items() if count}


def _entropy(counts: Iterable[int]) -> float:
    shares = np.array([count for count in counts if count], dtype=np.float64)
    shares /= max(shares.sum(), 1.0)
    return float(-(shares * np.log2(shares)).sum())


def merging_steps(name: str, variable: Categorical, counts: Mapping[str, int]) -> Iterator[Step]:
    """Yield steps that merge the rarest level with its neighbours, or with the next rarest where there is no order."""
    if len(counts) < 3:
        return
    rarest = min(counts, key=lambda level: (counts[level], level))
    for other in _neighbours(rarest, variable.levels, counts):
        recipe = _merge_levels(variable.recipe, (rarest, other))
        merged = {level: count for level, count in counts.items() if level not in (rarest, other)}
        yield Step(
            name,
            recipe,
            _entropy(counts.values()) - _entropy([*merged.values(), counts[rarest] + counts[other]]),
        )


def _neighbours(level: str, levels: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """Return the levels with which a level may be merged: those next to it in their order, else the next rarest."""
    places = {one: _place(one) for one in counts}
    if None in places.values():
        return sorted((one for one in counts if one != level), key=lambda one: (counts[one], one))[:1]
    order = sorted(counts, key=lambda one: (places[one], one))
    at = order.index(level)
    return [order[place] for place in (at - 1, at + 1) if 0 <= place < len(order)]


_ROMAN = {"I": 1.0, "II": 2.0, "III": 3.0, "IV": 4.0, "V": 5.0, "VI": 6.0}


def _place(level: str) -> float | None:
    """Return the place of a level in an order: a number, or a grade such as III; of a group, its first label."""
    first = level.split("/")[0]
    try:
        return _ROMAN.get(first, math.nan) if first in _ROMAN else float(first)
    except ValueError:
        return None


def _merge_levels(recipe: Recipe | None, levels: Sequence[str]) -> LabelRecipe:
    """Return the recipe of the site's labels that also merges these levels."""
    known = recipe if isinstance(recipe, LabelRecipe) else None
    groups = dict(known.groups) if known else {}
    if known and known.other in levels:
        rest = {name: labels for name, labels in groups.items() if name not in levels}
        return LabelRecipe(tuple(rest.items()), tuple(one for one in known.keep if one not in levels), known.other)
    labels = [label for level in levels for label in groups.pop(level, (level,))]
    keep = tuple(one for one in known.keep if one not in labels) if known else ()
    return LabelRecipe((*groups.items(), (name_group(labels), tuple(labels))), keep, known.other if known else "")


def hide_rare_labels(recipe: Recipe, column: ColumnProfile, declared: Sequence[str], fewest: int) -> Recipe:
    """Return a recipe that names no label of fewer people, unless everybody knows it: their groups become one level."""
    if not isinstance(recipe, LabelRecipe):
        return recipe
    earlier = column.recipe if isinstance(column.recipe, LabelRecipe) else None
    known = {*declared, *(label for _, labels in (earlier.groups if earlier else ()) for label in labels)}
    counts = dict(zip(column.levels, column.counts, strict=True))
    rare = {level for level, count in counts.items() if 0 < count < fewest and level not in known}
    hidden = {name for name, labels in recipe.groups if rare & set(labels)}
    if not hidden:
        return recipe
    grouped = {label for _, labels in recipe.groups for label in labels}
    keep = set(recipe.keep) if recipe.other else set(counts) - grouped - dict(earlier.groups if earlier else ()).keys()
    groups = tuple((name, labels) for name, labels in recipe.groups if name not in hidden)
    return LabelRecipe(groups, tuple(keep - grouped - rare), recipe.other or OTHER)


def map_levels(levels: Sequence[str], earlier: Recipe | None, recipe: LabelRecipe) -> tuple[str, ...]:
    """Return the levels of the plan after another recipe of the site's labels."""
    if recipe.levels is not None:
        return recipe.levels
    members = dict(earlier.groups) if isinstance(earlier, LabelRecipe) else {}
    return tuple(dict.fromkeys(recipe.level_of(members.get(level, (level,))[0]) for level in levels))


def _tail_clip(values: Array, people: int) -> tuple[float, float] | None:
    """Return two limits with at least this number of people at or beyond each; None where nothing is left between them.

    A limit that is the smallest or largest value has nobody beyond it. Others are rounded inwards to three digits, so
    that they are nobody's own value where values have more digits.
    """
    if len(values) < 4 * people:
        return None
    low, high = float(values[people - 1]), float(values[-people])
    low = low if low == values[0] else _round_to(low, math.ceil)
    high = high if high == values[-1] else _round_to(high, math.floor)
    return (low, high) if low < high else None


def _round_to(value: float, towards: Callable[[float], int]) -> float:
    """Return a value rounded to three digits, upwards or downwards."""
    if not value:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return float(f"{towards(value / step) * step:.12g}")
