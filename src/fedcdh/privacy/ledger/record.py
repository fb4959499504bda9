"""One release: what left a site about some rows, as its ledger remembers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from fedcdh.privacy.ledger.row_sketches import ValueSketch

ReleaseKind = Literal["profile", "summary", "answer", "masked", "noisy", "withdrawn"]
"""What left: a profile, a summary (with its bootstrap copies), an answer in a further round, a summary under masks, or
one with noise; or that one of them, after all, did not."""
WITHDRAWN: ReleaseKind = "withdrawn"
RELEASE_KINDS: tuple[str, ...] = get_args(ReleaseKind)

CELLS_KEY = "cells"
"""What a release remembers of pairs of labels: for every two columns, how many people have each pair."""


@dataclass(frozen=True)
class ReleasedColumn:
    """What is remembered of one column: its values, and how much was told about them.

    The load is the share of the rows that so many numbers use up: twice the numbers told about this column's values
    over the number of values. Up to 1, there are twice as many unknowns as equations.
    """

    sketch: ValueSketch
    load: float = 0.0
    label: bool = False


@dataclass(frozen=True)
class Release:
    """Something that leaves a site, or has left it.

    `columns` go by this site's own names. `digest` tells what is told apart, by whichever plan. A noisy
    release says what it spends, `epsilon` and `delta`; its sketches are kept, its load is nothing.
    """

    kind: ReleaseKind
    client: str
    plan: str  # fingerprint; "" where there is none yet
    digest: str  # SHA-256 of what is told
    rows: int
    numbers: int  # told about continuous values: F of `needed.rows_needed`, of all copies together
    columns: Mapping[str, ReleasedColumn] = field(default_factory=dict)
    whole: ValueSketch | None = None  # of complete rows, all columns together
    copies: int = 0
    epsilon: float = 0.0
    delta: float = 0.0
    research: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)  # what else the kind of release has to remember

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "about", MappingProxyType(dict(self.about)))

    def repeats(self, earlier: Release) -> bool:
        """Whether this tells no number that the other did not tell. Copies do: they are drawn anew each time."""
        kinds = {self.kind, earlier.kind}
        alike = len(kinds) == 1 or (kinds == {"summary", "masked"} and not self.unmasks(earlier))
        return alike and self.digest == earlier.digest and not self.copies

    def unmasks(self, earlier: Release) -> bool:
        """Whether this shows plainly what the other hid under masks; by another plan, people have decided anew."""
        return self.kind in ("summary", "answer") and earlier.kind == "masked" and self.plan == earlier.plan

    def without_load(self) -> Release:
        """The same without any load, since nothing is told by it."""
        return replace(self, columns={name: replace(told, load=0.0) for name, told in self.columns.items()})

    def to_document(self) -> dict[str, Any]:
        """For a line of JSON."""
        return {
            "kind": self.kind,
            "client": self.client,
            "plan": self.plan,
            "digest": self.digest,
            "rows": self.rows,
            "numbers": self.numbers,
            "copies": self.copies,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "research": self.research,
            "about": dict(self.about),
            "whole": None if self.whole is None else self.whole.to_document(),
            "columns": {
                name: {"load": told.load, "label": told.label, **told.sketch.to_document()}
                for name, told in self.columns.items()
            },
        }

    @classmethod
    def from_document(cls, found: Mapping[str, Any]) -> Release:
        """What `to_document` wrote; ValueError, LookupError, TypeError or AttributeError for anything else."""
        if found["kind"] not in RELEASE_KINDS:
            raise ValueError(f"unknown kind of release {str(found['kind'])[:40]!r}")
        columns = {
            name: ReleasedColumn(ValueSketch.from_document(one), float(one["load"]), bool(one["label"]))
            for name, one in found["columns"].items()
        }
        plain = {name: found[name] for name in _SCALAR_FIELDS}
        whole = None if found["whole"] is None else ValueSketch.from_document(found["whole"])
        return cls(**plain, columns=columns, whole=whole, about=found["about"])


_SCALAR_FIELDS = (
    "kind",
    "client",
    "plan",
    "digest",
    "rows",
    "numbers",
    "copies",
    "epsilon",
    "delta",
    "research",
)
