"""The page of a report: template, style, script and content in one file that loads nothing from a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from fedcdh._io.storage import write_atomically
from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.scene import CHANGING_NOTE
from fedcdh.reporting.html.graph_svg import GraphDrawing, draw_graph
from fedcdh.reporting.html.heat_map import MAX_SITES_SHOWN, most_deviating, render_heat_map
from fedcdh.reporting.html.methods_section import describe_sites, methods_paragraph
from fedcdh.reporting.html.schema import check_document, parse_document, stability_records
from fedcdh.reporting.html.tables import (
    absent_edge_table,
    changing_stability_table,
    changing_table,
    drift_table,
    edge_table,
    has_probabilities,
    influence_table,
    possible_edge_table,
    settings_table,
    site_table,
    stability_table,
)
from fedcdh.reporting.phrases import (
    BAYES_FACTOR_NOTE,
    BAYES_FACTORS_IN_DETAILS_NOTE,
    BOOTSTRAP_NOTE,
    INFLUENCE_NOTE,
    NO_PROBABILITY_NOTE,
    ORIENTATION_REASONS,
    PROBABILITY_NOTE,
    PROBABILITY_WORDS,
    Fact,
    clean_text,
    describe_edge,
    edge_facts,
    format_count,
    format_percent,
    format_share,
    format_signed,
    shown_probability,
    to_html_name,
    to_plain_name,
)

_MAX_DEVIATING_SITES = 4
_STABILITY_KINDS = {
    "leave-one-out": "with each site left out in turn",
    "bootstrap": "with sites resampled with replacement",
}
_SITE_STABILITY_HINT = "Share of repeated searches, with sites left out or resampled, that found the link again."
_ROW_STABILITY_HINT = "Share of bootstrap replicates, with resampled rows, that found the link. Not a probability."


def write_report(document: Mapping[str, Any] | str | bytes, path: Path | str) -> Path:
    """Write the HTML report of a result.

    Parameters
    ----------
    document : mapping, str or bytes
        A result document, or the text of a `result.json`.
    path : Path or str
        Where to write the report.

    Returns
    -------
    Path
        The path of the report.

    Raises
    ------
    DataError
        If the document is not a result.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> from fedcdh.reporting import render_result_json
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> write_report(render_result_json(result), Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """
    parsed = parse_document(document) if isinstance(document, (str, bytes)) else document
    write_atomically(Path(path), render_report(parsed))
    return Path(path)


def render_report(document: Mapping[str, Any]) -> str:
    """Return the report of a result as one HTML page.

    Parameters
    ----------
    document : mapping
        A result document, as `read_document` returns it.

    Returns
    -------
    str
        The page, with graph, evidence and all tables. The same document gives the same text.

    Raises
    ------
    DataError
        If the document is not a result.

    Examples
    --------
    >>> import json
    >>> import fedcdh
    >>> from fedcdh.reporting import render_result_json
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> "systolic_pressure" in render_report(json.loads(render_result_json(result)))
    True
    """
    check_document(document)
    drawing = draw_graph(document)
    style, script = _read_asset("style.css"), _read_asset("script.js")
    return Template(_read_asset("page.html")).substitute(
        policy=f"default-src 'none'; style-src '{_csp_hash(style)}'; script-src '{_csp_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        data=_to_inline_json(_script_data(document, drawing)),
        graph=drawing.svg,
        size="stage vast" if drawing.full_width else "stage",
        count=str(len(drawing.edges)),
        note=CHANGING_NOTE,
        **_page_texts(document),
        **_page_sections(document, drawing),
    )


@cache
def _read_asset(name: str) -> str:
    return files("fedcdh.reporting.html").joinpath(name).read_text(encoding="utf-8").strip()


def _csp_hash(content: str) -> str:
    """Return the hash by which the content security policy admits a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


def _to_inline_json(data: Any) -> str:
    """Return JSON without characters that an HTML or JavaScript parser could take for markup or a line end."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _script_data(document: Mapping[str, Any], drawing: GraphDrawing) -> dict[str, Any]:
    """Return everything that the script shows of nodes and edges, sentences included."""
    evidence = {frozenset((edge["source"], edge["target"])): edge for edge in document["edges"]}
    by_presence = any(edge.get("log_bayes_presence") is not None for edge in document["edges"])
    known = has_probabilities(document["edges"])
    return {
        "edges": _edge_data(document, drawing, evidence),
        "nodes": _node_data(document, drawing, evidence),
        "measure": "probability" if known else "log Bayes factor" if by_presence else "−log₁₀ p",
    }


def _edge_data(
    document: Mapping[str, Any], drawing: GraphDrawing, evidence: Mapping[frozenset[str], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    number = {name: node["id"] for name, node in zip(document["variables"], drawing.nodes, strict=True)}
    by_sites = _by_pair(stability_records(document))
    by_rows = _by_pair(stability_records(document, "row_stability"))
    edges = []
    for drawn in drawing.edges:
        pair = frozenset((drawn["source"], drawn["target"]))
        known = [*edge_facts(evidence[pair]), *_stability_fact(by_sites.get(pair), "Stability", _SITE_STABILITY_HINT)]
        known += _stability_fact(by_rows.get(pair), "With resampled rows", _ROW_STABILITY_HINT)
        ends = {"source": number[drawn["source"]], "target": number[drawn["target"]]}
        title = {"title": describe_edge(evidence[pair]), "mark": evidence[pair]["mark"]}
        edges.append({**drawn, **ends, **title, "facts": known})
    return edges


def _node_data(
    document: Mapping[str, Any], drawing: GraphDrawing, evidence: Mapping[frozenset[str], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    nodes = []
    for name, node in zip(document["variables"], drawing.nodes, strict=True):
        edge, changes = evidence.get(frozenset((DOMAIN, name))), name in document["changing"]
        finding = "differs between sites" if changes else "no difference between sites found"
        known = [("Mechanism", finding if edge else "not compared between sites", "")]
        known += [fact for fact in edge_facts(edge) if fact[0] != "Direction from"] if edge else []
        known += _deviating_sites(name, document.get("drift") or ())
        nodes.append({**node, "facts": known})
    return nodes


def _deviating_sites(name: str, drift: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    """Yield the sites whose mechanism deviates significantly, the largest deviation first."""
    found = [one for one in drift if one["variable"] == name and one.get("flagged") and one["deviation"] is not None]
    if found:
        found.sort(key=lambda one: -abs(one["deviation"]))
        shown = [
            f"{to_plain_name(one['client'])} ({to_plain_name(one['quantity'])} {format_signed(one['deviation'])})"
            for one in found[:_MAX_DEVIATING_SITES]
        ]
        yield ("Deviates at", ", ".join(shown), "Deviation in standard errors; the map below shows all sites.")


def _by_pair(records: Sequence[Mapping[str, Any]]) -> dict[frozenset[str], Mapping[str, Any]]:
    return {frozenset((record["source"], record["target"])): record for record in records}


def _stability_fact(record: Mapping[str, Any] | None, name: str, hint: str) -> Iterator[Fact]:
    if record is None or record["presence"] is None:
        return
    runs = f" of {record['runs']} runs" if record.get("runs") else " of runs"
    text = f"link in {format_percent(record['presence'])}{runs}"
    text += "" if record["direction"] is None else f", as here in {format_percent(record['direction'])}"
    yield (name, text, hint)


def _page_texts(document: Mapping[str, Any]) -> dict[str, str]:
    """Return titles and sentences, escaped for HTML."""
    sites, rows = len(document["clients"]), sum(client["rows"] for client in document["clients"])
    arrows, lines = len(document["graph"]["arrows"]), len(document["graph"]["lines"])
    variables = format_count(len(document["variables"]), "variable")
    plan = escape(to_plain_name(document["plan"])[:12])
    open_links = f" and {format_count(lines, 'link')} of open direction" if lines else ""
    return {
        "title": f"Causal graph: {variables}, {describe_sites(document['clients'])}, {format_count(rows, 'row')}",
        "heading": f"Causal graph of {variables} at {format_count(sites, 'site')}",
        "about": f"{format_count(rows, 'row')} · method “{escape(clean_text(document['settings']['method']))}” · "
        f"{escape(clean_text(document['software']))} · plan <code>{plan}</code>",
        "lead": f"Found: {format_count(arrows, 'arrow')} from cause to effect{open_links}{_count_certain(document)}. "
        f"{_differences_sentence(document)}",
        "disclosure_warning": _disclosure_warning(document),
        "methods": escape(methods_paragraph(document)),
    }


def _count_certain(document: Mapping[str, Any]) -> str:
    """Return how many links are almost certain, where there are probabilities."""
    least, words = PROBABILITY_WORDS[0]
    drawn = [edge for edge in document["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]
    if not has_probabilities(drawn):
        return ""
    sure = sum((shown_probability(edge) or 0.0) >= least for edge in drawn)
    return f"; {sure or 'none'} of them {'is' if sure == 1 else 'are'} {words}"


def _differences_sentence(document: Mapping[str, Any]) -> str:
    if len(document["clients"]) < 2:
        alone = "one group" if "members" in document["clients"][0] else "one site"
        return f"With {alone}, differences between sites cannot be assessed."
    if not document["changing"]:
        return "No mechanism was found to differ between sites."
    changing = ", ".join(f"<strong>{to_html_name(name)}</strong>" for name in document["changing"])
    count = format_count(len(document["changing"]), "mechanism differs", "mechanisms differ")
    return f"{count} between sites: {changing}."


def _disclosure_warning(document: Mapping[str, Any]) -> str:
    """Return a warning that names the sites whose rows were not protected; empty if there are none."""
    if not document.get("without_disclosure_control"):
        return ""
    sites = ", ".join(f"<strong>{to_html_name(site)}</strong>" for site in document["without_disclosure_control"])
    return (
        '<p class="warning" role="note"><strong>No disclosure control.</strong> The limits that protect individuals '
        f"were switched off at: {sites}. This is meant for simulated or public data only.</p>"
    )


def _page_sections(document: Mapping[str, Any], drawing: GraphDrawing) -> dict[str, str]:
    numbers = {frozenset((edge["source"], edge["target"])): int(edge["id"][1:]) for edge in drawing.edges}
    inner = [edge for edge in document["edges"] if DOMAIN not in (edge["source"], edge["target"])]
    linked, absent = [edge for edge in inner if edge["mark"]], [edge for edge in inner if not edge["mark"]]
    absent_title = f"{format_count(len(absent), 'pair')} without a link"
    reasons = ORIENTATION_REASONS.values()
    return {
        "certainty": _certainty_paragraph(document),
        "slider": "Show links from probability" if has_probabilities(inner) else "Show links from strength",
        "weight": "thin and faint: less likely" if has_probabilities(inner) else "thicker: more evidence",
        "edge_table": edge_table(linked, numbers) if linked else "<p>No links were found.</p>",
        "possible": _possible_section(absent),
        "absent_edges": _details_element(absent_title, absent_edge_table(absent)) if absent else "",
        "changing_table": changing_table(document) if len(document["clients"]) > 1 else "",
        "drift": _drift_section(document.get("drift") or []),
        "stability": _stability_section(document),
        "site_table": site_table(document["clients"]),
        "settings_table": settings_table(document),
        "notes": _notes_list(document["notes"]),
        "reasons": "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in reasons),
        "factor": escape(BAYES_FACTORS_IN_DETAILS_NOTE if has_probabilities(document["edges"]) else BAYES_FACTOR_NOTE),
        "probability": _probability_paragraphs() if has_probabilities(document["edges"]) else "",
    }


def _certainty_paragraph(document: Mapping[str, Any]) -> str:
    """Return what the numbers of the links are, and from which probability links are drawn."""
    settings = document["settings"]
    if not has_probabilities(document["edges"]):
        return "" if settings["method"] == "evidence" else f"<p>{NO_PROBABILITY_NOTE}</p>"
    least = settings.get("min_probability", DEFAULT_MIN_PROBABILITY)
    arrow = settings.get("min_arrow_probability", DEFAULT_MIN_ARROW_PROBABILITY)
    effect = format_share(settings.get("min_effect", DEFAULT_MIN_EFFECT))
    return (
        f"<p>Links are drawn from a probability of {least:g}, arrows from {arrow:g}. Links that explain less than "
        f"{effect} of the variance are left out, unless they show at nearly all sites. The numbers rest on "
        '<a href="#reading">assumptions</a>.</p>\n'
        "<p>“Link” is the probability that the two are directly linked. “Direction” is the probability of the arrow, "
        "or of the likelier direction of an open link. “Variance explained” is the cause's share of the variance "
        "that the other causes leave.</p>"
    )


def _possible_section(absent: Sequence[Mapping[str, Any]]) -> str:
    table = possible_edge_table(absent)
    if not table and has_probabilities(absent):
        return "<p>No other link has a probability of 0.1 or more.</p>"
    return table and f"<h3>Possible, not drawn</h3>\n<p>Pairs with a probability of at least 0.1.</p>\n{table}"


def _probability_paragraphs() -> str:
    words = "; ".join(f"“{words}” from {least:g}" for least, words in PROBABILITY_WORDS)
    return f"<p>{escape(PROBABILITY_NOTE)}</p>\n<p>Probabilities in words: {words}; “unlikely” below.</p>"


def _details_element(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n{content}\n</details>"


def _drift_section(drift: list[Mapping[str, Any]]) -> str:
    if not drift:
        return ""
    sites, shown = len({record["client"] for record in drift}), most_deviating(drift)
    some = ""
    if len(shown) < len(drift):
        some = f" Shown are the {MAX_SITES_SHOWN} of {sites:,} sites that deviate most; result.json has all of them."
    return (
        '<h3 id="drift">Which sites deviate, and how</h3>\n<p>Each cell shows by how many standard errors a site lies '
        '<span class="key below">below</span> or <span class="key above">above</span> the mechanism common to all '
        f"sites. Outlined cells are significant after correction for the number of comparisons.{some}</p>\n"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Map of deviations">{render_heat_map(shown)}</div>'
        "\n"
        + _details_element(f"Estimates of every site{' shown' if some else ''}, with intervals", drift_table(shown))
    )


def _stability_section(document: Mapping[str, Any]) -> str:
    found = [part for key in ("stability", "row_stability") for part in _stability_parts(document, key)]
    if not found:
        return ""
    heading = (
        '<section id="stability" aria-labelledby="stability-heading"><h2 id="stability-heading">Stability of links</h2>'
    )
    return "\n".join([heading, *found, "</section>"])


def _stability_parts(document: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the text and tables of one way of repeating the search."""
    records, found = stability_records(document, key), document.get(key) or {}
    if not records:
        return
    found = found if isinstance(found, Mapping) else {}
    if key == "row_stability":
        yield f"<h3>With resampled rows</h3>\n<p>{BOOTSTRAP_NOTE}</p>"
    else:
        how = _STABILITY_KINDS.get(found.get("kind", ""), "with sites left out or resampled")
        yield f"<p>The search was repeated {how}. A link that depends on a single site is less certain.</p>"
    yield stability_table(records)
    if found.get("changing"):
        yield changing_stability_table(found["changing"], by_site=key == "stability")
    if found.get("influence"):
        yield f"<p>{INFLUENCE_NOTE}</p>"
        yield influence_table(found["influence"])
    if found.get("notes"):
        yield _notes_list(found["notes"])


def _notes_list(notes: list[str]) -> str:
    if not notes:
        return "<p>None.</p>"
    return "<ul>" + "".join(f"<li>{escape(clean_text(note))}</li>" for note in notes) + "</ul>"
