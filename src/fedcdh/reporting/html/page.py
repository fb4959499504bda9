"""The page of a report: template, style, script and content in one file that loads nothing from a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from fedcdh._io.storage import write_atomically
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.scene import CHANGING_NOTE
from fedcdh.reporting.html.assets import csp_hash, read_asset
from fedcdh.reporting.html.edge_tables import has_probabilities
from fedcdh.reporting.html.effects_section import render_effects
from fedcdh.reporting.html.graph_svg import GraphDrawing, draw_graph
from fedcdh.reporting.html.heat_map import style_rules
from fedcdh.reporting.html.methods_section import describe_sites, methods_paragraph
from fedcdh.reporting.html.read_first import render_exogenous_warning, render_read_first
from fedcdh.reporting.html.schema import check_document, parse_document
from fedcdh.reporting.html.script_data import script_data
from fedcdh.reporting.html.sections import (
    render_drift,
    render_links,
    render_notes,
    render_probability_notes,
    render_stability,
)
from fedcdh.reporting.html.tables import changing_table, settings_table, site_table
from fedcdh.reporting.phrases import (
    BAYES_FACTOR_NOTE,
    BAYES_FACTORS_IN_DETAILS_NOTE,
    ORIENTATION_REASONS,
    PROBABILITY_WORDS,
    clean_text,
    format_count,
    shown_probability,
    to_html_name,
    to_plain_name,
)


def write_report(
    document: Mapping[str, Any] | str | bytes, path: Path | str, effects: Sequence[tuple[str, str]] = ()
) -> Path:
    """Write the HTML report of a result.

    Parameters
    ----------
    document : mapping, str or bytes
        A result document, or the text of a `result.json`.
    path : Path or str
        Where to write the report.
    effects : sequence of pairs of str, default ()
        Cause and outcome of each effect to show as a forest plot. By default those whose sites the result has, or
        else the strongest.

    Returns
    -------
    Path
        The path of the report.

    Raises
    ------
    DataError
        If the document is not a result.
    SettingsError
        If the result does not have an effect.

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
    write_atomically(Path(path), render_report(parsed, effects))
    return Path(path)


def render_report(document: Mapping[str, Any], effects: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report of a result as one HTML page.

    Parameters
    ----------
    document : mapping
        A result document, as `read_document` returns it.
    effects : sequence of pairs of str, default ()
        Cause and outcome of each effect to show as a forest plot.

    Returns
    -------
    str
        The page, with graph, evidence and all tables. The same document gives the same text.

    Raises
    ------
    DataError
        If the document is not a result.
    SettingsError
        If the result does not have an effect.

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
    style, script = f"{read_asset('style.css')}\n{style_rules()}", read_asset("script.js")
    return Template(read_asset("page.html")).substitute(
        policy=f"default-src 'none'; style-src '{csp_hash(style)}'; script-src '{csp_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        data=_to_inline_json(script_data(document, drawing)),
        graph=drawing.svg,
        narrow_graph=drawing.narrow_svg,
        size="stage vast" if drawing.full_width else "stage",
        count=str(len(drawing.edges)),
        note=CHANGING_NOTE,
        **_page_texts(document),
        **_page_sections(document, drawing),
        **_effect_parts(document, effects),
    )


def _to_inline_json(data: Any) -> str:
    """Return JSON without characters that an HTML or JavaScript parser could take for markup or a line end."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


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
    known = has_probabilities(document["edges"])
    reasons = ORIENTATION_REASONS.values()
    return {
        "first": render_read_first(document),
        "exogenous": render_exogenous_warning(document),
        "slider": "Show links from probability" if known else "Show links from evidence",
        "weight": "thick: large effect; faint: less likely" if known else "thicker: more evidence",
        "links": render_links(document, numbers),
        "changing_table": changing_table(document) if len(document["clients"]) > 1 else "",
        "drift": render_drift(document),
        "stability": render_stability(document),
        "site_table": site_table(document["clients"]),
        "settings_table": settings_table(document),
        "notes": render_notes(document["notes"]),
        "reasons": "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in reasons),
        "factor": escape(BAYES_FACTORS_IN_DETAILS_NOTE if known else BAYES_FACTOR_NOTE),
        "probability": render_probability_notes() if known else "",
    }


def _effect_parts(document: Mapping[str, Any], effects: Sequence[tuple[str, str]]) -> dict[str, str]:
    section = render_effects(document, effects)
    return {"effects": section, "effects_link": '<a href="#effects">Effects</a>' if section else ""}
