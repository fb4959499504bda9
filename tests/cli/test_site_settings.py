"""Where a site's policy is looked for, and what it is about."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path

from cli_study import KEY, data_of, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcdh.cli import main
from fedcdh.cli._console import Output
from fedcdh.cli._site_settings import find_policy
from fedcdh.errors import SettingsError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.ledger_file import settings_folder


def test_lists_of_a_policy_speak_of_the_sites_own_columns(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text('excluded_variables = ["v1"]', encoding="utf-8")
    (tmp_path / "names.toml").write_text('"v1" = "harmless"', encoding="utf-8")
    data = str(study / "north" / "data.csv")
    assert main(["profile", data, "--client", "north", "--column-map", "names.toml"]) == 7
    assert "'harmless' (here 'v1') is among the excluded_variables" in capsys.readouterr().err
    assert main(["profile", data, "--client", "north", "--plan", str(study / "study.plan.json")]) == 7


def test_what_the_user_has_set_up_comes_before_what_lies_around(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["profile", str(study / "north" / "data.csv"), "--client", "north"]
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "fedcdh"
    own.mkdir()
    (own / "policy.toml").write_text('excluded_variables = ["v1"]', encoding="utf-8")
    (tmp_path / "policy.toml").write_text("disclosure_control = false", encoding="utf-8")
    assert main(arguments) == 7
    assert "policy.toml in this folder is not used" in capsys.readouterr().err
    (own / "policy.toml").write_text("disclosure_control = false", encoding="utf-8")
    assert main([*arguments, "-q"]) == 0
    assert "disclosure control is off" in capsys.readouterr().err  # also for those who want to hear nothing
    for place in (own, tmp_path):
        (place / "policy.toml").unlink()
        (place / "policy.toml").symlink_to("nowhere")
        assert main(arguments) == 7
        (place / "policy.toml").unlink()


def test_a_policy_in_the_current_folder_never_loosens(study, here, capsys):
    arguments = ["profile", str(study / "north" / "data.csv"), "--client", "north", "-q"]
    for loose in ("disclosure_control = false", "min_rows = 5", "min_rows = 5000", "max_leverage = 1.0"):
        (here / "policy.toml").write_text(loose, encoding="utf-8")
        assert main(arguments) == 2, loose
        said = capsys.readouterr().err
        assert f"would let more leave than the default ({loose.split()[0]}: " in said
        assert "--policy policy.toml" in said
        assert not (here / "north.profile.json").exists()
    assert main([*arguments, "--policy", "policy.toml"]) == 0  # whoever names it means it
    (here / "north.profile.json").unlink()
    (here / "policy.toml").write_text('excluded_variables = ["v1"]', encoding="utf-8")
    assert main(arguments) == 7


LOOSE_AND_STRICT = {
    "min_rows": st.integers(0, 10_000),
    "min_cell_count": st.integers(0, 1000),
    "allowed_variables": st.lists(st.sampled_from(["v1", "v2"]), unique=True),
    "excluded_variables": st.lists(st.sampled_from(["v1", "v2"]), unique=True),
    "plans": st.lists(st.just("3f786850e387"), max_size=1),
    "coordinator_keys": st.lists(st.just(KEY), max_size=1),
    "unsigned_plans": st.sampled_from(["accept", "refuse"]),
    "disclosure_control": st.booleans(),
    "max_discrete_values": st.integers(0, 40),
    "max_feature_columns": st.integers(1, 40),
    "max_leverage": st.floats(0.01, 1.0),
    "waive_counts_below_epsilon": st.floats(0.0, 2.0),
    "min_threshold_share": st.floats(0.5, 1.0),
    "min_sum_sites": st.integers(1, 9),
    "min_group_sites": st.integers(1, 9),
}
POSITIVE = st.floats(0.01, 100.0)


@given(data=st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_policy_lies_in_the_current_folder_the_one_in_force_is_at_least_as_strict(data, here):
    """Either no command goes on, or the policy lets nothing leave that the default refuses."""
    names = [field.name for field in fields(Policy)]
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=4))
    values = {name: data.draw(LOOSE_AND_STRICT.get(name, POSITIVE), label=name) for name in chosen}
    (here / "policy.toml").write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()), encoding="utf-8"
    )
    try:
        found = find_policy(None, Output(quiet=True)).policy
    except SettingsError:
        return
    default = Policy()
    for name, value in values.items():
        assert getattr(found, name) in (value, frozenset(value) if isinstance(value, list) else value)
        assert not (name.startswith("max_") and name != "max_discrete_values") or value <= getattr(default, name)
        assert name not in LARGER or value >= getattr(default, name)
    assert found.min_rows is None
    assert found.min_cell_count is None
    assert found.disclosure_control


LARGER = ("max_discrete_values", "min_threshold_share", "min_sum_sites", "min_group_sites")


def test_a_key_in_the_current_folder_is_not_used_and_said_to_be_there(study, here, capsys):
    run("keys", "new", "-o", "site.key", "-q")
    run("profile", data_of(study), "--client", "north", "-q")
    assert "site.key in this folder is not used" in capsys.readouterr().err
    assert not (here / "north.profile.json.sig").exists()
    run("keys", "new", "-o", settings_folder() / "site.key", "-q")
    run("keys", "sign", "north.profile.json", "-q")
    run("keys", "verify", "north.profile.json", "--by", settings_folder() / "site.pub", "-q")
    assert main(["keys", "verify", "north.profile.json", "--by", "site.pub", "-q"]) == 6
    run("keys", "sign", "north.profile.json", "--key", "site.key", "-q")
    run("keys", "verify", "north.profile.json", "--by", "site.pub", "-q")


def test_the_ledger_is_announced_with_the_first_release_only(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "releases.jsonl"))
    words = ["profile", str(study / "north" / "data.csv"), "--client", "north"]
    said = []
    for options in (["--variables", "age"], [], []):  # a refusal, the first release, the same again
        main([*words, *options])
        said.append("every release of this site is recorded" in capsys.readouterr().out)
    assert said == [False, True, False]
