"""The attacks of benchmarks/attacks: they work where nothing stops them, and the policy of a site stops them."""

from __future__ import annotations

import logging
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import DOCS

from benchmarks.attacks import (
    differencing,
    domain_mixtures,
    extreme_group,
    hostile_questions,
    insider,
    mailed_folder,
    membership,
    noisy_plans,
    outlier,
    oversized_scale,
    poisoning,
    rare_level,
    red_team,
    residual_sums,
    residuals,
    row_dependence,
    second_sums,
    secure_sum_terms,
    set_back,
    surrogate,
    two_plans,
)
from benchmarks.attacks.common import (
    SITE,
    Attacker,
    normal_rows,
    plan_of,
    recover_rows_jointly,
    recover_rows_singly,
    refusal_of,
    share_within,
    summary_of,
)
from benchmarks.bench_validation import FALSE_SUMMARIES, UNDETECTABLE_CHANGES
from fedcdh.cli import main
from fedcdh.discovery.api import discover_from
from fedcdh.errors import PlanError, SummaryError
from fedcdh.federation import simulate_federation
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import required_rows
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.opened_by_sums import HIDDEN, OPENED, describe_hidden, describe_opened
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.validation import admit_summaries
from fedcdh.summaries.variables import Continuous


def attacked(n: int, d: int, seed: int = 0) -> tuple[dict, Attacker, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng([seed, n, d])
    table = normal_rows(n, d, rng)
    attacker = Attacker(plan_of(table))
    return table, attacker, attacker.scaled(table), rng


# Rows from one summary


@pytest.mark.parametrize("n", [1, 5, 12])
def test_few_rows_are_recovered_one_by_one_and_refused(n):
    table, attacker, true, rng = attacked(max(n, 5), 6)
    few = {name: column[:n] for name, column in table.items()}
    found = recover_rows_singly([(attacker, summary_of(few, attacker.plan))], rng, starts=300)
    assert share_within(true[:n], found, 0.01, np.ones(6)) == 1
    assert "rows, expected at least 232" in refusal_of(few, attacker.plan)


def test_few_rows_are_recovered_at_once():
    table, attacker, true, rng = attacked(5, 6)
    found = recover_rows_jointly([(attacker, summary_of(table, attacker.plan))], rng, restarts=5)
    assert share_within(true, found, 0.01) == 1


def test_at_the_limit_of_the_policy_rows_are_hit_no_oftener_than_by_chance():
    n = required_rows(attacked(50, 3)[1].plan)
    tables = (attacked(n, 3, seed) for seed in range(50))
    table, attacker, true, rng = next(one for one in tables if not refusal_of(one[0], one[1].plan))
    summary = summary_of(table, attacker.plan)
    found = recover_rows_jointly([(attacker, summary)], rng, restarts=1, steps=40)
    told, features = attacker.moments(summary), attacker.features(found)
    scale = np.sqrt(told.diagonal())
    assert np.abs((features.T @ features - told) / np.multiply.outer(scale, scale)).max() < 0.01  # as they were told
    counted = red_team.count_hits(
        red_team.is_within(true, found, 0.1), red_team.is_within(true, attacker.scaled(normal_rows(n, 3, rng)), 0.1)
    )
    assert counted.p_value > 0.001


# Few people with a label, and people who stand out


@pytest.mark.parametrize("n", [500, 20_000])
def test_one_person_with_a_label_is_read_off_at_any_number_of_rows(n):
    found, said = rare_level.count_hits(n, 1, 0, spiked=False, starts=20)
    assert found[:, 0].all()
    assert said == rare_level.MERGED
    table = rare_level.add_rare_level(n, 1, np.random.default_rng(0))
    plan = plan_of(table)
    sent, _ = release_summary(table, plan, ReleaseContext(SITE))
    place = plan.layout.spans["label"].start + plan.variables[-1].levels.index(rare_level.LABEL)
    assert not sent.moments[place].any()


def test_so_many_people_as_the_policy_asks_for_are_not_solved():
    found, said = rare_level.count_hits(1000, 12, 3, spiked=False, starts=20)
    assert not said
    assert found[:, 0].mean() < 0.5


def test_the_few_with_a_label_whose_number_is_no_spike_are_read_off_and_refused():
    found = []
    for seed in range(2):
        table = rare_level.add_rare_level(400, 14, np.random.default_rng(seed), spiked=True)
        plan = plan_of(table)
        summary, attacker, there = summary_of(table, plan), Attacker(plan), table["label"] == rare_level.LABEL
        true = np.sort(attacker.scaled(table)[there, 0])
        guess = rare_level.values_of(
            plan, summary, attacker.numbers[0], np.random.default_rng(0), spiked=True, starts=30
        )
        found.append(np.abs(guess - true).max() < 0.01)
        assert "that few people share, with 'yes' of 'label'" in refusal_of(table, plan, Policy(max_leverage=1.0))
        assert not refusal_of(table, plan, Policy(max_discrete_values=0, max_leverage=1.0, max_group_leverage=1.0))
    assert any(found)


def test_a_row_of_high_leverage_is_read_off_and_refused():
    table = outlier.table_with_outlier(300, 6, [8.0], np.random.default_rng(0))
    leverage, errors = outlier.attack_outlier(table, 1)
    assert leverage > 0.99
    assert np.abs(errors).max() < 0.1
    assert "high leverage by its value of 'v0'" in refusal_of(table, plan_of(table))


def test_a_row_of_low_leverage_is_not_read_off():
    errors = [
        outlier.attack_outlier(outlier.table_with_outlier(300, 6, [2.5], np.random.default_rng(k)), 1)[1]
        for k in range(4)
    ]
    assert np.sqrt(np.mean(np.square(errors))) > 0.5


def test_a_row_of_high_leverage_by_several_variables_is_refused():
    table = outlier.outlier_at_limit(300, 6, 5, 0.9895, 1)
    leverage, errors = outlier.attack_outlier(table, 5)
    assert leverage > 0.99 > max(outlier.leverage_of(table, [j]) for j in range(5))
    assert np.abs(errors).max() < 0.1
    assert "high leverage by its values of all variables together" in refusal_of(table, plan_of(table))
    assert not refusal_of({name: column[1:] for name, column in table.items()}, plan_of(table))


# Several messages


@pytest.mark.parametrize(
    ("part", "back", "opened"), [("state files", 1, False), ("whole disks", 1, True), ("whole disks", 0, False)]
)
def test_a_site_that_was_set_back_opens_a_summary_only_with_its_whole_disk(part, back, opened):
    assert set_back.open_victim(5, 3, back, part, 0) == opened


@pytest.mark.parametrize("kind", second_sums.LATER_PLANS)
def test_more_after_a_secure_sum_reads_a_site_off_and_is_refused(kind):
    apart, together = (second_sums.attack(kind, 4, 1000, 0, ledgers) for ledgers in ("new", "one"))
    assert apart.succeeded
    assert not together.got
    assert "secure sum" in together.refusal or "under masks" in together.refusal


def test_the_attack_by_plain_summaries_fails_where_it_succeeds(monkeypatch, capsys):
    monkeypatch.setattr("fedcdh.privacy.ledger.gate.check_plain_after_sum", lambda new, earlier: None)
    monkeypatch.setattr("sys.argv", ["second_sums", "--seeds", "1", "--sites", "4"])
    assert second_sums.main() == 1
    assert "no history" in capsys.readouterr().out


@pytest.mark.parametrize("name", noisy_plans.QUESTIONS)
def test_noisy_summaries_stay_within_the_budget_whatever_their_columns_are(name):
    assert noisy_plans.collect(name, 600, 3.0, 1e-6, 0)[:2] == (2, 6.0)
    assert noisy_plans.collect(name, 600, 0.5, 0.01, 0)[0] == 0


@pytest.mark.parametrize(("name", "seed"), [("thresholds", 0), ("roundings", 1)])
def test_two_plans_read_a_person_off_and_the_second_summary_is_refused(name, seed):
    apart, together = (two_plans.attack(name, 1000, 4, seed, ledgers) for ledgers in (2, 1))
    assert not together.succeeded
    assert together.left < 2
    if apart.left == 2:  # a policy that refuses such a plan by itself refuses it before that
        assert np.abs(apart.errors).max() < 1e-3


def test_people_who_share_an_extreme_value_are_read_off_and_refused(capsys):
    for people in (2, 3, 6):
        leverage, found, guessed, refused = extreme_group.measure(300, people, 999.0, seed=0)
        assert leverage > 0.9999
        assert found >= 0.9 > 0.4 > guessed
        assert refused
    assert extreme_group.main(["--quick"]) == 0
    assert "in the " in capsys.readouterr().out


def test_the_attack_on_groups_fails_where_it_succeeds(monkeypatch, capsys):
    """Without the rule tables leave, and the script reports it."""
    monkeypatch.setattr(extreme_group, "refusal_of", lambda *_: "")
    assert extreme_group.main(["--quick"]) == 1
    monkeypatch.setattr(oversized_scale, "refusal_of", lambda *_: "")
    assert oversized_scale.main(["--quick"]) == 1
    assert "that leave: found 100 %" in capsys.readouterr().out


def test_a_group_of_low_leverage_is_not_read_off():
    value = extreme_group.value_for_leverage(400, 4, 0.9, seed=1)
    found = [extreme_group.measure(400, 4, value, seed) for seed in range(1, 6)]
    assert np.mean([one[1] for one in found]) < 0.5


@pytest.mark.parametrize("sites", [1, 3])
@pytest.mark.parametrize("what", oversized_scale.PLANS)
def test_a_plan_that_rounds_a_number_to_a_label_reads_people_off_and_is_refused(what, sites):
    for people in (2, 3):
        found, guessed, error, _, refused = oversized_scale.measure(300, people, what, sites, seed=0)
        assert (found, refused) == (1.0, True)
        assert error < 0.01
        assert guessed < 0.5


@pytest.mark.parametrize("more", [1, 4])
def test_what_came_between_two_summaries_is_read_off_and_the_second_is_refused(more):
    true, alone, summed, said = differencing.attack_difference(400, more, 0)
    assert share_within(true, alone, 0.01, np.ones(6)) == share_within(true, summed, 0.01, np.ones(6)) == 1
    assert f"{more} or a few more rows changed" in said


def test_as_many_rows_as_a_summary_needs_may_come():
    rng = np.random.default_rng(0)
    first, second = differencing.two_tables(500, 600, rng)
    assert not differencing.try_second_release(first, second, StudyPlan.from_tables({"here": first, "there": second}))


def test_membership_is_told_among_few_and_not_among_many():
    tester = membership.MembershipTest(2, np.random.default_rng(0), public=100_000)
    few, many = (membership.attack_power(tester, n, 2, np.random.default_rng(n))[0] for n in (30, 20_000))
    assert few > 0.65
    assert abs(many - 0.5) < 0.05


def test_a_sum_over_sites_tells_their_means_unless_they_are_grouped():
    cohort = surrogate.make_clients(6, 0)
    assert surrogate.attack_surrogate(cohort, 1) == (0, 0, 0)
    assert surrogate.attack_surrogate(cohort, 3)[1] > 0.2


def test_what_is_said_of_sums_is_tried():
    """All that is said to be known can be computed, and what is said to be hidden can only be guessed."""
    errors = surrogate.error_of_opened(surrogate.draw_unlike_tables(6, 0, "unrelated"))
    assert errors.keys() == OPENED.keys()
    assert max(errors.values()) < surrogate.MAX_ERROR
    assert HIDDEN.keys() == {"correlations"}
    guessed, unaided = surrogate.guess_correlations(
        surrogate.add_up_tables(surrogate.draw_unlike_tables(6, 0, "unrelated"))
    )
    assert guessed > surrogate.MIN_GUESS * unaided > 0.2


@pytest.mark.parametrize("page", ["masking.md", "what-the-server-learns.md"])
def test_pages_say_of_sums_what_the_attack_finds(page):
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert describe_opened() in text
    assert describe_hidden() in text


def test_result_and_terms_say_of_sums_what_the_attack_finds():
    cohort = surrogate.make_clients(3, 0)
    notes = " ".join(discover_from(Aggregate.of(cohort), cohort.plan).notes)
    assert describe_opened() in notes
    assert f"{describe_hidden()} is known of all rows together only" in notes


# Sums of residuals


def test_slopes_of_sums_of_residuals_are_derivatives():
    site = residuals.make_site("exponential, linear", 60, 1)
    messages, rows = site.ask(6, 0.0), site.rows
    hidden, step = [site.column, (site.column + 1) % 6], 1e-6
    slopes = messages.slopes(rows, hidden, 1e-3).reshape(-1, 2, 60)
    assert np.sqrt(np.mean(messages.rest(rows) ** 2)) < 2  # the true rows explain the messages
    for place, column in enumerate(hidden):
        moved = np.zeros_like(rows)
        moved[7, column] = step * messages.spread[column]
        found = (messages.rest(rows + moved, 1e-3) - messages.rest(rows - moved, 1e-3)) / (2 * step)
        np.testing.assert_allclose(found, slopes[:, place, 7], atol=1e-4)


def test_many_exact_sums_of_residuals_determine_a_column_and_what_the_rule_lets_out_does_not():
    site = residuals.make_site("exponential, linear", 400, 1)
    first = residuals.share_of(site, site.ask(0, 0.0))
    assert residuals.share_of(site, site.ask(40, 0.0)) > 0.9
    for coarse, expected in ((False, 1), (True, 30)):
        allowed, messages = site.ask_allowed("chosen", coarse=coarse)
        assert allowed == expected
        assert residuals.share_of(site, messages) < first + residuals.MAX_ABOVE_SUMMARY


@pytest.mark.parametrize("n", [240, 300])
def test_what_a_small_site_lets_out_determines_little_more_than_its_summary(n):
    site = residuals.make_site("gaussian, curved", n, 1)
    assert site.coarse
    first = residuals.share_of(site, site.ask(0, 0.0))
    for order, sharper in (("drawn", 1.0), ("chosen", 1.0), ("chosen", 2.0)):
        allowed, messages = site.ask_allowed(order, sharper, coarse=True)
        assert allowed >= 20
        assert residuals.share_of(site, messages) < first + residuals.MAX_ABOVE_SUMMARY


def test_a_solver_comes_nearer_with_many_exact_sums_of_residuals():
    site, rng = residuals.make_site("exponential, linear", 100, 1), np.random.default_rng(0)
    true = site.values[:, [site.column]]
    near = true + residual_sums.PRIOR * rng.standard_normal(true.shape)
    found = residual_sums.refine_values(site.ask(5, 0.0), site.rows, [site.column], near, steps=15)
    assert (np.abs(found - true) < 0.1).mean() > (np.abs(near - true) < 0.1).mean() + 0.2


@pytest.mark.parametrize("name", ["a huge weight", "a size of noise"])
def test_a_hostile_question_reads_a_person_off_and_is_refused(name):
    errors, said = hostile_questions.attack_person(name, 400, 1)
    assert errors[1] < 0.05
    assert any("these are not the residuals of a regression" in one for one in said)


def test_a_question_about_a_person_is_not_answered_twice():
    target = hostile_questions.make_target(400, 1)
    assert not target.refusals(hostile_questions.QUESTIONS["two regressions"](target))
    (said,) = target.refusals(hostile_questions.QUESTIONS["the same twice"](target))
    assert "would be answered with 2 sets of weights" in said


# False sums


def test_what_an_insider_signs_is_refused_where_no_rows_have_such_sums():
    kinds = ("n + 1", "sign of a product", "other seed or bandwidth", "a square + 5 %")
    assert "admitted" not in [insider.judge_change(FALSE_SUMMARIES[kind], 0, 0)[0] for kind in kinds]
    assert {insider.judge_change(change, 0, 0)[0] for change in UNDETECTABLE_CHANGES.values()} == {"admitted"}


@pytest.mark.parametrize("method", poisoning.METHODS)
def test_a_forged_edge_is_found_and_the_forger_named(method):
    made = poisoning.PoisonedStudy(0, 300)
    result = discover_from(made.forged(poisoning.copy_rows, 300), made.plan, method=method)
    assert poisoning.FORGED in result.graph.skeleton
    stability = result.stability()
    (edge,) = (edge for edge in stability.edges if frozenset((edge.source, edge.target)) == poisoning.FORGED)
    assert edge.gone_without == (poisoning.FORGER,)
    assert stability.influence[0].client == poisoning.FORGER


def test_a_plan_may_limit_the_rows_of_one_client():
    variables, clients = tuple(map(Continuous, "abce")), ("s0", "s1", "s2")
    plan = StudyPlan(variables, clients, max_rows_per_client=100)
    assert StudyPlan.from_json(plan.to_json()) == plan
    assert (
        replace(plan, max_rows_per_client=0).fingerprint
        == StudyPlan(variables, clients).fingerprint
        != plan.fingerprint
    )
    rows = {client: poisoning.draw_honest_rows(100, np.random.default_rng(k)) for k, client in enumerate(clients)}
    fair = [summarize(table, plan, client) for client, table in rows.items()]
    assert admit_summaries(fair, plan).client_rows == (100, 100, 100)
    large = summarize(poisoning.draw_honest_rows(101, np.random.default_rng(5)), plan, "s0")
    with pytest.raises(SummaryError, match="101 rows; the plan allows a client at most 100"):
        admit_summaries([large, *fair[1:]], plan)
    with pytest.raises(SummaryError, match="'s0' counts 101 rows in the sum"):
        Aggregate.of(Cohort(plan, (large, *fair[1:])))
    together = dict.fromkeys(clients, "all")
    with pytest.raises(SummaryError, match="'all' counts 301 rows"):
        Aggregate.of(Cohort(plan, (large, *fair[1:])), together)
    for wrong in (-1, True, 2.5):
        with pytest.raises(PlanError, match="max_rows_per_client"):
            StudyPlan(variables, clients, max_rows_per_client=wrong)  # type: ignore[arg-type]


# Nothing but where it must be

VALUE, LABEL, UNSEEN = 61.98765432109, "canary-label-3b1e", "canary-cell-77aa"


def canaries() -> tuple[bytes, ...]:
    """The value as it is written and as it is held, and texts."""
    return str(VALUE)[:11].encode(), struct.pack("<d", VALUE), struct.pack(">d", VALUE), LABEL.encode(), UNSEEN.encode()


def canary_table(rows: int, seed: int) -> dict[str, list]:
    """One value in a row that counts, one in a row that is left out, beside a label; and a column nobody asks for."""
    rng = np.random.default_rng(seed)
    age, pulse = 60 + 8 * rng.uniform(-1.5, 1.5, rows), 70 + 9 * rng.uniform(-1.5, 1.5, rows)
    found = {"age": list(age), "pulse": list(pulse + age), "ward": ["a", "b"] * (rows // 2), "note": [UNSEEN] * rows}
    found["age"][3], found["age"][5], found["pulse"][5] = VALUE, VALUE, None
    return found


def csv_of(path: Path, table: dict[str, list]) -> str:
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table), *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def holding(folder: Path, *but: Path) -> list[str]:
    """Files, besides these, in which a canary sings."""
    files = [path for path in folder.rglob("*") if path.is_file() and path not in but]
    assert files
    return [str(path) for path in files if any(song in path.read_bytes() for song in canaries())]


def test_by_file_no_value_of_a_row_is_anywhere_but_in_the_table(tmp_path, monkeypatch, capfd, own_ledger):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "releases.jsonl"))
    tables = [Path(csv_of(tmp_path / f"{site}.csv", canary_table(600, k))) for k, site in enumerate(("north", "south"))]
    plan, profiles = str(tmp_path / "study.plan.json"), [str(path.with_suffix(".profile.json")) for path in tables]
    for path, out in zip(tables, profiles, strict=True):
        wanted = [word for name in ("age", "pulse", "ward") for word in ("--variables", name)]
        assert main(["profile", str(path), "--client", path.stem, *wanted, "-o", out]) == 0
    assert main(["plan", *profiles, "--max-rounds", "1", "--max-rows-per-client", "5000", "-o", plan]) == 0
    for path in tables:
        out = str(tmp_path / f"{path.stem}.summary")
        assert main(["summarize", plan, str(path), "--client", path.stem, "-o", out]) == 0
        assert main(["inspect", out, "--plan", plan]) == 0
    summaries = [str(tmp_path / f"{path.stem}.summary") for path in tables]
    assert main(["discover", plan, *summaries, "-o", str(tmp_path / "result"), "--stability"]) == 0
    assert holding(tmp_path, *tables) == []
    said = capfd.readouterr()
    assert not any(song in (said.out + said.err).encode() for song in canaries())


