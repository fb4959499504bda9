"""What is measured: each function prepares its data and returns the work, which is then put on the clock."""

from __future__ import annotations

import numpy as np

from benchmarks.scale.measure import Work
from fedcdh.data.table import to_table
from fedcdh.discovery.api import discover, discover_from
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.pooled_references import ALPHA
from fedcdh.evaluation.simulation import Simulation, simulate
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries
from fedcdh.summaries.variables import Continuous

FIRST_SEED = 1000
PART = 1 << 15  # rows of the table that comes again and again, so that rows cost no memory
LEVEL = ALPHA
"""Of all tests, of ours as of others and whatever d: by itself ours takes a lower one with more than 30 variables."""


def study(model: str, variables: int, clients: int, rows: int, seed: int = FIRST_SEED) -> Simulation:
    """As many edges as variables."""
    return simulate(model, variables=variables, clients=clients, rows=rows, seed=seed).standardised()


def summaries_of(simulated: Simulation, width: int = 0) -> tuple[StudyPlan, list[Summary]]:
    """The plan and all messages of a study; with a width, of random Fourier features."""
    tables = {client: to_table(table, simulated.names) for client, table in simulated.tables.items()}
    family = Fourier(width=width) if width else Hermite()
    plan = StudyPlan.from_profiles((profile(table, client) for client, table in tables.items()), family=family)
    return plan, [summarize(table, plan, client) for client, table in tables.items()]


def client(rows: int, variables: int, width: int = 0) -> Work:
    """The sums of a client's rows."""
    names = [f"x{i:03}" for i in range(variables)]
    rng = np.random.default_rng([FIRST_SEED, variables])
    table = to_table(rng.standard_normal((min(rows, PART), variables)), names)
    family = Fourier(width=width) if width else Hermite()
    plan = StudyPlan(tuple(map(Continuous, names)), ("site",), family=family)
    return lambda: summarize([table] * max(1, rows // PART), plan, "site")


def arrival(clients: int, variables: int, rows: int) -> Work:
    """Messages as bytes, opened, checked and added up."""
    plan, summaries = summaries_of(study("general", variables, clients, rows))
    messages = [pack_summary(SummaryMessage(summary), plan) for summary in summaries]
    return lambda: admit_summaries((unpack_summary(message, plan).summary for message in messages), plan)


def server(method: str, variables: int, clients: int, rows: int, width: int = 0, model: str = "general") -> Work:
    """From summaries to a graph."""
    plan, summaries = summaries_of(study(model, variables, clients, rows), width)
    discover_from(*_smallest(width), method=method)  # imports and first calls are not what is measured
    return lambda: discover_from(summaries, plan, method=method, alpha=LEVEL)


def whole(method: str, variables: int, clients: int, rows: int, model: str = "general") -> Work:
    """From tables to a graph, profiles and summaries included: what a peer does from pooled rows."""
    simulated = study(model, variables, clients, rows)
    discover_from(*_smallest(0), method=method)
    return lambda: discover(dict(simulated.tables), names=simulated.names, method=method, alpha=LEVEL)


def peer(program: str, variables: int, clients: int, rows: int, model: str = "general") -> Work:
    """A program that is given all rows."""
    simulated = study(model, variables, clients, rows)
    search = BASELINES[program]
    small = study("linear", 2, 2, 20)
    search(small.tables, small.names, 0)
    return lambda: search(simulated.tables, simulated.names, FIRST_SEED)


def _smallest(width: int) -> tuple[list[Summary], StudyPlan]:
    plan, summaries = summaries_of(study("linear", 2, 2, 50), width)
    return summaries, plan
