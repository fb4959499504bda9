"""The data that the script of a report shows of nodes and edges, sentences included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.edge_tables import has_probabilities
from fedcdh.reporting.html.graph_svg import GraphDrawing
from fedcdh.reporting.html.schema import stability_records
from fedcdh.reporting.phrases import (
    Fact,
    describe_edge,
    edge_facts,
    format_percent,
    format_signed,
    to_plain_name,
)

_MAX_DEVIATING_SITES = 4
_SITE_STABILITY_HINT = "Share of repeated searches, with sites left out or resampled, that found the link again."
_ROW_STABILITY_HINT = "Share of bootstrap replicates, with resampled rows, that found the link. Not a probability."

Document = Mapping[str, Any]
Evidence = Mapping[frozenset[str], Mapping[str, Any]]


def script_data(document: Document, drawing: GraphDrawing) -> dict[str, Any]:
    """Return everything that the script shows of nodes and edges.

    Parameters
    ----------
    document : mapping
        A checked result document.
    drawing : GraphDrawing
        The picture of its graph.

    Returns
    -------
    dict
        Nodes and edges with their facts, and the measure of the slider.
    """
    evidence = {frozenset((edge["source"], edge["target"])): edge for edge in document["edges"]}
    by_presence = any(edge.get("log_bayes_presence") is not None for edge in document["edges"])
    known = has_probabilities(document["edges"])
    return {
        "edges": _edge_data(document, drawing, evidence),
        "nodes": _node_data(document, drawing, evidence),
        "measure": "probability" if known else "log Bayes factor" if by_presence else "−log₁₀ p",
    }


def _edge_data(document: Document, drawing: GraphDrawing, evidence: Evidence) -> list[dict[str, Any]]:
    number = {name: node["id"] for name, node in zip(document["variables"], drawing.nodes, strict=True)}
    by_sites = _by_pair(stability_records(document))
    by_rows = _by_pair(stability_records(document, "row_stability"))
    edges = []
    for drawn in drawing.edges:
        pair = frozenset((drawn["source"], drawn["target"]))
        known = [*edge_facts(evidence[pair]), *_stability_fact(by_sites.get(pair), "Stability", _SITE_STABILITY_HINT)]
        known += _stability_fact(by_rows.get(pair), "With resampled rows", _ROW_STABILITY_HINT)
        ends = {"source": number[drawn["source"]], "target": number[drawn["target"]]}
        title = {"title": describe_edge(evidence[pair]), "mark": evidence[pair]["mark"]}
        edges.append({**drawn, **ends, **title, "facts": known})
    return edges


def _node_data(document: Document, drawing: GraphDrawing, evidence: Evidence) -> list[dict[str, Any]]:
    nodes = []
    for name, node in zip(document["variables"], drawing.nodes, strict=True):
        edge, changes = evidence.get(frozenset((DOMAIN, name))), name in document["changing"]
        finding = "differs between sites" if changes else "no difference between sites found"
        known = [("Mechanism", finding if edge else "not compared between sites", "")]
        known += [fact for fact in edge_facts(edge) if fact[0] != "Direction from"] if edge else []
        known += _deviating_sites(name, document.get("drift") or ())
        nodes.append({**node, "facts": known})
    return nodes


def _deviating_sites(name: str, drift: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    """Yield the sites whose mechanism deviates significantly, the largest deviation first."""
    found = [one for one in drift if one["variable"] == name and one.get("flagged") and one["deviation"] is not None]
    if found:
        found.sort(key=lambda one: -abs(one["deviation"]))
        shown = [
            f"{to_plain_name(one['client'])} ({to_plain_name(one['quantity'])} {format_signed(one['deviation'])})"
            for one in found[:_MAX_DEVIATING_SITES]
        ]
        yield ("Deviates at", ", ".join(shown), "Deviation in standard errors; the map below shows all sites.")


def _by_pair(records: Sequence[Mapping[str, Any]]) -> dict[frozenset[str], Mapping[str, Any]]:
    return {frozenset((record["source"], record["target"])): record for record in records}


def _stability_fact(record: Mapping[str, Any] | None, name: str, hint: str) -> Iterator[Fact]:
    if record is None or record["presence"] is None:
        return
    runs = f" of {record['runs']} runs" if record.get("runs") else " of runs"
    text = f"link in {format_percent(record['presence'])}{runs}"
    text += "" if record["direction"] is None else f", as here in {format_percent(record['direction'])}"
    yield (name, text, hint)
