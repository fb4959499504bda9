"""Releases: what left a client about some rows, in the form in which its ledger keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from fedcdh.privacy.ledger.row_sketches import ValueSketch

ReleaseKind = Literal["profile", "summary", "answer", "masked", "noisy", "round", "withdrawn"]
"""A profile, a summary (with its bootstrap replicates), an answer in an adaptive round, a summary under the masks of
secure aggregation, a summary with noise, or a message of a round of secure aggregation. "withdrawn" marks an earlier
release that was never sent."""
WITHDRAWN: ReleaseKind = "withdrawn"
RELEASE_KINDS: tuple[str, ...] = get_args(ReleaseKind)
SUMMARY_KINDS = ("summary", "masked", "noisy")
"""Kinds of release that answer a plan."""

CELLS_KEY = "cells"
"""Key of `Release.details` under which a summary keeps the number of people with each pair of levels."""
CLIENTS_KEY = "clients"
"""Key of `Release.details` under which something masked keeps a digest of the clients of its plan."""
COARSENED_KEY = "coarsened"
"""Key of `Release.details` under which a summary names the variables of which levels were merged or counts rounded."""
DESCRIPTIONS_KEY = "descriptions"
"""Key of `Release.details` under which a profile keeps one digest for each column that it describes."""
EARLIER_PLANS_KEY = "earlier_plans"
"""Key of `Release.details` under which a release keeps the plans that its plan follows, with other clients."""
ENCODING_KEY = "encoding"
"""Key of `Release.details` under which a summary keeps its plan, and the site's columns of the plan's variables."""
RECIPES_KEY = "recipes"
"""Key of `Release.details` under which a release keeps the recipes of its columns."""
MIXTURES_KEY = "mixtures"
"""Key of `Release.details` under which a round says how many mixtures of the clients its sum opens."""
MASKED_KEY = "masked"
"""Key of `Release.details` under which an answer says that it left under the masks of secure aggregation."""


@dataclass(frozen=True)
class ReleasedColumn:
    """One column of a release: a sketch of its values, and how much was released about them.

    Parameters
    ----------
    sketch : ValueSketch
        Sketch of the column's values.
    load : float, default 0.0
        Twice the number of released numbers about this column, divided by the number of its values. Up to a load of 1
        there are at least twice as many unknown values as equations about them.
    categorical : bool, default False
        Whether the column is a categorical variable.

    Examples
    --------
    >>> from fedcdh.privacy.ledger.row_sketches import EMPTY_SKETCH
    >>> ReleasedColumn(EMPTY_SKETCH, load=0.25).load
    0.25
    """

    sketch: ValueSketch
    load: float = 0.0
    categorical: bool = False


@dataclass(frozen=True)
class Release:
    """A release: something that leaves a client, or has left it.

    Parameters
    ----------
    kind : {"profile", "summary", "answer", "masked", "noisy", "round", "withdrawn"}
        What leaves.
    client : str
        Name of the client.
    plan : str
        Fingerprint of the plan; empty for a profile, which precedes the plan.
    digest : str
        SHA-256 of the released numbers. Equal digests release the same numbers, whatever the plan is called.
    rows : int
        Number of rows that the release is about.
    numbers : int
        Number of released numbers about continuous values, over all replicates.
    columns : mapping from str to ReleasedColumn, optional
        The released columns, by the site's own column names.
    complete_rows : ValueSketch, optional
        Sketch of the complete rows, over all columns together.
    replicates : int, default 0
        Number of bootstrap replicates that leave with the summary.
    epsilon, delta : float, default 0.0
        Privacy budget that a noisy release spends.
    disclosure_control : bool, default True
        Whether the policy enforced its limits when this was released.
    details : mapping, optional
        Whatever else this kind of release has to keep.

    Examples
    --------
    >>> first = Release("noisy", "north", "", "0" * 64, rows=500, numbers=0, epsilon=0.5)
    >>> first.repeats(first)
    True
    """

    kind: ReleaseKind
    client: str
    plan: str
    digest: str
    rows: int
    numbers: int
    columns: Mapping[str, ReleasedColumn] = field(default_factory=dict)
    complete_rows: ValueSketch | None = None
    replicates: int = 0
    epsilon: float = 0.0
    delta: float = 0.0
    disclosure_control: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def repeats(self, earlier: Release) -> bool:
        """Return whether this releases no number that the earlier release did not.

        Bootstrap replicates are drawn afresh each time, so a release with replicates never repeats another.

        Parameters
        ----------
        earlier : Release
            A release of the ledger.

        Returns
        -------
        bool
            True if this release adds nothing.
        """
        kinds = {self.kind, earlier.kind}
        alike = (len(kinds) == 1 and self.is_masked == earlier.is_masked) or (
            kinds == {"summary", "masked"} and not self.unmasks(earlier)
        )
        return alike and self.digest == earlier.digest and not self.replicates

    def unmasks(self, earlier: Release) -> bool:
        """Return whether this shows in plain what the earlier release hid under masks, by the same plan.

        A plan that follows another one, for other clients, is the same plan.

        Parameters
        ----------
        earlier : Release
            A release of the ledger.

        Returns
        -------
        bool
            True if the masks of the earlier release would no longer hide anything.
        """
        return (
            self.kind in ("summary", "answer")
            and not self.is_masked
            and earlier.is_masked
            and earlier.plan in (self.plan, *self.details.get(EARLIER_PLANS_KEY, ()))
        )

    @property
    def is_masked(self) -> bool:
        """True if this left under the masks of secure aggregation: a summary, or an answer that says so."""
        return self.kind == "masked" or bool(self.details.get(MASKED_KEY))

    def without_load(self) -> Release:
        """Return the same release with a load of zero in every column, for a release that adds nothing."""
        return replace(self, columns={name: replace(column, load=0.0) for name, column in self.columns.items()})

    def to_document(self) -> dict[str, Any]:
        """Return the release as a JSON object."""
        return {
            **{name: getattr(self, name) for name in _SCALAR_FIELDS},
            "details": dict(self.details),
            "complete_rows": None if self.complete_rows is None else self.complete_rows.to_document(),
            "columns": {
                name: {"load": column.load, "categorical": column.categorical, **column.sketch.to_document()}
                for name, column in self.columns.items()
            },
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Release:
        """Read a release that `to_document` wrote.

        Parameters
        ----------
        document : mapping
            A JSON object.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If the object is anything else.
        """
        if document["kind"] not in RELEASE_KINDS:
            raise ValueError(f"unknown kind of release {str(document['kind'])[:40]!r}")
        columns = {
            name: ReleasedColumn(ValueSketch.from_document(one), float(one["load"]), bool(one["categorical"]))
            for name, one in document["columns"].items()
        }
        scalars = {name: document[name] for name in _SCALAR_FIELDS}
        rows = document["complete_rows"]
        complete_rows = None if rows is None else ValueSketch.from_document(rows)
        return cls(**scalars, columns=columns, complete_rows=complete_rows, details=document["details"])


@dataclass(frozen=True)
class LedgerEntry:
    """A release as it stands in the ledger.

    Parameters
    ----------
    number : int
        Number of the release, counted from 1.
    time : str
        When it was recorded, in UTC.
    release : Release
        The release.
    key : str, default ""
        Public key that signed the entry; empty if none did.

    Examples
    --------
    >>> entry = LedgerEntry(1, "2026-01-01T12:00:00+00:00", Release("profile", "north", "", "0" * 64, 500, 12))
    >>> entry.release.kind
    'profile'
    """

    number: int
    time: str
    release: Release
    key: str = ""


_SCALAR_FIELDS = (
    "kind",
    "client",
    "plan",
    "digest",
    "rows",
    "numbers",
    "replicates",
    "epsilon",
    "delta",
    "disclosure_control",
)
