"""A result as files: result.json with all of it, graph.dot to draw, edges.csv for a spreadsheet, graph.txt to read."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json
from fedcdh.discovery.result import Discovery, Edge
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.stability import Stability
from fedcdh.errors import DataError, FedCDHError, KnowledgeError
from fedcdh.graphs.convert.dot import to_dot
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.messages import SOFTWARE
from fedcdh.summaries.aggregation import Cohort

FORMAT = "fedcdh-result-1"
MAX_RESULT_BYTES = 1 << 28
"""Bytes of a result.json that is read: a thousand variables have half a million pairs."""


def write_result(
    result: Discovery,
    folder: Path | str,
    stability: Stability | None = None,
    row_stability: Stability | None = None,
    *,
    research: Collection[str] = (),
) -> tuple[Path, ...]:
    """Writes the result's files into the folder; result.json comes last, so that where it is, all are.

    The stability of the result, which takes a search per run, is part of it where it is handed in: with other clients,
    and with rows drawn anew. `research` names the clients whose messages say that nothing was held back ("research, no
    privacy"), and so will the result and its report.
    """
    contents = {
        "graph.txt": f"{result}\n",
        "graph.dot": to_dot(result.graph, result.changing),
        "edges.csv": render_edges_csv(result),
        "result.json": render_result_json(result, stability, row_stability, research=research),
    }
    written = tuple(Path(folder) / name for name in contents)
    for path, content in zip(written, contents.values(), strict=True):
        write_atomically(path, content)
    return written


def render_result_json(
    result: Discovery,
    stability: Stability | None = None,
    row_stability: Stability | None = None,
    *,
    research: Collection[str] = (),
) -> str:
    """Canonical: the same plan, summaries and settings give the same bytes, whichever way the summaries travelled."""
    document = {
        "format": FORMAT,
        "software": SOFTWARE,
        "plan": result.cohort.plan.fingerprint,
        "settings": _settings_to_dict(result.settings),
        "clients": list(_client_records(result)),
        "variables": result.cohort.plan.names,
        "graph": _graph_to_dict(result.graph),
        "changing": sorted(result.changing),
        "dag": _dag_arrows(result),
        "edges": [_finite_or_none(asdict(edge)) for edge in result.edges()],
        "drift": _drift_records(result),
        "notes": result.notes,
        **({} if stability is None else {"stability": stability_to_dict(stability)}),
        **({} if row_stability is None else {"row_stability": stability_to_dict(row_stability)}),
        **({"research": sorted(research)} if research else {}),
    }
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _settings_to_dict(settings: Settings) -> dict[str, Any]:
    """How the graph was searched for; not by how many workers, which makes no difference."""
    said = {key: value for key, value in asdict(settings).items() if key != "workers"}
    return {**said, "knowledge": knowledge_to_dict(settings.knowledge)}


def knowledge_to_dict(knowledge: Knowledge) -> dict[str, Any]:
    """Knowledge as lists, in one order."""
    return {
        "required": sorted(knowledge.required),
        "forbidden": sorted(knowledge.forbidden),
        "tiers": knowledge.tiers,
        "forbid_within_tier": sorted(knowledge.forbid_within_tier),
    }


def _client_records(result: Discovery) -> Iterator[dict[str, Any]]:
    """Rows of every client; what it left out, where its own summary is known."""
    if isinstance(result.cohort, Cohort):
        for summary in result.cohort.summaries:
            yield {
                "client": summary.clients[0],
                "rows": summary.rows,
                "rows_read": summary.rows_read,
                "missing": dict(summary.missing),
            }
    else:
        for (client, members), rows in zip(result.cohort.groups, result.cohort.client_rows, strict=True):
            yield {"client": client, "rows": rows, **({"members": members} if members != (client,) else {})}


def _graph_to_dict(graph: PartialGraph) -> dict[str, Any]:
    return {"arrows": sorted(graph.arrows), "lines": sorted(sorted(line) for line in graph.lines)}


def _dag_arrows(result: Discovery) -> list[tuple[str, str]] | None:
    try:
        return sorted(result.to_dag().arrows)
    except KnowledgeError:  # the notes of the result say so
        return None


def _drift_records(result: Discovery) -> list[dict[str, Any]] | None:
    """What differs where; None where it cannot be told: without single summaries, with noise, or without a DAG."""
    if not isinstance(result.cohort, Cohort) or result.cohort.total.noise:
        return None
    try:
        return [asdict(drift) for drift in result.drift()]
    except KnowledgeError:
        return None


def stability_to_dict(stability: Stability) -> dict[str, Any]:
    """Stability as lists, in one order."""
    return {
        "kind": stability.kind,
        "seed": stability.seed,
        "edges": [asdict(edge) for edge in stability.edges],
        "changing": [asdict(change) for change in stability.changing],
        "changes_without": stability.changes_without,
        "influence": [asdict(one) for one in stability.influence],
        "runs": [
            {
                "clients": run.clients,
                "left_out": run.left_out,
                "arrows": sorted(run.arrows),
                "lines": sorted(sorted(line) for line in run.lines),
                "changing": None if run.changing is None else sorted(run.changing),
            }
            for run in stability.runs
        ],
        "notes": stability.notes,
    }


def _finite_or_none(fields_: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity; there is nothing to say where a number is none."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields_.items()
    }


def render_edges_csv(result: Discovery) -> str:
    """One row per pair of nodes, with a heading; empty cells where there is nothing to say."""
    columns = [field.name for field in fields(Edge)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for edge in result.edges():
        writer.writerow([_to_cell(getattr(edge, column)) for column in columns])
    return out.getvalue()


def _to_cell(value: object) -> object:
    if isinstance(value, tuple):
        return "; ".join(value)
    return "" if value is None else value


@dataclass(frozen=True)
class GraphClaims:
    """What a result or a truth says, as far as it can be scored."""

    arrows: frozenset[tuple[str, str]]
    lines: frozenset[frozenset[str]]
    changing: frozenset[str] | None  # None: nothing is said about it


def read_graph_claims(path: Path) -> GraphClaims:
    """The claims of a result.json (or the folder that holds it), or of a truth.json with edges and changing."""
    path = path / "result.json" if path.is_dir() else path
    text = read_regular_file(path, MAX_RESULT_BYTES, "a result or a truth")
    document = parse_json(text, refuse=lambda reason: DataError(f"{path} is not a result or a truth: {reason}"))
    try:
        graph = document["graph"] if "graph" in document else {"arrows": document["edges"], "lines": []}
        changing = document.get("changing")
        return GraphClaims(
            frozenset(_to_pair(arrow) for arrow in graph["arrows"]),
            frozenset(frozenset(_to_pair(line)) for line in graph["lines"]),
            None if changing is None else frozenset(map(_to_name, changing)),
        )
    except FedCDHError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError):
        raise DataError(
            f"{path} is not a result or a truth; expected result.json of `fedcdh discover`, or a JSON object with "
            '"edges": [[cause, effect], ...] and, if it is known, "changing": [variable, ...]'
        ) from None


def _to_pair(found: Any) -> tuple[str, str]:
    tail, head = found
    return _to_name(tail), _to_name(head)


def _to_name(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError(f"expected a name, found {found!r}")
    return found
