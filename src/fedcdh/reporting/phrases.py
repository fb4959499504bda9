"""Names, numbers and findings in plain English, the same in the report, its tables and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from fedcdh._io.text_tables import escape_html, to_one_line
from fedcdh.discovery.effect_text import format_number
from fedcdh.discovery.result_text import MIN_POSSIBLE_PROBABILITY, format_probability
from fedcdh.protocols import DOMAIN

ORIENTATION_REASONS = {
    "domain": (
        "the sites",
        "The site of a row is fixed before anything is measured. A difference between sites is therefore a cause, "
        "never an effect.",
    ),
    "knowledge": (
        "background knowledge",
        "Background knowledge requires this arrow, or forbids its reverse.",
    ),
    "collider": (
        "collider",
        "Two causes that are not linked to each other meet in the target. Only this direction explains the conditional "
        "independences.",
    ),
    "evidence": (
        "all evidence together",
        "Graphs with this direction explain the data better than graphs with the reverse.",
    ),
    "noise": (
        "shape of the noise",
        "Noise of any shape explains the data clearly better in this direction than in the reverse.",
    ),
    "independent-change": (
        "independent change",
        "Across sites, cause and mechanism change independently of each other in this direction, and less so in the "
        "reverse.",
    ),
    "meek-1": (
        "no new collider (Meek's rule 1)",
        "The reverse arrow would make a collider that the data do not show.",
    ),
    "meek-2": (
        "no cycle (Meek's rule 2)",
        "The reverse arrow would close a cycle.",
    ),
    "meek-3": (
        "no cycle, no new collider (Meek's rule 3)",
        "The reverse arrow would lead to a cycle or to a collider that the data do not show.",
    ),
    "meek-4": (
        "no cycle, no new collider (Meek's rule 4)",
        "Together with background knowledge, the reverse arrow would lead to a cycle or to a collider that the data "
        "do not show.",
    ),
}
"""For each way of orienting an edge, its name and its explanation."""
PROBABILITY_WORDS = (
    (0.99, "almost certain"),
    (0.95, "very likely"),
    (0.8, "likely"),
    (0.5, "more likely than not"),
    (MIN_POSSIBLE_PROBABILITY, "possible"),
)
"""Probabilities, and the words that are used from them up; below all of them, a statement is unlikely."""
PROBABILITY_NOTE = (
    "A probability says how sure the data make a statement. It assumes that all common causes of the variables were "
    "measured or depend on the site only, that effects are additive, and that nothing causes itself in a circle. A "
    "common cause that nobody measured can make a false arrow look almost certain. The page docs/probabilities.md of "
    "fedcdh says how well the numbers hold."
)
NO_PROBABILITY_NOTE = (
    "This result comes from a search by tests. Searches by tests give no probabilities; the table shows p-values."
)
BAYES_FACTOR_SCALE = "Above 3 is strong, around 0 is undecided, below 0 is evidence against."
PARTIAL_EVIDENCE_NOTE = "As if the model were quite true. The probability counts only a part of it, since no model is."
BAYES_FACTORS_IN_DETAILS_NOTE = (
    "The details of a link also have natural logarithms of Bayes factors. They take the model at its word and are "
    "therefore far larger than the probabilities suggest: read them as an order of magnitude."
)
BAYES_FACTOR_NOTE = (
    "Evidence is given as the natural logarithm of a Bayes factor: above 3 is strong, around 0 is undecided, below 0 "
    "is evidence against. It assumes the model, so read it as strong or weak, not as exact odds."
)
INFLUENCE_NOTE = (
    "The table shows how the evidence changes when one site is left out (log Bayes factors; with tests, log of 1/p). "
    "A positive value means that the site supports the link. Sites with more rows have more influence. A site with far "
    "more influence than its rows explain deserves a question, not a verdict: sites may differ."
)
BOOTSTRAP_NOTE = (
    "The search was repeated on bootstrap replicates, in which the rows of every site were resampled with replacement. "
    "The shares show how much a link depends on the particular rows; they are not probabilities. A link of this result "
    "that many replicates lack is doubtful. A link found only in replicates is not a finding: repeated rows make "
    "chance look like dependence."
)
NOT_DECIDED = "not decided"
"""The word for the reason of a direction that nothing gives; the direction itself is called open."""
MINUS = "\N{MINUS SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

clean_text = to_one_line
"""Return a name on one line, with invisible and direction-changing characters replaced."""

Fact = tuple[str, str, str]
"""A quantity, its value and an explanation."""


def to_html_name(name: str) -> str:
    """Return a name as HTML, isolated from the writing direction of the text around it."""
    return escape_html(name) if name != DOMAIN else "sites"


def to_plain_name(name: str) -> str:
    """Return a name as plain text."""
    return clean_text(name) if name != DOMAIN else "sites"


def join_names(names: Iterable[str]) -> str:
    """Return names as plain text, separated by commas."""
    return ", ".join(to_plain_name(name) for name in names)


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun in the singular or plural.

    >>> format_count(1, "site"), format_count(1200, "row")
    ('1 site', '1,200 rows')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_p_value(value: float) -> str:
    """Return a p-value as articles print it.

    >>> format_p_value(2.93e-14)
    '2.9 × 10⁻¹⁴'
    """
    if value < 1e-300:
        return "< 10⁻³⁰⁰"
    if value >= 0.001:
        return f"{value:.3f}" if value < 0.9995 else "1.000"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def format_signed(value: float, digits: int = 1) -> str:
    """Return a number with its sign, without decimals from 100 on."""
    text = f"{value:+,.{0 if abs(value) >= 100 else digits}f}"
    return text.replace("-", MINUS) if text.strip("+-0.") else text.lstrip("+-")


def format_short(value: float) -> str:
    """Return a number with three significant digits."""
    return format_number(value).replace("-", MINUS)


def format_percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * value:.0f}\N{NO-BREAK SPACE}%"


def format_share(value: float) -> str:
    """Return a share of variance as a percentage, with a decimal below 10 %."""
    return f"{100 * value:.{0 if value >= 0.0995 else 1}f}\N{NO-BREAK SPACE}%"


def describe_probability(probability: float) -> str:
    """Return a probability in words.

    >>> [describe_probability(value) for value in (0.999, 0.96, 0.8, 0.6, 0.2, 0.01)]
    ['almost certain', 'very likely', 'likely', 'more likely than not', 'possible', 'unlikely']
    """
    return next((words for least, words in PROBABILITY_WORDS if probability >= least), "unlikely")


def shown_probability(edge: Mapping[str, Any]) -> float | None:
    """Return the probability of the arrow, or that of the edge where no arrow is drawn; None if there is none."""
    found = edge.get("probability_forward" if edge.get("mark") == "→" else "probability")
    return None if found is None else min(1.0, max(0.0, float(found)))


def likelier_direction(edge: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the likelier direction of a pair, → or ←, and its probability."""
    probability, forward = edge.get("probability"), edge.get("probability_forward")
    if probability is None or forward is None:
        return None
    backward = max(0.0, float(probability) - float(forward))
    return ("→", float(forward)) if forward >= backward else ("←", backward)


