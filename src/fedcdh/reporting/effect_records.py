"""Effects as records of result.json, back from them, and as a table for spreadsheets.

The folder of a result is what a coordinator publishes. Effects of single sites are in it only for effects that the
coordinator has chosen; of all others it has what the sites say together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fedcdh._io.csv_cells import escape_cell
from fedcdh.discovery.effect import ClientEffect, Effect, PossibleEffect, ResponseCurve
from fedcdh.errors import SettingsError
from fedcdh.inference.effects.pooling import Heterogeneity, PooledEffect

if TYPE_CHECKING:
    from fedcdh.discovery.result import Discovery

_OWN_SHAPE = ("fixed", "random", "heterogeneity", "by_client", "possible", "curve")
_CSV_COLUMNS = (
    "cause",
    "outcome",
    "kind",
    "value",
    "low",
    "high",
    "pooling",
    "standardised",
    "adjusted_for",
    "identifiable",
    "reason",
    "units",
)


def list_effects(result: Discovery, chosen: Collection[Effect] = ()) -> list[dict[str, Any]] | None:
    """Return the total effects of a result as records, those that are chosen first and with their sites.

    Parameters
    ----------
    result : Discovery
        The result.
    chosen : collection of Effect
        Effects whose values at single sites are published.

    Returns
    -------
    list of dict, or None
        None where summaries have noise.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> records = list_effects(result, [result.effect("age", "exercise")])
    >>> records[0]["cause"], "by_client" in records[0], "by_client" in records[1]
    ('age', True, False)
    """
    try:
        found = result.effects()
    except SettingsError:
        return None
    named = {_name(effect) for effect in chosen}
    rest = [effect for effect in found if _name(effect) not in named]
    return [
        *(effect_to_dict(effect) for effect in chosen),
        *(effect_to_dict(effect, with_clients=False) for effect in rest),
    ]


def _name(effect: Effect) -> tuple[object, ...]:
    return effect.cause, effect.outcome, effect.kind, effect.levels, effect.outcome_level, effect.at


def name_effect_record(record: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what distinguishes the effect of a record from other effects of a result."""
    keys = ("cause", "outcome", "kind", "levels", "outcome_level", "at")
    return tuple(tuple(value) if isinstance(value := record.get(key), list) else value for key in keys)


def effect_to_dict(effect: Effect, *, with_clients: bool = True) -> dict[str, Any]:
    """Return an effect as a record of JSON.

    Parameters
    ----------
    effect : Effect
        The effect.
    with_clients : bool, default True
        Whether the effects of single clients and the curve are in it.

    Returns
    -------
    dict
        The fields of `Effect`; without clients there are no `by_client` and `curve`.

    Examples
    --------
    >>> record = effect_to_dict(Effect("dose", "stay", "total", 1.0, (0.5, 1.5), (), True))
    >>> effect_from_dict(record).interval
    (0.5, 1.5)
    """
    plain = {name: getattr(effect, name) for name in effect.__dataclass_fields__ if name not in _OWN_SHAPE}
    parts = {name: getattr(effect, name) for name in ("fixed", "random", "heterogeneity")}
    record = {
        **plain,
        **{name: None if part is None else asdict(part) for name, part in parts.items()},
        "possible": [asdict(one) for one in effect.possible],
    }
    if with_clients:
        record["by_client"] = {client: asdict(one) for client, one in effect.by_client.items()}
        record["curve"] = None if effect.curve is None else asdict(effect.curve)
    return record


def effect_from_dict(record: Mapping[str, Any]) -> Effect:
    """Return the effect of a record.

    Parameters
    ----------
    record : mapping
        A record of `effect_to_dict`, or of result.json.

    Returns
    -------
    Effect
        The effect.

    Examples
    --------
    >>> effect = Effect("dose", "stay", "total", None, None, None, False, "the direction is open")
    >>> effect_from_dict(effect_to_dict(effect)) == effect
    True
    """
    fields = {name: _to_tuple(value) for name, value in record.items() if name not in _OWN_SHAPE}
    shapes: tuple[tuple[str, type], ...] = (
        ("fixed", PooledEffect),
        ("random", PooledEffect),
        ("heterogeneity", Heterogeneity),
        ("curve", ResponseCurve),
    )
    for name, kind in shapes:
        fields[name] = None if record.get(name) is None else _build(kind, record[name])
    fields["by_client"] = {name: _build(ClientEffect, one) for name, one in (record.get("by_client") or {}).items()}
    fields["possible"] = tuple(_build(PossibleEffect, one) for one in record.get("possible") or ())
    return Effect(**fields)


def _build(kind: type, record: Mapping[str, Any]) -> Any:
    return kind(**{name: _to_tuple(value) for name, value in record.items()})


def _to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def render_effects_csv(effects: Iterable[Effect]) -> str:
    """Return the text of effects.csv: a header, and one row per effect, without single sites.

    Parameters
    ----------
    effects : iterable of Effect
        The effects.

    Returns
    -------
    str
        A cell is empty where there is no value.

    Examples
    --------
    >>> print(render_effects_csv([Effect("dose", "stay", "total", 1.0, (0.5, 1.5), ("age",), True)]).splitlines()[1])
    dose,stay,total,1.0,0.5,1.5,,,age,True,,
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_CSV_COLUMNS)
    for effect in effects:
        low, high = effect.interval or (None, None)
        ends = {"low": low, "high": high, "adjusted_for": "; ".join(effect.adjusted_for or ())}
        writer.writerow([_to_cell(ends[name] if name in ends else getattr(effect, name)) for name in _CSV_COLUMNS])
    return out.getvalue()


def _to_cell(value: object) -> object:
    return "" if value is None else escape_cell(value)
