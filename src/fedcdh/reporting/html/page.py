"""The page: template, style, script and content put together into one file that asks nothing of any network."""

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
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.graph_svg import DIFFERS_NOTE, GraphDrawing, draw_graph
from fedcdh.reporting.html.heat_map import MAX_SITES_SHOWN, most_deviating, render_heat_map
from fedcdh.reporting.html.methods_section import describe_sites, methods_paragraph
from fedcdh.reporting.html.schema import check_document, parse_document, stability_records
from fedcdh.reporting.html.tables import (
    absent_edge_table,
    changing_stability_table,
    changing_table,
    drift_table,
    edge_table,
    influence_table,
    settings_table,
    site_table,
    stability_table,
)
from fedcdh.reporting.phrases import (
    BAYES_FACTOR_NOTE,
    BOOTSTRAP_NOTE,
    INFLUENCE_NOTE,
    ORIENTATION_REASONS,
    clean_text,
    describe_edge,
    edge_facts,
    format_percent,
    format_signed,
    to_html_name,
    to_plain_name,
)


def write_report(document: Mapping[str, Any] | str | bytes, path: Path | str) -> Path:
    """Writes the report of a result's document, or of the text of a result.json."""
    parsed = parse_document(document) if isinstance(document, (str, bytes)) else document
    write_atomically(Path(path), render_report(parsed))
    return Path(path)


def render_report(document: Mapping[str, Any]) -> str:
    """One HTML file with the graph, its evidence and all tables; the same document gives the same bytes."""
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
        size="stage vast" if drawing.vast else "stage",
        count=str(len(drawing.edges)),
        note=DIFFERS_NOTE,
        **_page_texts(document),
        **_page_sections(document, drawing),
    )


@cache
def _read_asset(name: str) -> str:
    return files("fedcdh.reporting.html").joinpath(name).read_text(encoding="utf-8").strip()


def _csp_hash(content: str) -> str:
    """What the policy knows a style or script by: it must stand between its tags just so."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


def _to_inline_json(data: Any) -> str:
    """JSON that no parser of HTML mistakes for markup, and no old one of scripts for a line's end."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _script_data(document: Mapping[str, Any], drawing: GraphDrawing) -> dict[str, Any]:
    """All that a script shows of nodes and edges: sentences and facts are made here, so there are no other ones."""
    number = {name: node["id"] for name, node in zip(document["variables"], drawing.nodes, strict=True)}
    evidence = {frozenset((edge["source"], edge["target"])): edge for edge in document["edges"]}
    firmness = _by_pair(stability_records(document))
    drawn_anew = _by_pair(stability_records(document, "row_stability"))
    edges = []
    for drawn in drawing.edges:
        pair = frozenset((drawn["source"], drawn["target"]))
        known = [*edge_facts(evidence[pair]), *_stability_fact(firmness.get(pair), "Stability", _SITE_STABILITY_HINT)]
        known += _stability_fact(drawn_anew.get(pair), "With rows drawn anew", _ROW_STABILITY_HINT)
        ends = {"source": number[drawn["source"]], "target": number[drawn["target"]]}
        edges.append(
            {**drawn, **ends, "title": describe_edge(evidence[pair]), "facts": known, "mark": evidence[pair]["mark"]}
        )
    nodes = []
    for name, node in zip(document["variables"], drawing.nodes, strict=True):
        edge, changes = evidence.get(frozenset((DOMAIN, name))), name in document["changing"]
        asked = "differs between sites" if changes else "no difference between sites found"
        known = [("Mechanism", asked if edge else "not compared between sites", "")]
        known += [fact for fact in edge_facts(edge) if fact[0] != "Direction from"] if edge else []
        known += _deviating_sites(name, document.get("drift") or ())
        nodes.append({**node, "facts": known})
    weighed = any(edge.get("log_bayes_presence") is not None for edge in document["edges"])
    return {"edges": edges, "nodes": nodes, "measure": "log Bayes factor" if weighed else "−log₁₀ p"}


