"""A paragraph for the methods section of an article, written from the settings of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.reporting.phrases import format_count, format_share, join_names, to_plain_name

_METHOD_TEXTS = {
    "evidence": (
        "From these sums, the marginal likelihood of every variable given candidate causes was computed, with "
        "mechanisms that are the same at all sites and mechanisms that differ between sites as competing models, "
        "under Gaussian noise, with linear and with nonlinear mechanisms. {posterior}"
    ),
    "evidence with residuals": (
        "From these sums, the marginal likelihood of every variable given candidate causes was computed, with "
        "mechanisms that are the same at all sites and mechanisms that differ between sites as competing models, and "
        "with noise of any shape and size. {posterior}"
    ),
    "constraint": (
        "Conditional independence given the site was tested by regressions computed from these sums, at significance "
        "level {alpha}. Links were removed as in the PC-stable algorithm. Directions follow from colliders, from "
        "Meek's rules and from the independent change of mechanisms across sites."
    ),
    "paper": (
        "Conditional independence was tested by a kernel test with random Fourier features, as in the FedCDH "
        "algorithm, at significance level {alpha}; the site index entered as a surrogate variable. Directions follow "
        "from colliders, from Meek's rules and from the independent change of mechanisms across sites."
    ),
}
_POSTERIOR_TEXT = (
    "Probabilities of links, of directions and of differences between sites are those of a posterior over directed "
    "acyclic graphs, in which the evidence counts in part only, since no model is quite true. Reported are links and "
    "differences with a probability of at least {link:g}, and arrows with at least {arrow:g}; all other links are "
    "reported without direction. Links that explain less than {effect} of the variance are left out, "
    "unless they show at nearly all sites."
)
_ASSUMPTIONS = (
    "The analysis assumes that all common causes of the variables were measured or are functions of the site, that "
    "effects are additive, and that there are no causal cycles."
)


def methods_paragraph(document: Mapping[str, Any]) -> str:
    """Return what was done, with which data and which settings, as sentences.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    str
        Plain text without markup.
    """
    settings, clients = document["settings"], document["clients"]
    rows = sum(client["rows"] for client in clients)
    complete = "" if _count_imputed(clients) else "complete "
    sentences = [
        f"Causal relations among {len(document['variables'])} variables were sought in data of "
        f"{describe_sites(clients)} ({rows:,} {complete}rows) with {to_plain_name(document['software'])}, method "
        f"“{to_plain_name(settings['method'])}”.",
        _recipe_sentences(document.get("recipes", {}), document.get("excluded", ())),
        _missing_rows_sentence(clients),
        _message_sentence(settings),
        _disclosure_sentence(document.get("without_disclosure_control", ())),
        _method_sentences(settings),
        _limit_sentence(settings),
        _knowledge_sentence(settings["knowledge"]),
        _result_sentence(document),
        _ASSUMPTIONS,
        f"The study plan that all sites followed has the fingerprint {to_plain_name(document['plan'])[:16]}.",
    ]
    return " ".join(filter(None, sentences))


def _recipe_sentences(recipes: Mapping[str, str], excluded: Sequence[str]) -> str:
    """Return what every site did with its columns before it computed its sums."""
    changed = "; ".join(f"{to_plain_name(name)}: {to_plain_name(words)}" for name, words in recipes.items())
    sentences = [f"Every site first changed its columns in the same way ({changed})."] if recipes else []
    if excluded:
        sentences.append(f"The planning excluded {join_names(excluded)}.")
    return " ".join(sentences)


def _method_sentences(settings: Mapping[str, Any]) -> str:
    posterior = _POSTERIOR_TEXT.format(
        link=settings.get("min_probability", DEFAULT_MIN_PROBABILITY),
        arrow=settings.get("min_arrow_probability", DEFAULT_MIN_ARROW_PROBABILITY),
        effect=format_share(settings.get("min_effect", DEFAULT_MIN_EFFECT)),
    )
    return _METHOD_TEXTS.get(_method_name(settings), "").format(alpha=f"{settings['alpha']:g}", posterior=posterior)


def describe_sites(clients: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of sites, and the number of groups where only sums of groups are known."""
    sites = sum(len(client.get("members", ("itself",))) for client in clients)
    grouped = any("members" in client for client in clients)
    return format_count(sites, "site") + (f" in {format_count(len(clients), 'group')}" if grouped else "")


def _disclosure_sentence(sites: Sequence[str]) -> str:
    return f"Disclosure control was switched off at {join_names(sites)}." if sites else ""


def _count_imputed(clients: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of imputed values: where rows with missing values are used, they are not left out."""
    total = 0
    for client in clients:
        missing, read = client.get("missing") or {}, client.get("rows_read")
        left_out = 0 if read is None else read - client["rows"]
        if read is not None and max(missing.values(), default=0) > left_out:
            total += sum(missing.values()) - left_out * len(missing)
    return total


def _missing_rows_sentence(clients: Sequence[Mapping[str, Any]]) -> str:
    read = [client["rows_read"] for client in clients if client.get("rows_read") is not None]
    dropped = sum(read) - sum(client["rows"] for client in clients)
    if imputed := _count_imputed(clients):
        return (
            f"{imputed:,} values were missing. Each site drew them from a model of its own rows, once, by chained "
            "regressions; tests and scores counted fewer rows."
        )
    if len(read) < len(clients) or dropped <= 0:
        return ""
    return f"{dropped:,} of {sum(read):,} rows ({dropped / sum(read):.1%}) had missing values and were left out."


def _limit_sentence(settings: Mapping[str, Any]) -> str:
    limit = settings.get("max_conditioning_size")
    if limit is None:
        return ""
    if settings["method"] == "evidence":
        return f"A variable could have at most {limit} causes."
    return f"Tests conditioned on at most {limit} variables besides the site."


def _knowledge_sentence(knowledge: Mapping[str, Any]) -> str:
    parts = []
    if required := knowledge["required"]:
        parts.append(format_count(len(required), "required arrow"))
    if forbidden := knowledge["forbidden"]:
        parts.append(format_count(len(forbidden), "forbidden arrow"))
    if tiers := knowledge["tiers"]:
        parts.append("an order in time (" + "; then ".join(join_names(tier) for tier in tiers) + ")")
    return f"Background knowledge entered as {', '.join(parts)}." if parts else "No background knowledge was used."


def _result_sentence(document: Mapping[str, Any]) -> str:
    arrows, lines = len(document["graph"]["arrows"]), len(document["graph"]["lines"])
    text = f"The result has {format_count(arrows, 'arrow')} and {format_count(lines, 'link')} of open direction"
    if len(document["clients"]) < 2:
        return text + "."
    return text + f"; mechanisms that differ between sites: {join_names(document['changing']) or 'none found'}."


def _asks_residuals(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("rounds", "one") != "one")


def _method_name(settings: Mapping[str, Any]) -> str:
    """Return the name under which the text of a method is found."""
    named = settings["method"] == "evidence" and _asks_residuals(settings)
    return "evidence with residuals" if named else str(settings["method"])


def _message_sentence(settings: Mapping[str, Any]) -> str:
    further = (
        ", and in further messages rounded sums of bounded functions of the residuals of regressions"
        if _asks_residuals(settings)
        else ""
    )
    return (
        "Data stayed at the sites: each site sent one message with sums of products of features of its variables"
        f"{further} (no single rows), and all results were computed from these sums."
    )
