"""Aggregation of files: the same sum in any order, in portions and after any interruption."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import (
    CLIENTS,
    KEYS,
    PLAN,
    STUDY,
    SUMMARIES,
    add,
    all_at_once,
    files,
    more_rows,
    same,
    summary_of,
    take,
    write,
)

from fedcdh._io.csv_cells import unescape_cell
from fedcdh.cli import _console, main
from fedcdh.cli._summaries import SummaryReader
from fedcdh.discovery.api import discover_from
from fedcdh.errors import (
    DuplicateClientError,
    MomentIdentityError,
    PlanMismatchError,
    SettingsError,
    SignatureError,
    SummaryError,
    SummaryFormatError,
)
from fedcdh.federation.streaming.aggregate_files import StreamingAggregation
from fedcdh.federation.streaming.running_sum import RunningSum
from fedcdh.messages.aggregate_file import AggregateMessage, pack_aggregate, unpack_aggregate
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, pack_summary, unpack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.validation import admit_summaries


@pytest.fixture(scope="module")
def inbox(tmp_path_factory) -> Path:
    """The plan file, and a folder with a summary of every client; nothing in it is ever changed."""
    folder = tmp_path_factory.mktemp("inbox")
    (folder / "study.plan.json").write_text(STUDY.to_json(), encoding="utf-8")
    for client in CLIENTS:
        write(folder / "sent", client)
    return folder


@given(order=st.permutations(range(len(CLIENTS))), stops=st.sets(st.integers(1, len(CLIENTS) - 1)), again=st.booleans())
@settings(max_examples=30, deadline=None)
def test_any_order_and_any_portions_give_the_same_sum(inbox, tmp_path_factory, order, stops, again):
    adding = StreamingAggregation.for_output(tmp_path_factory.mktemp("sums") / "total", STUDY)
    paths = [files(inbox)[place] for place in order]
    edges = [0, *sorted(stops), len(paths)]
    for start, stop in pairwise(edges):
        outcome = take(adding, paths[0 if again else start : stop])
        assert outcome.n_added == stop - start
        assert outcome.n_known == (start if again else 0)
        assert not outcome.refused
    message = outcome.sums.message()
    assert same(message.aggregate, all_at_once())
    assert message.summaries == {
        client: hashlib.sha256(path.read_bytes()).hexdigest()
        for client, path in zip(CLIENTS, files(inbox), strict=True)
    }
    straight = take(StreamingAggregation.for_output(tmp_path_factory.mktemp("sums") / "total", STUDY), files(inbox))
    assert pack_aggregate(message) == pack_aggregate(straight.sums.message())


def test_by_the_command_line_discover_takes_the_sum(inbox, tmp_path, capsys):
    target = tmp_path / "study.aggregate"
    assert add(inbox, target) == 0
    said = capsys.readouterr()
    assert "Summaries checked and added now: 7." in said.out
    assert said.err.count("is not signed") == len(CLIENTS) - len(KEYS)
    message = unpack_aggregate(target.read_bytes(), PLAN)
    assert not message.masked
    assert same(message.aggregate, all_at_once())
    assert not (tmp_path / "study.aggregate.adding").exists()
    assert main(["discover", str(inbox / "study.plan.json"), str(target), "-o", str(tmp_path / "result"), "-q"]) == 0
    found = json.loads((tmp_path / "result" / "result.json").read_text(encoding="utf-8"))
    expected = discover_from(all_at_once(), PLAN, knowledge=STUDY.knowledge)
    assert {tuple(arrow) for arrow in found["graph"]["arrows"]} == set(expected.graph.arrows)


def test_a_folder_stands_for_the_summaries_in_it(inbox, tmp_path, capsys):
    plan, sent = str(inbox / "study.plan.json"), inbox / "sent"
    for name, paths in (("folder", [sent]), ("files", files(inbox))):
        assert main(["discover", plan, *map(str, paths), "-o", str(tmp_path / name), "-q"]) == 0
    assert (tmp_path / "folder" / "result.json").read_bytes() == (tmp_path / "files" / "result.json").read_bytes()
    (tmp_path / "empty").mkdir()
    assert add(inbox, tmp_path / "total", tmp_path / "empty") == 2
    assert "holds no *.summary" in capsys.readouterr().err


def test_hidden_files_are_skipped_and_patterns_descend_into_folders(inbox, tmp_path):
    for client in CLIENTS:
        write(tmp_path / client, client)
        (tmp_path / client / f"._{client}.summary").write_bytes(b"what macOS leaves on other systems' disks")
    assert add(inbox, tmp_path / "folders", *(tmp_path / client for client in CLIENTS)) == 0
    assert add(inbox, tmp_path / "pattern", tmp_path / "**" / "*.summary") == 0
    assert add(inbox, tmp_path / "total") == 0
    assert len({(tmp_path / name).read_bytes() for name in ("folders", "pattern", "total")}) == 1
    assert add(inbox, tmp_path / "named", tmp_path / "site a" / "._site a.summary") == 5


def test_groups_by_file_and_for_programs(inbox, tmp_path, capsys):
    table = tmp_path / "groups.csv"
    groups = {client: "north" if client < "site d" else "south" for client in CLIENTS}
    table.write_text("client,group\n" + "".join(f"{c},{g}\n" for c, g in groups.items()), encoding="utf-8")
    assert add(inbox, tmp_path / "total", inbox / "sent", "--groups", table, "--json") == 0
    assert json.loads(capsys.readouterr().out)["groups"] == 2
    assert same(unpack_aggregate((tmp_path / "total").read_bytes(), PLAN).aggregate, all_at_once(groups))
    for text in ("site a,north\n", "client,group\nsite a,north\n", "client,group\nsite a,north\nsite a,south\n"):
        table.write_text(text, encoding="utf-8")
        assert add(inbox, tmp_path / "total", inbox / "sent", "--groups", table) == 2


def test_every_file_that_is_refused_is_named_and_the_others_are_kept(inbox, tmp_path, capsys):
    sent = tmp_path / "sent"
    for client in CLIENTS:
        write(sent, client)
    (sent / "site b.summary.sig").unlink()
    damaged = bytearray((sent / "site d.summary").read_bytes())
    damaged[-3] ^= 1
    (sent / "site d.summary").write_bytes(damaged)
    write(sent, "site e", more_rows(SUMMARIES["site e"]))
    assert add(inbox, tmp_path / "total", sent) == 6  # by the first
    said = capsys.readouterr().err
    assert "Refused files: 3" in said
    assert all(f"site {letter}.summary" in said for letter in "bde")
    assert f"The 4 summaries that were admitted are kept in {tmp_path / 'total.adding'}" in said
    assert not (tmp_path / "total").exists()
    for client in ("site b", "site d", "site e"):
        write(sent, client)
    assert add(inbox, tmp_path / "total", sent) == 0
    assert "total.adding): 4; named again and unchanged: 4." in capsys.readouterr().out
    assert same(unpack_aggregate((tmp_path / "total").read_bytes(), PLAN).aggregate, all_at_once())


def test_every_summary_is_validated(inbox, tmp_path):
    adding = StreamingAggregation.for_output(tmp_path / "total", STUDY)
    other = replace(PLAN, study="another")
    wrong_plan = tmp_path / "plan.summary"
    wrong_plan.write_bytes(pack_summary(SummaryMessage(summary_of("site g", other)), other))
    cases = [
        (write(tmp_path, "site c"), None),
        (write(tmp_path, "site c", name="site c.twice"), DuplicateClientError),  # the same file twice
        (write(tmp_path, "site d"), DuplicateClientError),  # and another of the same client
        (write(tmp_path, "site d", summary_of("site d", seed=1), name="second"), DuplicateClientError),
        (write(tmp_path, "site e"), DuplicateClientError),  # and a copy of it
        (write(tmp_path, "site g", replace(SUMMARIES["site e"], clients=("site g",))), DuplicateClientError),
        (wrong_plan, PlanMismatchError),
        (write(tmp_path, "site f", more_rows(SUMMARIES["site f"])), MomentIdentityError),
        (tmp_path / "nowhere.summary", SummaryError),
    ]
    forged = write(tmp_path, "site a", name="forged")
    forged.with_name("forged.summary.sig").write_text(
        sign(SigningKey.generate(), "summary", forged.read_bytes()), encoding="utf-8"
    )
    cases.append((forged, SignatureError))
    outcome = take(adding, [path for path, _ in cases])
    assert {path: kind for path, kind in cases if kind} == {
        path: next(kind for _, kind in cases if kind and isinstance(problem, kind)) for path, problem in outcome.refused
    }
    assert set(outcome.sums.added) == {"site c", "site d", "site e"}
    assert outcome.sums.contested == ("site d", "site e", "site g")
    assert not any(problem.__traceback__ or problem.__context__ for _, problem in outcome.refused)


@given(order=st.permutations(range(len(CLIENTS) + 1)), stops=st.sets(st.integers(1, len(CLIENTS))))
@settings(max_examples=10, deadline=None)
def test_conflicts_do_not_depend_on_the_order(inbox, tmp_path_factory, order, stops):
    """Of site d there are two, and site f sends the sums of site e: in any order and portions, there is no sum."""
    folder = tmp_path_factory.mktemp("contested")
    settled = [path for path in files(inbox) if path.stem not in {"site d", "site e", "site f"}]
    contested = [
        *files(inbox)[3:5],
        write(folder, "site d", summary_of("site d", seed=1), name="other d"),
        write(folder, "site f", replace(SUMMARIES["site e"], clients=("site f",))),
    ]
    paths, adding = [*settled, *contested], StreamingAggregation.for_output(folder / "total", STUDY)
    for start, stop in pairwise([0, *sorted(stops), len(paths)]):
        take(adding, [paths[place] for place in order[start:stop]])
    for named, refused in ((settled, []), (paths, contested)):  # not forgotten, and told of with the files at hand
        outcome = take(adding, named)
        assert outcome.sums.contested == ("site d", "site e", "site f")
        assert [path for path, _ in outcome.refused] == sorted(refused)
        with pytest.raises(DuplicateClientError, match="conflicting summaries of client site d, site e, site f"):
            outcome.sums.message()


@given(order=st.permutations(range(3)), stops=st.sets(st.integers(1, 2)))
@settings(max_examples=12, deadline=None)
def test_a_third_summary_is_compared_with_both_others_in_any_order(tmp_path_factory, order, stops):
    """Site f sends the sums of site e, and its own: whose rows the first are has to be asked of both."""
    folder = tmp_path_factory.mktemp("third")
    paths = [
        write(folder, "site e"),
        write(folder, "site f"),
        write(folder, "site f", replace(SUMMARIES["site e"], clients=("site f",)), name="other f"),
    ]
    adding = StreamingAggregation.for_output(folder / "total", STUDY)
    for start, stop in pairwise([0, *sorted(stops), len(paths)]):
        take(adding, [paths[place] for place in order[start:stop]])
    outcome = take(adding, paths)
    assert outcome.sums.contested == ("site e", "site f")
    assert [path for path, _ in outcome.refused] == sorted(paths)


def test_the_number_of_recorded_conflicts_is_bounded(tmp_path):
    adding, sums = StreamingAggregation.for_output(tmp_path / "total", STUDY), RunningSum(STUDY)
    for number in range(6 * len(CLIENTS) + 100):
        message = SummaryMessage(replace(summary_of("site a", seed=number % 7), clients=("site a",)))
        with nullcontext() if not number else pytest.raises(DuplicateClientError):
            sums.add(message, f"{number:064x}")
    adding.journal.write_bytes(sums.to_bytes())
    assert adding.resume().contested == ("site a",)


def test_a_conflict_is_resolved_by_starting_again(inbox, tmp_path, capsys):
    target, other = tmp_path / "total", write(tmp_path, "site d", summary_of("site d", seed=1), name="other d")
    said = []
    for paths in (files(inbox), files(inbox)[::-1]):
        assert add(inbox, target, other, *paths) == add(inbox, target, *paths, other) == 5
        assert add(inbox, target, *(path for path in paths if path.stem != "site d"), "--go-on") == 5
        said.append(capsys.readouterr().err)
        assert not target.exists()
        (tmp_path / "total.adding").unlink()
        assert add(inbox, target, *paths) == 0
        capsys.readouterr()
        target.unlink()
    assert said[0] == said[1]
    assert all(str(path) in said[0] for path in (other, files(inbox)[3]))
    assert f"remove {tmp_path / 'total.adding'}, and run this command again with all files" in said[0]


@pytest.mark.parametrize("first", ["true", "false"])
def test_an_impossible_summary_conflicts_with_nothing(inbox, tmp_path, first):
    sent = {
        "true": write(tmp_path, "site d", name="true"),
        "false": write(tmp_path, "site d", more_rows(SUMMARIES["site d"]), name="false"),
    }
    adding = StreamingAggregation.for_output(tmp_path / "total", STUDY)
    for path in (sent.pop(first), *sent.values()):
        outcome = take(adding, [path])
    assert outcome.sums.contested == ()
    assert take(adding, [path for path in files(inbox) if path.stem != "site d"]).sums.message()


def test_all_refused_files_are_listed(inbox, tmp_path, capsys):
    target, listed = tmp_path / "total", tmp_path / "total.refused.csv"
    wrong = [tmp_path / "sent" / f"{number:02}.summary" for number in range(25)]
    (tmp_path / "sent").mkdir()
    for path in wrong:
        path.write_bytes(path.name.encode())
    assert add(inbox, target, tmp_path / "sent", "--json") == 5
    said = capsys.readouterr()
    assert f"... and 5 more\nThe full list is {listed}" in said.err
    with listed.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == list(map(str, wrong))
    assert {row["kind"] for row in rows} == {"SummaryFormatError"}
    document = json.loads(said.out)
    assert document["refused"] == rows
    assert document["without"] == list(CLIENTS)
    assert add(inbox, target, files(inbox)[0], "--json") == 5
    assert not listed.exists()  # it was of another run
    document = json.loads(capsys.readouterr().out)
    assert (document["clients"], document["refused"], document["without"]) == (1, [], list(CLIENTS[1:]))
    listed.write_text("file,owner\n", encoding="utf-8")
    assert add(inbox, target) == 2
    assert listed.read_text(encoding="utf-8") == "file,owner\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_a_file_name_cannot_add_lines_to_the_list(inbox, tmp_path, capsys):
    name = "new\nfedcdh: note: all is well\nline"
    write(tmp_path, "site d", name=name)
    write(tmp_path, "site a", name=f"{name}, unsigned").with_name(f"{name}, unsigned.summary.sig").unlink()
    for twice in ("damaged", "the same"):
        (tmp_path / f"{name}, {twice}.summary").write_bytes(b"damaged")
    (tmp_path / name).mkdir()
    assert add(inbox, tmp_path / "total", tmp_path) == 5
    assert add(inbox, tmp_path / "total", tmp_path / name) == 2
    said = capsys.readouterr().err
    assert said.count("new\\nfedcdh: note: all is well\\nline") >= 6
    assert not any(line.startswith(("fedcdh: note: all", "line")) for line in said.splitlines())
    assert "all is well\\nline" in (tmp_path / "total.refused.csv").read_text(encoding="utf-8").splitlines()[1]


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_a_file_name_is_no_formula_in_the_list(inbox, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "=HYPERLINK(1).summary"
    (tmp_path / name).write_bytes(b"damaged")
    assert add(inbox, tmp_path / "total", Path(name)) == 5
    with (tmp_path / "total.refused.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["file"] == f"'{name}"
    assert unescape_cell(row["file"]) == name


def test_missing_clients_are_waited_for_or_left_out(inbox, tmp_path, capsys):
    target = tmp_path / "total"
    assert add(inbox, target, *files(inbox)[:5]) == 5
    assert "no summary from client site f, site g" in capsys.readouterr().err
    assert not target.exists()
    assert add(inbox, target, files(inbox)[5], "--go-on", "--json") == 0
    assert json.loads(capsys.readouterr().out)["without"] == ["site g"]
    found = unpack_aggregate(target.read_bytes(), PLAN).aggregate
    rest = [SUMMARIES[client] for client in CLIENTS[:-1]]
    assert same(found, Aggregate.of(admit_summaries(rest, PLAN, without=["site g"])))
    assert add(inbox, target, files(inbox)[6]) == 0  # who comes late is added to what was kept
    assert same(unpack_aggregate(target.read_bytes(), PLAN).aggregate, all_at_once())
    assert not (tmp_path / "total.adding").exists()


def test_a_sum_is_not_overwritten_by_one_without_some_of_its_clients(inbox, tmp_path, capsys):
    target = tmp_path / "total"
    assert add(inbox, target, inbox / "sent") == 0
    whole = target.read_bytes()
    assert add(inbox, target, files(inbox)[0], "--go-on") == 2
    said = capsys.readouterr().err
    assert f"{target} is a sum that also has site b, site c, site d, site e, site f, site g" in said
    assert "choose another name with -o, or remove the file first" in said
    assert target.read_bytes() == whole
    assert add(inbox, target, *files(inbox)[1:]) == 0  # what was kept beside it goes on to the same sum
    assert target.read_bytes() == whole


@pytest.mark.parametrize("command", [("inspect",), ("discover", "plan.json")])
def test_a_sum_in_the_making_is_called_so_where_a_sum_is_expected(inbox, tmp_path, capsys, command):
    assert add(inbox, tmp_path / "total", files(inbox)[0]) == 5
    capsys.readouterr()
    (tmp_path / "plan.json").write_text(STUDY.to_json(), encoding="utf-8")
    name, *plan = command
    assert main([name, *(str(tmp_path / one) for one in plan), str(tmp_path / "total.adding")]) == 5
    said = capsys.readouterr().err
    assert "total.adding: This is an unfinished sum of `fedcdh aggregate`. Run that command again" in said


def test_an_error_of_the_disk_names_the_file(inbox, tmp_path, capsys, monkeypatch):
    """On a full disk, the system names none."""
    for number, advice in (
        (errno.ENOSPC, "Expected a place with room for it. Choose another place, or delete other files there."),
        (errno.EACCES, "Choose another place, or change the permissions."),
    ):

        def refused(handle, data, number=number):
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as full:
            full.setattr("fedcdh._io.storage._write_all", refused)
            assert add(inbox, tmp_path / "total", inbox / "sent") == 8
        said = f"{tmp_path / 'total.adding'} cannot be read or written ({os.strerror(number)})."
        assert f"{said} {advice}" in capsys.readouterr().err
    assert not (tmp_path / "total").exists()


def test_impossible_names_of_groups_are_refused_before_anything_is_added(inbox, tmp_path, capsys):
    table = tmp_path / "groups.csv"
    for name in ("north\tcoast", " ", "n" * 201):
        table.write_text(f"client,group\n{CLIENTS[0]},{name}\n" + "".join(f"{c},south\n" for c in CLIENTS[1:]))
        assert add(inbox, tmp_path / "total", inbox / "sent", "--groups", table) == 2
        assert "Rename it" in capsys.readouterr().err
    assert not (tmp_path / "total.adding").exists()


def test_a_file_that_cannot_be_read_is_refused_like_any_other(inbox, tmp_path):
    def opened(path: Path, content: bytes) -> SummaryMessage:
        if path.stem == "site b":
            raise PermissionError(13, "Permission denied", f"{path}.sig")
        return SummaryReader(STUDY).unpack(path, content)

    outcome = StreamingAggregation.for_output(tmp_path / "total", STUDY).add_files(
        files(inbox), max_summary_bytes(PLAN), opened
    )
    ((path, problem),) = outcome.refused
    assert path.stem == "site b"
    assert str(problem).startswith(f"{path}.sig cannot be read (Permission denied)")
    assert outcome.sums.lacking == ("site b",)


def test_a_pattern_that_fits_nothing_and_a_plan_by_another_are_refused(inbox, tmp_path, capsys):
    assert add(inbox, tmp_path / "total", tmp_path / "nothing*.summary") == 2
    assert "No file matches" in capsys.readouterr().err
    assert add(inbox, tmp_path / "total", inbox / "sent", tmp_path / "nothing*.summary") == 2  # others do
    assert f"No file matches {tmp_path / 'nothing*.summary'}" in capsys.readouterr().err
    assert add(inbox, tmp_path / "total", inbox / "sent", "--plan-key", KEYS["site a"].public) == 6
    assert "who made it" in capsys.readouterr().err
    assert not (tmp_path / "total.adding").exists()


def test_many_missing_clients_take_one_note():
    plan = replace(PLAN, clients=(*CLIENTS, *(f"gone {number}" for number in range(30))))
    some = [summary_of(client, plan) for client in CLIENTS[:2]]
    cohort = admit_summaries(some, plan, without=[client for client in plan.clients if client not in CLIENTS[:2]])
    notes = [note for note in discover_from(Aggregate.of(cohort), plan).notes if "dropped out" in note]
    assert len(notes) == 1
    assert "and 15 more" in notes[0]


def test_bootstrap_replicates_are_left_out(inbox, tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal(80)
    table = {"x": x, "g": np.where(x > 0, "yes", "no"), "y": -x}
    (copy,) = bootstrap_summaries(table, PLAN, "site g", 1, seed=1)
    write(tmp_path, "site g", copy, name="boot")
    assert add(inbox, tmp_path / "total", inbox / "sent", tmp_path / "boot.summary") == 0
    assert "1 bootstrap replicates are left out" in capsys.readouterr().err
    assert same(unpack_aggregate((tmp_path / "total").read_bytes(), PLAN).aggregate, all_at_once())


def test_replicates_alone_leave_no_journal(inbox, tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal(80)
    copies = bootstrap_summaries({"x": x, "g": np.where(x > 0, "yes", "no"), "y": -x}, PLAN, "site g", 2, seed=1)
    paths = [write(tmp_path, "site g", copy, name=f"boot {copy.replicate}") for copy in copies]
    for more in ((), ("--go-on",)):
        assert add(inbox, tmp_path / "total", *paths, *more) == 5
        said = capsys.readouterr().err
        assert "Only bootstrap replicates were named (2)" in said
        assert "kept" not in said
    assert not (tmp_path / "total.adding").exists()


def test_missing_disclosure_control_survives_an_interruption(inbox, tmp_path):
    adding = StreamingAggregation.for_output(tmp_path / "total", STUDY)
    take(adding, [write(tmp_path, "site f", disclosure_control=False)])
    outcome = take(adding, files(inbox)[:5])
    assert outcome.sums.message().without_disclosure_control == ("site f",)


def test_a_file_that_changed_after_it_was_added_is_named(inbox, tmp_path, capsys):
    target, mine = tmp_path / "total", tmp_path / "sent"
    path = write(mine, "site d")
    assert add(inbox, target, path) == 5
    write(mine, "site d", summary_of("site d", seed=5))
    assert add(inbox, target, path) == 5
    said = capsys.readouterr().err
    assert str(path) in said
    assert "changed after it was added" in said


def test_an_interruption_keeps_what_was_added(inbox, tmp_path):
    adding = StreamingAggregation.for_output(tmp_path / "total", STUDY)
    receiving, opened = SummaryReader(STUDY), []

    def stopped(path: Path, content: bytes) -> SummaryMessage:
        if len(opened) == 4:
            raise KeyboardInterrupt
        opened.append(path)
        return receiving.unpack(path, content)

    with pytest.raises(KeyboardInterrupt):
        adding.add_files(files(inbox), max_summary_bytes(PLAN), stopped)
    assert set(adding.resume().added) == set(CLIENTS[:4])
    assert same(take(adding, files(inbox)[4:]).sums.message().aggregate, all_at_once())


def test_a_signal_to_end_keeps_what_was_added(inbox, tmp_path, capsys, monkeypatch):
    """As timeout, Slurm and Kubernetes send it."""
    opened, before = SummaryReader.unpack, signal.SIG_DFL
    inherited = signal.signal(signal.SIGTERM, before)  # whoever runs the tests may have set another

    def ended(self: SummaryReader, path: Path, content: bytes) -> SummaryMessage:
        if path.stem == "site e":
            assert signal.getsignal(signal.SIGTERM) is not before  # else it would end the tests
            signal.raise_signal(signal.SIGTERM)
        return opened(self, path, content)

    with monkeypatch.context() as ending:
        ending.setattr(SummaryReader, "unpack", ended)
        assert add(inbox, tmp_path / "total") == 130
    assert "Run the command again" in capsys.readouterr().err
    assert signal.signal(signal.SIGTERM, inherited) is before
    assert set(StreamingAggregation.for_output(tmp_path / "total", STUDY).resume().added) == set(CLIENTS[:4])
    assert add(inbox, tmp_path / "total") == 0


def test_half_a_summary_is_never_kept(inbox, tmp_path, monkeypatch):
    """A stop between two of the numbers that belong together: what is on disk is as it was before."""
    adding = StreamingAggregation.for_output(tmp_path / "total", STUDY)
    take(adding, files(inbox)[:2])
    before, sums = adding.journal.read_bytes(), adding.resume()
    sums._place.clear()  # the second of the numbers then finds no place
    monkeypatch.setattr(StreamingAggregation, "resume", lambda self: sums)
    with pytest.raises(KeyError):
        take(adding, files(inbox)[2:3])
    assert adding.journal.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_killed_at_any_line_it_continues_to_the_same_bytes(inbox, tmp_path):
    assert add(inbox, tmp_path / "total", "-q") == 0
    expected = hashlib.sha256((tmp_path / "total").read_bytes()).hexdigest()
    (tmp_path / "killed").mkdir()
    program = Path(__file__).parents[2] / "support" / "killed_adding.py"
    arguments = [str(inbox / "study.plan.json"), str(inbox / "sent"), str(tmp_path / "killed"), "53"]
    done = subprocess.run([sys.executable, str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["digests"] == [expected]
    assert found["killed"] > 10
    assert found["journals"] > 5


def test_a_journal_belongs_to_one_study_and_its_groups(inbox, tmp_path, capsys):
    take(StreamingAggregation.for_output(tmp_path / "total", STUDY), files(inbox)[:2])
    other = Study(replace(PLAN, study="another"))
    with pytest.raises(
        PlanMismatchError, match=r"total\.adding cannot be continued\. The journal holds sums by the plan"
    ):
        StreamingAggregation.for_output(tmp_path / "total", other).resume()
    with pytest.raises(PlanMismatchError, match="other keys"):
        StreamingAggregation.for_output(tmp_path / "total", Study(PLAN)).resume()
    with pytest.raises(SettingsError, match="other groups"):
        StreamingAggregation.for_output(tmp_path / "total", STUDY, dict.fromkeys(CLIENTS, "all")).resume()
    (tmp_path / "total.adding").write_bytes(b"something else")
    assert add(inbox, tmp_path / "total") == 5
    assert "Remove it to start again" in capsys.readouterr().err


def test_an_impossible_sum_is_traced_to_the_journal(inbox, tmp_path, capsys):
    """Whoever can write to it can make its digest fit; what cannot be true is refused all the same."""
    adding = StreamingAggregation.for_output(tmp_path / "total", STUDY)
    sums = take(adding, files(inbox)[:2]).sums
    sums._triangle, sums._firsts = 2 * sums._triangle, 2 * sums._firsts
    adding.journal.write_bytes(sums.to_bytes())
    assert add(inbox, tmp_path / "total", *files(inbox)[2:]) == 5
    assert f"{adding.journal} was changed after it was written" in capsys.readouterr().err
    assert not (tmp_path / "total").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_at_once_are_refused(inbox, tmp_path, capsys):
    with StreamingAggregation.for_output(tmp_path / "total", STUDY).lock():
        assert add(inbox, tmp_path / "total") == 2
    assert "Another process is adding" in capsys.readouterr().err
    assert add(inbox, tmp_path / "total") == 0


def test_a_sum_names_its_files_in_one_way(inbox, tmp_path):
    message = take(StreamingAggregation.for_output(tmp_path / "total", STUDY), files(inbox)).sums.message()
    blob = pack_aggregate(message)
    assert pack_aggregate(unpack_aggregate(blob, PLAN)) == blob
    with pytest.raises(SummaryError, match="names files of"):
        pack_aggregate(replace(message, summaries={"site a": "0" * 64}))
    with pytest.raises(SummaryError, match="no session"):
        pack_aggregate(replace(message, session="0" * 64))
    for name, groups in (("order", reversed(message.aggregate.groups)), ("twice", [("a", (c,)) for c in CLIENTS])):
        other = Aggregate(PLAN, message.aggregate.total, message.aggregate.first_moments, tuple(groups))
        with pytest.raises(SummaryFormatError, match=name):
            unpack_aggregate(pack_aggregate(replace(message, aggregate=other)), PLAN)
    masked = pack_aggregate(AggregateMessage(message.aggregate, "ab" * 32, 5))
    assert unpack_aggregate(masked, PLAN).masked
    for place in range(0, len(blob), 97):
        damaged = bytearray(blob)
        damaged[place] ^= 4
        with pytest.raises((SummaryFormatError, PlanMismatchError, SummaryError)):
            unpack_aggregate(bytes(damaged), PLAN)


def test_messages_about_many_files_stay_short(inbox, tmp_path, capsys, monkeypatch):
    """Progress as lines where nobody watches, and one note for all."""
    monkeypatch.setattr(_console, "SECONDS_BETWEEN_LINES", 0.0)
    plan = replace(PLAN, clients=tuple(f"c{number:03d}" for number in range(40)))
    path = tmp_path / "study.plan.json"
    path.write_text(Study(plan).to_json(), encoding="utf-8")
    (tmp_path / "sent").mkdir()
    for number, client in enumerate(plan.clients):
        table = {"x": [0.5 * number, 1.0], "g": ["no", "yes"], "y": [1.0, 2.0]}
        blob = pack_summary(SummaryMessage(summarize(table, plan, client)), plan)
        (tmp_path / "sent" / f"{client}.summary").write_bytes(blob)
    assert main(["aggregate", str(path), str(tmp_path / "sent"), "-o", str(tmp_path / "total")]) == 0
    said = capsys.readouterr().err
    assert "adding summaries, 40 of 40" in said
    assert (
        "40 summaries are not signed: nothing but the way they came shows that they are from c000, c001, c002, c003, "
        "c004 and 35 more" in said
    )
    assert said.count("not signed") == 1
    assert main(["aggregate", str(path), str(tmp_path / "sent"), "-o", str(tmp_path / "total"), "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert unpack_summary(blob, plan).summary.clients == ("c039",)


def test_inspect_describes_a_sum(inbox, tmp_path, capsys):
    target, plan = tmp_path / "total", str(inbox / "study.plan.json")
    assert add(inbox, target, "-q") == 0
    capsys.readouterr()
    assert main(["inspect", str(target), "--plan", plan, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["masked"], found["clients"]) == ("aggregate", False, list(CLIENTS))
    assert found["rows"] == all_at_once().total.rows
    assert main(["inspect", str(target), "--plan", plan, "--numbers", str(tmp_path / "all.csv")]) == 0
    assert "the sum of the summaries of 7 clients" in capsys.readouterr().out
    assert (tmp_path / "all.csv").exists()
    other = tmp_path / "other.plan.json"
    other.write_text(Study(replace(PLAN, study="another")).to_json(), encoding="utf-8")
    assert main(["inspect", str(target), "--plan", str(other)]) == 4
