"""The parts of a result about one site: its rows, its values, how its mechanisms differ, and what hangs on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.table_cells import Cell, Row, render_table
from fedcdh.reporting.phrases import (
    clean_text,
    describe_probability,
    format_p_value,
    format_percent,
    format_short,
    format_signed,
    shown_probability,
    to_html_name,
)

MIN_OTHERS_POOLED = 2
"""Number of other sites in a common value from which it is shown: the value of a single one would be its estimate."""
FAR_DEVIATION = 6.0
"""Deviation in standard errors that is called far more than chance."""
_SLOPE_FIELDS = ("slope", "slope_low", "slope_high", "standardised_slope")
_UNKNOWN = "<p>Not known: the coordinator has sums of several sites, not those of yours alone.</p>"

Record = Mapping[str, Any]


@dataclass(frozen=True)
class SiteFindings:
    """The parts of a result document that may stand in the letter to one site.

    Parameters
    ----------
    site : str
        The site.
    record : mapping, optional
        Its rows and values; None if only a sum with other sites is known.
    drift : sequence of mapping, optional
        Its estimates, without a common value that would be that of a single other site; None if there are none at all.
    changing : sequence of str
        The variables whose mechanism differs between sites.
    stability : mapping, optional
        The findings that differ without this site; None if that was not computed.
    compared : bool
        Whether sites were compared at all.
    effects : sequence of mapping
        The effects that were chosen for single sites, each with the estimate of this one only.
    """

    site: str
    record: Record | None
    drift: Sequence[Record] | None
    changing: Sequence[str]
    stability: Record | None
    compared: bool
    effects: Sequence[Record] = ()

    @classmethod
    def of(cls, document: Record, record: Record, site: str) -> SiteFindings:
        """Return what concerns a site.

        Parameters
        ----------
        document : mapping
            A checked result document.
        record : mapping
            The record of the site or its group.
        site : str
            The site.

        Returns
        -------
        SiteFindings
            Its findings.
        """
        alone = record.get("members", [site]) == [site]
        drift = None if document.get("drift") is None else _own_drift(document["drift"], site)
        compared = any(DOMAIN in (edge["source"], edge["target"]) for edge in document["edges"])
        own = record if alone else None
        stability, effects = _own_stability(document, site), _own_effects(document, site)
        return cls(site, own, drift, document["changing"], stability, compared, effects)

    def difference_sentence(self) -> str:
        """Return in one sentence, as HTML, what differs at the site."""
        if not self.compared:
            return "With one site, or one sum of all, differences between sites cannot be assessed."
        if not self.changing:
            return "No mechanism was found to differ between sites."
        names = dict.fromkeys(one["variable"] for one in self.drift or () if one.get("flagged"))
        if self.drift is None:
            shown = ", ".join(map(to_html_name, self.changing))
            return f"Mechanisms that differ between sites: {shown}; how they are at your site is not known."
        if not names:
            return "Where mechanisms differ between sites, yours is not among those that clearly deviate."
        return f"Your site clearly deviates in: <strong>{', '.join(map(to_html_name, names))}</strong>."


def _own_drift(drift: Sequence[Record], site: str) -> list[dict[str, Any]]:
    """Return the records of a site, without the common value and the deviation where a single other site is in them."""
    others: dict[tuple[str, str], int] = {}
    for one in drift:
        common = one["client"] != site and not one.get("flagged") and one.get("estimate") is not None
        key = one["variable"], one["quantity"]
        others[key] = others.get(key, 0) + common
    found = []
    for one in drift:
        if one["client"] == site:
            known = others[one["variable"], one["quantity"]] >= MIN_OTHERS_POOLED
            sign = None if one["deviation"] is None else 1.0 if one["deviation"] > 0 else -1.0
            hidden = {} if known else {"pooled": None, "p_value": None, "deviation": sign}
            found.append({**one, **hidden, "far": known and abs(one["deviation"] or 0.0) >= FAR_DEVIATION})
    return found


def own_edges(document: Record) -> list[dict[str, Any]]:
    """Return the edges for a letter: without slopes where the common slope is that of one site besides the reader's."""
    sites = sum(len(client.get("members", ("itself",))) for client in document["clients"])
    hidden = {} if sites > MIN_OTHERS_POOLED else dict.fromkeys(_SLOPE_FIELDS)
    return [{**edge, **{name: None for name in hidden if name in edge}} for edge in document["edges"]]


def _own_effects(document: Record, site: str) -> list[dict[str, Any]]:
    """Return the effects that were chosen for single sites, each with the estimate of this site only."""
    names = ("cause", "outcome", "kind", "levels", "outcome_level", "at", "units")
    return [
        {**{name: effect.get(name) for name in names}, **effect["by_client"][site]}
        for effect in document.get("effects") or ()
        if site in (effect.get("by_client") or {})
    ]


