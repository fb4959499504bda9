"""`fedcdh plan`."""

from __future__ import annotations

import json

import pytest
from cli_study import DECLARATION, SITES, run

from fedcdh.cli import main
from fedcdh.messages.study_file import Study
from fedcdh.summaries.joint import DEFAULT_MAX_ROUNDS, default_max_bytes


@pytest.fixture
def profiles(study) -> list[str]:
    return [str(study / f"{site}.profile.json") for site in SITES]


def test_a_folder_of_profiles_gives_the_plan_of_all(study, here, profiles):
    run("plan", *profiles, "-o", "named.plan.json", "-q")
    run("plan", study, "-o", "folder.plan.json", "-q")
    assert (here / "named.plan.json").read_bytes() == (here / "folder.plan.json").read_bytes()


def test_limits_are_part_of_the_plan(here, profiles):
    run("plan", *profiles, "--max-rounds", 3, "--max-bytes", 1000, "--max-rows-per-client", 5000, "-q")
    plan = json.loads((here / "study.plan.json").read_text(encoding="utf-8"))
    limits = plan.get("plan", plan)
    assert (limits["max_rounds"], limits["max_bytes"], limits["max_rows_per_client"]) == (3, 1000, 5000)
    run("plan", *profiles, "--max-rounds", 0, "--max-bytes", 1000, "-o", "none.plan.json", "-q")
    assert '"max_bytes":1000' not in (here / "none.plan.json").read_text(encoding="utf-8").replace(" ", "")


def test_a_plan_lets_sites_answer_unless_it_says_otherwise(here, profiles, capsys):
    run("plan", *profiles)
    plan = Study.from_json((here / "study.plan.json").read_bytes()).plan
    assert (plan.max_rounds, plan.max_bytes) == (DEFAULT_MAX_ROUNDS, default_max_bytes(plan))
    capsys.readouterr()
    run("inspect", "study.plan.json")
    words = f"a site answers up to {plan.max_rounds} requests after its summary, with {plan.max_bytes} bytes"
    assert words in " ".join(capsys.readouterr().out.split())


def test_noise_is_declared_and_never_made_from_profiles(here, profiles, capsys):
    (here / "variables.toml").write_text(DECLARATION, encoding="utf-8")
    run("plan", "--declare", "variables.toml", "--epsilon", 1, "-o", "a.plan.json")
    assert "epsilon 1, delta 1e-06, added by every site" in capsys.readouterr().out
    words = ["plan", "--declare", "variables.toml", "--epsilon", "1", "--distributed-noise"]
    assert main([*words, "--honest", "3", "-o", "b.plan.json"]) == 0
    assert "added by all sites together, 3 of them honestly" in capsys.readouterr().out
    assert main([*words, "-o", "c.plan.json"]) == 2
    assert "belong together" in capsys.readouterr().err
    assert main(["plan", "--declare", "variables.toml", "--honest", "3"]) == 2
    assert "State the amount with --epsilon" in capsys.readouterr().err
    assert main(["plan", *profiles, "--epsilon", "1"]) == 4
    assert "Profiles are exact numbers" in capsys.readouterr().err
    assert not (here / "study.plan.json").exists()


def test_keys_of_sites_may_be_named(here, profiles):
    run("keys", "new", "-o", "south.key", "-q")
    run("plan", *profiles, "--site-key", "south=south.pub", "-q")
    document = json.loads((here / "study.plan.json").read_text(encoding="utf-8"))
    assert document["keys"] == {"south": (here / "south.pub").read_text(encoding="utf-8").strip()}


def test_the_key_in_the_settings_folder_signs_the_plan(here, profiles, capsys):
    run("keys", "new", "-q")
    run("plan", *profiles)
    assert "signed by" in capsys.readouterr().out
    run("keys", "verify", "study.plan.json", "--by", "site.pub", "-q")
