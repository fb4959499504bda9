"""Two summaries that differ by few rows: python -m benchmarks.attacks.differencing --help

Their difference is the summary of the rows that came. It is taken of one site's summaries, and of the sums over all
sites (what masks leave) where one site has changed. With the ledger of releases the second one does not leave.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.attacks.common import (
    SITE,
    Array,
    Attacker,
    Rng,
    Table,
    normal_rows,
    recover_rows_jointly,
    recover_rows_singly,
    share_within,
)
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

OTHERS = ("there", "yonder")


def two_tables(n: int, more: int, rng: Rng) -> tuple[Table, Table]:
    """Return n rows, and the same rows with further ones at the end."""
    whole = normal_rows(n + more, 6, rng)
    return {name: column[:n] for name, column in whole.items()}, whole


def subtract_summaries(before: Summary, after: Summary) -> Summary:
    """What came: moments of a summary like any other."""
    return replace(after, moments=after.moments - before.moments, rows_read=after.rows - before.rows)


def recover_rows(attacker: Attacker, came: Summary, rng: Rng, steps: int = 200) -> Array:
    single = recover_rows_singly([(attacker, came)], rng, starts=500)
    return recover_rows_jointly([(attacker, came)], rng, known=single, steps=steps)


def attack_difference(n: int, more: int, seed: int) -> tuple[Array, Array, Array, str]:
    """The rows that came: true, read off a site's summaries, and off sums over sites; and what the gate says."""
    rng = np.random.default_rng([seed, n, more, 5])
    first, second = two_tables(n, more, rng)
    tables = {SITE: first, **{other: normal_rows(n, 6, rng) for other in OTHERS}}
    plan = StudyPlan.from_tables(tables)
    attacker = Attacker(plan)
    true = attacker.scaled(second)[n:]
    alone = recover_rows(attacker, subtract_summaries(summarize(first, plan, SITE), summarize(second, plan, SITE)), rng)
    sums = [Aggregate.of(add_up((summarize(t, plan, c) for c, t in ts.items()), plan)).total
            for ts in (tables, {**tables, SITE: second})]  # fmt: skip
    return true, alone, recover_rows(attacker, subtract_summaries(*sums), rng), try_second_release(first, second, plan)


def try_second_release(first: Table, second: Table, plan: StudyPlan) -> str:
    """Why the second summary does not leave after the first; "" if it does."""
    with tempfile.TemporaryDirectory() as folder:
        gate = ReleaseGate(ReleaseLedger(Path(folder) / "releases.jsonl"))
        release_summary(first, plan, ReleaseContext(SITE, Policy(max_leverage=1.0), gate=gate))
        try:
            release_summary(second, plan, ReleaseContext(SITE, Policy(max_leverage=1.0), gate=gate))
        except DisclosureError as refused:
            return str(refused).splitlines()[1]
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=5, help="from 1000 on (default 5)")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (2 if options.quick else options.seeds))
    print(f"rows that came, recovered to within 0.01 sd; 6 numbers, 3 sites, seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'n':>9}{'came':>6}{'largest error':>15}{'of a site':>12}{'of all sites':>14}   with the ledger")
    for n in (1000,) if options.quick else (1000, 100_000):
        for more in (1, 2, 5, 10, 20, 40):
            every = [attack_difference(n, more, seed) for seed in seeds]
            shares = np.array([[share_within(t, found, 0.01, np.ones(6)) for found in (a, b)] for t, a, b, _ in every])
            worst = max(float(np.abs(t - a).max()) for t, a, _, _ in every) if more == 1 else np.nan
            cells = f"{worst:15.1e}" + "".join(f"{100 * s:10.0f} %" for s in shares.mean(axis=0))
            refused = sum(bool(said) for *_, said in every)
            print(f"{n:9}{more:6}{cells}   {refused} of {len(every)} refused", flush=True)


if __name__ == "__main__":
    main()
