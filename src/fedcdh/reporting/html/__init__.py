"""The report: a result as one HTML file to look at, that needs no network, no server and no program but a browser."""

from fedcdh.reporting.html.page import render_report, write_report
from fedcdh.reporting.html.schema import check_document, parse_document, read_document

__all__ = ["check_document", "parse_document", "read_document", "render_report", "write_report"]
