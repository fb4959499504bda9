"""Further rounds under masks, by file: discover asks, sites add their answers in secure sums."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import residual_studies
from mailed_studies import Mailed
from residual_studies import SummedSource, skewed_chain

from fedcdh.cli import main
from fedcdh.discovery.api import discover_from
from fedcdh.messages.round_files import request_to_json
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.joint import JointRequest

DISCOVER = ["discover", "study.plan.json", "study.aggregate", "--ask", "asked", "-q"]


@pytest.fixture
def mailed(tmp_path, monkeypatch) -> Mailed:
    tables = skewed_chain((900, 800, 700, 600))
    found = Mailed.of(tmp_path, monkeypatch, tables, residual_studies.plan_of(tables))
    found.run({}, "-q")
    return found


def ask_all(mailed: Mailed, gone: dict[int, dict[str, str]] | None = None) -> int:
    """Run discover and the sums that it asks for until there is a result; return how many there were."""
    number = 0
    while main(DISCOVER):
        number += 1
        request = f"asked/request-{number:03d}.json"
        mailed.run_rounds((gone or {}).get(number, {}), "--request", request, "-q", folder=f"asked/sum-{number:03d}")
    return number


@pytest.mark.parametrize("gone", [{}, {2: {"site2": "confirmed"}}])
def test_by_file_the_bytes_are_those_of_the_plain_sums(mailed, gone):
    assert ask_all(mailed, gone) > 1
    plan = mailed.study.plan
    known = Aggregate.of(residual_studies.cohort_of(mailed.tables, plan))
    expected = discover_from(known, plan, source=SummedSource(mailed.tables, plan))
    assert (mailed.root / "result" / "result.json").read_text() == render_result_json(expected)
    for client in mailed.tables:
        states = sorted((mailed.root / client).glob("masking-state-*.json"))
        assert states[0].name == f"masking-state-{client}.json"
        assert all('"secrets": null' in state.read_text() or client == "site2" for state in states)


def test_without_a_site_there_is_no_sum_and_the_result_has_the_answers_before(mailed, capsys):
    for number in (1, 2):
        assert main(DISCOVER) == 1
        request, folder = f"asked/request-{number:03d}.json", f"asked/sum-{number:03d}"
        if number == 1:
            mailed.run_rounds({}, "--request", request, "-q", folder=folder)
    mailed.coordinator("--request", request, folder=folder)
    for client in ("site0", "site1", "site3"):
        mailed.site(client, "1-terms.json", folder=folder)
    capsys.readouterr()
    mailed.coordinator("--request", request, folder=folder)
    assert "there is no sum of answers without them" in " ".join(capsys.readouterr().out.split())
    mailed.coordinator("--request", request, "--go-on", folder=folder, code=1)
    said = " ".join(capsys.readouterr().err.split())
    assert "no keys of site2" in said
    assert "--without-answers site2" in said
    assert not Path(folder, "2-roster.json").exists()
    assert main([*DISCOVER, "--without-answers", "site2"]) == 0
    plan = mailed.study.plan
    known = Aggregate.of(residual_studies.cohort_of(mailed.tables, plan))
    expected = discover_from(known, plan, source=SummedSource(mailed.tables, plan, failed=2))
    assert (mailed.root / "result" / "result.json").read_text() == render_result_json(expected)
    assert not Path("asked/request-003.json").exists()


def test_discover_says_what_to_run_and_a_sum_that_is_not_complete_is_waited_for(mailed, capsys):
    assert main(DISCOVER) == 1
    said = capsys.readouterr().err
    assert "fedcdh secure-sum run PLAN asked/sum-001 --request asked/request-001.json" in " ".join(said.split())
    mailed.run_rounds({}, "--request", "asked/request-001.json", folder="asked/sum-001")
    said = capsys.readouterr().out
    assert "The sum of the answers to request 1 is of site0, site1, site2, site3: 3000 rows." in " ".join(said.split())
    assert "agrees to add its answers about the residuals" in " ".join(said.split())
    for path in Path("asked/sum-001").glob("*.opened"):
        path.unlink()
    assert main(DISCOVER) == 1
    assert "request-001.json is missing" in " ".join(capsys.readouterr().err.split())


def test_what_cannot_be_added_under_masks_is_refused(mailed, capsys):
    assert main(DISCOVER) == 1
    run = ["secure-sum", "run", "study.plan.json", "asked/sum-001", "--request"]
    Path("joint.json").write_text(request_to_json(JointRequest(mailed.study.plan.fingerprint, 1, (("a", "b"),))))
    capsys.readouterr()
    assert main([*run, "joint.json"])
    assert "joint features" in capsys.readouterr().err
    assert main([*run, "asked/request-001.json"]) == 0
    assert main([*run, "asked/request-001.json", "--attempt", "2"])
    assert "other settings" in capsys.readouterr().err
    shutil.copy("asked/request-001.json", "study.aggregate")
    assert main([*run, "asked/request-001.json"])
    assert main(["discover", "study.plan.json", "study.aggregate", "--ask", "asked", "-q"])
