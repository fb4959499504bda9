"""Sphinx: `make docs` builds the pages of this folder into dist/docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "fedcdh"
author = "The fedcdh developers"
html_show_copyright = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "_gallery"]
source_suffix = {".md": "markdown", ".py": "markdown"}  # scripts of the gallery are pages: _gallery.py
exclude_patterns = ["_build", "*.py"]  # of this folder itself
html_theme = "furo"
html_title = "fedcdh"
html_static_path = ["_static"]
html_css_files = ["fedcdh.css"]
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]  # blocks of examples have names of their own
