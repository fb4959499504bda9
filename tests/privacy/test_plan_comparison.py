"""Plans about the same rows, side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ledger_studies import CLIENTS, at, count, gate_in, sent, table

from fedcdh.errors import DataError
from fedcdh.privacy.disclosure.plan_union import PlanColumns, largest_union_leverage
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.ledger_file import find_active_entries
from fedcdh.privacy.ledger.record import ENCODING_KEY, LedgerEntry
from fedcdh.privacy.plan_comparison import find_earlier_plans
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

SEEN = StudyPlan((Continuous("a"), Continuous("b")), CLIENTS)
THRESHOLDS = ("above12", "above14")
OTHERWISE = StudyPlan((Continuous("a", 0.2, 1.3), Continuous("b")), CLIENTS)


def limit_alone(rows: dict, *plans: StudyPlan) -> Policy:
    """The strictest policy by which each plan passes alone."""
    return of_rows_only(max(union(rows, plan) for plan in plans) * (1 + 1e-5))


def of_rows_only(max_leverage: float) -> Policy:
    """A limit for single rows, and none for groups."""
    return Policy(max_leverage=max_leverage, min_cell_count=2)


def union(rows: dict, *plans: StudyPlan) -> float:
    columns = [PlanColumns(replace(one, clients=("one",)), {name: name for name in one.names}) for one in plans]
    return largest_union_leverage(rows, columns, "north")


@pytest.mark.parametrize("masked", [False, True])
def test_the_limit_holds_for_all_columns_together(tmp_path, masked):
    rows, together = table(), union(table(), SEEN, OTHERWISE)
    assert max(union(rows, SEEN), union(rows, OTHERWISE)) < together
    for number, (limit, refused) in enumerate(((together * (1 + 1e-9), False), (together * (1 - 1e-9), True))):
        gate = gate_in(tmp_path / str(number))
        policy = of_rows_only(limit)
        assert not sent(rows, gate, SEEN, policy, masked=masked)
        said = sent(rows, gate, OTHERWISE, policy, masked=masked)
        assert ("by all columns of this summary and of release 1 together" in said) == refused
        assert count(gate) == 2 - refused


def test_a_repetition_and_the_same_plan_of_another_study_are_free(tmp_path):
    gate, policy = gate_in(tmp_path), limit_alone(table(), SEEN, OTHERWISE)
    for plan in (SEEN, SEEN, replace(SEEN, study="another")):
        assert not sent(table(), gate, plan, policy)


def test_a_dry_run_refuses_what_a_release_would(tmp_path):
    gate, policy = gate_in(tmp_path), limit_alone(table(), SEEN, OTHERWISE)
    assert not sent(table(), gate, SEEN, policy)
    assert "by all columns" in sent(table(), replace(gate, dry_run=True), OTHERWISE, policy)


def test_without_disclosure_control_nothing_is_compared(tmp_path):
    gate = gate_in(tmp_path)
    for plan in (SEEN, OTHERWISE):
        assert not sent(table(), gate, plan, Policy(max_leverage=0.001, disclosure_control=False))


def test_renamed_columns_are_compared(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    policy = limit_alone(rows, SEEN, OTHERWISE)
    assert not sent(rows, gate, SEEN, policy)
    renamed = StudyPlan((Continuous("alpha", 0.2, 1.3), Continuous("b")), CLIENTS)
    here = {"alpha": rows["a"], "b": rows["b"]}
    context = ReleaseContext("north", policy, {"alpha": "a"}, gate)
    with pytest.raises(Exception, match="by all columns of this summary"):
        release_summary(here, renamed, context)


def test_plans_with_disjoint_columns_are_compared_where_the_table_has_both(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    one, other = (StudyPlan((Continuous(name),), CLIENTS) for name in "ab")
    limit = max(union(rows, one), union(rows, other)) * (1 + 1e-9)
    assert union(rows, one, other) > limit
    assert not sent(rows, gate, one, of_rows_only(limit))
    assert "by all columns" in sent(rows, gate, other, of_rows_only(limit))


def test_a_plan_whose_columns_are_gone_is_not_compared_and_refused_where_rows_are_shared(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    assert not sent(rows, gate, SEEN)
    only_a = StudyPlan((Continuous("a", 0.2, 1.3),), CLIENTS)
    without_b = {name: column for name, column in rows.items() if name != "b"}
    said = sent(without_b, gate, only_a)
    assert "about rows of release 1, whose columns 'b' are not in this table" in said
    assert "Add these columns to the table" in said
    assert not sent(rows, gate, only_a), "with the column, both can be compared"
    other_rows = {"a": table(seed=5)["a"]}
    assert not sent(other_rows, gate, replace(only_a, variables=(Continuous("a", 0.1, 1.2),)))


def test_an_earlier_plan_that_is_not_known_is_refused_where_rows_are_shared(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    release_summary(rows, SEEN, ReleaseContext("north", gate=gate))
    (entry,) = find_active_entries(gate.ledger.entries())
    assert entry.release.details[ENCODING_KEY]["columns"] == {"a": "a", "b": "b"}
    unknown = replace(entry.release, details={}), replace(entry.release, details={ENCODING_KEY: {"plan": "{}"}})
    for number, release in enumerate(unknown):
        again = gate_in(tmp_path / str(number))
        again.ledger.path.parent.mkdir()
        for path in (gate.ledger.path, gate.ledger.head):  # the same secret, so that sketches can be compared
            (again.ledger.path.parent / path.name).write_bytes(path.read_bytes())
        again.ledger.withdraw(1, "recorded again without its plan")
        again.ledger.record(release)
        said = sent(rows, again, OTHERWISE)
        assert "about rows of release 3, whose plan is not known" in said


def test_other_people_are_not_compared_where_the_sketches_show_it(tmp_path):
    gate, others = gate_in(tmp_path), table(seed=7)
    assert not sent(table(), gate, SEEN)
    policy = limit_alone(others, OTHERWISE)
    assert union(others, SEEN, OTHERWISE) > policy.max_leverage
    assert not sent(others, gate, OTHERWISE, policy)


def test_rows_that_come_once_cannot_be_compared(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(iter([table()]), gate, SEEN), "nothing left before"
    with pytest.raises(DataError, match="a summary after one by another plan reads the rows more than once"):
        sent(iter([table()]), gate, OTHERWISE)
    assert count(gate) == 1


def test_replicates_of_earlier_releases_lower_the_limit(tmp_path):
    rows, policy = table(6000), Policy(max_leverage=0.9)
    together = union(rows, SEEN, OTHERWISE)
    assert policy.leverage_limit(8) < 0.9
    gate = gate_in(tmp_path)
    assert not sent(rows, gate, SEEN, policy, replicates=8)
    said = sent(rows, gate, OTHERWISE, policy)
    assert (f"expected at most {policy.leverage_limit(8):.4g}" in said) == (together > policy.leverage_limit(8))
    assert together < policy.leverage_limit(0)


def test_levels_are_compared_without_being_kept(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    rows["g"] = np.where(np.arange(len(rows["a"])) % 3 == 0, "canary", "y")
    labels = StudyPlan((Categorical("g", ("canary", "y")), Continuous("a")), CLIENTS)
    assert not sent(rows, gate, labels)
    assert not sent(rows, gate, replace(labels, variables=(labels.variables[0], Continuous("a", 0.2, 1.3))))
    assert b"canary" not in gate.ledger.path.read_bytes()


def test_each_plan_is_compared_once(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    release_summary(rows, SEEN, ReleaseContext("north", gate=gate))
    (entry,) = gate.ledger.entries()
    entries = [LedgerEntry(number, "", entry.release) for number in (1, 2, 3)]
    new = replace(entry.release, details={ENCODING_KEY: {"plan": "other", "columns": {}}})
    assert [one.entry.number for one in find_earlier_plans(new, entries, {})] == [1]
    assert find_earlier_plans(entry.release, entries, {}) == ()


def test_earlier_rows_need_not_be_the_same(tmp_path):
    """Half of the rows are new. The plans are compared on the present ones."""
    gate, rows = gate_in(tmp_path), table(1800)
    policy = of_rows_only(union(at(rows, slice(900)), SEEN) * (1 + 1e-9))
    assert not sent(at(rows, slice(900)), gate, SEEN, policy)
    tighter = of_rows_only(union(rows, OTHERWISE) * (1 + 1e-9))
    assert "by all columns" in sent(rows, gate, OTHERWISE, tighter)


def test_a_plan_with_fewer_variables_adds_nothing_and_may_leave_whatever_the_limit(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    assert not sent(rows, gate, SEEN)
    fewer = StudyPlan((Continuous("b"),), CLIENTS)
    assert not sent(rows, gate, fewer, of_rows_only(union(rows, fewer) * (1 + 1e-5)))


def test_a_few_people_between_two_thresholds_are_found(tmp_path):
    rows = table() | {f"above{k}": np.where(np.arange(900) < k, "few", "many") for k in (12, 14)}
    plans = [
        StudyPlan((Categorical(name, ("few", "many")), Continuous("b")), CLIENTS) for name in ("above12", "above14")
    ]
    gate = gate_in(tmp_path)
    assert not sent(rows, gate, plans[0])
    assert "2 people can be separated from all others by all columns" in sent(rows, gate, plans[1])
