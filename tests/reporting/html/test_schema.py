"""The result document: a damaged one is refused, and never breaks a report."""

from __future__ import annotations

import copy
import json

import pytest
import reports
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import ParsedPage, document

from fedcdh.cli import main
from fedcdh.errors import DataError
from fedcdh.reporting.html import check_document, read_document, render_report
from fedcdh.reporting.result_files import FORMAT, OLD_FORMATS

FIVE = document([f"v{at}" for at in range(5)])


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": "fedcdh-result-4"}', "{", '{"a":1,"a":2}'])
def test_a_file_that_is_not_a_result_is_refused(text, tmp_path, capsys):
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == 3
    assert "Error" not in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
    with pytest.raises(DataError):
        read_document(tmp_path / "result.json")


def _places(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(entry, (*path, key))


WHOLE = json.loads(json.dumps({**FIVE, "drift": reports.drift(FIVE), "stability": reports.stability(FIVE)}))


PLACES = sorted(_places(WHOLE), key=str)


ODD = st.sampled_from([None, -1, 0, 1e300, 2.5, True, "", "v0", "→", "x", [], {}, [["v0", "v0"]], [None], {"a": []}])


@given(st.sampled_from(PLACES), ODD, st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_damaged_document_is_refused_or_shown_but_never_breaks(path, value, remove):
    """One value replaced or left out, anywhere: a report or a DataError."""
    made = copy.deepcopy(WHOLE)
    place = made
    for key in path[:-1]:
        place = place[key]
    if not path:
        made = value
    elif remove:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    try:
        check_document(made)
    except DataError:
        with pytest.raises(DataError):
            render_report(made)
    else:
        ParsedPage(render_report(made))


def test_a_result_of_an_older_version_is_refused_with_its_version():
    for old in OLD_FORMATS:
        with pytest.raises(DataError, match=rf"format '{old}' of an older version. Expected .*{FORMAT}"):
            check_document({**FIVE, "format": old})
    check_document(FIVE)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"variables": [*FIVE["variables"], "v0"]}, "named twice"),
        ({"changing": ["stranger"]}, "a changing variable is not among the variables"),
        ({"edges": [*FIVE["edges"], FIVE["edges"][0]]}, "occurs twice among the edges"),
        ({"notes": [3]}, r"result.notes\[0\] is not a text"),
        ({"probability_of_change": {"stranger": 0.5}}, "a probability of change is not that of one of the variables"),
        ({"probability_of_change": {"v0": 1.5}}, "is not a number from 0 to 1"),
        ({"settings": {**FIVE["settings"], "min_probability": 2}}, "min_probability is not a number from 0 to 1"),
        ({"edges": [{**FIVE["edges"][0], "probability": -0.1}]}, "probability is not a number from 0 to 1"),
        ({"edges": [{**FIVE["edges"][0], "probability": 0.1, "probability_forward": 0.2}]}, "more probable than the"),
    ],
)
def test_the_problem_is_named(change, problem):
    with pytest.raises(DataError, match=problem):
        check_document({**FIVE, **change})
