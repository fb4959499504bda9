"""The tables of a report about mechanisms, sites, stability and settings."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.edge_tables import Record, format_names, link_cell, probability_cell
from fedcdh.reporting.html.table_cells import (
    Cell,
    Row,
    bar_cell,
    missing_cell,
    number_cell,
    render_table,
    short_cell,
    signed_cell,
)
from fedcdh.reporting.phrases import (
    clean_text,
    describe_probability,
    format_evidence,
    format_p_value,
    format_share,
    format_short,
    format_signed,
    to_html_name,
)


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
        shown, value = format_evidence(edge), edge.get("log_bayes_presence" if by_evidence else "p_value")
        cells = [_title_cell(name), Cell(differs), number_cell(shown, value) if shown else missing_cell("not tested")]
        found = "nothing separates them" if name in changing else "not tested"
        rows.append(Row([*cells, *([] if by_evidence else [Cell(format_names(edge.get("separating_set"), found))])]))
    evidence = "#Evidence for this finding (log Bayes factor)" if by_evidence else "#p-value"
    heads = ["Mechanism of", "Between sites", evidence, *([] if by_evidence else ["Independent of the site given"])]
    return render_table(heads, rows, "Mechanisms and their differences between sites")


def _title_cell(name: str) -> Cell:
    return Cell(to_html_name(name), kind="title")


def _likely_changes(document: Record) -> str:
    """Return all variables with the probability of a difference, the likeliest first."""
    found, changing = document["probability_of_change"], set(document["changing"])
    rows = []
    for name in sorted(document["variables"], key=lambda name: (name not in changing, -found.get(name, 0.0), name)):
        value = found.get(name, 0.0)
        differs = "differs" if name in changing else "no clear difference"
        cells = [_title_cell(name), Cell(differs), Cell(describe_probability(value)), probability_cell(value)]
        rows.append(Row(cells))
    heads = ["Mechanism of", "Between sites", "A difference is", "#Probability"]
    return render_table(heads, rows, "Mechanisms and their differences between sites")


def site_table(clients: Sequence[Record]) -> str:
    """Return the rows of every site, the rows left out, and the missing values."""
    known = all(client.get("rows_read") is not None for client in clients)
    heads = ["Site", "#Rows used", *(["#Rows read", "#Left out", "#Share", "Missing values"] if known else [])]
    rows = []
    for client in clients:
        cells = [_title_cell(client["client"]), number_cell(f"{client['rows']:,}", client["rows"])]
        rows.append(Row([*cells, *(_missing_cells(client) if known else [])]))
    return render_table(heads, rows, "Sites and their rows")


def _missing_cells(client: Record) -> list[Cell]:
    read, dropped = client["rows_read"], client["rows_read"] - client["rows"]
    missing = sorted((client.get("missing") or {}).items(), key=lambda entry: (-entry[1], entry[0]))
    listed = ", ".join(f"{to_html_name(name)} {count:,}" for name, count in missing if count)
    return [
        number_cell(f"{read:,}", read),
        number_cell(f"{dropped:,}", dropped),
        number_cell(f"{dropped / read:.1%}" if read else "no rows", dropped / read if read else 0.0),
        Cell(listed or "none", kind="long"),
    ]


def drift_table(drift: Sequence[Record]) -> str:
    """Return the estimates of every site beside those over all sites."""
    heads = ["Variable", "Quantity", "Site", "#Estimate", "Interval", "#All sites", "#Deviation", "#p-value"]
    rows = []
    for record in drift:
        low, high, p_value = record.get("low"), record.get("high"), record.get("p_value")
        interval = "" if low is None or high is None else f"{format_short(low)} to {format_short(high)}"
        cells = [
            _title_cell(record["variable"]),
            *(Cell(to_html_name(record[key])) for key in ("quantity", "client")),
            short_cell(record.get("estimate"), "not estimated"),
            Cell(interval or escape(clean_text(record.get("note") or "not estimated")), kind="interval"),
            short_cell(record.get("pooled"), "not estimated"),
            signed_cell(record["deviation"], "not compared"),
            missing_cell("not tested") if p_value is None else number_cell(format_p_value(p_value), p_value),
        ]
        rows.append(Row(cells, ' class="different"' if record.get("flagged") else ""))
    return render_table(heads, rows, "Each site compared with all sites together")


def stability_table(stability: Sequence[Record]) -> str:
    """Return how often each link and its direction were found when sites or rows were resampled."""
    by_site = any(record.get(key) for record in stability for key in ("gone_without", "turned_without"))
    hinges = ("gone_without", "turned_without") if by_site else ()
    rows = []
    for record in stability:
        runs = record.get("runs")
        cells = [
            link_cell({**record, "mark": record.get("mark", "")}),
            bar_cell(record["presence"]),
            bar_cell(record["direction"], "not compared"),
            *(_site_names(record.get(key)) for key in hinges),
            missing_cell() if runs is None else number_cell(f"{runs:,}", runs),
        ]
        rows.append(Row(cells))
    names = ["Different without", "Other direction without"] if by_site else []
    heads = ["Link", "Link found", "Same direction", *names, "#Runs"]
    return render_table(heads, rows, "Stability of each link")


def _site_names(sites: Sequence[str] | None) -> Cell:
    return Cell(format_names(sites or None, "no single site"))


def changing_stability_table(changing: Sequence[Record], *, by_site: bool = True) -> str:
    """Return how often each mechanism was found to differ, and the sites on which that depends."""
    rows = [
        Row(
            [
                _title_cell(record["variable"]),
                Cell("differs" if record.get("changing") else "no difference found"),
                bar_cell(record.get("share"), "not compared"),
                *(_site_names(record.get("differs_without")) for _ in range(by_site)),
            ]
        )
        for record in changing
    ]
    heads = ["Mechanism of", "Here", "Found to differ", *(["Different without"] if by_site else [])]
    return render_table(heads, rows, "Stability of the differences between sites")


def influence_table(influence: Sequence[Record]) -> str:
    """Return how much the evidence changes when each site is left out."""
    rows = [
        Row(
            [
                _title_cell(record["client"]),
                bar_cell(record["share"]),
                number_cell(format_signed(record["largest"]), record["largest"]),
                Cell(" and ".join(map(to_html_name, record.get("link") or ())) or "none compared"),
                short_cell(record["total"]),
                number_cell(f"{record['n_changed']:,}", record["n_changed"]),
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
    return render_table(heads, rows, "Influence of each site")


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
        "Seed": str(settings.get("seed", "not recorded")),
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