@pytest.mark.parametrize("trouble", ["text", "infinite", "few", "far", "changed", "broken"])
def test_errors_tell_no_value_of_a_row(trouble, tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "releases.jsonl"))
    caplog.set_level(logging.DEBUG)
    plan = tmp_path / "study.plan.json"
    columns = (Continuous("age", 60, 12), Continuous("pulse", 130, 20))
    plan.write_text(Study(StudyPlan(columns, ("north", "south"))).to_json(), encoding="utf-8")
    table = canary_table(600, 0)
    if trouble == "text":
        table["pulse"][7] = LABEL
    if trouble == "infinite":
        table["pulse"][7] = "inf"
    if trouble == "few":
        table = {name: column[:20] for name, column in table.items()}
    if trouble == "far":
        table["pulse"][3] = 987654.3210987
    path = Path(csv_of(tmp_path / "north.csv", table))
    asked = ["summarize", str(plan), str(path), "--client", "north", "-o", str(tmp_path / "north.summary")]
    if trouble == "changed":
        assert main(asked) == 0
        csv_of(path, {name: column[1:] for name, column in table.items()})
    if trouble == "broken":
        path.write_text(path.read_text(encoding="utf-8") + f"{VALUE},1,2\n", encoding="utf-8")
    assert main(asked) != 0
    said = capfd.readouterr()
    assert not any(song in (said.out + said.err + caplog.text).encode() for song in (*canaries(), b"987654.32"))
    assert holding(tmp_path, path) == []


