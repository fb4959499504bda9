"""Conversions of graphs to the formats of other libraries, and back; names are kept, and nothing is lost silently.

What the other format cannot express (an open direction in a DAG, a bidirected edge in a `PartialGraph`) is refused with
a GraphError. Optional libraries are imported when a function that needs them is called.

- `adjacency_matrix`: matrices with names, in the conventions of several libraries
- `causal_learn`, `networkx`, `pgmpy`: objects of these libraries
- `dot`, `gml`, `graph_json`, `tetrad`: texts
- `pag`: ancestral graphs, with a mark at either end of an edge
- `knowledge`: background knowledge of other programs
"""

from fedcdh.graphs.convert.adjacency_matrix import CONVENTIONS, Adjacency, to_adjacency
from fedcdh.graphs.convert.causal_learn import from_causal_learn, to_causal_learn
from fedcdh.graphs.convert.dot import from_dot, to_dot
from fedcdh.graphs.convert.gml import from_gml, to_gml
from fedcdh.graphs.convert.graph_json import from_json, to_json
from fedcdh.graphs.convert.networkx import from_networkx, to_networkx
from fedcdh.graphs.convert.pag import (
    pag_from_causal_learn,
    pag_from_dot,
    pag_from_json,
    pag_from_pcalg,
    pag_from_tetrad,
    pag_to_causal_learn,
    pag_to_dot,
    pag_to_json,
    pag_to_pcalg,
    pag_to_tetrad,
)
from fedcdh.graphs.convert.pgmpy import from_pgmpy, to_pgmpy, to_pgmpy_dag
from fedcdh.graphs.convert.tetrad import from_tetrad, to_tetrad

__all__ = [
    "CONVENTIONS",
    "Adjacency",
    "from_causal_learn",
    "from_dot",
    "from_gml",
    "from_json",
    "from_networkx",
    "from_pgmpy",
    "from_tetrad",
    "pag_from_causal_learn",
    "pag_from_dot",
    "pag_from_json",
    "pag_from_pcalg",
    "pag_from_tetrad",
    "pag_to_causal_learn",
    "pag_to_dot",
    "pag_to_json",
    "pag_to_pcalg",
    "pag_to_tetrad",
    "to_adjacency",
    "to_causal_learn",
    "to_dot",
    "to_gml",
    "to_json",
    "to_networkx",
    "to_pgmpy",
    "to_pgmpy_dag",
    "to_tetrad",
]
