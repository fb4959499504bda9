"""The result document that a report is made of, read from result.json and checked key by key.

The file may come from anywhere, so every key that the report uses is checked. Unknown keys are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_json import parse_json
from fedcdh.errors import DataError
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.result_files import FORMAT, MAX_RESULT_BYTES, OLD_FORMATS

_EXPECTED = f'Expected a result.json with "format": "{FORMAT}". Run `fedcdh discover` again to make one.'
_ROUNDING = 1e-6  # sums of probabilities may exceed 1 by rounding
EDGE_MARKS = {"→", "—", ""}
Shape: TypeAlias = Callable[[Any, str], Iterator[str]]
"""Check a value and yield its problems; the text names the place in the document."""


def read_document(path: Path) -> dict[str, Any]:
    """Read and check a result.json.

    Parameters
    ----------
    path : Path
        The file, or the folder of a result.

    Returns
    -------
    dict
        The document of the result.

    Raises
    ------
    DataError
        If the file is not a result, or one of an older version.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> paths = fedcdh.write_result(result, folder := tempfile.mkdtemp())
    >>> read_document(Path(folder))["changing"]
    ['medication', 'systolic_pressure']
    """
    path = path / "result.json" if path.is_dir() else path
    text = read_regular_file(path, MAX_RESULT_BYTES, "result.json of `fedcdh discover`")
    try:
        return parse_document(text)
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None


def parse_document(text: str | bytes) -> dict[str, Any]:
    """Parse and check the text of a result.json.

    Parameters
    ----------
    text : str or bytes
        The content of the file.

    Returns
    -------
    dict
        The document of the result.

    Raises
    ------
    DataError
        If the text is not a result, or one of an older version.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.reporting import render_result_json
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> parse_document(render_result_json(result))["format"]
    'fedcdh-result-4'
    """
    document = parse_json(text, refuse=lambda reason: DataError(f"The text is not a result: {reason}"))
    check_document(document)
    return dict(document)


def check_document(document: Any) -> None:
    """Check that a report can be made of a document.

    Parameters
    ----------
    document : object
        What was read from a result.json.

    Raises
    ------
    DataError
        If it is not a result, or one of an older version.

    Examples
    --------
    >>> check_document({"format": "fedcdh-result-2"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DataError: The result has the format 'fedcdh-result-2' of an older version. Expected ...
    """
    if not isinstance(document, Mapping):
        raise DataError(f"Found no JSON object. {_EXPECTED}")
    found = document.get("format")
    if isinstance(found, str) and found.startswith("fedcdh-hidden-causes-"):
        raise DataError(
            "This is the result of a search with hidden causes, whose circles and ↔ neither the report nor read_result "
            "can show yet. Read graph.txt and edges.csv beside it, draw graph.dot with Graphviz, or search without "
            "hidden causes."
        )
    if found in OLD_FORMATS:
        raise DataError(f"The result has the format {found!r} of an older version. {_EXPECTED}")
    if found != FORMAT and isinstance(found, str) and re.fullmatch(r"fedcdh-result-[0-9]{1,6}", found):
        raise DataError(
            f"The result has the format {found!r}: it was made by a newer fedcdh{_name_software(document)}. This "
            f"version reads {FORMAT!r}. Update fedcdh, or ask for the result of a search with this version."
        )
    if found != FORMAT:
        raise DataError(f"Found something that is not a result. {_EXPECTED}")
    problem = next(_result(document, "result"), None) or next(_find_contradictions(document), None)
    if problem is not None:
        raise DataError(f"The result is damaged: {problem}. {_EXPECTED}")


def _name_software(document: Mapping[str, Any]) -> str:
    software = document.get("software")
    return f" ({software[:40]})" if isinstance(software, str) and software.isprintable() else ""


def _text(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{where} is not a text"


def _count(value: Any, where: str) -> Iterator[str]:
    if type(value) is not int or value < 0:
        yield f"{where} is not a whole number from 0 up"


def _number(value: Any, where: str) -> Iterator[str]:
    if type(value) not in (int, float) or not abs(value) < 1e300:
        yield f"{where} is not a number"


def _probability(value: Any, where: str) -> Iterator[str]:
    if type(value) not in (int, float) or not -_ROUNDING <= value <= 1 + _ROUNDING:
        yield f"{where} is not a number from 0 to 1"


def _truth(value: Any, where: str) -> Iterator[str]:
    if type(value) is not bool:
        yield f"{where} is not true or false"


def _any_value(value: Any, where: str) -> Iterator[str]:
    yield from ()


def _optional(shape: Shape) -> Shape:
    def check(value: Any, where: str) -> Iterator[str]:
        if value is not None:
            yield from shape(value, where)

    return check


def _list_of(shape: Shape) -> Shape:
    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, (list, tuple)):
            yield f"{where} is not a list"
            return
        for position, entry in enumerate(value):
            yield from shape(entry, f"{where}[{position}]")

    return check


def _mapping_of(shape: Shape) -> Shape:
    """Check an object with any keys whose values all have one shape."""

    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{where} is not an object"
            return
        for name, entry in value.items():
            yield from shape(entry, f"{where}[{str(name)[:40]!r}]")

    return check


def _record(needed: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{where} is not an object"
            return
        for name, shape in needed.items():
            if name not in value:
                yield f"{where} has no {name!r}"
            else:
                yield from shape(value[name], f"{where}.{name}")
        for name, shape in (optional or {}).items():
            if name in value:
                yield from shape(value[name], f"{where}.{name}")

    return check


def _pair(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(isinstance(name, str) for name in value):
        yield f"{where} is not a pair of names"


_optional_number = _optional(_number)
_edge = _record(
    {"source": _text, "target": _text, "mark": _text},
    {
        "oriented_by": _optional(_text),
        "separating_set": _optional(_list_of(_text)),
        **dict.fromkeys(("p_value", "change_forward", "change_backward"), _optional_number),
        **dict.fromkeys(("log_bayes_presence", "log_bayes_direction"), _optional_number),
        **dict.fromkeys(("probability", "probability_forward", "strength"), _optional(_probability)),
        "status": _text,
        **dict.fromkeys(("slope", "slope_low", "slope_high", "standardised_slope"), _optional_number),
        "slope_units": _optional(_text),
    },
)
_ends = _optional(_list_of(_number))
_pooled = _optional(
    _record(
        {"value": _number, "interval": _list_of(_number)}, {"standard_error": _number, "degrees_of_freedom": _number}
    )
)
_effect = _record(
    {
        **dict.fromkeys(("cause", "outcome", "kind", "reason", "pooling", "units"), _text),
        "value": _optional_number,
        "interval": _ends,
        "identifiable": _truth,
        "adjusted_for": _optional(_list_of(_text)),
    },
    {
        **dict.fromkeys(("fixed", "random"), _pooled),
        "heterogeneity": _optional(_mapping_of(_number)),
        "possible": _list_of(
            _record({"value": _optional_number, "interval": _ends}, {"probability": _optional(_probability)})
        ),
        **dict.fromkeys(("probability_of_effect", "probability_positive"), _optional(_probability)),
        "levels": _optional(_pair),
        "outcome_level": _optional(_text),
        **dict.fromkeys(("at", "standardised_interval"), _ends),
        "standardised": _optional_number,
        "rows": _count,
        "notes": _list_of(_text),
        "by_client": _mapping_of(
            _record({"value": _optional_number, "interval": _ends, "rows": _count}, {"note": _text})
        ),
        "curve": _optional(
            _record(
                {**dict.fromkeys(("cause_values", "differences", "low", "high"), _list_of(_number))},
                {"reference": _number, "p_value": _optional_number},
            )
        ),
    },
)
_edge_stability = _record(
    {"source": _text, "target": _text},
    {
        **dict.fromkeys(("presence", "direction", "adjacent", "same"), _optional_number),
        **dict.fromkeys(("gone_without", "turned_without"), _optional(_list_of(_text))),
        "runs": _optional(_count),
    },
)
_change_stability = _record(
    {"variable": _text}, {"share": _optional_number, "differs_without": _optional(_list_of(_text))}
)
_influence = _record(
    {"client": _text, "share": _number, "largest": _number, "total": _number, "n_changed": _count},
    {"link": _optional(_pair)},
)
_stability_object = _record(
    {"edges": _list_of(_edge_stability)},
    {
        "kind": _text,
        "changing": _list_of(_change_stability),
        "influence": _list_of(_influence),
        "runs": _list_of(_mapping_of(_any_value)),
        "notes": _list_of(_text),
    },
)


def _stability(value: Any, where: str) -> Iterator[str]:
    """Check a list of edge records, or an object that holds them beside the runs."""
    yield from (_stability_object if isinstance(value, Mapping) else _list_of(_edge_stability))(value, where)


_values = _record({}, {"mean": _number, "deviation": _number, "shares": _mapping_of(_probability)})
_result = _record(
    {
        "software": _text,
        "plan": _text,
        "settings": _record(
            {
                "method": _text,
                "alpha": _number,
                "knowledge": _record(
                    {"required": _list_of(_pair), "forbidden": _list_of(_pair), "tiers": _list_of(_list_of(_text))},
                    {"forbid_within_tier": _list_of(_count)},
                ),
            },
            {
                "max_conditioning_size": _optional(_count),
                "seed": _count,
                **dict.fromkeys(("min_probability", "min_arrow_probability", "min_effect"), _probability),
            },
        ),
        "clients": _list_of(
            _record(
                {"client": _text, "rows": _count},
                {
                    "rows_read": _optional(_count),
                    "missing": _optional(_mapping_of(_count)),
                    "members": _list_of(_text),
                    "absent": _list_of(_text),
                    "coarsened": _list_of(_text),
                    "values": _mapping_of(_values),
                },
            )
        ),
        "variables": _list_of(_text),
        "graph": _record({"arrows": _list_of(_pair), "lines": _list_of(_pair)}),
        "changing": _list_of(_text),
        "dag": _optional(_list_of(_pair)),
        "edges": _list_of(_edge),
        "notes": _list_of(_text),
    },
    {
        "drift": _optional(
            _list_of(
                _record(
                    {"variable": _text, "client": _text, "quantity": _text, "deviation": _optional_number},
                    {
                        **dict.fromkeys(("estimate", "low", "high", "pooled", "p_value"), _optional_number),
                        "note": _text,
                    },
                )
            )
        ),
        "effects": _optional(_list_of(_effect)),
        "stability": _optional(_stability),
        "row_stability": _optional(_stability),
        "without_disclosure_control": _list_of(_text),
        "recipes": _mapping_of(_text),
        "excluded": _list_of(_text),
        "probability_of_change": _optional(_mapping_of(_probability)),
        "mixtures": _truth,
        "warnings": _count,
    },
)


def stability_records(document: Mapping[str, Any], key: str = "stability") -> list[dict[str, Any]]:
    """Return the share of runs that found each link and its direction; "row_stability" is that of resampled rows."""
    found = document.get(key) or {}
    records = found.get("edges", ()) if isinstance(found, Mapping) else found
    runs = len(found["runs"]) if isinstance(found, Mapping) and "runs" in found else None
    return [
        {
            "runs": runs,
            **record,
            "presence": _first_value(record, "presence", "adjacent"),
            "direction": _first_value(record, "direction", "same"),
        }
        for record in records
    ]


def _first_value(record: Mapping[str, Any], *keys: str) -> float | None:
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _find_contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield contradictions between parts of the document."""
    names = set(document["variables"])
    if len(names) != len(document["variables"]):
        yield "a variable is named twice"
    graph, seen = document["graph"], set()
    arrows = [*graph["arrows"], *graph["lines"], *(document["dag"] or ())]
    for pair in [*arrows, *((edge["source"], edge["target"]) for edge in document["edges"])]:
        if not set(pair) <= names | {DOMAIN} or pair[0] == pair[1]:
            yield f"{str(pair[0])[:40]!r} and {str(pair[1])[:40]!r} are not two of the variables"
    if document.get("warnings", 0) > len(document["notes"]):
        yield "there are more warnings than notes"
    if not set(document["changing"]) <= names:
        yield "a changing variable is not among the variables"
    if not set(document.get("probability_of_change") or ()) <= names:
        yield "a probability of change is not that of one of the variables"
    for effect in document.get("effects") or ():
        if not {effect["cause"], effect["outcome"], *(effect["adjusted_for"] or ())} <= names:
            yield "an effect names something that is not one of the variables"
        if effect["interval"] is not None and len(effect["interval"]) != 2:
            yield "the interval of an effect has not two ends"
    for edge in document["edges"]:
        if edge["mark"] not in EDGE_MARKS:
            yield f"an edge is marked {edge['mark'][:10]!r}, expected one of {sorted(EDGE_MARKS)}"
        if (pair := frozenset((edge["source"], edge["target"]))) in seen:
            yield f"the pair {' and '.join(sorted(pair))[:80]} occurs twice among the edges"
        if (edge.get("probability_forward") or 0.0) > (edge.get("probability") or 0.0) + _ROUNDING:
            yield f"an arrow between {' and '.join(sorted(pair))[:80]} is more probable than the edge"
        seen.add(pair)