def _own_stability(document: Record, site: str) -> dict[str, Any] | None:
    """Return what differs without the site; None if sites were not left out one by one."""
    found = document.get("stability")
    if not isinstance(found, Mapping) or found.get("kind") != "leave-one-out":
        return None
    return {
        "gone": [edge for edge in found["edges"] if site in (edge.get("gone_without") or ())],
        "turned": [edge for edge in found["edges"] if site in (edge.get("turned_without") or ())],
        "changing": [one for one in found.get("changing", ()) if site in (one.get("differs_without") or ())],
        "influence": next((one for one in found.get("influence", ()) if one["client"] == site), None),
    }


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table of HTML texts; heads of numbers begin with #."""
    kinds = ["title", *("number" if head.startswith("#") else "" for head in heads[1:])]
    made = (Row([Cell(cell, None, kind) for cell, kind in zip(row, kinds, strict=True)]) for row in rows)
    return render_table(heads, made, caption, "letter")


def rows_section(found: SiteFindings) -> str:
    """Return the rows that were read, used and left out, and the missing values of each variable."""
    record = found.record
    if record is None:
        return _UNKNOWN
    rows, read = record["rows"], record.get("rows_read")
    if read is None:
        return f"<p>{rows:,} rows were used. How many were read is known to your site only.</p>"
    parts = [f"<p>{read:,} rows were read, {rows:,} were used, {read - rows:,} were left out.</p>"]
    missing = {name: count for name, count in (record.get("missing") or {}).items() if count}
    if missing:
        ranked = sorted(missing.items(), key=lambda entry: (-entry[1], entry[0]))
        cells = [[to_html_name(name), f"{count:,}", f"{count / read:.1%}" if read else ""] for name, count in ranked]
        parts.append("<p>A row is left out if a value is missing. Missing values, the most first:</p>")
        parts.append(_table(["Variable", "#Missing", "#Share of rows read"], cells, "Missing values"))
    elif read == rows:
        parts.append("<p>No value was missing.</p>")
    parts += [f"<p>Before the summary left, {escape(clean_text(what))}.</p>" for what in record.get("coarsened", ())]
    return "\n".join(parts)


def values_section(found: SiteFindings) -> str:
    """Return mean, spread and shares of the site's variables."""
    values = {} if found.record is None else found.record.get("values") or {}
    if not values:
        return _UNKNOWN if found.record is None else "<p>Not known: the coordinator has no exact summary of yours.</p>"
    rows = []
    for name, value in values.items():
        if "shares" in value:
            shares = sorted(value["shares"].items(), key=lambda entry: (-entry[1], entry[0]))
            text = ", ".join(f"{to_html_name(level)} {format_percent(share)}" for level, share in shares)
        else:
            text = f"{_number(value.get('mean'))} ± {_number(value.get('deviation'))}"
        rows.append([to_html_name(name), text])
    heads = ["Variable", "Values"]
    note = (
        "<p>Mean ± standard deviation, or the share of each level, of the rows that were used; rounded. Look for "
        "values that cannot be: units, codes, swapped columns.</p>"
    )
    return note + _table(heads, rows, "Values of your site")


def differences_section(found: SiteFindings) -> str:
    """Return how the mechanisms that differ between sites are at this one, in words and numbers."""
    if found.drift is None and found.record is None:
        return _UNKNOWN
    if found.drift is None and found.changing:
        return f"<p>{found.difference_sentence()}</p>"
    if not found.drift:
        return f"<p>{found.difference_sentence()}</p>"
    firm = [one for one in found.drift if one.get("flagged")]
    parts = []
    if firm:
        parts.append('<ul class="facts">' + "".join(_describe_difference(one) for one in firm) + "</ul>")
    else:
        parts.append("<p>None of the quantities below is clearly different at your site.</p>")
    if any(one["deviation"] is not None and one.get("pooled") is None for one in found.drift):
        parts.append(
            "<p>Numbers of the other sites are left out where they would be those of a single site; the words say in "
            "which direction yours differ.</p>"
        )
    parts.append(_difference_table(found.drift))
    parts.append(
        "<p>The common value is that of the sites that do not differ from each other. Intervals hold 95 % of the time; "
        "“higher” and “lower” are corrected for the number of comparisons.</p>"
    )
    return "\n".join(parts)


def effects_section(found: SiteFindings) -> str:
    """Return the chosen effects at the site; empty where none was chosen."""
    if not found.effects:
        return ""
    rows = []
    for one in found.effects:
        low, high = one.get("interval") or (None, None)
        ends = one.get("levels") or one.get("at")
        contrast = "" if not ends else f" ({escape(clean_text(str(ends[0])))} to {escape(clean_text(str(ends[1])))})"
        outcome = to_html_name(one["outcome"])
        if one.get("outcome_level") is not None:
            outcome += f" = {to_html_name(one['outcome_level'])}"
        interval = "not known" if low is None else f"{_number(low)} to {_number(high)}"
        rows.append([f"{to_html_name(one['cause'])}{contrast} on {outcome}", _number(one.get("value")), interval])
    note = "<p>By the graph and your rows alone: how much the outcome changes with the cause, in its own units.</p>"
    return (
        "<h3>Effects at your site</h3>"
        + note
        + _table(["Effect", "#Your site", "95 % interval"], rows, "Effects at your site")
    )


