"""The folder of a Flower app is complete."""

from __future__ import annotations

import tomllib

import pytest

from fedcdh.cli import main
from fedcdh.errors import SettingsError
from fedcdh.federation.flower.app_folder import DEFAULTS, write_app


def test_the_app_has_all_settings_and_modules(tmp_path, capsys):
    assert main(["flower", "init", str(tmp_path / "app")]) == 0
    project = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["flwr"]["app"]
    assert project["config"].keys() == DEFAULTS.keys()
    assert {**project["config"], "output": ""} == DEFAULTS
    assert project["config"]["output"] == str(tmp_path / "app-result")
    for reference in project["components"].values():
        module, name = reference.split(":")
        code = (tmp_path / "app" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"\n{name} = " in code
    with pytest.raises(SettingsError, match="not empty"):
        write_app(tmp_path / "app")
    assert main(["flower", "--help"]) == 0
    for command in ("init", "trial"):
        assert main(["flower", command, "--help"]) == 0
        assert f"fedcdh flower {command}" in capsys.readouterr().out.split("Example")[-1]
