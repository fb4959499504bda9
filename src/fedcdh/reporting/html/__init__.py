"""The HTML report of a result: one file that needs a browser and no network.

Modules
-------
schema
    The result document, read from result.json and checked.
page
    Template, style, script and content in one file.
graph_svg
    The graph as SVG.
tables, heat_map, methods_section
    The parts of the page.
"""

from fedcdh.reporting.html.page import render_report, write_report
from fedcdh.reporting.html.schema import check_document, parse_document, read_document

__all__ = ["check_document", "parse_document", "read_document", "render_report", "write_report"]
