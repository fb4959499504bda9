"""What every command of a site finds before it reads a row."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_study import plan_of, run

from fedcdh.cli._console import Output
from fedcdh.cli._site_setup import SiteOptions, read_own_columns, set_up_site
from fedcdh.errors import DisclosureError, SignatureError

NOTHING = SiteOptions(None, None, None, None, no_disclosure_control=False)


def test_without_options_the_defaults_hold(study, here):
    site = set_up_site(Path(plan_of(study)), "north", Output(quiet=True), NOTHING)
    assert (site.signer, site.signing, site.own_names) == (None, None, {})
    assert site.policy.disclosure_control
    assert not site.gate.dry_run


def test_options_are_what_is_found(study, here):
    (here / "names.toml").write_text('"V1" = "v1"\n', encoding="utf-8")
    (here / "strict.toml").write_text("min_rows = 9999\n", encoding="utf-8")
    run("keys", "new", "-o", "own.key", "-q")
    options = SiteOptions(
        here / "strict.toml",
        here / "own.jsonl",
        here / "own.key",
        here / "names.toml",
        no_disclosure_control=True,
        dry_run=True,
    )
    site = set_up_site(Path(plan_of(study)), "north", Output(quiet=True), options)
    assert site.own_names == {"v1": "V1"}
    assert (site.policy.min_rows, site.policy.disclosure_control) == (9999, False)
    assert site.signing is not None
    assert (site.gate.ledger.path, site.gate.dry_run) == (here / "own.jsonl", True)


def test_a_site_that_is_not_invited_is_told_before_it_reads_rows(study, here):
    (here / "policy.toml").write_text('plans = ["000000000000"]\n', encoding="utf-8")
    with pytest.raises(DisclosureError):
        set_up_site(Path(plan_of(study)), "north", Output(quiet=True), NOTHING)


def test_a_key_that_the_plan_does_not_name_is_refused(study, here):
    run("keys", "new", "-q")
    profiles = [study / f"{site}.profile.json" for site in ("north", "south", "coast")]
    run("keys", "new", "-o", "other.key", "-q")
    run("plan", *profiles, "--site-key", "north=other.pub", "-q")
    with pytest.raises(SignatureError):
        set_up_site(here / "study.plan.json", "north", Output(quiet=True), NOTHING)


def test_a_column_map_is_read_backwards(here):
    (here / "names.toml").write_text('"Messwert 1" = "v1"\n', encoding="utf-8")
    assert read_own_columns(here / "names.toml") == {"v1": "Messwert 1"}
    assert read_own_columns(None) == {}
