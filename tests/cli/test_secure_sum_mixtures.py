"""A secure sum with mixtures of sites by file, from the terms to the graph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import studies
from mailed_studies import Mailed

from fedcdh.cli import main
from fedcdh.discovery.api import discover_from
from fedcdh.errors import SummaryFormatError
from fedcdh.messages.aggregate_file import AggregateMessage, pack_aggregate, unpack_aggregate
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.domain_mixtures import DomainMixtures
from fedcdh.summaries.features import Fourier


@pytest.fixture
def by_file(tmp_path, monkeypatch):
    tables = {}
    for k in range(6):
        rng = np.random.default_rng([3, k])
        cause, rest = rng.uniform(-1, 1, (2, 300 + 10 * k))
        tables[f"site{k}"] = {"a": cause, "b": cause + 0.4 * k + rest}
    return Mailed.of(tmp_path, monkeypatch, tables, studies.plan_of(tables, Fourier(5)))


def test_six_sites_add_mixtures_by_file_and_the_paper_runs_on_the_sum(by_file, capsys):
    plan = by_file.study.plan
    found = by_file.run({}, "--mixtures", "1")
    cohort = add_up([summarize(table, plan, client) for client, table in by_file.tables.items()], plan)
    expected = Aggregate.from_total(cohort.total, plan, DomainMixtures.of(cohort.summaries, plan, 1))
    blobs = [pack_aggregate(AggregateMessage(one, session="0" * 64, threshold=5)) for one in (found, expected)]
    assert blobs[0] == blobs[1]
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "means and counts of no fewer than 3 clients together can be computed, and the number of rows of 3 clients"
        in said
    )
    assert "standard deviation" not in said
    assert main(["discover", "study.plan.json", "study.aggregate", "--method", "paper", "-o", "masked"]) == 0
    result = discover_from(expected, plan, method="paper")
    assert Path("masked/result.json").read_text() == render_result_json(result)
    assert "__domain__" in result.augmented.nodes
    capsys.readouterr()
    assert main(["inspect", "study.aggregate", "--plan", "study.plan.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mixtures"] == 1
    by_file.monkeypatch.chdir(by_file.root / "site0")
    assert main(["ledger", "show", "--ledger", "releases.jsonl"]) == 0
    assert "1 mixture of clients" in " ".join(capsys.readouterr().out.split())


def test_too_many_mixtures_are_refused_before_anything_is_sent(by_file, capsys):
    by_file.coordinator("--mixtures", "2", code=1)
    assert "sums of features over 2 clients can be computed" in " ".join(capsys.readouterr().err.split())
    assert not list((by_file.root / "rounds").glob("*.json"))


def test_a_site_whose_policy_asks_for_more_refuses(by_file, capsys):
    (by_file.root / "site1" / "policy.toml").write_text("min_group_sites = 4\n")
    by_file.coordinator("--mixtures", "1")
    by_file.site("site0", "1-terms.json")
    by_file.site("site1", "1-terms.json", "--policy", "policy.toml", code=7)
    assert "min_group_sites" in capsys.readouterr().err


def test_a_file_with_mixtures_has_a_version_of_its_own_and_is_checked(by_file):
    plan = by_file.study.plan
    cohort = add_up([summarize(table, plan, client) for client, table in by_file.tables.items()], plan)
    mixed = Aggregate.from_total(cohort.total, plan, DomainMixtures.of(cohort.summaries, plan, 1))
    blob = pack_aggregate(AggregateMessage(mixed, session="0" * 64, threshold=5))
    assert b"fedcdh-aggregate-3" in blob
    assert unpack_aggregate(blob, plan).aggregate.mixtures is not None
    assert b"fedcdh-aggregate-2" in pack_aggregate(
        AggregateMessage(Aggregate.of(cohort), session="0" * 64, threshold=5)
    )
    for changed in (blob[:-8], blob.replace(b"aggregate-3", b"aggregate-2"), blob[:-1] + b"\1"):
        with pytest.raises(SummaryFormatError):
            unpack_aggregate(changed, plan)
