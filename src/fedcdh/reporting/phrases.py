"""What numbers and words of a result mean, in plain English; the same in tables, in details and without a script."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fedcdh.protocols import DOMAIN

ORIENTATION_REASONS = {
    "domain": (
        "the sites",
        "Which site a row comes from is given before anything is measured, so the difference between sites is a cause, "
        "never an effect.",
    ),
    "knowledge": (
        "background knowledge",
        "What was known beforehand requires this arrow, or rules out its reverse.",
    ),
    "collider": (
        "collider",
        "Causes that are not linked to each other meet in the target. Only this direction explains which variables are "
        "independent, and given what.",
    ),
    "evidence": (
        "shape of the mechanism",
        "The curvature of the relation is explained clearly better in this direction than in the reverse.",
    ),
    "independent-change": (
        "independent change",
        "Across sites, cause and mechanism change independently of each other in this direction, and less so in the "
        "reverse.",
    ),
    "meek-1": (
        "no other collider (Meek's rule 1)",
        "The reverse arrow would make a collider that the data do not show.",
    ),
    "meek-2": (
        "no circle (Meek's rule 2)",
        "The reverse arrow would close a circle of causes.",
    ),
    "meek-3": (
        "no circle, no other collider (Meek's rule 3)",
        "The reverse arrow would lead to a circle of causes or to a collider that the data do not show.",
    ),
    "meek-4": (
        "no circle, no other collider (Meek's rule 4)",
        "Together with background knowledge, the reverse arrow would lead to a circle of causes or to a collider that "
        "the data do not show.",
    ),
}
BAYES_FACTOR_NOTE = (
    "Natural logarithm of a Bayes factor: above 3 is strong, around 0 a toss of a coin, below 0 speaks against. It "
    "assumes the model: read it as strong or weak, not as odds."
)
INFLUENCE_NOTE = (
    "What goes when a site is left out, of all that speaks for and against links (logs of Bayes factors; with tests, "
    "of 1/p). More than zero: the site speaks for the link. Sites with more rows have more influence; one that has "
    "much more than its rows explain is worth a question, not a verdict: sites may differ."
)
BOOTSTRAP_NOTE = (
    "The rows of every site were drawn anew, each counting 0, 1, 2, ... times, and the search was repeated on every "
    "such copy. Shares say how much hangs on which rows there were; they are not probabilities. A link of this result "
    "that copies often lack is doubtful. One that only copies have is no finding: rows that count twice make chance "
    "look like dependence."
)
BAYES_FACTOR_SCALE = "Above 3 is strong, around 0 a toss of a coin, below 0 speaks against."
MINUS = "\N{MINUS SIGN}"
_BIDI_CONTROLS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""Letters that say which way others run; right-to-left names need none of them."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Fact = tuple[str, str, str]
"""What it is, its value, and what that means."""


def clean_text(name: str) -> str:
    """A name on one line, with nothing in it that cannot be seen or that turns other text around."""
    shown = "".join(" " if letter in "\t\n\r" else letter for letter in name)
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs") or c in _BIDI_CONTROLS else c
        for c in shown
    )


def to_html_name(name: str) -> str:
    """A name as HTML, kept apart from the text around it whichever way it is written."""
    return f"<bdi>{escape(clean_text(name))}</bdi>" if name != DOMAIN else "sites"


def to_plain_name(name: str) -> str:
    """A name in plain text."""
    return clean_text(name) if name != DOMAIN else "sites"


def join_names(names: Any) -> str:
    """Names as a phrase in plain text."""
    return ", ".join(to_plain_name(name) for name in names)


def format_p_value(value: float) -> str:
    """A p-value as articles print it."""
    if value < 1e-300:
        return "< 10⁻³⁰⁰"
    if value >= 0.001:
        return f"{value:.3f}" if value < 0.9995 else "1.000"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def format_signed(value: float, digits: int = 1) -> str:
    """A number with its sign, as long as it is worth it."""
    text = f"{value:+,.{0 if abs(value) >= 100 else digits}f}"
    return text.replace("-", MINUS) if text.strip("+-0.") else text.lstrip("+-")


def format_short(value: float) -> str:
    """Three digits of a number."""
    return f"{value:.3g}".replace("-", MINUS)


def format_percent(value: float) -> str:
    """A share as a percentage."""
    return f"{100 * value:.0f}\N{NO-BREAK SPACE}%"


def describe_strength(factor: float) -> str:
    """How strong a log Bayes factor is, in words."""
    if factor < -1:
        return "speaks against"
    if factor < 1:
        return "open"
    return "weak" if factor < 3 else "strong" if factor < 10 else "very strong"


def describe_edge(edge: Mapping[str, Any]) -> str:
    """What an edge says, as a sentence."""
    source, target = to_plain_name(edge["source"]), to_plain_name(edge["target"])
    if edge["source"] == DOMAIN and edge["mark"]:
        return f"The mechanism of {target} differs between sites."
    if edge["mark"] == "→":
        return f"{source} is a direct cause of {target}."
    if edge["mark"] == "—":
        return f"{source} and {target} are directly linked; which is the cause is open."
    return f"No direct link between {source} and {target}."


def format_evidence(edge: Mapping[str, Any]) -> str:
    """The evidence for an edge (or its absence), for a cell of a table."""
    if edge.get("log_bayes_presence") is not None:
        return f"{format_signed(edge['log_bayes_presence'])}"
    return format_p_value(edge["p_value"]) if edge.get("p_value") is not None else ""


def edge_facts(edge: Mapping[str, Any]) -> Iterator[Fact]:
    """All that is known about one edge."""
    factor, p_value = edge.get("log_bayes_presence"), edge.get("p_value")
    if factor is not None:
        what = "difference" if edge["source"] == DOMAIN else "link"
        which = f"Evidence for the {what}" if edge["mark"] else f"Evidence against a {what}"
        yield (which, f"log Bayes factor {format_signed(factor)} ({describe_strength(factor)})", BAYES_FACTOR_SCALE)
    if p_value is not None:
        means = "the strongest argument against it" if edge["mark"] else "what keeps the two apart"
        yield ("p-value", f"p = {format_p_value(p_value)}".replace("= <", "<"), f"The largest one believed: {means}.")
    if edge.get("separating_set") is not None:
        given = join_names(edge["separating_set"]) or "nothing else"
        yield ("Independent given", given, "Once these are known, one tells nothing about the other.")
    if edge.get("oriented_by"):
        word, means = ORIENTATION_REASONS.get(edge["oriented_by"], (clean_text(edge["oriented_by"]), ""))
        yield ("Direction from", word, means)
    elif edge["mark"] == "—":
        yield ("Direction", "open", "Both directions explain the data equally well, or not differently enough.")
    if edge.get("log_bayes_direction") is not None and edge["mark"]:
        factor = edge["log_bayes_direction"]
        way = f"{to_plain_name(edge['source'])} → {to_plain_name(edge['target'])}"
        means = f"For {way} against the reverse, all else in the best graph being equal."
        yield (
            "Evidence for direction",
            f"log Bayes factor {format_signed(factor)} ({describe_strength(factor)})",
            means,
        )
    if edge.get("change_forward") is not None and edge.get("change_backward") is not None:
        forward, backward = format_short(edge["change_forward"]), format_short(edge["change_backward"])
        means = "How much cause and mechanism change together across sites, if it is so and if it is the reverse; the "
        yield ("Independent change", f"{forward} forward, {backward} backward", means + "smaller one points the way.")
