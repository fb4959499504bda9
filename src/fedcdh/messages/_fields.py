"""Frozen dataclasses as JSON objects, field by field: a field that is added needs no further code here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def fields_to_document(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as a JSON object."""
    return asdict(value)


def restore_fields(kind: type[T], document: Any) -> T:
    """Return the dataclass whose fields are these; raise TypeError if a field is missing, unknown or of another type.

    Fields are texts, numbers, truth values, and tuples of these.
    """
    hints = get_type_hints(kind)
    if not isinstance(document, dict) or document.keys() != hints.keys():
        raise TypeError(f"expected the fields {', '.join(hints)}")
    return kind(**{name: _restore(hint, document[name]) for name, hint in hints.items()})


def _restore(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise TypeError("expected a list")
        return tuple(_restore(get_args(hint)[0], one) for one in value)
    if type(value) is not hint:
        raise TypeError(f"expected {hint.__name__}")
    return value