def _describe_difference(one: Record) -> str:
    how = _name_direction(one)
    common = "" if one.get("pooled") is None else f", where the common value is {format_short(one['pooled'])}"
    return (
        f'<li class="different"><strong>{to_html_name(one["variable"])}</strong>, {to_html_name(one["quantity"])}: '
        f"{_format_estimate(one)}, {how} than elsewhere{common}."
        f"{' The difference is far larger than chance would make it.' if one.get('far') else ''}</li>"
    )


def _difference_table(drift: Sequence[Record]) -> str:
    common = any(one.get("pooled") is not None for one in drift)
    heads = ["Variable", "Quantity", "#Your site", "95 % interval", *(["#Common value"] if common else []), "In words"]
    rows = []
    for one in drift:
        low, high = one.get("low"), one.get("high")
        interval = "not known" if low is None or high is None else f"{_number(low)} to {_number(high)}"
        rows.append(
            [
                to_html_name(one["variable"]),
                to_html_name(one["quantity"]),
                _number(one.get("estimate")),
                interval,
                *([_number(one.get("pooled"), "left out")] if common else []),
                _describe_in_words(one),
            ]
        )
    return _table(heads, rows, "Your site compared with the others")


def _describe_in_words(one: Record) -> str:
    if one["deviation"] is None:
        return escape(clean_text(one.get("note") or "cannot be compared"))
    if not one.get("flagged"):
        return "no clear difference"
    p_value = "" if one.get("p_value") is None else f" (p = {format_p_value(one['p_value'])})".replace("= <", "<")
    return _name_direction(one) + p_value


def _name_direction(one: Record) -> str:
    return "higher" if (one["deviation"] or 0.0) > 0 else "lower"


def _format_estimate(one: Record) -> str:
    low, high = one.get("low"), one.get("high")
    interval = "" if low is None or high is None else f" ({_number(low)} to {_number(high)})"
    return _number(one.get("estimate")) + interval


def _number(value: float | None, missing: str = "not known") -> str:
    if value is None:
        return missing
    return format_short(value) if abs(value) < 1000 else f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")


def hinges_section(found: SiteFindings) -> str:
    """Return the findings that differ without the site's rows, and the link on which they bear most."""
    stability = found.stability
    if stability is None:
        return (
            "<p>Not computed: the search was not repeated without single sites. The coordinator can do so with "
            "<code>fedcdh discover --stability</code>; it needs no further message.</p>"
        )
    lines = list(_hinges(stability))
    parts = ["<p>The search was repeated without your rows.</p>"]
    listed = "".join(f"<li>{line}</li>" for line in lines)
    parts.append(f'<ul class="facts">{listed}</ul>' if lines else "<p>No finding changes without them.</p>")
    influence = stability["influence"]
    if influence is not None and influence.get("link"):
        a, b = map(to_html_name, influence["link"])
        side = "for" if influence["largest"] > 0 else "against"
        parts.append(
            f"<p>They bear most on the link between {a} and {b}: they speak {side} it (evidence "
            f"{format_signed(influence['largest'])}, where 3 is strong).</p>"
        )
    return "\n".join(parts)


def _hinges(stability: Record) -> Iterator[str]:
    for edge in stability["gone"]:
        yield f"{_name_link(edge)} {'disappears' if edge.get('mark') else 'appears'} without your rows."
    for edge in stability["turned"]:
        yield f"{_name_link(edge)} has another direction without your rows."
    for one in stability["changing"]:
        how = "is no longer found to differ" if one.get("changing") else "is found to differ"
        name = f"<strong>{to_html_name(one['variable'])}</strong>"
        yield f"The mechanism of {name} {how} between sites without your rows."


def _name_link(edge: Record) -> str:
    return f"<strong>{to_html_name(edge['source'])} {edge.get('mark') or '—'} {to_html_name(edge['target'])}</strong>"


def links_section(document: Record) -> str:
    """Return the links of the graph in words, the surest first."""
    linked = [edge for edge in document["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]
    if not linked:
        return "<p>No links were found.</p>"
    ranked = sorted(linked, key=lambda edge: (edge["mark"] != "→", -(shown_probability(edge) or 0.0)))
    rows = [
        [
            to_html_name(edge["source"]),
            "causes" if edge["mark"] == "→" else "is linked with, direction open",
            to_html_name(edge["target"]),
            _describe_certainty(edge),
        ]
        for edge in ranked
    ]
    return _table(["From", "Finding", "To", "How sure"], rows, "Links of the graph")


def _describe_certainty(edge: Record) -> str:
    probability = shown_probability(edge)
    if probability is not None:
        return describe_probability(probability)
    p_value = edge.get("p_value")
    return "required by background knowledge" if p_value is None else f"p = {format_p_value(p_value)}"
