"""How many decisions FedC2SL's sketch of chi-square changes: python -m benchmarks.bench_fedc2sl --help

The questions are those that PC asks with exact tests on the studies of labels. Each is answered again with sketches
from several seeds. A decision is changed if the sketched p-value is on the other side of the level 0.05. The graph of
the whole search with sketched tests is compared with that of exact tests: edges in one skeleton and not in the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedcdh.evaluation.baselines.fedc2sl import (
    ALPHA,
    ExactLength,
    FederatedChiSquare,
    LengthEstimate,
    SketchedLength,
    find_pc_graph,
)
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.label_counts import LabelStudy, agree_on_levels
from fedcdh.evaluation.experiments.kinds.graph_recovery import REAL_DATA_GRAPHS
from fedcdh.evaluation.experiments.real_data import available_studies
from fedcdh.protocols import Answer, Query
from fedcdh.search.conditioning_sets import CachedTest

STUDIES = ("bn_asia", "bn_sachs_net", "bn_child", "bn_alarm")


class FlipCounts(NamedTuple):
    """Changed decisions of one study and sketch size, over all seeds."""

    asked: int
    accepted: int  # independence rejected by the exact test, and accepted by the sketch
    rejected: int
    edges: float  # mean difference of skeletons

    def row(self, study: str, size: int) -> str:
        """Return a line of the table."""
        share = (self.accepted + self.rejected) / self.asked
        return (
            f"{study:14}{size:>6}{self.asked:>10}{self.accepted:>10}{self.rejected:>10}{share:>9.2%}{self.edges:>8.1f}"
        )


class RecordedTest:
    """A test that keeps its answers."""

    def __init__(self, test: FederatedChiSquare) -> None:
        self._test, self.answers = test, dict[Query, Answer]()

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""
        found = self._test(queries)
        self.answers.update(zip(queries, found, strict=True))
        return found


def count_flips(study: LabelStudy, names: Sequence[str], size: int, seeds: range) -> FlipCounts:
    """Compare the answers and graphs of sketches with the exact ones."""

    def make_test(length: LengthEstimate) -> FederatedChiSquare:
        return FederatedChiSquare(study, names, CountingChannel(len(study.clients)), length)

    exact = RecordedTest(make_test(ExactLength()))
    skeleton = find_pc_graph(names, exact, ALPHA).skeleton
    queries = [*exact.answers]
    separated = np.array([exact.answers[query].p_value > ALPHA for query in queries])
    accepted = rejected = edges = 0
    for seed in seeds:
        test = CachedTest(make_test(SketchedLength(size, seed)))
        sketched = np.array([answer.p_value > ALPHA for answer in test(queries)])
        accepted += int((sketched & ~separated).sum())
        rejected += int((~sketched & separated).sum())
        edges += len(skeleton ^ find_pc_graph(names, test, ALPHA).skeleton)
    return FlipCounts(len(queries) * len(seeds), accepted, rejected, edges / len(seeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", nargs="+", default=STUDIES)
    parser.add_argument("--sizes", nargs="+", type=int, default=[50], help="numbers of projections")
    parser.add_argument("--seeds", default="1000:1005", help="seeds of the sketch, first:last+1")
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    print(f"seeds {seeds.start}..{seeds.stop - 1} of the sketch; all clients, all rows")
    print(f"{'study':14}{'size':>6}{'decisions':>10}{'accepted':>10}{'rejected':>10}{'changed':>9}{'edges':>8}")
    for name in available_studies(options.studies):
        instance = REAL_DATA_GRAPHS.prepare_instance({"study": name, "clients": 0, "rows": 0}, seeds.start)
        study = agree_on_levels(instance.tables, CountingChannel(len(instance.tables)))
        for size in options.sizes:
            print(count_flips(study, instance.names, size, seeds).row(name, size), flush=True)


if __name__ == "__main__":
    main()
