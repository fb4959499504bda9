"""The sections of a report below its graph: links, differences between sites, stability and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_style import MIN_CLEAR_PROBABILITY, MIN_CLEAR_STRENGTH, style_edge
from fedcdh.reporting.html.edge_tables import (
    Numbers,
    absent_edge_table,
    edge_table,
    has_probabilities,
    possible_edge_table,
)
from fedcdh.reporting.html.heat_map import MAX_SITES_SHOWN, most_deviating, render_heat_map
from fedcdh.reporting.html.schema import stability_records
from fedcdh.reporting.html.tables import changing_stability_table, drift_table, influence_table, stability_table
from fedcdh.reporting.phrases import (
    BOOTSTRAP_NOTE,
    INFLUENCE_NOTE,
    NO_PROBABILITY_NOTE,
    PROBABILITY_NOTE,
    PROBABILITY_WORDS,
    clean_text,
    format_count,
    format_share,
)

Document = Mapping[str, Any]
Edges = Sequence[Mapping[str, Any]]

_EFFECT_WORDS = (
    " “Direct effect” is the change of the effect with one unit more of the cause, all other causes held fixed, with "
    "its 95 % interval; “standardised” is the same in standard deviations."
)
_STABILITY_KINDS = {
    "leave-one-out": "with each site left out in turn",
    "bootstrap": "with sites resampled with replacement",
}


def render_links(document: Document, numbers: Numbers) -> str:
    """Return the tables of links: clear ones, weak or uncertain ones, possible ones, and pairs without a link.

    Parameters
    ----------
    document : mapping
        A checked result document.
    numbers : mapping
        For each link, its number in the picture.

    Returns
    -------
    str
        HTML.
    """
    inner = [edge for edge in document["edges"] if DOMAIN not in (edge["source"], edge["target"])]
    linked, absent = [edge for edge in inner if edge["mark"]], [edge for edge in inner if not edge["mark"]]
    clear = [edge for edge in linked if not style_edge(edge).is_tentative]
    parts = [_certainty_paragraph(document)]
    parts += [edge_table(clear, numbers)] if clear else ["<p>No clear link was found.</p>" if linked else ""]
    parts += [_tentative_section([edge for edge in linked if style_edge(edge).is_tentative], numbers)]
    parts += [] if linked else ["<p>No links were found.</p>"]
    parts += [_possible_section(absent)]
    if absent:
        title = f"{format_count(len(absent), 'pair')} without a link"
        parts.append(details_element(title, absent_edge_table(absent)))
    return "\n".join(filter(None, parts))


def _tentative_section(edges: Edges, numbers: Numbers) -> str:
    """Return the links that are drawn dotted, apart from the others."""
    if not edges:
        return ""
    return (
        "<h3>Weak or uncertain</h3>\n"
        f"<p>These links have a probability below {MIN_CLEAR_PROBABILITY:g}, or explain less than "
        f"{format_share(MIN_CLEAR_STRENGTH)} of the variance. The picture shows them dotted.</p>\n"
        + edge_table(edges, numbers, "Weak or uncertain links")
    )


def _certainty_paragraph(document: Document) -> str:
    """Return what the numbers of the links are, and from which probability links are drawn."""
    settings = document["settings"]
    if not has_probabilities(document["edges"]):
        return "" if settings["method"] == "evidence" else f"<p>{NO_PROBABILITY_NOTE}</p>"
    least = settings.get("min_probability", DEFAULT_MIN_PROBABILITY)
    arrow = settings.get("min_arrow_probability", DEFAULT_MIN_ARROW_PROBABILITY)
    effect = format_share(settings.get("min_effect", DEFAULT_MIN_EFFECT))
    sized = any(edge.get("slope") is not None for edge in document["edges"])
    return (
        f"<p>Links are drawn from a probability of {least:g}, arrows from {arrow:g}. Links that explain less than "
        f"{effect} of the variance are left out, unless they show at nearly all sites. The numbers rest on "
        '<a href="#first">assumptions</a>.</p>\n'
        "<p>“Probability” is that of a direct link between the two. “Direction” is the probability of the "
        "arrow, or of the likelier direction where it is open. “Explains” is the cause's share of the variance that "
        f"the other causes leave.{_EFFECT_WORDS if sized else ''}</p>"
    )


def _possible_section(absent: Edges) -> str:
    table = possible_edge_table(absent)
    if not table and has_probabilities(absent):
        return "<p>No other link has a probability of 0.1 or more.</p>"
    return table and f"<h3>Possible, not drawn</h3>\n<p>Pairs with a probability of at least 0.1.</p>\n{table}"


def render_probability_notes() -> str:
    """Return what a probability means, and the words for it."""
    words = "; ".join(f"“{words}” from {least:g}" for least, words in PROBABILITY_WORDS)
    return f"<p>{escape(PROBABILITY_NOTE)}</p>\n<p>Probabilities in words: {words}; “unlikely” below.</p>"


def details_element(summary: str, content: str) -> str:
    """Return content that is folded away until somebody asks for it; on paper, only the summary is printed."""
    return f"<details><summary>{summary}</summary>\n{content}\n</details>"


def render_drift(document: Document) -> str:
    """Return the map of deviations and the estimates behind it; empty if there are none."""
    drift = document.get("drift") or []
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
        f'<div class="map" tabindex="0" role="region" aria-label="Map of deviations">{render_heat_map(shown)}</div>\n'
        + details_element(f"Estimates of every site{' shown' if some else ''}, with intervals", drift_table(shown))
    )


def render_stability(document: Document) -> str:
    """Return the section on stability; empty if nothing is known about it."""
    found = [part for key in ("stability", "row_stability") for part in _stability_parts(document, key)]
    if not found:
        return ""
    heading = (
        '<section id="stability" aria-labelledby="stability-heading"><h2 id="stability-heading">Stability of links</h2>'
    )
    return "\n".join([heading, *found, "</section>"])


def _stability_parts(document: Document, key: str) -> Iterator[str]:
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
        yield render_notes(found["notes"])


def render_notes(notes: Sequence[str]) -> str:
    """Return the notes of a result as a list."""
    if not notes:
        return "<p>None.</p>"
    return "<ul>" + "".join(f"<li>{escape(clean_text(note))}</li>" for note in notes) + "</ul>"
