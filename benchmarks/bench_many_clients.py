"""Adding up very many summaries, and very large ones, file by file: python -m benchmarks.bench_many_clients --help

Every file is read from disk, held to its digest, the plan and the signature of its site, checked as `fedcdh discover`
checks it (bounds, identities, definiteness, moment hull, copies of others) and added; what was added is written down
every ten seconds. Beside it: just reading the files, SHA-256 of them, and verifying their signatures, which no program
can leave out. CPU seconds of one thread; memory is the most that a process of its own held, with all libraries.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from threadpoolctl import threadpool_limits

from fedcdh.cli._inputs import read_study
from fedcdh.cli._summaries import SummaryReader
from fedcdh.federation.streaming.aggregate_files import StreamingAggregation
from fedcdh.messages.aggregate_file import pack_aggregate
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, pack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

SMALL, LARGE = 6, 660
"""Variables: files of 5 kB and of 47 MB."""
ROWS, SEED = 120, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[1000, 3000, 10_000], help="numbers of small files")
    parser.add_argument("--large", type=int, nargs="*", default=[2, 10, 100], help="numbers of large files")
    parser.add_argument("--quick", action="store_true", help="few files")
    options = parser.parse_args()
    if options.quick:
        options.sites, options.large = [100, 300, 1000], []
    print_head("1000 files")
    small = [show_size(sites, SMALL) for sites in options.sites]
    print(f"\nCPU seconds grow with files to the power {fit_exponent(options.sites, small):.2f}.\n", flush=True)
    if options.large:
        print(
            "| files | bytes each | CPU seconds per file | beside reading, SHA-256 and signatures alone | peak memory |"
        )
        print("|---|---|---|---|---|")
        for sites in options.large:
            show_size(sites, LARGE)


def print_head(unit: str) -> None:
    print(f"| files | bytes each | CPU seconds per {unit} | beside reading, hashing, verifying | peak memory |")
    print("|---|---|---|---|---|")


def fit_exponent(sites: list[int], seconds: list[float]) -> float:
    """The slope of the logarithms."""
    return float(np.polyfit(np.log(sites), np.log(seconds), 1)[0])


def show_size(sites: int, variables: int) -> float:
    """Prints a row of the table; the CPU seconds of adding."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        size = run_in_process(write_summaries, folder, sites, variables)
        alone = run_in_process(time_reading, folder)
        seconds, megabytes = run_in_process(time_aggregation, folder)
    unit = 1000 if variables == SMALL else 1
    print(
        f"| {sites} | {size} | {seconds / sites * unit:.2f} | {seconds / alone:.1f} times | {megabytes:.0f} MB |",
        flush=True,
    )
    return float(seconds)


def run_in_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """In a fresh process, on one thread."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=threadpool_limits, initargs=(1,)) as pool:
        return pool.submit(work, *arguments).result()


def write_summaries(folder: Path, sites: int, variables: int) -> int:
    """Write signed summaries of several clients and their plan; return the bytes of each."""
    names, clients = [f"v{j}" for j in range(variables)], [f"site {k:05d}" for k in range(sites)]
    plan = StudyPlan(tuple(Continuous(name, 0.0, 1.2) for name in names), tuple(clients))
    keys = {client: SigningKey.generate() for client in clients}
    study = Study(plan, keys={client: key.public for client, key in keys.items()})
    (folder / "study.plan.json").write_text(study.to_json(), encoding="utf-8")
    for k, client in enumerate(clients):
        table = np.random.default_rng([SEED, k]).standard_normal((variables, ROWS)).cumsum(axis=0)
        table /= np.sqrt(np.arange(1, variables + 1))[:, None]
        blob = pack_summary(SummaryMessage(summarize(dict(zip(names, table, strict=True)), plan, client)), plan)
        (folder / f"{client}.summary").write_bytes(blob)
        (folder / f"{client}.summary.sig").write_text(sign(keys[client], "summary", blob), encoding="utf-8")
    return len(blob)


def time_reading(folder: Path) -> float:
    """CPU seconds of what cannot be left out."""
    start = time.process_time()
    for path in sorted(folder.glob("*.summary")):
        digest = hashlib.sha256(path.read_bytes()).digest()
        said = json.loads(path.with_name(f"{path.name}.sig").read_bytes())
        key = base64.b64decode(said["key"].removeprefix("ed25519:"))
        signed = b"\0".join((said["format"].encode(), said["kind"].encode(), digest))
        Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(said["signature"]), signed)
    return time.process_time() - start


def time_aggregation(folder: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of checking and adding all of them, from the plan file to the file of the sum."""
    start = time.process_time()
    study, _ = read_study(folder / "study.plan.json")
    adding = StreamingAggregation.for_output(folder / "study.aggregate", study)
    with adding.lock():
        outcome = adding.add_files(
            sorted(folder.glob("*.summary")), max_summary_bytes(study.plan), SummaryReader(study).unpack
        )
        assert not outcome.refused
        (folder / "study.aggregate").write_bytes(pack_aggregate(outcome.sums.message()))
        adding.finish()
    seconds = time.process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
