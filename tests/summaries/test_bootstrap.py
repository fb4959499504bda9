"""Bootstrap copies on their way: made at a site, held to its policy, sorted out and checked by the server, searched."""

from __future__ import annotations

import json
import os
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import studies
from effort import steps

from fedcdh._io import storage
from fedcdh.cli import main
from fedcdh.cli._bootstrap_files import collect_replicates
from fedcdh.cli._console import Output
from fedcdh.cli._summaries import ReplicateFile, SummaryReader
from fedcdh.data.readers import open_tables
from fedcdh.discovery.api import discover_from
from fedcdh.errors import DisclosureError, FedCDHError, SettingsError, SummaryError
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import unpack_summary
from fedcdh.privacy import releases
from fedcdh.privacy.disclosure.leverage import ReplicateLeverage, compute_leverages
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows
from fedcdh.privacy.disclosure.thresholds import required_cell_count, required_rows
from fedcdh.reporting.result_files import stability_to_dict
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.validation import admit_replicates, admit_summaries, validate_replicate

SITES = {"north": 400, "south": 420, "coast": 380}
TABLES = studies.mixed(0, (120, 90, 60))
PLAN = studies.plan_of(TABLES)
COHORT = add_up((summarize(table, PLAN, client) for client, table in TABLES.items()), PLAN)


def copies_of(tables: studies.Tables, plan: StudyPlan, number: int, seed: int = 1) -> list[tuple]:
    """All clients' first copies, all clients' second ones, ..."""
    drawn = [bootstrap_summaries(table, plan, client, number, seed) for client, table in tables.items()]
    return list(zip(*drawn, strict=True))


