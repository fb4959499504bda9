"""The tables of a report, as HTML: all that the picture shows, and more, for reading, printing and screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.graph_svg import edge_strength
from fedcdh.reporting.phrases import (
    ORIENTATION_REASONS,
    clean_text,
    describe_strength,
    format_evidence,
    format_p_value,
    format_percent,
    format_short,
    format_signed,
    to_html_name,
)

_MARKS = {"→": "→", "—": "—", "": "no link", None: ""}
MAX_PAIRS_LISTED = 3000
"""Pairs without a link that are listed: beyond that, a browser takes long and nobody reads; edges.csv has them all."""


def render_table(heads: Sequence[str], rows: Iterable[str], caption: str, kind: str = "") -> str:
    """A table that scrolls sideways on its own; heads that begin with # stand over numbers."""
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


def _filter_text(edge: Mapping[str, Any]) -> str:
    return escape(" ".join(clean_text(edge[end]).lower() for end in ("source", "target")))


def edge_table(edges: Sequence[Mapping[str, Any]], numbers: Mapping[frozenset[str], int]) -> str:
    """Links between variables, with the evidence for each."""
    weighed = any(edge.get("log_bayes_presence") is not None for edge in edges)
    evidence = "#Evidence (log Bayes factor)" if weighed else "#p-value"
    changes = any(edge.get("change_forward") is not None for edge in edges)
    heads = ["From", "", "To", evidence, *(["Strength"] if weighed else []), "Direction from"]
    heads += ["#For direction"] if weighed else []
    heads += ["#Change forward", "#Change backward"] if changes else []
    rows = []
    for edge in edges:
        number = numbers[frozenset((edge["source"], edge["target"]))]
        factor, turn = edge.get("log_bayes_presence"), edge.get("log_bayes_direction")
        mark = "→" if edge["mark"] == "→" else "—"
        means = "causes" if mark == "→" else "linked, direction open"
        by = ORIENTATION_REASONS.get(
            edge.get("oriented_by") or "", (clean_text(edge.get("oriented_by") or "open"), "")
        )[0]
        cells = [
            _cell(to_html_name(edge["source"])),
            f'<td class="mark"><span title="{means}">{mark}</span></td>',
            _cell(to_html_name(edge["target"])),
            _number_cell(format_evidence(edge), edge_strength(edge)),
            *([f'<td class="word">{"" if factor is None else describe_strength(factor)}</td>'] if weighed else []),
            _cell(escape(by)),
            *([_signed_cell(turn)] if weighed else []),
            *([_short_cell(edge.get("change_forward")), _short_cell(edge.get("change_backward"))] if changes else []),
        ]
        rows.append(_row(cells, f' data-edge="e{number}" data-names="{_filter_text(edge)}"'))
    return render_table(heads, rows, "Links between variables", "sortable")


def _short_cell(value: float | None) -> str:
    return _number_cell("", None) if value is None else _number_cell(format_short(value), value)


def absent_edge_table(edges: Sequence[Mapping[str, Any]]) -> str:
    """Pairs without a link, the least certain first, and what separates them."""
    weighed = any(edge.get("log_bayes_presence") is not None for edge in edges)
    listed = sorted(edges, key=_evidence_value)[:MAX_PAIRS_LISTED]
    given = any(edge.get("separating_set") is not None for edge in listed)
    heads = ["One", "Other", "#Evidence against a link" if weighed else "#p-value"]
    heads += ["Independent given"] if given else []
    rows = [
        _row(
            [
                _cell(to_html_name(edge["source"])),
                _cell(to_html_name(edge["target"])),
                _number_cell(format_evidence(edge), edge.get("log_bayes_presence" if weighed else "p_value")),
                *([_cell(_format_names(edge.get("separating_set")))] if given else []),
            ],
            f' data-names="{_filter_text(edge)}"',
        )
        for edge in listed
    ]
    more = len(edges) - len(listed)
    note = f"<p>The {len(listed)} least certain of {len(edges)}; edges.csv has them all.</p>" if more else ""
    return render_table(heads, rows, "Pairs without a link, the least certain first", "sortable") + note


def _evidence_value(edge: Mapping[str, Any]) -> float:
    value = edge.get("log_bayes_presence")
    value = edge.get("p_value") if value is None else value
    return float("inf") if value is None else float(value)


def _format_names(names: Sequence[str] | None) -> str:
    return "" if names is None else ", ".join(map(to_html_name, names)) or "nothing else"


def changing_table(document: Mapping[str, Any]) -> str:
    """Variables whose mechanism differs, with the evidence, and those for which none was found."""
    edges = {edge["target"]: edge for edge in document["edges"] if edge["source"] == DOMAIN}
    edges |= {edge["source"]: edge for edge in document["edges"] if edge["target"] == DOMAIN}
    changing = set(document["changing"])
    weighed = any(edge.get("log_bayes_presence") is not None for edge in edges.values())
    rows = []
    for name in sorted(document["variables"], key=lambda name: (name not in changing, name)):
        edge = edges.get(name, {"mark": ""})
        differs = "differs" if name in changing else "no difference found"
        value = edge.get("log_bayes_presence" if weighed else "p_value")
        cells = [_cell(to_html_name(name)), _cell(differs), _number_cell(format_evidence(edge), value)]
        rows.append(_row([*cells, *([] if weighed else [_cell(_format_names(edge.get("separating_set")))])]))
    evidence = "#Evidence for that (log Bayes factor)" if weighed else "#p-value"
    heads = ["Mechanism of", "Between sites", evidence, *([] if weighed else ["Independent of the site given"])]
    return render_table(heads, rows, "Mechanisms, and whether they differ between sites", "sortable")


