"""`fedcdh secure-sum run` and `fedcdh secure-sum join`; the protocol is tested in tests/privacy/secure_aggregation."""

from __future__ import annotations

import shutil

import pytest
from cli_study import SITES, data_of, run

from fedcdh.cli import main

ROUNDS = {
    "1-terms.json": "keys",
    "2-roster.json": "shares",
    "3-delivery.json": "masked",
    "4-present.json": "confirmed",
    "5-confirmations.json": "opened",
}


@pytest.fixture
def signed(study, here):
    """A plan that names the key of every site."""
    for site in SITES:
        run("keys", "new", "-o", f"{site}.key", "-q")
        run("profile", data_of(study, site), "--client", site, "--key", f"{site}.key", "-q")
    run("plan", *(f"{site}.profile.json" for site in SITES), "-q")
    return here


def join(study, site, name, code=0):
    words = ["study.plan.json", f"rounds/{name}", data_of(study, site), "--client", site, "--key", f"{site}.key", "-q"]
    run("secure-sum", "join", *words, code=code)


def test_five_rounds_give_the_plain_sum(study, signed, capsys):
    for name, suffix in ROUNDS.items():
        run("secure-sum", "run", "study.plan.json", "rounds")
        assert f"Wrote rounds/{name}. Send it to the sites." in capsys.readouterr().out
        for site in SITES:
            join(study, site, name)
            shutil.move(f"{site}.{suffix}", f"rounds/{site}.{suffix}")
    run("secure-sum", "run", "study.plan.json", "rounds", "-o", "secure.aggregate")
    assert f"{sum(SITES.values())} rows" in capsys.readouterr().out
    run("inspect", "secure.aggregate")
    assert "a secure sum of the summaries of 3 clients" in capsys.readouterr().out


def test_the_coordinator_names_the_sites_it_waits_for(study, signed, capsys):
    run("secure-sum", "run", "study.plan.json", "rounds", "-q")
    join(study, "north", "1-terms.json")
    shutil.move("north.keys", "rounds/north.keys")
    capsys.readouterr()
    run("secure-sum", "run", "study.plan.json", "rounds")
    assert "Answers of coast, south to rounds/1-terms.json are missing." in capsys.readouterr().out
    assert main(["secure-sum", "run", "study.plan.json", "rounds", "--attempt", "2"]) == 1
    assert "other settings" in capsys.readouterr().err


def test_a_site_without_a_key_cannot_join(study, signed, capsys):
    run("secure-sum", "run", "study.plan.json", "rounds", "-q")
    words = ["secure-sum", "join", "study.plan.json", "rounds/1-terms.json", "--client", "north"]
    assert main(words) == 6
    assert capsys.readouterr().err.startswith("fedcdh: ")
