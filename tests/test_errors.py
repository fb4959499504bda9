"""Errors: one family, each with its exit code, its parameter and a place in the tree."""

import inspect
import pickle
import re

import pytest

from fedcdh import errors
from fedcdh.errors import (
    DataError,
    DisclosureError,
    ExitCode,
    FedCDHError,
    GraphError,
    KnowledgeError,
    LedgerError,
    NoConsistentExtensionError,
    PlanMismatchError,
    SettingsError,
    SummaryFormatError,
    exit_code_of,
)

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, FedCDHError)]


def test_every_refusal_is_one_family():
    assert issubclass(NoConsistentExtensionError, GraphError)
    assert issubclass(GraphError, FedCDHError)
    assert issubclass(KnowledgeError, ValueError)
    assert not issubclass(GraphError, ValueError)


def test_every_error_ends_in_error_and_is_public():
    for found in CLASSES:
        assert found.__name__.endswith("Error")
        assert found.__name__ in errors.__all__


def test_the_drawing_of_the_tree_is_the_tree():
    drawn, path = {}, []
    for line in re.findall(
        r"^    ((?:[\u2502 ]   )*(?:[\u251c\u2514]\u2500\u2500 )?)(\w+)", errors.__doc__, re.MULTILINE
    ):
        depth = len(line[0]) // 4
        path[depth:] = [line[1]]
        drawn[line[1]] = path[depth - 1] if depth else "Exception"
    assert drawn == {found.__name__: found.__bases__[0].__name__ for found in CLASSES}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DisclosureError("x"), ExitCode.POLICY),
        (LedgerError("x"), ExitCode.POLICY),
        (SummaryFormatError("x"), ExitCode.SUMMARY),
        (SettingsError("x"), ExitCode.USAGE),
        (PlanMismatchError("x"), ExitCode.PLAN),
        (KnowledgeError("x"), ExitCode.PLAN),
        (DataError("x"), ExitCode.DATA),
        (GraphError("x"), ExitCode.REFUSED),
        (FileNotFoundError("x"), ExitCode.FILES),
        (MemoryError(), ExitCode.FILES),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (ZeroDivisionError(), ExitCode.INTERNAL),
    ],
)
def test_every_error_has_an_exit_code(error, code):
    assert exit_code_of(error) is code


def test_every_exit_code_has_a_meaning():
    assert len({code.meaning for code in ExitCode}) == len(ExitCode)


def test_a_parameter_is_spelled_by_the_front_end():
    error = DataError("too many values are missing", parameter="max_missing_share")
    assert str(error) == "too many values are missing (parameter max_missing_share)"
    assert error.text(lambda name: "option --" + name.replace("_", "-")).endswith("(option --max-missing-share)")
    assert str(DataError("nothing to change")) == "nothing to change"


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(SettingsError("alpha is 2", parameter="alpha")))
    assert (error.message, error.parameter, type(error)) == ("alpha is 2", "alpha", SettingsError)
