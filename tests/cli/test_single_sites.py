"""The line on findings that hang on one site."""

from __future__ import annotations

import fedcdh
from fedcdh.cli._console import Output
from fedcdh.cli._single_sites import is_quick, say_hinges


def make_tables(sites, variables=3):
    study = fedcdh.simulate(seed=1, variables=variables, clients=sites, rows=60)
    return study.columns("site")


def test_it_is_printed_where_it_takes_little_time(capsys):
    result = fedcdh.discover(make_tables(3), domain="site")
    assert is_quick(result)
    say_hinges(Output(), result)
    assert "one site" in capsys.readouterr().out


def test_it_is_not_computed_for_programs_or_where_it_is_impossible(capsys, monkeypatch):
    result = fedcdh.discover(make_tables(3), domain="site")
    monkeypatch.setattr(fedcdh.Discovery, "stability", None)
    say_hinges(Output(quiet=True), result)
    say_hinges(Output(as_json=True), result)
    two = fedcdh.discover(make_tables(2), domain="site")
    by_tests = fedcdh.discover(make_tables(3), domain="site", method="constraint")
    summed = fedcdh.discover_from(fedcdh.Aggregate.of(result.cohort), result.cohort.plan)
    for one in (two, by_tests, summed):
        assert not is_quick(one)
        say_hinges(Output(), one)
    assert capsys.readouterr().out == ""


def test_what_is_known_already_is_printed(capsys):
    two = fedcdh.discover(make_tables(2), domain="site")
    say_hinges(Output(), two, two.stability())
    assert "one site" in capsys.readouterr().out
