"""Results as files, HTML reports, plots, notebook output and data frames.

Modules
-------
result_files
    result.json, edges.csv, graph.dot and graph.txt.
result_reading, saved_discovery
    A result read back from its folder.
value_ranges
    How the values of a site lie, rounded.
html
    The HTML report and the letters to sites, made of a result.json.
graph_drawing
    The layout of a graph, and its drawing as SVG.
plots
    The drawing of a graph with matplotlib.
notebook
    The HTML that a notebook shows.
data_frames
    Records of a result as pandas or polars data frames.
phrases
    Names, numbers and findings in plain English.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.reporting.data_frames import to_pandas, to_polars
    from fedcdh.reporting.graph_drawing.svg import render_svg
    from fedcdh.reporting.html.page import render_report, write_report
    from fedcdh.reporting.html.schema import check_document, parse_document, read_document
    from fedcdh.reporting.html.site_letter import render_site_letter, write_site_letter
    from fedcdh.reporting.notebook import render_html
    from fedcdh.reporting.plots import plot, save
    from fedcdh.reporting.result_files import (
        GraphClaims,
        read_graph_claims,
        render_edges_csv,
        render_result_json,
        write_result,
    )
    from fedcdh.reporting.result_reading import read_result
    from fedcdh.reporting.saved_discovery import SavedDiscovery

__all__ = [
    "GraphClaims",
    "SavedDiscovery",
    "check_document",
    "parse_document",
    "plot",
    "read_document",
    "read_graph_claims",
    "read_result",
    "render_edges_csv",
    "render_html",
    "render_report",
    "render_result_json",
    "render_site_letter",
    "render_svg",
    "save",
    "to_pandas",
    "to_polars",
    "write_report",
    "write_result",
    "write_site_letter",
]

_RESULT_FILES = ("GraphClaims", "read_graph_claims", "render_edges_csv", "render_result_json", "write_result")
__getattr__, __dir__ = attach(
    __name__,
    {
        **dict.fromkeys(_RESULT_FILES, "fedcdh.reporting.result_files"),
        **dict.fromkeys(("check_document", "parse_document", "read_document"), "fedcdh.reporting.html.schema"),
        **dict.fromkeys(("render_report", "write_report"), "fedcdh.reporting.html.page"),
        **dict.fromkeys(("plot", "save"), "fedcdh.reporting.plots"),
        **dict.fromkeys(("to_pandas", "to_polars"), "fedcdh.reporting.data_frames"),
        **dict.fromkeys(("render_site_letter", "write_site_letter"), "fedcdh.reporting.html.site_letter"),
        "SavedDiscovery": "fedcdh.reporting.saved_discovery",
        "read_result": "fedcdh.reporting.result_reading",
        "render_html": "fedcdh.reporting.notebook",
        "render_svg": "fedcdh.reporting.graph_drawing.svg",
    },
)