# By file


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE", "FEDCDH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with a plan, the tables and two copies of every site; nothing in it is ever changed."""
    folder = tmp_path_factory.mktemp("study")
    rows = ",".join(map(str, SITES.values()))
    made = [
        "simulate",
        "-o",
        str(folder),
        "--sites",
        ",".join(SITES),
        "--rows",
        rows,
        "--variables",
        "3",
        "--seed",
        "11",  # nobody stands out, whatever is drawn
    ]
    assert main([*made, "-q"]) == 0
    for site in SITES:
        data = str(folder / site / "data.csv")
        assert main(["profile", data, "--client", site, "-o", str(folder / f"{site}.profile.json"), "-q"]) == 0
    profiles = [str(folder / f"{site}.profile.json") for site in SITES]
    assert main(["plan", *profiles, "-o", str(folder / "study.plan.json"), "-q"]) == 0
    for site in SITES:
        assert summarized(folder, site, folder, 2) == 0
    return folder


def summarized(study: Path, site: str, folder: Path, copies: int, *more: str) -> int:
    arguments = ["summarize", str(study / "study.plan.json"), str(study / site / "data.csv"), "--client", site]
    return main([*arguments, "-o", str(folder / f"{site}.summary"), "--bootstrap", str(copies), "-q", *more])


def discovered(study: Path, files: list[Path], out: Path, *more: str) -> int:
    return main(["discover", str(study / "study.plan.json"), *map(str, files), "-o", str(out), *more])


def plain(folder: Path) -> list[Path]:
    return [folder / f"{site}.summary" for site in SITES]


def test_copies_by_file_are_those_in_process(study, tmp_path, monkeypatch, capsys):
    plan = Study.from_json((study / "study.plan.json").read_bytes()).plan
    monkeypatch.setattr(releases.secrets, "randbits", lambda bits: 7 * bits)
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client", "north"]
    assert main([*arguments, "-o", str(tmp_path / "north.summary"), "--bootstrap", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["copies"] == 2
    assert sorted(said["files"]) == sorted(map(str, tmp_path.iterdir()))
    assert said["bytes_in_all"] == sum(path.stat().st_size for path in tmp_path.iterdir())
    expected = bootstrap_summaries(open_tables(study / "north" / "data.csv"), plan, "north", 2, 7 * 128)
    for number, copy in enumerate(expected, start=1):
        assert unpack_summary((tmp_path / f"north.boot-00{number}.summary").read_bytes(), plan).summary == copy
    assert (tmp_path / "north.summary").read_bytes() == (study / "north.summary").read_bytes()


def test_every_run_draws_anew(study, tmp_path):
    assert summarized(study, "north", tmp_path, 2) == 0
    drawn = {path.read_bytes() for folder in (study, tmp_path) for path in folder.glob("north.boot-*")}
    assert len(drawn) == 4


def test_copies_say_how_stable_a_result_is_and_change_nothing_else(study, tmp_path, capsys):
    files = sorted(study.glob("*.summary"))
    assert discovered(study, plain(study), tmp_path / "plain", "-q") == 0
    assert discovered(study, files, tmp_path / "a") == 0
    said = capsys.readouterr()
    assert "Found again on 2 bootstrap replicates" in said.out
    assert said.err.count("is not signed") == len(SITES)
    assert discovered(study, files[::-1], tmp_path / "b", "--stability", "--json") == 0
    assert json.loads(capsys.readouterr().out)["copies"] == 2
    for name in ("graph.txt", "graph.dot", "edges.csv"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    without, one, both = (json.loads((tmp_path / n / "result.json").read_text("utf-8")) for n in ("plain", "a", "b"))
    found = one.pop("row_stability")
    assert one == without
    assert found == both.pop("row_stability")
    assert both.pop("stability")["kind"] == "leave-one-out"
    assert both == without
    plan = Study.from_json((study / "study.plan.json").read_bytes()).plan
    received = [unpack_summary(path.read_bytes(), plan).summary for path in files]
    result = discover_from([summary for summary in received if not summary.replicate], plan)
    copies = [[summary for summary in received if summary.replicate == number] for number in (2, 1)]
    expected = stability_to_dict(result.stability(replicates=copies))
    assert found == json.loads(json.dumps(expected))
    assert main(["report", str(tmp_path / "b"), "-o", str(tmp_path / "study.html"), "-q"]) == 0
    page = (tmp_path / "study.html").read_text("utf-8")
    assert "With resampled rows" in page
    assert "with each site left out in turn" in page


def test_a_copy_cannot_stand_for_the_summary(study, tmp_path, capsys):
    swapped = [study / "north.boot-001.summary", *plain(study)[1:]]
    assert discovered(study, swapped, tmp_path / "r", "-q") == 5
    assert "Only bootstrap replicates of north are here" in capsys.readouterr().err
    renamed = tmp_path / "north.summary"
    renamed.write_bytes(swapped[0].read_bytes())
    assert discovered(study, [renamed, *plain(study)], tmp_path / "r", "-q") == 0  # known by what it says, not its name
    assert "row_stability" not in json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert main(["inspect", str(renamed), "--plan", str(study / "study.plan.json")]) == 0
    assert "is bootstrap replicate 1 of the summary of client north" in capsys.readouterr().out
    assert discovered(study, [*study.glob("*.summary"), renamed], tmp_path / "r", "-q") == 5
    assert "a second bootstrap copy 1 of client 'north'" in capsys.readouterr().err


def test_copies_that_not_all_sites_sent_are_left_out_and_named(study, tmp_path, capsys):
    files = [path for path in study.glob("*.summary") if path.name != "coast.boot-002.summary"]
    assert discovered(study, files, tmp_path / "r") == 0
    assert "replicates 2 are left out, because coast did not send them; 1 are used" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))["row_stability"]["runs"]) == 1


def test_work_to_find_who_did_not_send_copies_grows_with_the_sites(capsys):
    def work(sites: int) -> int:
        cohort = studies.cohort_of({f"site {k:03}": {"x": np.arange(3.0) + k} for k in range(sites)})
        sent = [
            ReplicateFile(Path("copy"), client, number, False) for client in cohort.clients[1:] for number in (1, 2)
        ]
        return steps(lambda: collect_replicates(sent, cohort, SummaryReader(Study(cohort.plan)), Output()))

    assert work(200) < 5 * work(50)
    assert (
        "replicates 1 to 2 are left out, because site 000 did not send them; 0 are used" in capsys.readouterr().err
    )


def test_a_new_summary_takes_older_copies_with_it(study, tmp_path, capsys):
    for copies, files in ((2, 3), (1, 2), (0, 1)):
        assert summarized(study, "north", tmp_path, copies, "--no-disclosure-control") == 0
        assert len(list(tmp_path.iterdir())) == files
    (tmp_path / "north.boot-007.summary").write_bytes((study / "south.boot-001.summary").read_bytes())
    assert summarized(study, "north", tmp_path, 1) == 2
    assert "is not a bootstrap replicate of north" in capsys.readouterr().err
    (tmp_path / "north.boot-007.summary").write_text("my notes")
    assert summarized(study, "north", tmp_path, 0) == 2
    assert (tmp_path / "north.boot-007.summary").read_text() == "my notes"


@pytest.mark.parametrize("stop", [4, 9, 14])
def test_an_interrupt_leaves_what_was_there(study, tmp_path, monkeypatch, stop):
    """Signed, 6 files and then 4: after the ledger, these are written aside, older ones moved away, newer ones in."""
    assert main(["keys", "new", "-o", str(tmp_path / "site.key"), "-q"]) == 0
    key, out = ("--key", str(tmp_path / "site.key"), "--no-disclosure-control"), tmp_path / "out"
    assert summarized(study, "north", out, 2, *key) == 0
    before, move, moves = {path.name: path.read_bytes() for path in out.iterdir()}, os.replace, []
    assert len(before) == 6

    def interrupted(source, target):
        moves.append(target)
        if len(moves) == stop + 1:
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(storage.os, "replace", interrupted)
    assert summarized(study, "north", out, 1, *key) == 130
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert summarized(study, "north", out, 1, *key) == 0
    assert len(list(out.iterdir())) == 4
    assert not set(before.values()) & {path.read_bytes() for path in out.glob("*boot*")}


def test_copies_of_an_older_summary_that_stayed_in_the_folder_are_refused(study, tmp_path, capsys):
    """The site sent two copies first, then, with one row more in its table, one."""
    data = (study / "north" / "data.csv").read_text("utf-8")
    (tmp_path / "north").mkdir()
    (tmp_path / "north" / "data.csv").write_text(data + data.splitlines()[1] + "\n", "utf-8")
    arguments = ["summarize", str(study / "study.plan.json"), str(tmp_path / "north" / "data.csv"), "--client", "north"]
    assert main([*arguments, "-o", str(tmp_path / "north.summary"), "--bootstrap", "1", "-q"]) == 0
    others = [path for path in study.glob("*.summary") if not path.name.startswith("north")]
    newer = [tmp_path / "north.summary", tmp_path / "north.boot-001.summary"]
    assert discovered(study, [*others, *newer, study / "north.boot-002.summary"], tmp_path / "r", "-q") == 5
    assert "bootstrap copy 2 of client 'north' belongs to another summary" in capsys.readouterr().err
    assert discovered(study, [*others, *newer], tmp_path / "r", "-q") == 0


def test_no_summary_is_called_like_a_copy_of_another(study, tmp_path, capsys):
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client"]
    for name in ("north.boot-001", "north.boot-1000"):
        assert main([*arguments, name, "-q"]) == 2
        assert main([*arguments, "north", "-o", str(tmp_path / f"{name}.summary"), "-q"]) == 2
        assert capsys.readouterr().err.count("is the name of a bootstrap replicate") == 2
    assert main([*arguments, "north", "-o", str(tmp_path / "north.boot-1.summary"), "-q"]) == 0


def test_the_policy_says_how_many_copies_may_leave(study, tmp_path, capsys):
    assert summarized(study, "north", tmp_path, 30) == 7
    assert "with up to 2 bootstrap replicates the summary may leave" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert summarized(study, "north", tmp_path, 2) == 0
    assert summarized(study, "north", tmp_path / "research", 5, "--no-disclosure-control") == 0
    assert len(list((tmp_path / "research").iterdir())) == 6


# The policy


@pytest.mark.parametrize("people", [23, 24, 35, 36, 200])
@pytest.mark.parametrize("rows", [247, 248, 400])
def test_every_message_needs_its_figures(people, rows):
    """Just as many copies as rows and the rarest label allow, and no more."""
    plan = StudyPlan((*(Continuous(name) for name in "abc"), Categorical("l", ("x", "y"))), ("north", "south"))
    rng = np.random.default_rng(rows)
    table = {name: rng.standard_normal(rows) for name in "abc"}
    table["l"] = np.where(np.arange(rows) < people, "x", "y")
    summary, policy = summarize(table, plan, "north"), Policy()
    least = min(rows // required_rows(plan), min(people, rows - people) // required_cell_count(plan))
    if least == 0:
        with pytest.raises(DisclosureError, match="the summary alone must not leave"):
            policy.check_summary(summary, plan, replicates=1)
        return
    policy.check_summary(summary, plan, replicates=least - 1)
    told = f"with up to {least - 1} bootstrap replicates the" if least > 1 else "without bootstrap replicates the"
    for more in (least, least + 20):
        with pytest.raises(DisclosureError, match=told):
            policy.check_summary(summary, plan, replicates=more)


def test_who_hides_behind_a_neighbour_is_found_in_the_copy_without_them():
    """Two rows far out, side by side: neither stands out in the summary, either does without the other."""
    plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"))
    rng = np.random.default_rng(5)
    table = {"a": np.append(rng.standard_normal(400), [25.0, 25.0]), "b": rng.standard_normal(402)}
    found = scan_rows(table, plan, "north", ScanOptions())
    summary = found.summary(0.5)
    seen = ReplicateLeverage(plan, summary)
    assert compute_leverages(summary, plan, found.extremes.values)["a"] < 0.51
    told = []
    copies = bootstrap_summaries(
        table, plan, "north", 30, 1, observer=lambda *block: (seen(*block), told.append(block))
    )
    times = dict(enumerate(np.hstack([counts for _, counts in told])[:, -2:], start=1))
    policy, refused = Policy(), set()
    for copy in copies:
        try:
            policy.check_replicate(copy, plan, seen.extremes[copy.replicate], seen.weights[copy.replicate])
        except DisclosureError:
            refused.add(copy.replicate)
    assert refused == {number for number, (one, other) in times.items() if (one > 0) != (other > 0)}
    assert 0 < len(refused) < 30
    for copy in copies:
        Policy(disclosure_control=False).check_replicate(copy, plan, seen.extremes[copy.replicate], seen.weights[copy.replicate])


def test_the_outermost_values_of_a_copy_are_those_of_its_rows(monkeypatch):
    table = {name: column[:60] for name, column in TABLES["clinic a"].items()}
    seen, told = ReplicateLeverage(PLAN, summarize(table, PLAN, "clinic a")), {}
    monkeypatch.setattr("fedcdh.summaries.bootstrap._BLOCK_ROWS", 7)

    def watch(rows, times):
        seen(rows, times)
        for number, counts in enumerate(times, start=1):
            told.setdefault(number, []).append((rows.columns["age"].values, counts))

    bootstrap_summaries(table, PLAN, "clinic a", 3, 1, observer=watch)
    for number, blocks in told.items():
        ages, times = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        there = ages[times > 0]
        ends = seen.extremes[number]["age"]
        assert (ends.min(), ends.max()) == (there.min(), there.max())
        assert seen.weights[number]["age"][0] == times[ages == there.min()].max()


def test_odds_grow_with_the_messages():
    """Columns w_b φ beside φ: a row's odds h/(1 − h) are B + 1 times as large, averaged over draws. Seed 1000."""
    rng, copies = np.random.default_rng(1000), 4
    features = np.column_stack([np.ones(4000), rng.standard_normal((4000, 2))])
    features[0] = [1, 9, -9]
    ratios = []
    for _ in range(60):
        times = np.column_stack([np.ones(4000), rng.poisson(1, (4000, copies))])
        both = np.einsum("ni,nj->nij", times, features).reshape(4000, -1)
        odds = []
        for columns in (features, both):
            leverage = columns[0] @ np.linalg.solve(columns.T @ columns, columns[0])
            odds.append(leverage / (1 - leverage))
        assert odds[1] / odds[0] == pytest.approx(1 + ((times[0, 1:] - 1) ** 2).sum(), rel=0.2)
        ratios.append(odds[1] / odds[0])
    assert np.mean(ratios) == pytest.approx(copies + 1, rel=0.25)


