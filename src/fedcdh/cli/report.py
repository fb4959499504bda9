"""`fedcdh report`: an HTML report of a result, or a letter to single sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._effect_pairs import read_pair
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.errors import SettingsError


@report_errors
def report_command(
    result: Annotated[Path, typer.Argument(help="Folder of a result, or its result.json.", metavar="RESULT")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="HTML file to write (report.html, or SITE.letter.html); with --all-sites a folder (letters).",
            metavar="PATH",
        ),
    ] = None,
    effect: Annotated[
        list[str] | None,
        typer.Option(
            "--effect", help="Show this effect as a forest plot. Several are allowed.", metavar="CAUSE:OUTCOME"
        ),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", help="Write the letter to this site instead.", metavar="SITE")
    ] = None,
    all_sites: Annotated[bool, typer.Option("--all-sites", help="Write a letter to every site.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make an HTML report of a result, or letters to sites.

    The report is one file with the graph, the evidence and all tables. A letter has the graph, the rows of one site and
    what differs there, without numbers of other sites. Both need no network.

    For example:

      fedcdh report result/ -o study.html --open

      fedcdh report result/ --site north

      fedcdh report result/ --all-sites -o letters/
    """
    from fedcdh.cli._browser import show_page
    from fedcdh.cli._outputs import check_replaceable, default_file_name, refuse_input_as_output
    from fedcdh.reporting.html import read_document, write_report, write_site_letter
    from fedcdh.reporting.html.site_letter import find_site, list_sites

    if effect and (site is not None or all_sites):
        raise SettingsError(
            "found --effect with letters to sites; expected it for a report; leave it out", parameter="effect"
        )
    _check_options(site, all_sites=all_sites, open_page=open_page)
    out = Output(quiet, as_json)
    document = read_document(result)
    pairs = [read_pair(text, document["variables"], "the result") for text in effect or ()]
    pages: dict[Path, str | None]
    if all_sites:
        folder = output or Path("letters")
        pages = {folder / default_file_name(name, ".letter.html"): name for name in list_sites(document)}
    elif site is not None:
        find_site(document, site)
        pages = {output or default_file_name(site, ".letter.html"): site}
    else:
        pages = {output or Path("report.html"): None}
    for path, name in pages.items():
        refuse_input_as_output(path, [result])
        check_replaceable(path, "report" if name is None else "letter")
    for path, name in pages.items():
        _ = write_report(document, path, pairs) if name is None else write_site_letter(document, name, path)
    _say_written(out, list(pages))
    if open_page:
        show_page(out, next(iter(pages)))


def _check_options(site: str | None, *, all_sites: bool, open_page: bool) -> None:
    if all_sites and site is not None:
        raise SettingsError("found --site and --all-sites; expected one of them; leave one out", parameter="site")
    if all_sites and open_page:
        raise SettingsError(
            "found --open with the letters to all sites; expected one page to open; choose a site with --site",
            parameter="site",
        )


def _say_written(out: Output, pages: Sequence[Path]) -> None:
    sizes = [page.stat().st_size for page in pages]
    if len(pages) == 1:
        out.say(f"Wrote {pages[0]} ({sizes[0]:,} bytes). Open it in a browser; it needs no network.")
    else:
        out.say(f"Wrote {len(pages)} letters to {pages[0].parent}: {', '.join(page.name for page in pages)}.")
    out.result({"files": list(map(str, pages)), "bytes": sum(sizes)})
