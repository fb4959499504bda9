"""Sphinx: `make docs` builds the pages of this folder into dist/docs."""

project = "fedcdh"
author = "The fedcdh developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "fedcdh"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]  # blocks of examples have names of their own
