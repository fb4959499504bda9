"""Files that commands read."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_study import KEY, SITES, plan_of

from fedcdh.cli._console import Output
from fedcdh.cli._inputs import expand_paths, naming_file, read_profile, read_study, read_trusted_study
from fedcdh.errors import PlanError, SettingsError, SignatureError


def test_an_error_names_the_file_once():
    for text in ("is damaged", "/a/b.plan.json is damaged"):
        with pytest.raises(PlanError) as caught, naming_file(Path("/a/b.plan.json")):
            raise PlanError(text, parameter="plan")
        assert str(caught.value).count("/a/b.plan.json") == 1
        assert caught.value.parameter == "plan"


def test_folders_and_patterns_stand_for_files(tmp_path):
    for name in ("b.summary", "a.summary", ".hidden.summary", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.summary").touch()
    both = [tmp_path / "a.summary", tmp_path / "b.summary"]
    assert expand_paths([tmp_path], "*.summary") == both
    assert expand_paths([tmp_path / "*.summary"], "*.summary") == both
    assert expand_paths([tmp_path / "**" / "*.summary"])[-1] == tmp_path / "deep" / "c.summary"
    assert expand_paths([tmp_path / "missing.summary"]) == [tmp_path / "missing.summary"]
    (tmp_path / "[1].summary").touch()  # a name that looks like a pattern is a name where there is such a file
    assert expand_paths([tmp_path / "[1].summary"]) == [tmp_path / "[1].summary"]
    with pytest.raises(SettingsError, match="holds no"):
        expand_paths([tmp_path / "deep"], "*.profile.json")
    with pytest.raises(SettingsError, match="No file matches"):
        expand_paths([tmp_path / "x*.summary"])


def test_a_plan_is_trusted_by_its_signature(study, capsys):
    assert read_study(Path(plan_of(study)))[1] is None
    read_trusted_study(Path(plan_of(study)), None, Output())
    assert "not signed." in capsys.readouterr().out
    with pytest.raises(SignatureError, match="Ask the coordinator"):
        read_trusted_study(Path(plan_of(study)), KEY, Output())


def test_a_profile_comes_with_the_name_of_its_file(study):
    path = study / "north.profile.json"
    name, message = read_profile(path)
    assert (name, message.profile.rows) == (str(path), SITES["north"])


def test_a_signature_of_a_profile_that_names_no_key_is_refused(study, here):
    from cli_study import run

    run("keys", "new", "-q")
    (here / "north.profile.json").write_bytes((study / "north.profile.json").read_bytes())
    run("keys", "sign", "north.profile.json", "-q")
    with pytest.raises(SignatureError, match="names no key itself"):
        read_profile(here / "north.profile.json")
