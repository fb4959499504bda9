"""The letter to one site: the graph, its own rows, what differs there, and nobody else's numbers.

A letter depends on the records of its own site and on what was found for all sites together. Estimates, counts and
names of other sites do not reach it. A value common to several sites is given only where at least two other sites are
in it; otherwise it would be the estimate of one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from fedcdh._io.storage import write_atomically
from fedcdh._io.text import abbreviate_list
from fedcdh.errors import SettingsError
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.assets import csp_hash, read_asset
from fedcdh.reporting.html.edge_tables import has_probabilities
from fedcdh.reporting.html.graph_svg import draw_graph
from fedcdh.reporting.html.schema import check_document, parse_document
from fedcdh.reporting.html.site_findings import (
    SiteFindings,
    differences_section,
    effects_section,
    hinges_section,
    links_section,
    own_edges,
    rows_section,
    values_section,
)
from fedcdh.reporting.phrases import PROBABILITY_NOTE, clean_text, format_count, slope_sign, to_html_name, to_plain_name

_SIGN_NOTE = (
    "<p>A + on an arrow means that more of the cause makes more of the effect, a \N{MINUS SIGN} that it makes less. It "
    "is that of all sites together. An arrow without a sign has none that is sure, or joins labels.</p>"
)


def write_site_letter(document: Mapping[str, Any] | str | bytes, site: str, path: Path | str) -> Path:
    """Write the letter to one site.

    Parameters
    ----------
    document : mapping, str or bytes
        A result document, or the text of a `result.json`.
    site : str
        The site.
    path : Path or str
        Where to write the letter.

    Returns
    -------
    Path
        The path of the letter.

    Raises
    ------
    DataError
        If the document is not a result.
    SettingsError
        If the study has no such site.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> from fedcdh.reporting import render_result_json
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> write_site_letter(render_result_json(result), "north", Path(tempfile.mkdtemp()) / "north.html").name
    'north.html'
    """
    parsed = parse_document(document) if isinstance(document, (str, bytes)) else document
    write_atomically(Path(path), render_site_letter(parsed, site))
    return Path(path)


def render_site_letter(document: Mapping[str, Any], site: str) -> str:
    """Return the letter to one site as one HTML page.

    Parameters
    ----------
    document : mapping
        A result document, as `read_document` returns it.
    site : str
        The site.

    Returns
    -------
    str
        The page, without a script. It has no estimates, counts or names of other sites.

    Raises
    ------
    DataError
        If the document is not a result.
    SettingsError
        If the study has no such site.

    Examples
    --------
    >>> import json
    >>> import fedcdh
    >>> from fedcdh.reporting import render_result_json
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> page = render_site_letter(json.loads(render_result_json(result)), "north")
    >>> "north" in page, "valley" in page
    (True, False)
    """
    check_document(document)
    found = SiteFindings.of(document, find_site(document, site), site)
    edges = own_edges(document)
    drawing = draw_graph({**document, "edges": edges})
    style = f"{read_asset('style.css')}\n{read_asset('site_letter.css')}"
    return Template(read_asset("site_letter.html")).substitute(
        policy=f"default-src 'none'; style-src '{csp_hash(style)}'; base-uri 'none'; form-action 'none'",
        style=style,
        graph=drawing.svg.replace(' role="button"', "") + drawing.narrow_svg,
        sign=_SIGN_NOTE if any(edge["mark"] and slope_sign(edge) for edge in edges) else "",
        probability=f"<p>{escape(PROBABILITY_NOTE)}</p>" if has_probabilities(edges) else "",
        differs=differences_section(found) + effects_section(found),
        rows=rows_section(found),
        values=values_section(found),
        hinges=hinges_section(found),
        links=links_section(document),
        **_head_texts(document, found),
    )


def list_sites(document: Mapping[str, Any]) -> list[str]:
    """Return all sites of a result, also those of which only the sum of a group is known.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    list of str
        Names in the order of the document.
    """
    return [site for client in document["clients"] for site in client.get("members", [client["client"]])]


def find_site(document: Mapping[str, Any], site: str) -> Mapping[str, Any]:
    """Return the record of a site, or of the group in which its rows are.

    Parameters
    ----------
    document : mapping
        A checked result document.
    site : str
        The site.

    Returns
    -------
    mapping
        A record of `document["clients"]`.

    Raises
    ------
    SettingsError
        If the study has no such site.
    """
    for client in document["clients"]:
        if site in client.get("members", [client["client"]]):
            return dict(client)
    sites = abbreviate_list(map(to_plain_name, list_sites(document)))
    raise SettingsError(
        f"the study has no site {to_plain_name(site)!r}; expected one of {sites}; choose one of them", parameter="site"
    )


def _head_texts(document: Mapping[str, Any], found: SiteFindings) -> dict[str, str]:
    sites, name = len(list_sites(document)), to_plain_name(found.site)
    linked = [edge for edge in document["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]
    arrows = sum(edge["mark"] == "→" for edge in linked)
    open_links = f" and {format_count(len(linked) - arrows, 'link')} of open direction" if len(linked) > arrows else ""
    software, method, plan = (
        escape(clean_text(text))
        for text in (document["software"], document["settings"]["method"], document["plan"][:12])
    )
    return {
        "title": escape(f"Letter to {name}: what the study found"),
        "heading": f"What the study found at {to_html_name(found.site)}",
        "about": f"{software} · method “{method}” · plan <code>{plan}</code>",
        "lead": f"{format_count(sites, 'site')} looked at {format_count(len(document['variables']), 'variable')} "
        f"together and found {format_count(arrows, 'arrow')} from cause to effect{open_links}. "
        f"{found.difference_sentence()} This letter is for you: it has no numbers of other sites.",
        "warning": _disclosure_warning(document, found.site),
    }


def _disclosure_warning(document: Mapping[str, Any], site: str) -> str:
    if site not in document.get("without_disclosure_control", ()):
        return ""
    return (
        '<p class="warning" role="note"><strong>No disclosure control.</strong> The limits that protect individuals '
        "were switched off at your site. This is meant for simulated or public data only.</p>"
    )
