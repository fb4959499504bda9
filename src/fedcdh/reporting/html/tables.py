"""The tables of a report as HTML: everything that the graph shows and more, also for print and screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.discovery.result_text import MIN_POSSIBLE_PROBABILITY, format_probability
from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.graph_svg import edge_strength
from fedcdh.reporting.phrases import (
    clean_text,
    describe_probability,
    describe_strength,
    format_evidence,
    format_p_value,
    format_percent,
    format_share,
    format_short,
    format_signed,
    likelier_direction,
    name_orientation,
    shown_probability,
    to_html_name,
)

_MARKS = {"→": "→", "—": "—", "": "no link", None: ""}
MAX_PAIRS_LISTED = 3000
"""Number of pairs listed without a link. More would be slow in a browser; edges.csv has all of them."""

MAX_POSSIBLE_LISTED = 100
"""Number of pairs listed as possible; edges.csv has all of them."""

NO_DIRECTION_NOTE = (
    "<p>A link without evidence for its direction cannot be reversed alone, since that closes a cycle, or its reverse "
    "was too unlikely to ask the sites about.</p>"
)

Record = Mapping[str, Any]


def render_table(heads: Sequence[str], rows: Iterable[str], caption: str, kind: str = "") -> str:
    """Return a table that scrolls sideways; a column whose head begins with # holds numbers."""
    cells = "".join(
        f'<th scope="col"{" class=number" if head.startswith("#") else ""}>{escape(head.lstrip("#"))}</th>'
        for head in heads
    )
    body = "\n".join(rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{kind}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(cells: Iterable[str], attributes: str = "") -> str:
    return f"<tr{attributes}>{''.join(cells)}</tr>"


def _cell(content: str) -> str:
    return f"<td>{content}</td>"


def _number_cell(shown: str, value: float | None) -> str:
    sort = "" if value is None else f' data-value="{value:g}"'
    return f'<td class="number"{sort}>{shown}</td>'


def _signed_cell(value: float | None) -> str:
    return _number_cell("", None) if value is None else _number_cell(format_signed(value), value)


def _filter_text(edge: Record) -> str:
    return escape(" ".join(clean_text(edge[end]).lower() for end in ("source", "target")))


def has_probabilities(edges: Iterable[Record]) -> bool:
    """Return whether edges have probabilities; those of searches by tests have none."""
    return any(edge.get("probability") is not None for edge in edges)


def edge_table(edges: Sequence[Record], numbers: Mapping[frozenset[str], int]) -> str:
    """Return the links between variables with the certainty of each."""
    return _likely_edges(edges, numbers) if has_probabilities(edges) else _tested_edges(edges, numbers)


def _likely_edges(edges: Sequence[Record], numbers: Mapping[frozenset[str], int]) -> str:
    """Return links with probabilities, the surest first."""
    heads = ["From", "", "To", "#Link", "#Direction", "In words", "#Variance explained", "Direction from"]
    ranked = sorted(edges, key=lambda edge: (edge["mark"] != "→", -(shown_probability(edge) or 0.0)))
    rows = []
    for edge in ranked:
        words = describe_probability(shown_probability(edge) or 0.0)
        strength = edge.get("strength")
        cells = [
            *_pair_cells(edge),
            _probability_cell(edge.get("probability")),
            _direction_cell(edge),
            f'<td class="word">{words}</td>',
            _number_cell("" if strength is None else format_share(strength), strength),
            _cell(escape(name_orientation(edge.get("oriented_by")))),
        ]
        number = numbers[frozenset((edge["source"], edge["target"]))]
        rows.append(_row(cells, f' data-edge="e{number}" data-names="{_filter_text(edge)}"'))
    return render_table(heads, rows, "Links between variables", "sortable")


def _pair_cells(edge: Record) -> list[str]:
    mark = "→" if edge["mark"] == "→" else "—"
    means = "causes" if mark == "→" else "linked, direction open"
    return [
        _cell(to_html_name(edge["source"])),
        f'<td class="mark"><span title="{means}">{mark}</span></td>',
        _cell(to_html_name(edge["target"])),
    ]


def _probability_cell(value: float | None) -> str:
    return _number_cell("", None) if value is None else _number_cell(escape(format_probability(value)), value)


def _direction_cell(edge: Record) -> str:
    """Return the probability of an arrow, or of the likelier direction of another pair."""
    if edge["mark"] == "→":
        return _probability_cell(shown_probability(edge))
    found = likelier_direction(edge)
    return (
        _number_cell("", None)
        if found is None
        else _number_cell(f"{found[0]} {escape(format_probability(found[1]))}", found[1])
    )


def possible_edge_table(edges: Sequence[Record]) -> str:
    """Return the pairs that are not drawn but possible, the likeliest first; empty if there are none."""
    possible = [edge for edge in edges if (edge.get("probability") or 0.0) >= MIN_POSSIBLE_PROBABILITY]
    possible.sort(key=_doubt)
    if not possible:
        return ""
    rows = [
        _row(
            [
                _cell(to_html_name(edge["source"])),
                _cell(to_html_name(edge["target"])),
                _probability_cell(edge["probability"]),
                _direction_cell(edge),
            ],
            f' data-names="{_filter_text(edge)}"',
        )
        for edge in possible[:MAX_POSSIBLE_LISTED]
    ]
    more = len(possible) - len(rows)
    note = f"<p>The {len(rows)} likeliest of {len(possible)}; edges.csv has all of them.</p>" if more else ""
    return render_table(["One", "Other", "#Link", "#Direction"], rows, "Possible, not drawn", "sortable") + note


def _tested_edges(edges: Sequence[Record], numbers: Mapping[frozenset[str], int]) -> str:
    """Return links without probabilities, with p-values or log Bayes factors."""
    by_evidence = any(edge.get("log_bayes_presence") is not None for edge in edges)
    evidence = "#Evidence (log Bayes factor)" if by_evidence else "#p-value"
    changes = any(edge.get("change_forward") is not None for edge in edges)
    heads = ["From", "", "To", evidence, *(["Strength"] if by_evidence else []), "Direction from"]
    heads += ["#For direction"] if by_evidence else []
    heads += ["#Change forward", "#Change backward"] if changes else []
    rows = []
    for edge in edges:
        number = numbers[frozenset((edge["source"], edge["target"]))]
        factor, turn = edge.get("log_bayes_presence"), edge.get("log_bayes_direction")
        reason = name_orientation(edge.get("oriented_by"))
        cells = [
            *_pair_cells(edge),
            _number_cell(format_evidence(edge), edge_strength(edge)),
            *([f'<td class="word">{"" if factor is None else describe_strength(factor)}</td>'] if by_evidence else []),
            _cell(escape(reason)),
            *([_signed_cell(turn)] if by_evidence else []),
            *([_short_cell(edge.get("change_forward")), _short_cell(edge.get("change_backward"))] if changes else []),
        ]
        rows.append(_row(cells, f' data-edge="e{number}" data-names="{_filter_text(edge)}"'))
    missing = by_evidence and any(edge.get("log_bayes_direction") is None for edge in edges)
    return render_table(heads, rows, "Links between variables", "sortable") + (NO_DIRECTION_NOTE if missing else "")


def _short_cell(value: float | None) -> str:
    return _number_cell("", None) if value is None else _number_cell(format_short(value), value)


def unmeasured_table(edges: Sequence[Record]) -> str:
    """Return the pairs of which nothing is known, because no site has both variables."""
    rows = [_row([_cell(to_html_name(edge["source"])), _cell(to_html_name(edge["target"]))]) for edge in edges]
    shown = rows[:MAX_PAIRS_LISTED]
    more = len(rows) - len(shown)
    note = f"<p>{len(shown)} of {len(rows)}; edges.csv has all of them.</p>" if more else ""
    return render_table(["One", "Other"], shown, "Not measured together: a link is neither found nor excluded") + note


def absent_edge_table(edges: Sequence[Record]) -> str:
    """Return the pairs without a link, the least certain first, with what separates them."""
    by_evidence = any(edge.get("log_bayes_presence") is not None for edge in edges)
    known = has_probabilities(edges)
    listed = sorted(edges, key=_doubt if known else _evidence_value)[:MAX_PAIRS_LISTED]
    given = any(edge.get("separating_set") is not None for edge in listed)
    heads = ["One", "Other", "#Probability" if known else "#Evidence against a link" if by_evidence else "#p-value"]
    heads += ["Independent given"] if given else []
    rows = [
        _row(
            [
                _cell(to_html_name(edge["source"])),
                _cell(to_html_name(edge["target"])),
                _probability_cell(edge.get("probability"))
                if known
                else _number_cell(format_evidence(edge), edge.get("log_bayes_presence" if by_evidence else "p_value")),
                *([_cell(_format_names(edge.get("separating_set")))] if given else []),
            ],
            f' data-names="{_filter_text(edge)}"',
        )
        for edge in listed
    ]
    more = len(edges) - len(listed)
    note = f"<p>The {len(listed)} least certain of {len(edges)}; edges.csv has all of them.</p>" if more else ""
    return render_table(heads, rows, "Pairs without a link, the least certain first", "sortable") + note


def _doubt(edge: Record) -> float:
    return -(edge.get("probability") or 0.0)


def _evidence_value(edge: Record) -> float:
    value = edge.get("log_bayes_presence")
    value = edge.get("p_value") if value is None else value
    return float("inf") if value is None else float(value)


def _format_names(names: Sequence[str] | None) -> str:
    return "" if names is None else ", ".join(map(to_html_name, names)) or "nothing else"


def changing_table(document: Record) -> str:
    """Return all variables with the probability of, or the evidence for, a difference of their mechanism."""
    if document.get("probability_of_change"):
        return _likely_changes(document)
    edges = {edge["target"]: edge for edge in document["edges"] if edge["source"] == DOMAIN}
    edges |= {edge["source"]: edge for edge in document["edges"] if edge["target"] == DOMAIN}
    changing = set(document["changing"])
    by_evidence = any(edge.get("log_bayes_presence") is not None for edge in edges.values())
    rows = []
    for name in sorted(document["variables"], key=lambda name: (name not in changing, name)):
        edge = edges.get(name, {"mark": ""})
        differs = "differs" if name in changing else "no difference found"
        value = edge.get("log_bayes_presence" if by_evidence else "p_value")
        cells = [_cell(to_html_name(name)), _cell(differs), _number_cell(format_evidence(edge), value)]
        rows.append(_row([*cells, *([] if by_evidence else [_cell(_format_names(edge.get("separating_set")))])]))
    evidence = "#Evidence for this finding (log Bayes factor)" if by_evidence else "#p-value"
    heads = ["Mechanism of", "Between sites", evidence, *([] if by_evidence else ["Independent of the site given"])]
    return render_table(heads, rows, "Mechanisms and their differences between sites", "sortable")


def _likely_changes(document: Record) -> str:
    """Return all variables with the probability of a difference, the likeliest first."""
    found, changing = document["probability_of_change"], set(document["changing"])
    rows = []
    for name in sorted(document["variables"], key=lambda name: (name not in changing, -found.get(name, 0.0), name)):
        value = found.get(name, 0.0)
        differs = "differs" if name in changing else "no clear difference"
        cells = [_cell(to_html_name(name)), _cell(differs), _cell(describe_probability(value))]
        rows.append(_row([*cells, _probability_cell(value)]))
    heads = ["Mechanism of", "Between sites", "A difference is", "#Probability"]
    return render_table(heads, rows, "Mechanisms and their differences between sites", "sortable")


def site_table(clients: Sequence[Record]) -> str:
    """Return the rows of every site, the rows left out, and the missing values."""
    known = all(client.get("rows_read") is not None for client in clients)
    heads = ["Site", "#Rows used", *(["#Rows read", "#Left out", "#Share", "Missing values"] if known else [])]
    lacks = any(client.get("absent") for client in clients)
    heads += ["Not measured"] if lacks else []
    rows = []
    for client in clients:
        cells = [_cell(to_html_name(client["client"])), _number_cell(f"{client['rows']:,}", client["rows"])]
        if known:
            read, dropped = client["rows_read"], client["rows_read"] - client["rows"]
            missing = sorted((client.get("missing") or {}).items(), key=lambda entry: (-entry[1], entry[0]))
            cells += [_number_cell(f"{read:,}", read), _number_cell(f"{dropped:,}", dropped)]
            cells += [_number_cell(f"{dropped / read:.1%}" if read else "", dropped / read if read else 0.0)]
            listed = ", ".join(f"{to_html_name(name)} {count:,}" for name, count in missing if count)
            cells += [f'<td class="long">{listed or "none"}</td>']
        if lacks:
            names = ", ".join(map(to_html_name, client.get("absent") or ()))
            cells += [f'<td class="long">{names or "none"}</td>']
        rows.append(_row(cells))
    return render_table(heads, rows, "Sites and their rows", "sortable")


def drift_table(drift: Sequence[Record]) -> str:
    """Return the estimates of every site beside those over all sites."""
    heads = ["Variable", "Quantity", "Site", "#Estimate", "Interval", "#All sites", "#Deviation", "#p-value"]
    rows = []
    for record in drift:
        low, high, p_value = record.get("low"), record.get("high"), record.get("p_value")
        interval = "" if low is None or high is None else f"{format_short(low)} to {format_short(high)}"
        deviation = record["deviation"]
        cells = [
            *(_cell(to_html_name(record[key])) for key in ("variable", "quantity", "client")),
            _short_cell(record.get("estimate")),
            f'<td class="interval">{interval or escape(clean_text(record.get("note", "")))}</td>',
            _short_cell(record.get("pooled")),
            _number_cell("", None) if deviation is None else _number_cell(format_signed(deviation), deviation),
            _number_cell("", None) if p_value is None else _number_cell(format_p_value(p_value), p_value),
        ]
        rows.append(_row(cells, ' class="different"' if record.get("flagged") else ""))
    return render_table(heads, rows, "Each site compared with all sites together", "sortable")


def stability_table(stability: Sequence[Record]) -> str:
    """Return how often each link and its direction were found when sites or rows were resampled."""
    by_site = any(record.get(key) for record in stability for key in ("gone_without", "turned_without"))
    rows = []
    for record in stability:
        mark = record.get("mark")
        cells = [_cell(to_html_name(record["source"])), f'<td class="mark">{_MARKS.get(mark, "")}</td>']
        cells += [_cell(to_html_name(record["target"])), _bar_cell(record["presence"]), _bar_cell(record["direction"])]
        cells += [_cell(_format_names(record.get("gone_without") or None)) for _ in range(by_site)]
        cells += [_cell(_format_names(record.get("turned_without") or None)) for _ in range(by_site)]
        runs = record.get("runs")
        rows.append(_row([*cells, _number_cell("" if runs is None else f"{runs:,}", runs)]))
    hinges = ["Different without", "Other direction without"] if by_site else []
    heads = ["From", "", "To", "Link found", "Same direction", *hinges, "#Runs"]
    return render_table(heads, rows, "Stability of each link", "sortable")


def changing_stability_table(changing: Sequence[Record], *, by_site: bool = True) -> str:
    """Return how often each mechanism was found to differ, and the sites on which that depends."""
    rows = [
        _row(
            [
                _cell(to_html_name(record["variable"])),
                _cell("differs" if record.get("changing") else "no difference found"),
                _bar_cell(record.get("share")),
                *(_cell(_format_names(record.get("differs_without") or None)) for _ in range(by_site)),
            ]
        )
        for record in changing
    ]
    heads = ["Mechanism of", "Here", "Found to differ", *(["Different without"] if by_site else [])]
    return render_table(heads, rows, "Stability of the differences between sites", "sortable")


def influence_table(influence: Sequence[Record]) -> str:
    """Return how much the evidence changes when each site is left out."""
    rows = [
        _row(
            [
                _cell(to_html_name(record["client"])),
                _bar_cell(record["share"]),
                _number_cell(format_signed(record["largest"]), record["largest"]),
                _cell(" and ".join(map(to_html_name, record.get("link") or ()))),
                _short_cell(record["total"]),
                _number_cell(f"{record['n_changed']:,}", record["n_changed"]),
            ]
        )
        for record in influence
    ]
    heads = [
        "Site",
        "Share of rows",
        "#Largest change",
        "Of the link between",
        "#All changes",
        "#Findings that differ without it",
    ]
    return render_table(heads, rows, "Influence of each site", "sortable")


def _bar_cell(value: float | None) -> str:
    if value is None:
        return "<td></td>"
    width = 80 * min(max(value, 0.0), 1.0)
    return (
        f'<td class="bar" data-value="{value:g}"><svg class="share" width="80" height="8" aria-hidden="true">'
        f'<rect class="all" width="80" height="8" rx="2"/><rect class="part" width="{width:.1f}" height="8" rx="2"/>'
        f"</svg> {format_percent(value)}</td>"
    )


def settings_table(document: Record) -> str:
    """Return the software, the plan and the settings of the search."""
    settings, knowledge = document["settings"], document["settings"]["knowledge"]
    limit = settings.get("max_conditioning_size")
    pairs = {
        "Software": escape(clean_text(document["software"])),
        "Plan (fingerprint)": f"<code>{escape(clean_text(document['plan']))}</code>",
        "Method": escape(clean_text(settings["method"])),
        "Significance level": "not used" if settings["method"] == "evidence" else f"{settings['alpha']:g}",
        "Largest conditioning set, or number of causes": "no limit" if limit is None else str(limit),
        **_limits(settings),
        "Seed": str(settings.get("seed", "")),
        "Required arrows": _format_arrows(knowledge["required"]),
        "Forbidden arrows": _format_arrows(knowledge["forbidden"]),
        "Order in time": "; then ".join(", ".join(map(to_html_name, tier)) for tier in knowledge["tiers"])
        or "none given",
        "Tiers without links inside": ", ".join(str(at + 1) for at in knowledge.get("forbid_within_tier", ()))
        or "none given",
    }
    rows = [f'<tr><th scope="row">{escape(what)}</th><td>{value}</td></tr>' for what, value in pairs.items()]
    return f'<div class="scroll"><table class="pairs"><tbody>{"".join(rows)}</tbody></table></div>'


def _limits(settings: Record) -> dict[str, str]:
    """Return the limits of what is drawn, where a result has probabilities."""
    if settings["method"] != "evidence":
        return {}
    return {
        "Smallest probability of a link or difference": f"{settings.get('min_probability', DEFAULT_MIN_PROBABILITY):g}",
        "Smallest probability of an arrow": f"{settings.get('min_arrow_probability', DEFAULT_MIN_ARROW_PROBABILITY):g}",
        "Smallest share of variance of a link": format_share(settings.get("min_effect", DEFAULT_MIN_EFFECT)),
    }


def _format_arrows(arrows: Sequence[Sequence[str]]) -> str:
    return ", ".join(f"{to_html_name(tail)} → {to_html_name(head)}" for tail, head in arrows) or "none given"
