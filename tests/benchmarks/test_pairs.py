"""Cause-effect pairs: the rivals know easy cases, and the figures count what they say."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from benchmarks.bench_pairs import (
    PROGRAMS,
    PUBLISHED,
    RIVALS,
    Pair,
    Verdict,
    ask_ours,
    figures,
    judge,
    load_pairs,
    main,
)


def swapped(pair: Pair) -> Pair:
    return Pair(pair.number, pair.y, pair.x, "y" if pair.cause == "x" else "x", pair.weight)


@pytest.fixture
def pair() -> Pair:
    """y is a steep function of an evenly spread x, with a little noise."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 400)
    return Pair("1", x, np.exp(3 * x) + 0.3 * rng.uniform(-1, 1, 400), "x", 0.5)


@pytest.fixture
def folder(tmp_path, monkeypatch, pair):
    """Data of two pairs in the form of the real ones."""
    found = tmp_path / "data" / "tuebingen_pairs"
    found.mkdir(parents=True)
    lines = [
        f"{k},{x},{y}" for k, one in (("1", pair), ("2", swapped(pair))) for x, y in zip(one.x, one.y, strict=True)
    ]
    with gzip.open(found / "data.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["pair,x,y", *lines]))
    truth = {"1": {"cause": "x", "weight": 1.0}, "2": {"cause": "y", "weight": 0.5}}
    (found / "truth.json").write_text(json.dumps({"pairs": truth}), encoding="utf-8")
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))
    return found


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_finds_an_easy_cause_and_swapping_swaps_the_answer(name, pair):
    expected = {"IGCI slope": "x", "IGCI entropy": "x", "RECI": "x"}[name]
    assert judge(name, pair).answer == expected
    assert judge(name, swapped(pair)).answer != expected


@pytest.mark.parametrize("name", RIVALS)
def test_units_do_not_matter_to_a_rival(name, pair):
    other = Pair("1", 3 + 100 * pair.x, -2 + 0.01 * pair.y, "x", 0.5)
    assert judge(name, other).answer == judge(name, pair).answer


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_answer_with_a_variable_or_not_at_all(name, pair):
    assert ask_ours(pair, PROGRAMS[name]) in ("x", "y", None)


def test_figures_count_open_pairs_half():
    verdicts = [Verdict("x", "x", 1.0), Verdict("y", "x", 0.5), Verdict(None, "y", 0.5)]
    found = figures(verdicts)
    assert (found["pairs"], found["decided"], found["right"]) == (3, 2, 1)
    assert found["open as half"] == pytest.approx(1.25 / 2)
    assert found["among decided, weighted"] == pytest.approx(1 / 1.5)
    assert found["among decided"] == 0.5


def test_pairs_are_read_with_their_truth(folder, pair):
    first, second = load_pairs(folder)
    assert np.array_equal(first.x, pair.x)
    assert (first.cause, first.weight, second.cause, second.weight) == ("x", 1.0, "y", 0.5)


def test_it_prints_programs_rivals_and_what_is_published(folder, capsys):
    main(["--workers", "1", "--programs", "constraint"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("constraint", *RIVALS, PUBLISHED))


def test_data_that_are_not_there_are_skipped_with_the_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))
    main([])
    assert "not found, skipped" in capsys.readouterr().out


def test_an_unknown_program_is_refused(folder):
    with pytest.raises(SystemExit, match="found no program 'guess'"):
        main(["--programs", "guess"])