def _deviating_sites(name: str, drift: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """The sites whose mechanism is not that of the others, the farthest first."""
    found = [one for one in drift if one["variable"] == name and one.get("flagged") and one["deviation"] is not None]
    if found:
        found.sort(key=lambda one: -abs(one["deviation"]))
        shown = [
            f"{to_plain_name(one['client'])} ({to_plain_name(one['quantity'])} {format_signed(one['deviation'])})"
            for one in found[:4]
        ]
        yield ("Stands out at", ", ".join(shown), "How many standard errors the site is off; the map below has all.")


_SITE_STABILITY_HINT = "How often it was found again when sites were left out or drawn anew."
_ROW_STABILITY_HINT = "How often it was found again when the rows of every site were drawn anew. Not a probability."


def _by_pair(records: Sequence[Mapping[str, Any]]) -> dict[frozenset[str], Mapping[str, Any]]:
    return {frozenset((record["source"], record["target"])): record for record in records}


def _stability_fact(record: Mapping[str, Any] | None, name: str, means: str) -> Iterator[tuple[str, str, str]]:
    if record is None or record["presence"] is None:
        return
    runs = f" of {record['runs']} runs" if record.get("runs") else " of runs"
    told = f"link in {format_percent(record['presence'])}{runs}"
    told += "" if record["direction"] is None else f", as here in {format_percent(record['direction'])}"
    yield (name, told, means)


def _page_texts(document: Mapping[str, Any]) -> dict[str, str]:
    """Titles and sentences, escaped."""
    sites, rows = len(document["clients"]), sum(client["rows"] for client in document["clients"])
    arrows, lines = len(document["graph"]["arrows"]), len(document["graph"]["lines"])
    changing = ", ".join(f"<strong>{to_html_name(name)}</strong>" for name in document["changing"])
    about = f"{_format_count(len(document['variables']), 'variable')}, {describe_sites(document['clients'])}, {_format_count(rows, 'row')}"
    if sites < 2:
        alone = "one group" if "members" in document["clients"][0] else "one site"
        differs = f"With {alone}, nothing can be said about differences between sites."
    elif not changing:
        differs = "No mechanism was found to differ between sites."
    else:
        verb = "mechanism differs" if len(document["changing"]) == 1 else "mechanisms differ"
        differs = f"{_format_count(len(document['changing']), verb, '')} between sites: {changing}."
    open_ = f" and {_format_count(lines, 'link')} whose direction the data leave open" if lines else ""
    return {
        "title": f"Causal graph: {about}",
        "heading": f"What causes what: {_format_count(len(document['variables']), 'variable')} at {_format_count(sites, 'site')}",
        "about": f"{_format_count(rows, 'row')} · method “{escape(clean_text(document['settings']['method']))}” · "
        f"{escape(clean_text(document['software']))} · plan <code>{escape(to_plain_name(document['plan'])[:12])}</code>",
        "lead": f"Found: {_format_count(arrows, 'arrow')} from cause to effect{open_}. {differs}",
        "research": _disclosure_warning(document),
        "methods": escape(methods_paragraph(document)),
    }


def _disclosure_warning(document: Mapping[str, Any]) -> str:
    """Whoever reads a result should know whose rows were not protected in it."""
    if not document.get("research"):
        return ""
    sites = ", ".join(f"<strong>{to_html_name(site)}</strong>" for site in document["research"])
    return (
        '<p class="research" role="note"><strong>Research, no privacy.</strong> Limits that protect single people '
        f"were off at: {sites}. Such messages are meant for simulated or public data.</p>"
    )


def _format_count(number: int, thing: str, plural: str = "s") -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}{plural}"


def _page_sections(document: Mapping[str, Any], drawing: GraphDrawing) -> dict[str, str]:
    numbers = {frozenset((edge["source"], edge["target"])): int(edge["id"][1:]) for edge in drawing.edges}
    inner = [edge for edge in document["edges"] if DOMAIN not in (edge["source"], edge["target"])]
    linked, apart = [edge for edge in inner if edge["mark"]], [edge for edge in inner if not edge["mark"]]
    return {
        "edge_table": edge_table(linked, numbers) if linked else "<p>No links were found.</p>",
        "apart": _details_element(f"{_format_count(len(apart), 'pair')} without a link", absent_edge_table(apart))
        if apart
        else "",
        "changing_table": changing_table(document) if len(document["clients"]) > 1 else "",
        "drift": _drift_section(document.get("drift") or []),
        "stability": _stability_section(document),
        "site_table": site_table(document["clients"]),
        "settings_table": settings_table(document),
        "notes": _notes_list(document["notes"]),
        "reasons": "".join(
            f"<dt>{escape(word)}</dt><dd>{escape(means)}</dd>" for word, means in ORIENTATION_REASONS.values()
        ),
        "factor": escape(BAYES_FACTOR_NOTE),
    }


def _details_element(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n{content}\n</details>"


def _drift_section(drift: list[Mapping[str, Any]]) -> str:
    if not drift:
        return ""
    sites, shown = len({record["client"] for record in drift}), most_deviating(drift)
    some = ""
    if len(shown) < len(drift):
        some = f" Shown are the {MAX_SITES_SHOWN} of {sites:,} sites that deviate most; result.json has them all."
    return (
        '<h3 id="drift">Which site deviates, and how</h3>\n<p>Each cell says how many standard errors a site lies '
        '<span class="key below">below</span> or <span class="key above">above</span> what the sites have in common. '
        f"Outlined cells stand out after correction for the number of comparisons.{some}</p>\n"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Map of deviations">{render_heat_map(shown)}</div>\n'
        + _details_element(f"Estimates of every site{' shown' if some else ''}, with intervals", drift_table(shown))
    )


def _stability_section(document: Mapping[str, Any]) -> str:
    found = [part for key in ("stability", "row_stability") for part in _stability_parts(document, key)]
    if not found:
        return ""
    heading = (
        '<section id="stability" aria-labelledby="stability-heading">'
        '<h2 id="stability-heading">Would it be found again?</h2>'
    )
    return "\n".join([heading, *found, "</section>"])


def _stability_parts(document: Mapping[str, Any], key: str) -> Iterator[str]:
    """One way of repeating the search, and what it found again."""
    records, found = stability_records(document, key), document.get(key) or {}
    if not records:
        return
    found = found if isinstance(found, Mapping) else {}
    if key == "row_stability":
        yield f"<h3>With other rows</h3>\n<p>{BOOTSTRAP_NOTE}</p>"
    else:
        kinds = {"leave-one-out": "without one site after the other", "bootstrap": "with sites drawn at random"}
        how = kinds.get(found.get("kind", ""), "with sites left out or drawn anew")
        told = "A link that hangs on one site is less sure than one that does not."
        yield f"<p>The search was repeated {how}. {told}</p>"
    yield stability_table(records)
    if found.get("changing"):
        yield changing_stability_table(found["changing"], whose=key == "stability")
    if found.get("influence"):
        yield f"<p>{INFLUENCE_NOTE}</p>"
        yield influence_table(found["influence"])
    if found.get("notes"):
        yield _notes_list(found["notes"])


def _notes_list(notes: list[str]) -> str:
    return (
        "<ul>" + "".join(f"<li>{escape(clean_text(note))}</li>" for note in notes) + "</ul>"
        if notes
        else "<p>None.</p>"
    )
