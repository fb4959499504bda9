"""Files of a result: result.json with everything, graph.dot, tables for spreadsheets, and graph.txt to read."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fedcdh._io.csv_cells import escape_cell
from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json
from fedcdh.data.recipes import describe_recipe
from fedcdh.discovery.ancestral_discovery import AncestralDiscovery
from fedcdh.discovery.effect import Effect
from fedcdh.discovery.findings import Findings
from fedcdh.discovery.result import Discovery, Edge
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.stability import Stability
from fedcdh.errors import DataError, FedCDHError, KnowledgeError, SettingsError
from fedcdh.graphs.convert.dot import to_dot
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.messages._software import SOFTWARE
from fedcdh.reporting.ancestral_files import render_ancestral_files
from fedcdh.reporting.effect_records import (
    effect_from_dict,
    effect_to_dict,
    list_effects,
    name_effect_record,
    render_effects_csv,
)
from fedcdh.reporting.saved_discovery import SavedDiscovery
from fedcdh.reporting.value_ranges import describe_values
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary, describe_coarsened

FORMAT = "fedcdh-result-4"
"""Version 2 renamed keys: `max_conditioning_size`, `without_disclosure_control`, and those of stability. Version 3 has
probabilities and strengths of edges, probabilities of differences, and the limits of what is drawn. Version 4 has the
slopes of edges, effects, and what `read_result` needs: which notes are warnings, and whether clients were compared by
mixtures; and for the letter to a site how its values lie, and what it made coarser."""
OLD_FORMATS = ("fedcdh-result-1", "fedcdh-result-2", "fedcdh-result-3")
MAX_RESULT_BYTES = 1 << 28
"""Size of the largest result.json that is read; a thousand variables have half a million pairs."""


def write_result(
    result: Findings | AncestralDiscovery,
    folder: Path | str,
    stability: Stability | None = None,
    row_stability: Stability | None = None,
    *,
    without_disclosure_control: Collection[str] = (),
    effects: Collection[Effect] = (),
) -> tuple[Path, ...]:
    """Write the files of a result into a folder.

    Parameters
    ----------
    result : Findings or AncestralDiscovery
        The result, or one that was read back.
    folder : Path or str
        The folder, made if it does not exist.
    stability : Stability, optional
        The stability of the result with other clients, `result.stability()`.
    row_stability : Stability, optional
        The stability of the result with resampled rows, `result.stability(replicates=...)`.
    without_disclosure_control : collection of str, optional
        Clients whose summaries were made without disclosure control. The result and its report name them.
    effects : collection of Effect, optional
        Effects that are published with their values at single sites. Of all other effects the folder has pooled values
        only.

    Returns
    -------
    tuple of Path
        The files graph.txt, graph.dot, edges.csv, effects.csv and result.json. The last is written last, so a folder
        that has result.json has all of them. A result with hidden causes has no effects.csv.

    Raises
    ------
    SettingsError
        If stability or effects are given for a result with hidden causes, which has none.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> [path.name for path in write_result(result, tempfile.mkdtemp())]
    ['graph.txt', 'graph.dot', 'edges.csv', 'effects.csv', 'result.json']
    """
    if isinstance(result, AncestralDiscovery):
        _refuse_extras(stability or row_stability or effects)
        return _write_all(folder, _render_ancestral(result, without_disclosure_control))
    document = _build_document(result, stability, row_stability, without_disclosure_control, effects)
    contents = {
        "graph.txt": f"{result}\n",
        "graph.dot": to_dot(result.graph, result.changing),
        "edges.csv": render_edges_csv(result),
        "effects.csv": render_effects_csv(map(effect_from_dict, document["effects"] or ())),
        "result.json": _to_text(document),
    }
    return _write_all(folder, contents)


def _refuse_extras(given: object) -> None:
    if given:
        raise SettingsError(
            "stability or effects were given for a result with hidden causes; expected neither, because neither is "
            "computed for circles and ↔. Leave them out",
            parameter="result",
        )


def _write_all(folder: Path | str, contents: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files in their order."""
    written = tuple(Path(folder) / name for name in contents)
    for path, content in zip(written, contents.values(), strict=True):
        write_atomically(path, content)
    return written


def render_result_json(
    result: Findings | AncestralDiscovery,
    stability: Stability | None = None,
    row_stability: Stability | None = None,
    *,
    without_disclosure_control: Collection[str] = (),
    effects: Collection[Effect] = (),
) -> str:
    """Return the text of result.json.

    Parameters
    ----------
    result : Findings
        The result, or one that was read back.
    stability : Stability, optional
        The stability of the result with other clients.
    row_stability : Stability, optional
        The stability of the result with resampled rows.
    without_disclosure_control : collection of str, optional
        Clients whose summaries were made without disclosure control.
    effects : collection of Effect, optional
        Effects that are published with their values at single sites.

    Returns
    -------
    str
        Canonical JSON: the same plan, summaries and settings give the same text.

    Examples
    --------
    >>> import json
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> json.loads(render_result_json(result))["changing"]
    ['medication', 'systolic_pressure']
    """
    if isinstance(result, AncestralDiscovery):
        _refuse_extras(stability or row_stability or effects)
        return _render_ancestral(result, without_disclosure_control)["result.json"]
    return _to_text(_build_document(result, stability, row_stability, without_disclosure_control, effects))


