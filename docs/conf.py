"""Sphinx: `make docs` builds the pages of this folder into dist/docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import _api

project = "fedcdh"
author = "The fedcdh developers"
html_show_copyright = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "_gallery"]
# .py are scripts of the gallery (_gallery.py); .rst are the pages that autosummary makes, and has to come first of the two.
source_suffix = {".md": "markdown", ".rst": "restructuredtext", ".py": "markdown"}
exclude_patterns = ["_build", "_templates", "*.py"]  # of this folder itself
templates_path = ["_templates"]
html_theme = "furo"
html_title = "fedcdh"
html_static_path = ["_static"]
html_css_files = ["fedcdh.css"]
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have the types, in words
autosummary_generate = True
autosummary_context = _api.context()  # every `__all__`, for the template
numpydoc_show_class_members = False  # autodoc shows them already
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]  # blocks of examples have names of their own