def test_the_weights_that_were_drawn_count_and_not_their_average():
    """One row far out: B + 1 times its odds pass, and so do most draws; those in which it counts often do not."""
    plan, copies = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south")), 4
    rng = np.random.default_rng(5)
    table = {"a": np.append(rng.standard_normal(500), 6.0), "b": rng.standard_normal(501)}
    found = scan_rows(table, plan, "north", ScanOptions())
    summary = found.summary(0.5)
    alone = compute_leverages(summary, plan, found.extremes.values)["a"]
    odds, limit = alone / (1 - alone), 7.5
    policy = Policy(max_leverage=limit * odds / (1 + limit * odds))
    policy.check_summary(summary, plan, found.extremes.values, replicates=copies)
    refused, expected = set(), set()
    for seed in range(60):
        seen, told = ReplicateLeverage(plan, summary), []

        def watch(*block, seen=seen, told=told):
            seen(*block)
            told.append(block)

        bootstrap_summaries(table, plan, "north", copies, seed, observer=watch)
        grown = 1 + ((told[-1][1][:, -1] - 1) ** 2).sum()
        assert seen.joint["a"] == pytest.approx(odds * grown / (1 + odds * grown), abs=1e-9)
        if grown > limit:
            expected.add(seed)
        try:
            policy.check_replicates(seen.joint)
        except DisclosureError:
            refused.add(seed)
        replace(policy, disclosure_control=False).check_replicates(seen.joint)
    assert refused == expected
    assert 0 < len(refused) < 60


