"""The first thing that a reader of a report sees: what to rely on, what hangs on one site, what nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.discovery.result_text import MIN_POSSIBLE_PROBABILITY
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.exogenous_variables import CausedExogenous, find_caused_exogenous, suggest_knowledge
from fedcdh.reporting.graph_drawing.edge_style import style_edge
from fedcdh.reporting.html.schema import stability_records
from fedcdh.reporting.phrases import format_count, format_percent, shown_probability, to_html_name

MIN_RELIABLE_PROBABILITY = 0.95
"""Probability from which an arrow is named as one to rely on: "very likely" in words."""
_MAX_NAMED = 4
Document = Mapping[str, Any]
Edge = Mapping[str, Any]


def render_read_first(document: Document) -> str:
    """Return the box under the title: three sentences, and what they rest on.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    str
        One section as HTML.
    """
    answers = {
        "What you can rely on": _reliable_sentence(document),
        "What hangs on one site": _single_site_sentence(document),
        "What nobody knows": _unknown_sentence(document),
    }
    sentences = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in answers.items())
    assumed = "".join(f"<li>{text}</li>" for text in _assumptions(document))
    return (
        '<section id="first" aria-labelledby="first-heading"><h2 id="first-heading">Read this first</h2>\n'
        f"<dl>{sentences}</dl>\n"
        f'<div class="assumed"><h3>This rests on</h3>\n<ul>{assumed}</ul>\n'
        "<p>An arrow is a conclusion from data and these assumptions, not from an experiment.</p></div>\n</section>"
    )


def _inner_edges(document: Document) -> list[Edge]:
    return [edge for edge in document["edges"] if DOMAIN not in (edge["source"], edge["target"])]


def _reliable_sentence(document: Document) -> str:
    drawn = [edge for edge in _inner_edges(document) if edge["mark"]]
    if not drawn:
        return "No link was found. That does not show that there is none: the data may be too few."
    if all(edge.get("probability") is None for edge in drawn):
        return (
            f"This search tests links and gives no probabilities. {_count_links(len(drawn))} withstood every test; how "
            "sure each of them is, and its direction above all, it does not say."
        )
    doubtful = {one.name for one in find_caused_exogenous(document)} | _hinges(document).keys()
    found = [edge for edge in drawn if _is_reliable(edge, doubtful)]
    if not found:
        return "No arrow is very likely. Take all links as suggestions for further study."
    found.sort(key=lambda edge: -(shown_probability(edge) or 0.0))
    count = format_count(len(found), "arrow is", "arrows are")
    return f"{count} very likely (probability {MIN_RELIABLE_PROBABILITY} or more): {_name_edges(found)}."


def _is_reliable(edge: Edge, doubtful: Iterable[Any]) -> bool:
    """Return whether an arrow is likely, clear, and contradicted by neither a single site nor its meaning."""
    likely = edge["mark"] == "→" and (shown_probability(edge) or 0.0) >= MIN_RELIABLE_PROBABILITY
    return (
        likely
        and not style_edge(edge).is_tentative
        and edge["target"] not in doubtful
        and frozenset((edge["source"], edge["target"])) not in doubtful
    )


def _count_links(number: int) -> str:
    return format_count(number, "link")


def _name_edges(edges: Sequence[Edge]) -> str:
    names = [
        f"{to_html_name(e['source'])}\N{NO-BREAK SPACE}{e['mark'] or '—'} {to_html_name(e['target'])}" for e in edges
    ]
    return _abbreviate(names)


def _abbreviate(names: Sequence[str]) -> str:
    """Return some of many names, and how many are missing."""
    if len(names) <= _MAX_NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NAMED])} and {len(names) - _MAX_NAMED} more"


def _hinges(document: Document) -> dict[Any, tuple[str, ...]]:
    """Return the links, as pairs, that change when one of the named sites is left out."""
    return {
        frozenset((one["source"], one["target"])): (
            *(one.get("gone_without") or ()),
            *(one.get("turned_without") or ()),
        )
        for one in stability_records(document)
        if one.get("mark") and (one.get("gone_without") or one.get("turned_without"))
    }


def _single_site_sentence(document: Document) -> str:
    if len(document["clients"]) < 2:
        return f"Everything: all rows come from one {_whom(document)}, so nobody can tell what would differ elsewhere."
    found = document.get("stability")
    if not isinstance(found, Mapping) or found.get("kind", "leave-one-out") != "leave-one-out":
        how = "<code>fedcdh discover --stability</code> leaves out each site in turn"
        return f"This was not examined; {how}. {_largest(document)}"
    hinges = [*_link_hinges(document), *_difference_hinges(found)]
    if not hinges:
        return "Nothing: every link and every difference is found again when any one site is left out."
    more = len(hinges) - _MAX_NAMED
    text = "; ".join([*hinges[:_MAX_NAMED], *([f"{more} more below"] if more > 0 else [])])
    return f"{text[0].upper()}{text[1:]}."


def _whom(document: Document) -> str:
    return "group" if "members" in document["clients"][0] else "site"


def _largest(document: Document) -> str:
    """Return the site with the most rows, and its share of them."""
    rows = {client["client"]: client["rows"] for client in document["clients"]}
    name = max(rows, key=lambda site: (rows[site], site))
    share = rows[name] / max(sum(rows.values()), 1)
    return f"The largest {_whom(document)}, {to_html_name(name)}, has {format_percent(share)} of the rows."


def _link_hinges(document: Document) -> Iterator[str]:
    for one in stability_records(document):
        if not one.get("mark"):
            continue
        link = f"{to_html_name(one['source'])}\N{NO-BREAK SPACE}{one['mark']} {to_html_name(one['target'])}"
        if one.get("gone_without"):
            yield f"without {_any_of(one['gone_without'])}, {link} is not found"
        elif one.get("turned_without"):
            yield f"without {_any_of(one['turned_without'])}, the direction of {link} is open or another"


def _difference_hinges(found: Mapping[str, Any]) -> Iterator[str]:
    for one in found.get("changing") or ():
        if one.get("changing") and one.get("differs_without"):
            name = to_html_name(one["variable"])
            yield f"without {_any_of(one['differs_without'])}, the difference of {name} is not found"


def _any_of(sites: Sequence[str]) -> str:
    return to_html_name(sites[0]) if len(sites) == 1 else f"any one of {len(sites)} sites"


def _unknown_sentence(document: Document) -> str:
    edges = _inner_edges(document)
    lines = [edge for edge in edges if edge["mark"] == "—"]
    possible = [e for e in edges if not e["mark"] and (e.get("probability") or 0.0) >= MIN_POSSIBLE_PROBABILITY]
    parts = []
    if lines:
        parts.append(f"the direction of {format_count(len(lines), 'link')}, which is open ({_name_edges(lines)})")
    if possible:
        what = "pair that is not drawn is" if len(possible) == 1 else "pairs that are not drawn are"
        parts.append(f"whether {len(possible)} {what} linked after all")
    parts.append("whether a common cause that nobody measured stands behind an arrow")
    text = f"{', '.join(parts[:-1])}, and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"{text[0].upper()}{text[1:]}; such causes were not considered."


def _assumptions(document: Document) -> Iterator[str]:
    yield "Whatever influences two of the variables was measured, or is the same for all rows of a site."
    yield "No variable influences itself through others."
    yield "The effects of several causes add up, and do not cancel each other."
    read = [client.get("rows_read") for client in document["clients"]]
    used = sum(client["rows"] for client in document["clients"])
    if all(rows is not None for rows in read) and sum(read) > used:
        share = (sum(read) - used) / sum(read)
        yield f"The rows that were left out for missing values ({share:.1%}) are like the others."


def render_exogenous_warning(document: Document) -> str:
    """Return the warning that variables have causes which nothing can cause; empty if there are none.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    str
        One section as HTML, with lines of `[knowledge]` to copy.
    """
    found = find_caused_exogenous(document)
    if not found:
        return ""
    points = "".join(f"<li>{text}</li>" for one in found for text in _exogenous_points(one))
    lines = escape(suggest_knowledge(document))
    return (
        '<section id="exogenous" class="caution" aria-labelledby="exogenous-heading">'
        '<h2 id="exogenous-heading">Variables that nothing can cause</h2>\n'
        "<p>By their names, or because they come first in the order in time, nothing in this study can cause these "
        f"variables. The search does not know that:</p>\n<ul>{points}</ul>\n"
        "<p>If you agree, put these lines into the declaration of the study in place of its <code>[knowledge]</code>, "
        "plan and search again (<code>fedcdh plan … --declare variables.toml</code>):</p>\n"
        f'<pre id="knowledge" tabindex="0" role="region" aria-label="Lines of knowledge"><code>{lines}</code></pre>\n'
        '<p class="scripted"><button type="button" data-copy="knowledge">Copy these lines</button> '
        '<span role="status"></span></p>\n</section>'
    )


def _exogenous_points(one: CausedExogenous) -> Iterator[str]:
    name = f"<strong>{to_html_name(one.name)}</strong>"
    if one.causes:
        what = "a cause" if len(one.causes) == 1 else "causes"
        yield f"{name} has {what} in the graph: {_abbreviate([to_html_name(cause) for cause in one.causes])}."
    if one.linked:
        others = _abbreviate([to_html_name(other) for other in one.linked])
        yield f"the direction between {name} and {others} is open, although only {name} can be the cause."
