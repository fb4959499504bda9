"""Cost of a secure sum beside plain summaries: python -m benchmarks.bench_secure_aggregation --help

Seconds and bytes of a site, and seconds of the server.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fedcdh.evaluation.simulation import simulate
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.privacy.secure_aggregation.client import SecAggClient, SecAggMember
from fedcdh.privacy.secure_aggregation.codec import read_message
from fedcdh.privacy.secure_aggregation.messages import (
    MaskedVector,
    PublicKeys,
    SealedShares,
    SecAggTerms,
    ShareDelivery,
    SurvivorConfirmation,
    UnmaskingShares,
)
from fedcdh.privacy.secure_aggregation.server import SecAggServer
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries

SIZES = [(10, 6), (10, 30), (100, 6), (100, 30)]
ROWS, SEED = 1000, 1000


@dataclass
class Costs:
    """Seconds and bytes of all sites together."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    sent: int = 0
    received: int = 0

    def timed(self, what: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        done = work()
        self.seconds[what] += time.process_time() - start
        return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only: a trial of the program, not a result")
    sizes = SIZES[:1] if parser.parse_args().quick else SIZES
    print(f"{ROWS} rows a site, seed {SEED}; processor time; a third of the sites at most may leave")
    print(
        "                     |  time of a site               |  bytes of a site                  |  time of the server"
    )
    print(
        "sites variables left |     plain    masked    ratio  |    plain    sent received   ratio |     plain    masked"
    )
    with threadpool_limits(1, user_api="blas"):
        for sites, variables in sizes:
            for left in (0, 3 * sites // 10):
                print(measure_run(sites, variables, left), flush=True)


def measure_run(sites: int, variables: int, left: int) -> str:
    """Print one line: a whole secure sum, from which some clients drop out before they send masked numbers."""
    study_, keys, tables = make_study(sites, variables)
    plan, spent = study_.plan, Costs()
    summaries = {c: spent.timed("summarize", lambda c=c: summarize(tables[c], plan, c)) for c in plan.clients}
    files = [spent.timed("pack", lambda s=s: pack_summary(SummaryMessage(s), plan)) for s in summaries.values()]
    cohort = spent.timed(
        "server, plain", lambda: admit_summaries((unpack_summary(file, plan).summary for file in files), plan)
    )
    aggregate = run_secure_sum(study_, keys, summaries, plan.clients[left:], spent)
    there = [s for s in cohort.summaries if s.clients[0] in plan.clients[left:]]
    expected = Aggregate.of(admit_summaries(there, plan, without=plan.clients[:left]))
    assert (aggregate.total.digest, aggregate.first_moments.tobytes()) == (
        expected.total.digest,
        expected.first_moments.tobytes(),
    )
    plain = (spent.seconds["summarize"] + spent.seconds["pack"]) / sites
    masked = spent.seconds["summarize"] / sites + spent.seconds["masking"] / (sites - left)
    size = sum(map(len, files)) / sites
    out, come = (total / (sites - left) for total in (spent.sent, spent.received))
    return (
        f"{sites:5} {variables:9} {left:4} | {plain * 1e3:6.1f} ms {masked * 1e3:6.1f} ms {masked / plain:8.1f}  |"
        f" {size / 1e3:5.1f} kB {out / 1e3:7.1f} {come / 1e3:8.1f} {(out + come) / size:7.1f} |"
        f" {spent.seconds['server, plain']:7.2f} s {spent.seconds['server, masked']:7.2f} s"
    )


def make_study(sites: int, variables: int) -> tuple[Study, dict[str, SigningKey], dict[str, Any]]:
    simulated = simulate(variables=variables, clients=sites, rows=ROWS, seed=SEED)
    tables = {client: dict(zip(simulated.names, table.T, strict=True)) for client, table in simulated.tables.items()}
    plan = StudyPlan.from_tables(tables)
    keys = {client: SigningKey.generate() for client in plan.clients}
    return Study(plan, keys={client: key.public for client, key in keys.items()}), keys, tables


def run_secure_sum(
    study: Study, keys: dict[str, SigningKey], summaries: dict[str, Summary], staying: Collection[str], spent: Costs
) -> Aggregate:
    """All rounds by bytes, as they go online."""
    states: dict[str, SecAggMember | None] = dict.fromkeys(study.plan.clients)

    def answered(client: str, blob: bytes, kind: Any) -> bytes:
        asked = read_message(blob, study.plan, kind)
        site = SecAggClient(study, client, keys[client])
        states[client], reply = site.answer(asked, states[client], lambda: (summaries[client], True))
        return reply.to_bytes()

    def ask(request: Any, clients: Collection[str], kind: Any, check: Callable[[Any], None]) -> dict[str, Any]:
        found = {}
        for client in clients:
            own = request.part_for(client) if isinstance(request, ShareDelivery) else request
            blob = spent.timed("server, masked", own.to_bytes)
            whose = "masking" if client in staying else "masking, of those who leave"
            reply = spent.timed(whose, lambda c=client, b=blob: answered(c, b, type(request)))
            if client in staying:
                spent.received += len(blob)
                spent.sent += len(reply)
            found[client] = spent.timed("server, masked", lambda r=reply: _check_sum(r, study, kind, check))
        return found

    timed, server = spent.timed, SecAggServer(study)
    terms = SecAggTerms.of(study)
    got = ask(terms, study.plan.clients, PublicKeys, lambda one: server.check_keys(terms, one))
    roster = timed("server, masked", lambda: server.build_roster(terms, got.values()))
    shares = ask(roster, roster.clients, SealedShares, lambda one: server.check_shares(roster, one))
    delivery = timed("server, masked", lambda: server.build_delivery(roster, shares.values()))
    masked = ask(delivery, staying, MaskedVector, lambda one: server.check_masked(roster, delivery, one))
    present = server.list_survivors(roster, masked)
    signed = ask(present, staying, SurvivorConfirmation, lambda one: server.check_confirmation(roster, present, one))
    confirmed = timed("server, masked", lambda: server.collect_confirmations(roster, present, signed.values()))
    opened = ask(
        confirmed,
        staying,
        UnmaskingShares,
        lambda one: server.check_unmasking(roster, delivery, present, one),
    )
    parts = list(opened.values())
    return timed("server, masked", lambda: server.unmask_sum(roster, shares, masked.values(), present, parts))


def _check_sum(reply: bytes, study: Study, kind: Any, check: Callable[[Any], None]) -> Any:
    found = read_message(reply, study.plan, kind)
    check(found)
    return found


if __name__ == "__main__":
    main()
