"""Summaries and sums as they reach the coordinator."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_study import SITES, data_of, plan_of, run, summaries

from fedcdh.cli._console import Output
from fedcdh.cli._inputs import read_study
from fedcdh.cli._summaries import SummaryReader, admit_messages, read_aggregate
from fedcdh.errors import SignatureError, SummaryFormatError


@pytest.fixture
def reader(study) -> SummaryReader:
    return SummaryReader(read_study(Path(plan_of(study)))[0])


def test_unsigned_summaries_are_named_one_by_one_or_together(study, reader, capsys):
    messages, replicates = reader.read_all([Path(path) for path in summaries(study)], Output())
    assert [message.summary.clients[0] for message in messages] == list(SITES)
    assert replicates == []
    assert capsys.readouterr().err.count("is not signed: nothing but the way it came shows") == 3
    reader.unsigned.extend([(Path("x"), "x")] * 3)
    reader.warn(Output())
    assert "6 summaries are not signed" in capsys.readouterr().err


def test_summaries_without_disclosure_control_are_named(study, reader, here, capsys):
    run("summarize", plan_of(study), data_of(study), "--client", "north", "--no-disclosure-control", "-q")
    capsys.readouterr()
    assert not reader.read(here / "north.summary").disclosure_control
    reader.warn(Output())
    assert "was made without disclosure control, by north" in capsys.readouterr().err


def test_a_summary_needs_the_signature_of_the_plans_key(study, here):
    run("keys", "new", "-q")
    profiles = [study / f"{site}.profile.json" for site in SITES]
    run("plan", *profiles, "--site-key", "north=site.pub", "-q")
    run("summarize", "study.plan.json", data_of(study), "--client", "north", "-q")
    reader = SummaryReader(read_study(here / "study.plan.json")[0])
    assert reader.read(here / "north.summary").summary.clients == ("north",)
    (here / "north.summary.sig").unlink()
    with pytest.raises(SignatureError, match=r"Ask the sender for north\.summary\.sig"):
        reader.read(here / "north.summary")


def test_all_summaries_together_are_a_cohort(study, reader):
    messages, _ = reader.read_all([Path(path) for path in summaries(study)], Output(quiet=True))
    assert admit_messages(messages, reader.study.plan, Output(quiet=True)).clients == tuple(sorted(SITES))


def test_a_sum_is_told_from_a_summary(study, reader, here, capsys):
    assert read_aggregate(Path(summaries(study)[0]), reader.study, Output()) is None
    run("aggregate", plan_of(study), *summaries(study), "-q")
    capsys.readouterr()
    message = read_aggregate(here / "study.aggregate", reader.study, Output())
    assert message is not None
    said = capsys.readouterr()
    assert "Sum of coast, north, south." in said.out
    assert "study.aggregate is not signed" in said.err


def test_an_unfinished_sum_is_called_one(study, reader, here):
    run("aggregate", plan_of(study), summaries(study)[0], "-q", code=5)
    with pytest.raises(SummaryFormatError, match=r"study\.aggregate\.adding: This is an unfinished sum"):
        read_aggregate(here / "study.aggregate.adding", reader.study, Output())