# On arrival


@pytest.mark.parametrize("seed", range(3))
def test_no_honest_copy_is_refused(seed):
    tables = studies.mixed(seed, (60, 8, 150))
    tables["clinic a"] = {**tables["clinic a"], "age": np.where(np.arange(60) % 5, tables["clinic a"]["age"], np.nan)}
    plan = studies.plan_of(tables)
    cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
    copies = [copy for drawn in copies_of(tables, plan, 8, seed) for copy in drawn]
    assert [drawn.summaries[0].replicate for drawn in admit_replicates(copies, cohort)] == list(range(1, 9))


def test_copies_and_summaries_are_kept_apart():
    ((one, *others),) = copies_of(TABLES, PLAN, 1)
    for mixed in ([one, *COHORT.summaries[1:]], [*COHORT.summaries, one]):
        with pytest.raises(SummaryError, match="bootstrap copy 1"):
            admit_summaries(mixed, PLAN)
        with pytest.raises(SummaryError, match="came together"):
            add_up(mixed, PLAN)
    with pytest.raises(SummaryError, match="expected the summary"):
        admit_summaries([one, *others], PLAN)
    with pytest.raises(SummaryError, match="expected bootstrap copy 2"):
        admit_summaries([one, *others], PLAN, replicate=2)
    with pytest.raises(SummaryError, match="same draw"):
        _ = one + COHORT.summaries[0]
    with pytest.raises(SummaryError, match="expected summaries of the rows themselves"):
        discover_from(Aggregate.of(add_up([one, *others], PLAN)), PLAN)


