"""Options that commands share agree with the functions behind them."""

from __future__ import annotations

from typing import get_args

import pytest
from cli_study import data_of

from fedcdh.cli import _options, plan, simulate, summarize
from fedcdh.cli._options import build_csv_style, open_data, parse_pairs, split_names
from fedcdh.cli.keys import FileKind
from fedcdh.discovery.methods import get_method
from fedcdh.errors import SettingsError


def test_numbers_that_help_states_are_those_of_the_package():
    """They stand in the command line a second time, so that help loads nothing heavy."""
    from fedcdh._runtime.cpu_count import MAX_WORKERS
    from fedcdh.summaries.bootstrap import MAX_REPLICATES
    from fedcdh.summaries.dp_parameters import DEFAULT_EXPECTED_ROWS

    assert _options.MAX_THREADS == MAX_WORKERS
    assert summarize.MAX_REPLICATES == MAX_REPLICATES
    assert plan.DEFAULT_EXPECTED_ROWS == DEFAULT_EXPECTED_ROWS


def test_choices_that_help_states_are_those_of_the_package():
    from fedcdh.evaluation.simulation import MechanismModel
    from fedcdh.messages.signing import SIGNED_KINDS

    assert {*get_args(plan.PlanMethod), "auto"} == set(get_args(_options.Method))
    assert all(get_method(name) for name in get_args(plan.PlanMethod))
    assert set(get_args(simulate.Mechanisms)) == set(get_args(MechanismModel))
    assert set(get_args(FileKind)) == set(SIGNED_KINDS)


def test_a_csv_style_is_as_the_options_say():
    from fedcdh.data.readers import CsvStyle

    assert build_csv_style(None, ".", "utf-8", None) == CsvStyle()
    assert build_csv_style("tab", ",", "latin-1", ["-9"]) == CsvStyle(
        delimiter="\t", decimal=",", encoding="latin-1", missing=("", "-9")
    )


def test_pairs_are_names_and_values():
    assert parse_pairs(["a=1", "b=x=y"], "--kind", "NAME=KIND") == {"a": "1", "b": "x=y"}
    assert parse_pairs(None, "--kind", "NAME=KIND") == {}
    for wrong in ("a", "=1", "a="):
        with pytest.raises(SettingsError, match="Write it as --kind NAME=KIND"):
            parse_pairs([wrong], "--kind", "NAME=KIND")


def test_names_are_separated_by_commas():
    assert split_names("age, bmi") == ["age", "bmi"]
    assert split_names(None) is None


def test_data_have_the_names_of_the_study(study, tmp_path):
    (tmp_path / "names.toml").write_text('"v1" = "age"\n', encoding="utf-8")
    found = open_data([data_of(study)], tmp_path / "names.toml", build_csv_style(None, ".", "utf-8", None))
    assert next(iter(found.kinds())) == "age"
