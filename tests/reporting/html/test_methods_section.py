"""The paragraph for the methods section follows the settings."""

from __future__ import annotations

import copy

from reports import by_tests, document

from fedcdh.reporting.html.methods_section import describe_sites, methods_paragraph

FIVE = document([f"v{at}" for at in range(5)])


def test_the_paragraph_follows_the_settings():
    paragraph = methods_paragraph(by_tests(FIVE))
    assert "at significance level 0.05" in paragraph
    assert "at most 2 variables" in paragraph
    assert "No background knowledge was used." in paragraph
    known = copy.deepcopy(FIVE)
    known["settings"]["knowledge"].update(required=[["v0", "v1"]], tiers=[["v0"], ["v1", "v2"]])
    assert "1 required arrow, an order in time (v0; then v1, v2)" in methods_paragraph(known)


def test_the_paragraph_states_from_which_probability_links_are_reported():
    strict = {**FIVE, "settings": {**FIVE["settings"], "min_probability": 0.7, "min_effect": 0.02}}
    paragraph = methods_paragraph(strict)
    assert "a probability of at least 0.7, and arrows with at least 0.8" in paragraph
    assert "less than 2.0\N{NO-BREAK SPACE}% of the variance" in paragraph
    assert "probabilities" not in methods_paragraph(by_tests(FIVE)).lower()


def test_rows_left_out_and_missing_disclosure_control_are_stated():
    paragraph = methods_paragraph({**FIVE, "without_disclosure_control": ["north"]})
    assert "20 of 200 rows (10.0%) had missing values" in paragraph
    assert "Disclosure control was switched off at north." in paragraph
    assert "Disclosure control" not in methods_paragraph(FIVE)


def test_sites_are_counted_within_groups():
    assert describe_sites(FIVE["clients"]) == "2 sites"
    assert describe_sites(FIVE["clients"][:1]) == "1 site"
    assert describe_sites([{"client": "all", "rows": 9, "members": ["a", "b", "c"]}]) == "3 sites in 1 group"


def test_what_every_site_did_with_its_columns_is_stated():
    changed = {**FIVE, "recipes": {"v0": "natural logarithm", "v1": "a and b grouped as 'a/b'"}, "excluded": ["v9"]}
    paragraph = methods_paragraph(changed)
    assert "in the same way (v0: natural logarithm; v1: a and b grouped as 'a/b')." in paragraph
    assert "The planning excluded v9." in paragraph
    assert "in the same way" not in methods_paragraph(FIVE)
