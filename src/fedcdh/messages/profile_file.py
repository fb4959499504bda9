"""Profile files: the profile of a client, as a text that people can read.

The text is canonical: one message has one text. What is read is written again and must give the same text, so nothing
can hide in a file that is not in the message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json
from fedcdh._io.strict_toml import abbreviate
from fedcdh._io.text import MAX_NAME_LENGTH, describe_text_problem, is_digest, is_key, is_name, to_readable_json
from fedcdh.data.recipe_file import parse_recipe, recipe_to_document
from fedcdh.errors import DataError
from fedcdh.messages._software import SOFTWARE
from fedcdh.summaries.column_profiles import MAX_LEVELS, QUANTILES, ColumnProfile
from fedcdh.summaries.profiles import Profile

FORMAT = "fedcdh-profile-3"
MAX_PROFILE_BYTES = 16_000_000
MAX_PROFILE_COLUMNS = 10_000
MAX_COUNT = 1 << 53
"""Beyond that, not every count is a number that all readers of JSON can hold."""
MAX_QUANTILE_DEVIATIONS = 5.0
"""Quantiles from 5 to 95 % lie within √19 = 4.4 standard deviations of the mean, whatever the values are; a little more
where they are interpolated or approximate."""
_MAX_VALUE = 1e150  # as for values of tables: squares stay finite
_NAME_RULE = f"of at most {MAX_NAME_LENGTH} letters that can be printed"
_ADVICE = "ask the site for the file again (as an attachment: mail programs change texts), or make the profile again"


@dataclass(frozen=True)
class ProfileMessage:
    """A profile, and what the coordinator has to know about how it was made.

    Attributes
    ----------
    profile : Profile
        Profile of the client.
    plan : str, optional
        Fingerprint of the draft plan whose variables and kinds were followed.
    key : str, optional
        Public key of the site, so that the plan can name it.
    software : str, default this version
        Program that made the file.

    Examples
    --------
    >>> from fedcdh.summaries import profile
    >>> ProfileMessage(profile({"age": [30, 40]}, "north")).profile.client
    'north'
    """

    profile: Profile
    plan: str | None = None
    key: str | None = None
    software: str = SOFTWARE

    def __post_init__(self) -> None:
        complaint = next(_find_problems(self), None)
        if complaint:
            raise DataError(
                f"the profile of client {str(self.profile.client)[:80]!r} cannot be used: {complaint}; make the "
                "profile again"
            )


def profile_to_json(message: ProfileMessage) -> str:
    """Write the one text of a message: JSON with sorted keys, indented by two spaces, and a newline at the end.

    Parameters
    ----------
    message : ProfileMessage
        Profile of a client.

    Returns
    -------
    str
        JSON text.

    Examples
    --------
    >>> from fedcdh.summaries import profile
    >>> message = ProfileMessage(profile({"age": [30, 40]}, "north"))
    >>> profile_from_json(profile_to_json(message)) == message
    True
    """
    profile = message.profile
    return to_readable_json(
        {
            "format": FORMAT,
            "client": profile.client,
            "rows": profile.rows,
            "columns": [{"name": name, **_column_to_json(column)} for name, column in profile.columns.items()],
            "plan": message.plan,
            "key": message.key,
            "software": message.software,
        }
    )


def profile_from_json(text: str | bytes) -> ProfileMessage:
    """Read a message that `profile_to_json` wrote.

    Parameters
    ----------
    text : str or bytes
        JSON text.

    Returns
    -------
    ProfileMessage
        The message.

    Raises
    ------
    DataError
        If the text is not that of a profile, or was changed.

    Examples
    --------
    >>> profile_from_json("{}")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DataError: ...
    """
    if len(text) > MAX_PROFILE_BYTES:
        raise _format_error(f"it is longer than {MAX_PROFILE_BYTES} bytes")
    document = parse_json(text, refuse=_format_error)
    if mismatch := find_format_mismatch(document.get("format") if isinstance(document, dict) else None, FORMAT):
        raise _format_error(*mismatch)
    try:
        columns = {column.pop("name"): _column_from_json(column) for column in document["columns"]}
        profile = Profile(document["client"], document["rows"], columns)
        message = ProfileMessage(profile, document["plan"], document["key"], document["software"])
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise _format_error(str(problem) if isinstance(problem, DataError) else repr(problem)[:200]) from None
    if profile_to_json(message).encode() != (text.encode() if isinstance(text, str) else text):
        raise _format_error("it is not written the way this program writes one: changed by hand, or on the way")
    return message


def _format_error(reason: str, advice: str = _ADVICE) -> DataError:
    return DataError(f"this is not a profile file ({reason}); {advice}")


def _column_to_json(column: ColumnProfile) -> dict[str, object]:
    counts = {"kind": column.kind, "count": column.count, "missing": column.missing}
    recipe = {} if column.recipe is None else {"recipe": recipe_to_document(column.recipe)}
    shared = {**counts, **column.shares_below_one, **recipe}
    if column.kind == "categorical":
        return {**shared, "levels": list(column.levels), "counts": list(column.counts)}
    return {**shared, "mean": column.mean, "squares": column.squares, "quantiles": list(column.quantiles)}


def _column_from_json(fields: Mapping[str, Any]) -> ColumnProfile:
    lists = {name: tuple(_require_list(fields[name])) for name in ("quantiles", "levels", "counts") if name in fields}
    recipe = parse_recipe(fields["recipe"], "the recipe", refuse=DataError) if "recipe" in fields else None
    return ColumnProfile(**{**fields, **lists, "recipe": recipe})


def _require_list(found: object) -> list[Any]:
    if not isinstance(found, list):
        raise TypeError(f"expected a list, found {abbreviate(found)}")
    return found


def _find_problems(message: ProfileMessage) -> Iterator[str]:
    profile = message.profile
    if not is_name(profile.client):
        yield f"the client needs a name {_NAME_RULE}, found {abbreviate(profile.client)}"
    if not _is_count(profile.rows):
        yield f"rows should be a whole number from 0 upwards, found {abbreviate(profile.rows)}"
    if not 0 < len(profile.columns) <= MAX_PROFILE_COLUMNS:
        yield f"it has {len(profile.columns)} columns, expected 1 to {MAX_PROFILE_COLUMNS}"
    if message.plan is not None and not is_digest(message.plan):
        yield "plan should be the fingerprint of a plan, 64 hexadecimal digits"
    if message.key is not None and not is_key(message.key):
        yield 'key should be a public key, "ed25519:" and the base64 of 32 bytes'
    if not is_name(message.software) or not message.software.isprintable():
        yield f"software should be a name {_NAME_RULE}"
    for name, column in profile.columns.items():
        if not is_name(name):
            yield f"a column needs a name {_NAME_RULE}, found {abbreviate(name)}"
        yield from (f"column {name!r}: {complaint}" for complaint in _column_problems(column, profile.rows))


def _column_problems(column: ColumnProfile, rows: int) -> Iterator[str]:
    if not _is_count(column.count) or not _is_count(column.missing) or column.count + column.missing != rows:
        counts = f"count {abbreviate(column.count)} and missing {abbreviate(column.missing)}"
        yield f"{counts} should add up to the {rows} rows"
    elif not all(map(_is_share, (column.product_share, column.mean_share))):
        shares = f"{abbreviate(column.product_share)} and {abbreviate(column.mean_share)}"
        yield f"product_share and mean_share should be above 0 and at most 1, with two digits, found {shares}"
    elif column.recipe is not None and column.recipe.kind != column.kind:
        yield f"its recipe gives a {column.recipe.kind} variable, but kind is {abbreviate(column.kind)}"
    elif column.kind == "categorical":
        yield from _categorical_problems(column)
    elif column.kind == "continuous":
        yield from _continuous_problems(column)
    else:
        yield f"kind should be continuous or categorical, found {abbreviate(column.kind)}"


def _categorical_problems(column: ColumnProfile) -> Iterator[str]:
    if (column.mean, column.squares, column.quantiles) != (0.0, 0.0, ()):
        yield "labels have no mean and no quantiles"
    if wrong := next(filter(None, map(describe_text_problem, column.levels)), ""):
        yield f"levels should be different texts {_NAME_RULE}, but {wrong}"
    elif len(set(column.levels)) != len(column.levels) or len(column.levels) > MAX_LEVELS:
        yield f"levels should be at most {MAX_LEVELS} different texts"
    if len(column.counts) != len(column.levels) or not all(map(_is_count, column.counts)):
        yield f"{len(column.levels)} levels need as many counts, whole numbers from 0 upwards"
    elif sum(column.counts) != column.count:
        yield f"the levels' counts add up to {sum(column.counts)}, expected {column.count}"


def _continuous_problems(column: ColumnProfile) -> Iterator[str]:
    numbers = (column.mean, column.squares, *column.quantiles)
    if column.levels or column.counts:
        yield "numbers have no levels"
    if not all(isinstance(one, float) and math.isfinite(one) for one in numbers):
        yield "mean, squares and quantiles should be finite numbers, written with a point"
    elif column.squares < 0 or max(map(abs, (column.mean, *column.quantiles))) > _MAX_VALUE:
        yield f"squares should not be negative, and no value beyond {_MAX_VALUE:g}"
    elif len(column.quantiles) != (len(QUANTILES) if column.count else 0):
        yield f"a column with values has {len(QUANTILES)} quantiles, one without has none"
    elif list(column.quantiles) != sorted(column.quantiles):
        yield f"quantiles should ascend, found {list(column.quantiles)}"
    elif not column.count and (column.mean, column.squares) != (0.0, 0.0):
        yield "a column without values has mean 0 and squares 0"
    elif column.count:
        reach = (
            MAX_QUANTILE_DEVIATIONS * math.sqrt(column.squares / column.count) + 1e-9 * abs(column.mean) + 1e-150
        )  # squares may vanish
        if max(abs(one - column.mean) for one in column.quantiles) > reach:
            yield f"no values with mean {column.mean} and squares {column.squares} have these quantiles"


def _is_share(found: object) -> bool:
    return isinstance(found, float) and 0 < found <= 1 and found == float(f"{found:.2g}")


def _is_count(found: object) -> bool:
    return isinstance(found, int) and not isinstance(found, bool) and 0 <= found < MAX_COUNT
