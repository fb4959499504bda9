"""Encrypted sums beside plain ones: python -m benchmarks.bench_homomorphic

Bytes that a site sends and CPU time, as ratios to the plain summary file of the same rows and to making it; the time of
the server's addition and of the opening as ratios to adding plain summaries. Says how far the opened sums were from
whole numbers, which is what rounding has to bear. Needs TenSEAL (`pip install 'fedcdh[encrypted]'`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from fedcdh.data.table import to_table
from fedcdh.evaluation.simulation import simulate
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.privacy import homomorphic
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.plan import StudyPlan


def time_call(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def print_row(variables: int, clients: int, seed: int) -> str:
    study = simulate("linear", variables=variables, clients=clients, rows=1000, seed=seed)
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    plan = StudyPlan.from_tables(tables)
    parts, making = time_call(lambda: [summarize(table, plan, client) for client, table in tables.items()])
    plain, adding = time_call(lambda: Aggregate.of(add_up(parts, plan)))
    private, public = homomorphic.generate_key_pair()
    sealed, sealing = time_call(lambda: [homomorphic.encrypt_summary(part, plan, public) for part in parts])
    total, summing = time_call(lambda: homomorphic.add_encrypted(sealed, public))
    found, opening = time_call(lambda: homomorphic.decrypt_sum(total, plan, private))
    assert found.total == plain.total
    assert np.array_equal(found.first_moments, plain.first_moments)
    size = len(sealed[0]) / len(pack_summary(SummaryMessage(parts[0]), plan))
    ratios = (size, (making + sealing) / making, summing / adding, opening / adding)
    return f"{variables:9}{clients:8}" + "".join(f"{ratio:11.1f}x" for ratio in ratios)


def max_difference(sites: int, seed: int) -> float:
    """How far sums of random limbs are from whole numbers."""
    tenseal = homomorphic._import_tenseal()
    private, public = homomorphic.generate_key_pair()
    draw, context = np.random.default_rng(seed), tenseal.context_from(public)
    half = 1 << (homomorphic.LIMB_BITS - 1)
    total, true = None, np.zeros(homomorphic.POLYNOMIAL_DEGREE // 2)
    for _ in range(sites):
        limbs = draw.integers(-half, half, homomorphic.POLYNOMIAL_DEGREE // 2).astype(float)
        vector = tenseal.ckks_vector(context, limbs.tolist())
        total, true = vector if total is None else total + vector, true + limbs
    assert total is not None
    opened = tenseal.ckks_vector_from(tenseal.context_from(private), total.serialize()).decrypt()
    return float(np.abs(np.array(opened) - true).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    if find_spec("tenseal") is None:
        print("TenSEAL is not installed here: nothing measured (pip install 'fedcdh[encrypted]')")
        return
    print("Encrypted beside plain, 1000 rows a client; the opened sum is integer-equal to the plain one")
    print(f"{'variables':>9}{'clients':>8}{'bytes':>12}{'client':>12}{'adding':>12}{'opening':>12}")
    for variables, clients in ((6, 10), (6, 100), (30, 10)):
        print(print_row(variables, clients, options.seed), flush=True)
    for sites in (10, 100, 1000):
        print(
            f"sums of {sites} sites were at most {max_difference(sites, options.seed):.5f} from whole numbers",
            flush=True,
        )


if __name__ == "__main__":
    main()