def slope_sign(edge: Mapping[str, Any]) -> Literal["+", "\N{MINUS SIGN}", ""]:
    """Return the sign of an edge: that of its slope, unless its interval has both signs.

    >>> slope_sign({"slope": -0.3}), slope_sign({"slope": 0.1, "slope_low": -1, "slope_high": 1})
    ('−', '')
    """
    slope, low, high = edge.get("slope"), edge.get("slope_low"), edge.get("slope_high")
    if slope is None or slope == 0 or (low is not None and high is not None and low <= 0 <= high):
        return ""
    return "+" if slope > 0 else "\N{MINUS SIGN}"


def format_slope(edge: Mapping[str, Any]) -> str:
    """Return the slope of an edge with its interval.

    >>> format_slope({"slope": 0.5123, "slope_low": 0.45, "slope_high": 0.575})
    '+0.512 (0.45 to 0.575)'
    """
    slope, low, high = edge.get("slope"), edge.get("slope_low"), edge.get("slope_high")
    if slope is None:
        return ""
    text = f"{'+' if slope > 0 else ''}{format_short(slope)}"
    return text if low is None or high is None else f"{text} ({format_short(low)} to {format_short(high)})"


def describe_strength(factor: float) -> str:
    """Return the strength of a log Bayes factor in words."""
    if factor < -1:
        return "against"
    if factor < 1:
        return "undecided"
    return "weak" if factor < 3 else "strong" if factor < 10 else "very strong"


def describe_edge(edge: Mapping[str, Any]) -> str:
    """Return the meaning of an edge as a sentence."""
    source, target = to_plain_name(edge["source"]), to_plain_name(edge["target"])
    if edge["source"] == DOMAIN and edge["mark"]:
        return f"The mechanism of {target} differs between sites."
    if edge["mark"] == "→":
        return f"{source} is a direct cause of {target}."
    if edge["mark"] == "—":
        return f"{source} and {target} are directly linked; the direction is open."
    return f"No direct link between {source} and {target}."


def format_evidence(edge: Mapping[str, Any]) -> str:
    """Return the evidence for an edge, or for its absence, as the text of a table cell."""
    if edge.get("log_bayes_presence") is not None:
        return f"{format_signed(edge['log_bayes_presence'])}"
    return format_p_value(edge["p_value"]) if edge.get("p_value") is not None else ""


def format_certainty(edge: Mapping[str, Any]) -> str:
    """Return how sure an edge is, as a sentence; its evidence where there are no probabilities."""
    probability = shown_probability(edge)
    if probability is None:
        return format_evidence(edge)
    return f"Probability {format_probability(probability)}, {describe_probability(probability)}."


