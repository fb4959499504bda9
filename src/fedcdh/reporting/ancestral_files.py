"""Files of a partial ancestral graph: result.json, graph.dot, edges.csv, and graph.txt to read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields
from typing import Any

from fedcdh._io.csv_cells import escape_cell
from fedcdh.discovery.ancestral_discovery import AncestralDiscovery, AncestralEdge
from fedcdh.graphs.ancestral_graph import AncestralGraph
from fedcdh.graphs.convert.pag import pag_to_dot
from fedcdh.messages._software import SOFTWARE

FORMAT = "fedcdh-hidden-causes-1"
"""A format of its own: a reader of other results, which knows arrows and lines only, refuses it."""


def render_ancestral_files(
    result: AncestralDiscovery, settings: Mapping[str, Any], without_disclosure_control: Collection[str] = ()
) -> dict[str, str]:
    """Return the text of every file, result.json last.

    Parameters
    ----------
    result : AncestralDiscovery
        The result.
    settings : mapping
        The record of its settings.
    without_disclosure_control : collection of str, optional
        Clients whose summaries were made without disclosure control.

    Returns
    -------
    dict from str to str
        Name and text of each file.
    """
    document = {
        "format": FORMAT,
        "software": SOFTWARE,
        "plan": result.cohort.plan.fingerprint,
        "settings": {**settings, "hidden": True},
        "clients": [
            {"client": name, "rows": rows, **({"members": members} if members != (name,) else {})}
            for (name, members), rows in zip(result.client_groups, result.cohort.client_rows, strict=True)
        ],
        "variables": result.variables,
        "graph": _list_edges(result.graph),
        "changing": sorted(result.changing),
        "edges": [asdict(edge) for edge in result.edges()],
        "notes": result.notes,
        **({"warnings": len(result.warnings)} if result.warnings else {}),
        **({"without_disclosure_control": sorted(without_disclosure_control)} if without_disclosure_control else {}),
    }
    return {
        "graph.txt": f"{result}\n",
        "graph.dot": pag_to_dot(result.graph),
        "edges.csv": _render_edges_csv(result),
        "result.json": json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    }


def _list_edges(graph: AncestralGraph) -> list[dict[str, str]]:
    return [
        {"source": a, "target": b, "mark_at_source": at_a, "mark_at_target": at_b} for a, b, at_a, at_b in graph.edges
    ]


def _render_edges_csv(result: AncestralDiscovery) -> str:
    columns = [field.name for field in fields(AncestralEdge)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for edge in result.edges():
        record = asdict(edge)
        writer.writerow([_to_cell(record[column]) for column in columns])
    return out.getvalue()


def _to_cell(value: object) -> object:
    if isinstance(value, tuple):
        return escape_cell("; ".join(value))
    return "" if value is None else escape_cell(value)
