"""A paragraph for the methods section of an article, from the settings of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedcdh.reporting.phrases import join_names, to_plain_name

_METHOD_TEXTS = {
    "evidence": (
        "The marginal likelihood of every variable given candidate causes was computed from these sums, with "
        "mechanisms that are alike or differ between sites weighed against each other, and the directed acyclic graph "
        "with the highest evidence was sought. Reported are the arrows that this graph shares with all graphs that "
        "imply the same independences, and those that were told apart by the shape of mechanisms or by their "
        "independent change across sites; all other links are reported without direction."
    ),
    "constraint": (
        "Conditional independence was tested by regressions computed from these sums, given the site, at level "
        "{alpha}. Links were removed as in the PC-stable algorithm; directions follow from colliders, from "
        "Meek's rules and from the independent change of mechanisms across sites."
    ),
    "paper": (
        "Conditional independence was tested by a kernel test with random Fourier features, as in the FedCDH "
        "algorithm, at level {alpha}; the site index entered as a surrogate variable. Directions follow from "
        "colliders, from Meek's rules and from the independent change of mechanisms across sites."
    ),
}
_ASSUMPTIONS = (
    "This assumes that all common causes of the variables were measured or are functions of the site, that effects "
    "add up, and that no variable causes itself in a circle."
)


def methods_paragraph(document: Mapping[str, Any]) -> str:
    """What was done and with how much, in sentences."""
    settings, clients = document["settings"], document["clients"]
    rows = sum(client["rows"] for client in clients)
    names = document["variables"]
    sites = describe_sites(clients)
    sentences = [
        f"Causal relations among {len(names)} variables were sought in data of {sites} ({rows:,} complete rows) "
        f"with {to_plain_name(document['software'])}, method “{to_plain_name(settings['method'])}”.",
        _missing_rows_sentence(clients),
        "Data stayed at the sites: each site sent one message with sums of products of features of its variables "
        "(no single rows), and all results were computed from these sums.",
        _disclosure_sentence(document.get("research", ())),
        _METHOD_TEXTS.get(settings["method"], "").format(alpha=f"{settings['alpha']:g}"),
        _limit_sentence(settings),
        _knowledge_sentence(settings["knowledge"]),
        _result_sentence(document),
        _ASSUMPTIONS,
        f"The study plan that all sites followed has the fingerprint {to_plain_name(document['plan'])[:16]}.",
    ]
    return " ".join(filter(None, sentences))


def describe_sites(clients: list[Mapping[str, Any]]) -> str:
    """How many there are, and in how many groups, where only sums of groups are known."""
    sites = sum(len(client.get("members", ("itself",))) for client in clients)
    groups = f" in {_format_count(len(clients), 'group')}" if any("members" in client for client in clients) else ""
    return _format_count(sites, "site") + groups


def _disclosure_sentence(sites: list[str]) -> str:
    return f"Limits that protect single people were off at {join_names(sites)} (research, no privacy)." if sites else ""


def _missing_rows_sentence(clients: list[Mapping[str, Any]]) -> str:
    read = [client["rows_read"] for client in clients if client.get("rows_read") is not None]
    dropped = sum(read) - sum(client["rows"] for client in clients)
    if len(read) < len(clients) or dropped <= 0:
        return ""
    return f"{dropped:,} of {sum(read):,} rows ({dropped / sum(read):.1%}) had missing values and were left out."


def _limit_sentence(settings: Mapping[str, Any]) -> str:
    most = settings.get("max_conditioning_size")
    if most is None:
        return ""
    if settings["method"] == "evidence":
        return f"A variable could have at most {most} causes."
    return f"Tests conditioned on at most {most} variables besides the site."


def _knowledge_sentence(knowledge: Mapping[str, Any]) -> str:
    parts = []
    if required := knowledge["required"]:
        parts.append(f"{_format_count(len(required), 'required arrow')}")
    if forbidden := knowledge["forbidden"]:
        parts.append(f"{_format_count(len(forbidden), 'forbidden arrow')}")
    if tiers := knowledge["tiers"]:
        parts.append("an order in time (" + "; then ".join(join_names(tier) for tier in tiers) + ")")
    return f"Background knowledge entered as {', '.join(parts)}." if parts else "No background knowledge was used."


def _result_sentence(document: Mapping[str, Any]) -> str:
    arrows, lines = len(document["graph"]["arrows"]), len(document["graph"]["lines"])
    found = f"The result has {_format_count(arrows, 'arrow')} and {_format_count(lines, 'link')} of open direction"
    if len(document["clients"]) < 2:
        return found + "."
    return found + f"; mechanisms that differ between sites: {join_names(document['changing']) or 'none found'}."


def _format_count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