def name_orientation(reason: str | None) -> str:
    """Return the name of what gave an edge its direction; "not decided" if nothing did."""
    return ORIENTATION_REASONS.get(reason or "", (clean_text(reason or NOT_DECIDED), ""))[0]


def edge_facts(edge: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield everything that is known about one edge."""
    yield from _probability_facts(edge)
    yield from _slope_facts(edge)
    yield from _presence_facts(edge)
    yield from _direction_facts(edge)


def _probability_facts(edge: Mapping[str, Any]) -> Iterator[Fact]:
    probability, direction, strength = edge.get("probability"), likelier_direction(edge), edge.get("strength")
    if probability is None or direction is None:
        return
    what = "difference" if edge["source"] == DOMAIN else "link"
    yield (f"Probability of a {what}", _format_in_words(probability), "")
    source, target = to_plain_name(edge["source"]), to_plain_name(edge["target"])
    if edge["source"] != DOMAIN and edge["mark"] == "→":
        yield ("Probability of this direction", _format_in_words(shown_probability(edge) or 0.0), "")
    elif edge["source"] != DOMAIN:
        arrow = f"{source} → {target}" if direction[0] == "→" else f"{target} → {source}"
        yield ("Likelier direction", f"{arrow} ({format_probability(direction[1])})", "")
    if strength is not None:
        meaning = f"Of the variance of {target} that its other causes leave."
        yield ("Strength", f"explains {format_share(strength)} of the variance", meaning)


def _slope_facts(edge: Mapping[str, Any]) -> Iterator[Fact]:
    if not (slope := format_slope(edge)):
        return
    source, target = to_plain_name(edge["source"]), to_plain_name(edge["target"])
    units = clean_text(edge.get("slope_units") or f"change of {target} per unit of {source}")
    meaning = f"{units[0].upper()}{units[1:]}, with all other causes held fixed; in brackets the 95 % interval."
    yield ("Direct effect", slope, meaning)
    if (scaled := edge.get("standardised_slope")) is not None:
        yield ("Standardised effect", format_signed(scaled, 2), "The same in standard deviations of both.")


def _format_in_words(probability: float) -> str:
    return f"{format_probability(probability)} ({describe_probability(probability)})"


def _presence_facts(edge: Mapping[str, Any]) -> Iterator[Fact]:
    factor, p_value = edge.get("log_bayes_presence"), edge.get("p_value")
    if factor is not None:
        what = "difference" if edge["source"] == DOMAIN else "link"
        title = f"Evidence for the {what}" if edge["mark"] else f"Evidence against a {what}"
        yield (title, *_describe_factor(edge, factor, BAYES_FACTOR_SCALE))
    if p_value is not None:
        meaning = "the strongest evidence against the link" if edge["mark"] else "the test that separates the two"
        yield ("p-value", f"p = {format_p_value(p_value)}".replace("= <", "<"), f"Largest accepted p-value: {meaning}.")
    if edge.get("separating_set") is not None:
        given = join_names(edge["separating_set"]) or "nothing else"
        yield ("Independent given", given, "Given these variables, the two are independent.")


def _direction_facts(edge: Mapping[str, Any]) -> Iterator[Fact]:
    if edge.get("oriented_by"):
        name, meaning = ORIENTATION_REASONS.get(edge["oriented_by"], (clean_text(edge["oriented_by"]), ""))
        yield ("Direction from", name, meaning)
    elif edge["mark"] == "—":
        yield ("Direction", "open", "Both directions explain the data equally well, or nearly so.")
    if edge.get("log_bayes_direction") is not None and edge["mark"]:
        arrow = f"{to_plain_name(edge['source'])} → {to_plain_name(edge['target'])}"
        meaning = f"For {arrow} against the reverse, with the rest of the best graph unchanged."
        yield ("Evidence for direction", *_describe_factor(edge, edge["log_bayes_direction"], meaning))
    if edge.get("change_forward") is not None and edge.get("change_backward") is not None:
        forward, backward = format_short(edge["change_forward"]), format_short(edge["change_backward"])
        meaning = (
            "Dependence between the changes of cause and mechanism across sites, in this direction and in the reverse. "
            "The smaller value indicates the direction."
        )
        yield ("Independent change", f"{forward} forward, {backward} backward", meaning)


def _describe_factor(edge: Mapping[str, Any], factor: float, meaning: str) -> tuple[str, str]:
    """Return a log Bayes factor and its meaning; beside a probability, it has no word of its own."""
    if edge.get("probability") is not None:
        return f"log Bayes factor {format_signed(factor)}", PARTIAL_EVIDENCE_NOTE
    return f"log Bayes factor {format_signed(factor)} ({describe_strength(factor)})", meaning