def test_copies_of_other_rows_or_of_no_draw_are_refused():
    first, second = copies_of(TABLES, PLAN, 2)
    other = studies.mixed(0, (120, 90, 60))
    other["clinic a"] = {**other["clinic a"], "age": other["clinic a"]["age"] + 40}
    (foreign, *_), _ = copies_of(other, PLAN, 2)
    foreign = replace(foreign, original=COHORT.summaries[0].digest)  # as one says who means harm
    with pytest.raises(SummaryError, match="not drawn from the rows of its summary"):
        admit_replicates([foreign, *first[1:]], COHORT)
    lacking = replace(first[0], rows_read=first[0].rows_read + 150, missing={**first[0].missing, PLAN.names[0]: 150})
    with pytest.raises(SummaryError, match="not drawn from the rows"):
        validate_replicate(lacking, COHORT.summaries[0])
    alike = {**TABLES, "clinic a": {name: column[::-1][:-1] for name, column in TABLES["clinic a"].items()}}
    (similar, *_), _ = copies_of(alike, PLAN, 2)
    with pytest.raises(SummaryError, match="belongs to another summary"):
        admit_replicates([similar, *first[1:]], COHORT)
    with pytest.raises(SettingsError, match="replicate 1 of clinic a was not drawn from the rows of the result"):
        discover_from(COHORT, PLAN).stability(replicates=[[similar, *first[1:]]])
    again = [replace(first[0], replicate=2), *second[1:]]
    with pytest.raises(SummaryError, match="bootstrap copy 2 and bootstrap copy 1 of client 'clinic a' hold the same"):
        admit_replicates([*first, *again], COHORT)
    with pytest.raises(SummaryError, match="bootstrap copy 1 and its summary"):
        admit_replicates([replace(whole := COHORT.summaries[0], replicate=1, original=whole.digest), *first[1:]], COHORT)