@pytest.mark.parametrize("policy", [Policy(disclosure_control=False), Policy()])
def test_online_no_value_of_a_row_is_in_a_message_or_a_file(policy, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    tables = {site: canary_table(400, k) for k, site in enumerate(("north", "south", "west"))}
    if policy.disclosure_control:  # a profile with one incomplete row must not leave
        for table in tables.values():
            table["pulse"][5] = 130.0
    tables["west"]["pulse"][9] = float("inf")  # a site in trouble
    outcome = simulate_federation(tables, variables=["age", "pulse"], policy=policy, folder=tmp_path / "study")
    assert set(outcome.missing) == {"west"}
    assert holding(tmp_path) == []
    assert not any(song in (caplog.text + str(outcome.missing)).encode() for song in canaries())


# What comes with a folder, and terms that a server proposes


@pytest.mark.parametrize("text", mailed_folder.POLICIES)
def test_a_policy_in_a_mailed_folder_lets_nothing_leave(text):
    assert not mailed_folder.try_policy(text)


def test_a_key_in_a_mailed_folder_signs_nothing():
    assert not mailed_folder.try_key()


def test_a_low_threshold_gives_a_summary_away_and_sites_refuse_it():
    """Of seven sites one helper is enough with the threshold 4, and three are needed with the least of the policy."""
    own = Policy().secure_sum_limits()
    assert secure_sum_terms.try_terms(7, 4, secure_sum_terms.ANY_TERMS, helpers=1) == "read"
    assert secure_sum_terms.try_terms(7, 4, own, helpers=1) == "refused"
    assert secure_sum_terms.try_terms(7, 5, own, helpers=2) == "hidden"
    assert secure_sum_terms.try_terms(7, 5, own, helpers=3) == "read"  # as docs/masking.md says


def test_mixtures_of_sites_open_no_single_site_where_sites_admit_them():
    """With the helpers that the rule allows for, nothing is found; with one more, or as many sums as sites, it is."""
    for sites, mixtures in ((6, 1), (7, 3), (8, 4), (10, 5)):
        held = domain_mixtures.attack(sites, mixtures, helpers=1, trial=sites == 6)
        assert held.is_admitted
        assert held.smallest >= 3
        assert (held.read, held.counted) == (0, 0)
        beyond = domain_mixtures.attack(sites, mixtures, helpers=held.smallest - 1, trial=False)
        assert beyond.read > 0
    assert domain_mixtures.attack(6, 1, helpers=1).counted_by_weights == 5  # so weights are signs, and not numbers
    for sites in (4, 5, 6):
        broken = domain_mixtures.attack(sites, sites - 1, helpers=0, trial=False)
        assert not broken.is_admitted
        assert broken.read == sites


def test_a_swap_of_columns_and_rows_far_out_are_named():
    tried = [poisoning.try_swap("linear", seed, (10, 100, 6), search=False) for seed in range(8)]
    assert sum(one.named for one in tried) >= 4
    assert not any(one.honest for one in tried)
    forged, by_tails, left_out, blamed = poisoning.try_tails(0, 100, 10.0)
    assert forged
    assert by_tails
    assert left_out
    assert not blamed


# Rows in time


@pytest.mark.parametrize("what", ["value", "place"])
def test_shares_of_rows_reveal_a_person_to_whoever_knows_all_other_rows_in_their_order(what):
    attempt = row_dependence.Attempt(what, 120, 0.8, 0.0)
    found = row_dependence.Success(attempt, tuple(row_dependence.attack(attempt, seed) for seed in range(20)))
    mean, error = row_dependence.mean_and_error(found.advantages)
    assert mean - 3 * error > 0
    assert not found.is_bounded


def test_shares_of_independent_rows_reveal_nothing():
    attempt = row_dependence.Attempt("place", 120, 0.0, 0.0)
    assert {row_dependence.attack(attempt, seed) for seed in range(5)} == {(0.1, 0.1)}


def test_shares_of_rows_reveal_no_person_if_one_row_in_ten_is_unknown(capsys):
    assert row_dependence.main(["--rows", "300", "--correlations", "0.8", "--seeds", "0:12"]) == 0
    assert "holds" in capsys.readouterr().out


def test_a_broken_bound_on_shares_of_rows_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(
        row_dependence, "attack", lambda attempt, seed: row_dependence.Guess(1.0 * (attempt.unknown > 0), 0.1)
    )
    assert row_dependence.main(["--rows", "299", "--seeds", "0:5"]) == 0  # too few rows: there is no bound
    assert "none of these" in capsys.readouterr().out
    assert row_dependence.main(["--rows", "300", "--seeds", "0:5"]) == 1
    assert "exceeded" in capsys.readouterr().out
    assert not row_dependence.exceeds_bound([row_dependence.MAX_ADVANTAGE] * 4)
    assert row_dependence.exceeds_bound([row_dependence.MAX_ADVANTAGE + 1e-6] * 4)
