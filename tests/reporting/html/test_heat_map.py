"""The map of deviations: legible cells, and the sites that deviate most."""

from __future__ import annotations

import reports
from hypothesis import given
from hypothesis import strategies as st
from reports import ParsedPage, document

from fedcdh.reporting.html import render_report
from fedcdh.reporting.html.heat_map import (
    EQUAL_CONTRAST_LUMINANCE,
    INK,
    MAX_SITES_SHOWN,
    PAPER,
    cell_colour,
    most_deviating,
    relative_luminance,
)

FIVE = document([f"v{at}" for at in range(5)])


def test_only_the_sites_that_deviate_most_are_shown():
    record = reports.drift(FIVE)[0]
    drift = [{**record, "client": f"site {at:03d}", "deviation": (-1) ** at * at / 10} for at in range(300)]
    page = ParsedPage(render_report({**FIVE, "drift": drift}))
    assert "Shown are the 200 of 300 sites that deviate most" in page.text
    assert {f"site {at:03d}" for at in range(300) if f"site {at:03d}" in page.text} == {
        f"site {at:03d}" for at in range(100, 300)
    }
    few = ParsedPage(render_report({**FIVE, "drift": drift[:200]}))
    assert "site 000" in few.text
    assert "Shown are" not in few.text


@given(st.floats(-50, 50))
def test_the_contrast_of_every_cell_is_sufficient(deviation):
    fill = relative_luminance(cell_colour(deviation))
    ink = relative_luminance(
        [int((INK if fill > EQUAL_CONTRAST_LUMINANCE else PAPER)[at : at + 2], 16) for at in (1, 3, 5)]
    )
    light, dark = max(fill, ink), min(fill, ink)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_as_many_sites_as_fit_are_all_shown():
    record = reports.drift(FIVE)[0]
    drift = [{**record, "client": f"site {at}", "deviation": float(at)} for at in range(MAX_SITES_SHOWN + 1)]
    assert most_deviating(drift[:-1]) == drift[:-1]
    assert most_deviating(drift) == drift[1:]