def _render_ancestral(result: AncestralDiscovery, without_disclosure_control: Collection[str] = ()) -> dict[str, str]:
    return render_ancestral_files(result, _settings_to_dict(result.settings), without_disclosure_control)


def describe_result(result: Findings, stability: Stability | None = None) -> dict[str, Any]:
    """Return what result.json holds, as it would be read: the text is not laid out, which takes most of its time.

    Parameters
    ----------
    result : Findings
        The result, or one that was read back.
    stability : Stability, optional
        The stability of the result with other clients.

    Returns
    -------
    dict
        A result document.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> describe_result(result)["changing"]
    ['medication', 'systolic_pressure']
    """
    document = _build_document(result, stability, None, (), ())
    return dict(json.loads(json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False)))


def _to_text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _build_document(
    result: Findings,
    stability: Stability | None,
    row_stability: Stability | None,
    without_disclosure_control: Collection[str],
    effects: Collection[Effect],
) -> dict[str, Any]:
    """Return the content of result.json: of a search, or as it was read and with what is added to it."""
    given = {
        **({} if stability is None else {"stability": stability_to_dict(stability)}),
        **({} if row_stability is None else {"row_stability": stability_to_dict(row_stability)}),
        **({"without_disclosure_control": sorted(without_disclosure_control)} if without_disclosure_control else {}),
    }
    if isinstance(result, SavedDiscovery):
        return {**result.document, **_chosen_among(result.document, effects), **given}
    return {**_describe_discovery(result, effects), **given}


def _describe_discovery(result: Findings, effects: Collection[Effect] = ()) -> dict[str, Any]:
    if not isinstance(result, Discovery):
        raise SettingsError(
            f"found a {type(result).__name__}; expected a Discovery, or what read_result returned; pass one of these",
            parameter="result",
        )
    plan = result.cohort.plan
    return {
        "format": FORMAT,
        "software": SOFTWARE,
        "plan": plan.fingerprint,
        "settings": _settings_to_dict(result.settings),
        "clients": list(_client_records(result)),
        **({"mixtures": True} if result.has_mixtures else {}),
        "variables": result.variables,
        **_recipe_records(plan),
        "graph": _graph_to_dict(result.graph),
        "changing": sorted(result.changing),
        "probability_of_change": result.probability_of_change or None,
        "dag": _dag_arrows(result),
        "edges": [_edge_record(edge) for edge in result.edges()],
        "drift": _drift_records(result),
        "effects": list_effects(result, effects),
        "notes": result.notes,
        **({"warnings": len(result.warnings)} if result.warnings else {}),
    }


def _chosen_among(document: Mapping[str, Any], chosen: Collection[Effect]) -> dict[str, Any]:
    """Return the effects of a document that was read back, those that are chosen now first."""
    if not chosen:
        return {}
    records = [effect_to_dict(effect) for effect in chosen]
    names = {name_effect_record(record) for record in records}
    rest = [record for record in document["effects"] or () if name_effect_record(record) not in names]
    return {"effects": [*records, *rest]}


def _edge_record(edge: Edge) -> dict[str, Any]:
    """Return the fields of an edge; its status only where it has one."""
    found = _finite_or_none(vars(edge))
    return found if edge.status else {name: value for name, value in found.items() if name != "status"}


def _recipe_records(plan: StudyPlan) -> dict[str, Any]:
    """Return in words what every site did with its columns first, and which columns were excluded."""
    recipes = {name: describe_recipe(recipe) for name, recipe in plan.recipes.items()}
    excluded = list(plan.excluded)
    return {**({"recipes": recipes} if recipes else {}), **({"excluded": excluded} if excluded else {})}


def _settings_to_dict(settings: Settings) -> dict[str, Any]:
    """Return the settings of the search, without the number of workers, which makes no difference."""
    given = {key: value for key, value in asdict(settings).items() if key != "workers"}
    return {**given, "knowledge": knowledge_to_dict(settings.knowledge)}


def knowledge_to_dict(knowledge: Knowledge) -> dict[str, Any]:
    """Return background knowledge as sorted lists."""
    return {
        "required": sorted(knowledge.required),
        "forbidden": sorted(knowledge.forbidden),
        "tiers": knowledge.tiers,
        "forbid_within_tier": sorted(knowledge.forbid_within_tier),
    }


