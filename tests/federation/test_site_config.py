"""The configuration file of a client is read strictly."""

from __future__ import annotations

import pytest
from federations import (
    CANARY,
    canary_node,
)

from fedcdh.errors import SettingsError


def test_the_configuration_is_read_strictly(tmp_path):
    with pytest.raises(SettingsError, match="did you mean 'policy'"):
        canary_node(tmp_path, polcy='"x"')
    with pytest.raises(SettingsError, match="needs client"):
        canary_node(tmp_path, client='""')
    with pytest.raises(SettingsError, match="delimiter should be a text"):
        canary_node(tmp_path, delimiter="3")
    for workers in ("0", "257", "true", '"two"'):
        with pytest.raises(SettingsError, match=r"workers.* found"):
            canary_node(tmp_path, workers=workers)


def test_the_number_of_workers_is_configured_at_the_site(tmp_path):
    assert canary_node(tmp_path).workers is None
    assert canary_node(tmp_path, workers="3").workers == 3


@pytest.mark.parametrize(("old", "new"), [("map", "column_map"), ("max_dropped", "max_missing_share")])
def test_a_renamed_key_is_named_with_its_new_name(old, new, tmp_path):
    with pytest.raises(SettingsError, match=f"{old!r} of an older version, which is now called {new!r}"):
        canary_node(tmp_path, **{old: '"x"'})


def test_the_list_of_answers_is_replaced_by_the_ledger(tmp_path):
    with pytest.raises(SettingsError, match=r"'answered' of an older version. The release ledger now holds"):
        canary_node(tmp_path, answered='"answered.json"')


def test_the_ledger_lies_beside_the_file_and_limits_the_plans(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDCDH_LEDGER", raising=False)
    node = canary_node(tmp_path, max_plans="3")
    assert node.gate.max_plans == 3
    assert node.gate.ledger.path.parent == tmp_path / f"{CANARY} folder"
    assert canary_node(tmp_path).gate.max_plans == 1
    with pytest.raises(SettingsError, match="max_plans should be at least 1, found 0"):
        canary_node(tmp_path, max_plans="0")


def test_the_column_of_the_order_is_configured_at_the_site(tmp_path):
    assert canary_node(tmp_path).order_by is None
    assert canary_node(tmp_path, order_by='"time"').order_by == "time"
