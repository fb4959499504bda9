"""A page shown in the browser of the user, or a hint where there is none."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from fedcdh.cli._console import Output


def show_page(out: Output, page: Path) -> bool:
    """Open a page in the browser; without one, say where the page is.

    The variable BROWSER names another browser, as in other programs.
    """
    address = page.resolve().as_uri()
    try:
        shown = webbrowser.open(address)
    except (webbrowser.Error, OSError):
        shown = False
    if not shown:
        out.warn(f"No browser opened the page. Open it yourself: {address}", always=True)
    return shown
