"""The HTML report of a result: one file that needs a browser and no network.

Modules
-------
schema
    The result document, read from result.json and checked.
page
    Template, style, script and content in one file.
site_letter
    What concerns one site, without the numbers of others.
graph_svg
    The graph as SVG.
tables, heat_map, methods_section, site_findings
    The parts of the pages.
assets
    Styles, scripts and templates.
"""

from fedcdh.reporting.html.page import render_report, write_report
from fedcdh.reporting.html.schema import check_document, parse_document, read_document
from fedcdh.reporting.html.site_letter import render_site_letter, write_site_letter

__all__ = [
    "check_document",
    "parse_document",
    "read_document",
    "render_report",
    "render_site_letter",
    "write_report",
    "write_site_letter",
]