def _client_records(result: Discovery) -> Iterator[dict[str, Any]]:
    """Yield the rows of every client, and its missing values where its own summary is known."""
    if isinstance(result.cohort, Cohort):
        for summary in result.cohort.summaries:
            yield {
                "client": summary.clients[0],
                "rows": summary.rows,
                "rows_read": summary.rows_read,
                "missing": dict(summary.missing),
                **({"absent": absent} if (absent := _absent_names(summary, result.cohort)) else {}),
                **({"coarsened": list(describe_coarsened(summary.coarsened))} if summary.coarsened else {}),
                **({} if summary.noise else {"values": describe_values(summary, _plan_of(summary, result.cohort))}),
            }
    else:
        for (client, members), rows in zip(result.cohort.groups, result.cohort.client_rows, strict=True):
            yield {"client": client, "rows": rows, **({"members": members} if members != (client,) else {})}


def _plan_of(summary: Summary, cohort: Cohort) -> StudyPlan:
    """Return the plan of the columns of a summary."""
    return cohort.plan.for_variables(summary.missing)


def _absent_names(summary: Summary, cohort: Cohort) -> list[str]:
    """Return the variables that a client lacks."""
    return [name for name in cohort.plan.names if name not in summary.missing]


def _graph_to_dict(graph: PartialGraph) -> dict[str, Any]:
    return {"arrows": sorted(graph.arrows), "lines": sorted(sorted(line) for line in graph.lines)}


def _dag_arrows(result: Discovery) -> list[tuple[str, str]] | None:
    try:
        return sorted(result.to_dag().arrows)
    except KnowledgeError:  # the notes of the result say so
        return None


def _drift_records(result: Discovery) -> list[dict[str, Any]] | None:
    """Return the drift; None where it cannot be estimated: without single summaries, with noise or without a DAG."""
    if not isinstance(result.cohort, Cohort) or result.cohort.total.noise:
        return None
    try:
        return [asdict(drift) for drift in result.drift()]
    except KnowledgeError:
        return None


def stability_to_dict(stability: Stability) -> dict[str, Any]:
    """Return stability as lists in a fixed order."""
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


def _finite_or_none(record: Mapping[str, Any]) -> dict[str, Any]:
    """Replace infinite and missing numbers, which JSON does not know, by None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }


def render_edges_csv(result: Findings | AncestralDiscovery) -> str:
    """Return the text of edges.csv: a header, and one row per pair of nodes.

    Parameters
    ----------
    result : Findings
        The result, or one that was read back.

    Returns
    -------
    str
        The columns are the fields of `Edge`, `status` only where some pair has one. A cell is empty where there is no
        value. A text that a spreadsheet program would take for a formula has an apostrophe before it.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> render_edges_csv(result).splitlines()[0][:24]
    'source,target,mark,p_val'
    """
    if isinstance(result, AncestralDiscovery):
        return _render_ancestral(result)["edges.csv"]
    edges = result.edges()
    has_status = any(edge.status for edge in edges)
    columns = [field.name for field in fields(Edge) if has_status or field.name != "status"]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for edge in edges:
        record = _finite_or_none(asdict(edge))
        writer.writerow([_to_cell(record[column]) for column in columns])
    return out.getvalue()


def _to_cell(value: object) -> object:
    if isinstance(value, tuple):
        return escape_cell("; ".join(value))
    return "" if value is None else escape_cell(value)


@dataclass(frozen=True)
class GraphClaims:
    """The claims of a result, or of a known truth, that can be scored.

    Parameters
    ----------
    arrows : frozenset of pairs of str
        Directed edges, cause first.
    lines : frozenset of frozenset of str
        Edges whose direction is open.
    changing : frozenset of str or None
        Variables whose mechanism differs; None if nothing is claimed about that.

    Examples
    --------
    >>> GraphClaims(frozenset({("age", "pressure")}), frozenset(), None).arrows
    frozenset({('age', 'pressure')})
    """

    arrows: frozenset[tuple[str, str]]
    lines: frozenset[frozenset[str]]
    changing: frozenset[str] | None


def read_graph_claims(path: Path) -> GraphClaims:
    """Read the claims of a result.json or of a truth.json.

    Parameters
    ----------
    path : Path
        The file, or the folder of a result.

    Returns
    -------
    GraphClaims
        The arrows, lines and changing variables.

    Raises
    ------
    DataError
        If the file is neither.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.json"
    >>> _ = path.write_text('{"edges": [["age", "pressure"]]}', encoding="utf-8")
    >>> read_graph_claims(path).arrows
    frozenset({('age', 'pressure')})
    """
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
            f"{path} is not a result or a truth. Expected the result.json of `fedcdh discover`, or a JSON object with "
            '"edges": [[cause, effect], ...] and, if it is known, "changing": [variable, ...]. Pass such a file.'
        ) from None


def _to_pair(found: Any) -> tuple[str, str]:
    tail, head = found
    return _to_name(tail), _to_name(head)


def _to_name(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError(f"expected a name, found {found!r}")
    return found