def site_table(clients: Sequence[Mapping[str, Any]]) -> str:
    """Rows of every site, those left out, and what was missing."""
    known = all(client.get("rows_read") is not None for client in clients)
    heads = ["Site", "#Rows used", *(["#Rows read", "#Left out", "#Share", "Missing values"] if known else [])]
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
        rows.append(_row(cells))
    return render_table(heads, rows, "Sites and their rows", "sortable")


def drift_table(drift: Sequence[Mapping[str, Any]]) -> str:
    """The numbers behind the map: what each site's own rows say, beside all rows."""
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
    return render_table(heads, rows, "Every site beside all sites together", "sortable")


def stability_table(stability: Sequence[Mapping[str, Any]]) -> str:
    """How often a link, and its direction, was found again when sites or rows were left out or drawn anew."""
    whose = any(record.get(key) for record in stability for key in ("gone_without", "turned_without"))
    rows = []
    for record in stability:
        mark = record.get("mark")
        cells = [_cell(to_html_name(record["source"])), f'<td class="mark">{_MARKS.get(mark, "")}</td>']
        cells += [_cell(to_html_name(record["target"])), _bar_cell(record["presence"]), _bar_cell(record["direction"])]
        cells += [_cell(_format_names(record.get("gone_without") or None)) for _ in range(whose)]
        cells += [_cell(_format_names(record.get("turned_without") or None)) for _ in range(whose)]
        runs = record.get("runs")
        rows.append(_row([*cells, _number_cell("" if runs is None else f"{runs:,}", runs)]))
    hinges = ["Otherwise without", "Turned without"] if whose else []
    heads = ["From", "", "To", "Link found again", "Exactly as here", *hinges, "#Runs"]
    return render_table(heads, rows, "How stable each link is", "sortable")


def changing_stability_table(changing: Sequence[Mapping[str, Any]], *, whose: bool = True) -> str:
    """How often a mechanism was found to differ between the sites that were left, and without whom it is otherwise."""
    rows = [
        _row(
            [
                _cell(to_html_name(record["variable"])),
                _cell("differs" if record.get("changing") else "no difference found"),
                _bar_cell(record.get("share")),
                *(_cell(_format_names(record.get("differs_without") or None)) for _ in range(whose)),
            ]
        )
        for record in changing
    ]
    heads = ["Mechanism of", "Here", "Found to differ", *(["Otherwise without"] if whose else [])]
    return render_table(heads, rows, "How stable differences between sites are", "sortable")


def influence_table(influence: Sequence[Mapping[str, Any]]) -> str:
    """How much of what speaks for and against links goes with each site."""
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
    heads = ["Site", "Share of rows", "#Largest change", "Of the link between", "#All changes", "#Otherwise without"]
    return render_table(heads, rows, "How much hangs on each site", "sortable")


def _bar_cell(value: float | None) -> str:
    if value is None:
        return "<td></td>"
    width = 80 * min(max(value, 0.0), 1.0)
    return (
        f'<td class="bar" data-value="{value:g}"><svg class="share" width="80" height="8" aria-hidden="true">'
        f'<rect class="all" width="80" height="8" rx="2"/><rect class="part" width="{width:.1f}" height="8" rx="2"/>'
        f"</svg> {format_percent(value)}</td>"
    )


def settings_table(document: Mapping[str, Any]) -> str:
    """With what, and how, this was computed."""
    settings, knowledge = document["settings"], document["settings"]["knowledge"]
    most = settings.get("max_conditioning_size")
    pairs = {
        "Software": escape(clean_text(document["software"])),
        "Plan (fingerprint)": f"<code>{escape(clean_text(document['plan']))}</code>",
        "Method": escape(clean_text(settings["method"])),
        "Level of tests": "not used" if settings["method"] == "evidence" else f"{settings['alpha']:g}",
        "Most variables conditioned on, or causes": "no limit" if most is None else str(most),
        "Seed": str(settings.get("seed", "")),
        "Required arrows": _format_arrows(knowledge["required"]),
        "Forbidden arrows": _format_arrows(knowledge["forbidden"]),
        "Order in time": "; then ".join(", ".join(map(to_html_name, tier)) for tier in knowledge["tiers"])
        or "none given",
        "Stages without links inside": ", ".join(str(at + 1) for at in knowledge.get("forbid_within_tier", ()))
        or "none given",
    }
    rows = [f'<tr><th scope="row">{escape(what)}</th><td>{value}</td></tr>' for what, value in pairs.items()]
    return f'<div class="scroll"><table class="pairs"><tbody>{"".join(rows)}</tbody></table></div>'


def _format_arrows(arrows: Sequence[Sequence[str]]) -> str:
    return ", ".join(f"{to_html_name(tail)} → {to_html_name(head)}" for tail, head in arrows) or "none given"
