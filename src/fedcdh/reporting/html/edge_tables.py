"""The tables of links: the clear ones, the weak and uncertain ones, the possible ones, and the pairs without a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.discovery.result_text import MIN_POSSIBLE_PROBABILITY, format_probability
from fedcdh.reporting.graph_drawing.edge_style import style_edge
from fedcdh.reporting.html.graph_svg import edge_strength
from fedcdh.reporting.html.table_cells import (
    Cell,
    Row,
    missing_cell,
    number_cell,
    render_table,
    short_cell,
    signed_cell,
)
from fedcdh.reporting.phrases import (
    clean_text,
    describe_probability,
    describe_strength,
    format_evidence,
    format_share,
    format_signed,
    format_slope,
    likelier_direction,
    name_orientation,
    shown_probability,
    to_html_name,
)

MAX_PAIRS_LISTED = 500
"""Number of pairs listed without a link. More would be slow in a browser; edges.csv has all of them."""
MAX_POSSIBLE_LISTED = 100
"""Number of pairs listed as possible; edges.csv has all of them."""
NO_DIRECTION_NOTE = (
    "<p>A link without evidence for its direction cannot be reversed alone, since that closes a cycle, or its reverse "
    "was too unlikely to ask the sites about.</p>"
)
_NO_SLOPE, _NO_STRENGTH, _NO_REVERSE = "no single slope", "not estimated", "not compared"

Record = Mapping[str, Any]
Numbers = Mapping[frozenset[str], int]
"""For each link, its number in the picture."""


def has_probabilities(edges: Iterable[Record]) -> bool:
    """Return whether edges have probabilities; those of searches by tests have none."""
    return any(edge.get("probability") is not None for edge in edges)


def edge_table(edges: Sequence[Record], numbers: Numbers, caption: str = "Links between variables") -> str:
    """Return the links between variables with the certainty and the size of each.

    Parameters
    ----------
    edges : sequence of mapping
        Links of a result document.
    numbers : mapping
        For each link, its number in the picture.
    caption : str
        What the table is.

    Returns
    -------
    str
        HTML.
    """
    return (_likely_edges if has_probabilities(edges) else _tested_edges)(edges, numbers, caption)


def _likely_edges(edges: Sequence[Record], numbers: Numbers, caption: str) -> str:
    """Return links with probabilities, the surest first."""
    sized = any(edge.get("slope") is not None for edge in edges)
    heads = ["Link", "#Probability", "#Direction", "In words", *_size_heads(sized), "#Explains"]
    rows = []
    for edge in sorted(edges, key=lambda edge: (edge["mark"] != "→", -(shown_probability(edge) or 0.0))):
        strength = edge.get("strength")
        share = missing_cell(_NO_STRENGTH) if strength is None else number_cell(format_share(strength), strength)
        cells = [
            link_cell(edge),
            probability_cell(edge.get("probability")),
            _direction_cell(edge),
            Cell(describe_probability(shown_probability(edge) or 0.0), kind="word"),
            *_size_cells(edge, sized),
            share,
            Cell(escape(name_orientation(edge.get("oriented_by")))),
        ]
        rows.append(Row(cells, _link_attributes(edge, numbers)))
    return render_table([*heads, "Direction from"], rows, caption, "sortable links")


def _size_heads(sized: bool) -> list[str]:
    return ["#Direct effect", "#Standardised"] if sized else []


def _size_cells(edge: Record, sized: bool) -> list[Cell]:
    """Return the slope of a link with its interval and the standardised one, if any link has slopes."""
    if not sized:
        return []
    slope, scaled = edge.get("slope"), edge.get("standardised_slope")
    return [
        missing_cell(_NO_SLOPE) if slope is None else number_cell(format_slope(edge), slope),
        missing_cell(_NO_SLOPE) if scaled is None else number_cell(format_signed(scaled, 2), scaled),
    ]


def link_cell(edge: Record) -> Cell:
    """Return both variables of a link with its mark, as the title of its row."""
    means = {"→": "causes", "—": "linked, direction open"}.get(edge["mark"] or "", "no link")
    mark = f'<span class="mark" title="{means}">{edge["mark"] or "·"}</span>'
    return Cell(f"{to_html_name(edge['source'])} {mark} {to_html_name(edge['target'])}", kind="title")


def _link_attributes(edge: Record, numbers: Numbers) -> str:
    number = numbers[frozenset((edge["source"], edge["target"]))]
    tentative = ' class="tentative"' if style_edge(edge).is_tentative else ""
    return f'{tentative} data-edge="e{number}" data-names="{_filter_text(edge)}"'


def _filter_text(edge: Record) -> str:
    return escape(" ".join(clean_text(edge[end]).lower() for end in ("source", "target")))


def probability_cell(value: float | None) -> Cell:
    """Return a probability with two digits."""
    return missing_cell() if value is None else number_cell(escape(format_probability(value)), value)


def _direction_cell(edge: Record) -> Cell:
    """Return the probability of an arrow, or of the likelier direction of another pair."""
    direction = likelier_direction(edge)
    if direction is None:
        return missing_cell()
    if edge["mark"] == "→":
        return probability_cell(float(edge["probability_forward"]))
    mark, value = direction
    return number_cell(f"{mark} {escape(format_probability(value))}", value)


def possible_edge_table(edges: Sequence[Record]) -> str:
    """Return the pairs that are not drawn but possible, the likeliest first; empty if there are none."""
    possible = [edge for edge in edges if (edge.get("probability") or 0.0) >= MIN_POSSIBLE_PROBABILITY]
    possible.sort(key=_doubt)
    if not possible:
        return ""
    rows = [
        Row(
            [_pair_cell(edge), probability_cell(edge["probability"]), _direction_cell(edge)],
            f' data-names="{_filter_text(edge)}"',
        )
        for edge in possible[:MAX_POSSIBLE_LISTED]
    ]
    more = len(possible) - len(rows)
    note = f"<p>The {len(rows)} likeliest of {len(possible)}; edges.csv has all of them.</p>" if more else ""
    return render_table(["Pair", "#Probability", "#Likelier direction"], rows, "Possible, not drawn") + note


def _pair_cell(edge: Record) -> Cell:
    return Cell(f"{to_html_name(edge['source'])} · {to_html_name(edge['target'])}", kind="title")


def _tested_edges(edges: Sequence[Record], numbers: Numbers, caption: str) -> str:
    """Return links without probabilities, with p-values or log Bayes factors."""
    by_evidence = any(edge.get("log_bayes_presence") is not None for edge in edges)
    changes = any(edge.get("change_forward") is not None for edge in edges)
    sized = any(edge.get("slope") is not None for edge in edges)
    heads = ["Link", "#Evidence (log Bayes factor)" if by_evidence else "#p-value"]
    heads += [*(["Strength of evidence"] if by_evidence else []), *_size_heads(sized), "Direction from"]
    heads += ["#For direction"] if by_evidence else []
    heads += ["#Change forward", "#Change backward"] if changes else []
    rows = []
    for edge in edges:
        cells = [link_cell(edge), *_evidence_cells(edge, by_evidence), *_size_cells(edge, sized)]
        cells += [Cell(escape(name_orientation(edge.get("oriented_by"))))]
        cells += [signed_cell(edge.get("log_bayes_direction"), _NO_REVERSE)] if by_evidence else []
        both = ("change_forward", "change_backward") if changes else ()
        cells += [short_cell(edge.get(key), _NO_REVERSE) for key in both]
        rows.append(Row(cells, _link_attributes(edge, numbers)))
    missing = by_evidence and any(edge.get("log_bayes_direction") is None for edge in edges)
    return render_table(heads, rows, caption, "sortable links") + (NO_DIRECTION_NOTE if missing else "")


def _evidence_cells(edge: Record, by_evidence: bool) -> list[Cell]:
    shown, factor = format_evidence(edge), edge.get("log_bayes_presence")
    cells = [number_cell(shown, edge_strength(edge)) if shown else missing_cell("not tested")]
    return [*cells, Cell("" if factor is None else describe_strength(factor), kind="word")] if by_evidence else cells


def absent_edge_table(edges: Sequence[Record]) -> str:
    """Return the pairs without a link, the least certain first, with what separates them."""
    by_evidence = any(edge.get("log_bayes_presence") is not None for edge in edges)
    known = has_probabilities(edges)
    listed = sorted(edges, key=_doubt if known else _evidence_value)[:MAX_PAIRS_LISTED]
    given = any(edge.get("separating_set") is not None for edge in listed)
    heads = ["Pair", "#Probability" if known else "#Evidence against a link" if by_evidence else "#p-value"]
    heads += ["Independent given"] if given else []
    rows = []
    for edge in listed:
        cells = [_pair_cell(edge), probability_cell(edge.get("probability")) if known else _absence_cell(edge)]
        cells += [Cell(format_names(edge.get("separating_set"), "not tested"))] if given else []
        rows.append(Row(cells, f' data-names="{_filter_text(edge)}"'))
    more = len(edges) - len(listed)
    note = f"<p>The {len(listed)} least certain of {len(edges)}; edges.csv has all of them.</p>" if more else ""
    return render_table(heads, rows, "Pairs without a link, the least certain first") + note


def _absence_cell(edge: Record) -> Cell:
    value = edge.get("log_bayes_presence")
    value = edge.get("p_value") if value is None else value
    return missing_cell("not tested") if value is None else number_cell(format_evidence(edge), value)


def _doubt(edge: Record) -> float:
    return -(edge.get("probability") or 0.0)


def _evidence_value(edge: Record) -> float:
    value = edge.get("log_bayes_presence")
    value = edge.get("p_value") if value is None else value
    return float("inf") if value is None else float(value)


def format_names(names: Sequence[str] | None, missing: str) -> str:
    """Return names as HTML, "nothing else" where there are none, or a word where they are not known."""
    return missing if names is None else ", ".join(map(to_html_name, names)) or "nothing else"