def test_a_study_without_a_client_has_copies_without_it():
    there = [client for client in TABLES if client != "clinic b"]
    tables = {client: TABLES[client] for client in there}
    cohort = add_up((summarize(table, PLAN, client) for client, table in tables.items()), PLAN, without={"clinic b"})
    all_of_them, of_two = copies_of(TABLES, PLAN, 2), copies_of(tables, PLAN, 2)
    admitted = admit_replicates([copy for drawn in all_of_them for copy in drawn], cohort)
    assert [drawn.summaries for drawn in admitted] == of_two
    result = discover_from(cohort, PLAN)
    stability = result.stability(replicates=admitted)
    assert result.stability(replicates=of_two) == stability
    assert [run.clients for run in stability.runs] == [tuple(there)] * 2
    with pytest.raises(SettingsError, match="expected those of the clients of the result, clinic a, clinic c;"):
        result.stability(replicates=all_of_them)
    whole = discover_from(COHORT, PLAN)
    for copies in (of_two, admitted):
        with pytest.raises(SettingsError, match=r"replicates of clinic a, clinic c; expected .*clinic b, clinic c; pass"):
            whole.stability(replicates=copies)


# What the copies tell


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_a_run_is_the_discovery_of_a_copy(method):
    result, copies = discover_from(COHORT, PLAN, method=method), copies_of(TABLES, PLAN, 2)
    seen = []
    stability = result.stability(replicates=copies, progress=lambda *done: seen.append(done))
    assert seen == [(1, 2), (2, 2)]
    assert (stability.kind, stability.seed, stability.changes_without) == ("row-bootstrap", None, {})
    for run, copy in zip(stability.runs, copies, strict=True):
        alone = discover_from([replace(summary, replicate=0) for summary in copy], PLAN, method=method)
        assert (run.arrows, run.lines, run.changing) == (alone.graph.arrows, alone.graph.lines, alone.changing)
        assert (run.clients, run.left_out) == (COHORT.clients, ())
    assert all(edge.gone_without == edge.turned_without == () for edge in stability.edges)
    turned = [add_up(copy, PLAN) for copy in copies[::-1]]
    assert result.stability(replicates=turned) == stability


def test_copies_are_looked_at_one_after_the_other_and_let_go():
    result, made = discover_from(COHORT, PLAN), list[weakref.ref]()

    def arriving():
        for number, copy in enumerate(copies_of(TABLES, PLAN, 4)):
            assert not any(earlier() for earlier in made[:-1]), number
            yield (drawn := add_up([replace(one) for one in copy], PLAN))
            made.append(weakref.ref(drawn.summaries[0]))
            del drawn

    assert len(result.stability(replicates=arriving()).runs) == 4


def test_sums_have_sums_for_copies_and_one_client_has_copies_too():
    result = discover_from(Aggregate.of(COHORT), PLAN)
    copies = [Aggregate.of(add_up(copy, PLAN)) for copy in copies_of(TABLES, PLAN, 2)]
    assert len(result.stability(replicates=copies).runs) == 2
    alone = studies.cohort_of(tables := studies.numbers(0, (60,)))
    stability = discover_from(alone, alone.plan).stability(replicates=copies_of(tables, alone.plan, 2))
    assert [run.changing for run in stability.runs] == [None, None]
    assert stability.notes == ()


def test_what_are_no_copies_is_refused():
    result, (first, second) = discover_from(COHORT, PLAN), copies_of(TABLES, PLAN, 2)
    for copies, match in (
        ([], "no bootstrap replicates"),
        ([first, first], "replicate 1 twice"),
        ([COHORT], "rows themselves"),
        ([Aggregate.of(add_up(first, PLAN))], "single summaries"),
    ):
        searched: list[int] = []
        with pytest.raises(SettingsError, match=match):
            result.stability(replicates=copies, progress=lambda done, total, searched=searched: searched.append(done))
        assert not searched
    with pytest.raises(SettingsError, match="one of them"):
        result.stability(3, replicates=[first])
    for copies in ([first[:-1]], [[*first[:-1], second[-1]]]):
        with pytest.raises(FedCDHError):
            result.stability(replicates=copies)
