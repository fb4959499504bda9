"""False edges where rows follow each other in time: python -m benchmarks.bench_rows_in_time --help

Brain scans without thinning: simulated ones with a known network, and real ones with the anatomy as truth. For every
false edge the table shows whether rows that count too often can be its cause. Each subject then counts as one
observation: its partial correlation. t is that of the mean over subjects, the smallest over all sets of other
variables. A large t is a dependence in the population of subjects, which no number of rows can explain away.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fedcdh.discovery.api import discover
from fedcdh.evaluation.experiments.real_data import (
    DOMAIN_COLUMN,
    ColumnArrays,
    available_studies,
    data_folder,
    read_columns,
    scale_within_domains,
)
from fedcdh.graphs.partial_graph import Pair, sort_pair


@dataclass(frozen=True)
class Series:
    """A study in time: the domains of one subject have names of the same beginning."""

    name: str
    subject_letters: int
    standardise: bool = False


SERIES = (
    Series("fmri_sim_net5", 5),
    Series("fmri_sim_net7", 5),
    Series("mtl_hippocampus_7t", 3, standardise=True),  # S01L and S01R are one subject
)


class Separation(NamedTuple):
    """The set given which two variables are closest to independence, with subjects as observations."""

    t: float
    mean: float
    given: tuple[str, ...]


def load(series: Series) -> tuple[ColumnArrays, frozenset[Pair]]:
    """Return all rows in their order, and the true pairs."""
    truth = json.loads((data_folder() / series.name / "truth.json").read_text(encoding="utf-8"))
    columns = read_columns(series.name, truth["nodes"])
    pairs = frozenset(frozenset(edge) for edge in truth["edges"])
    return (scale_within_domains(columns) if series.standardise else columns), pairs


def subject_correlations(columns: ColumnArrays, letters: int) -> tuple[list[str], np.ndarray]:
    """Return the names of the variables, and the correlation matrices of the domains, averaged by subject."""
    names = [name for name in columns if name != DOMAIN_COLUMN]
    values, domains = np.stack([columns[name] for name in names]), columns[DOMAIN_COLUMN]
    by_subject: dict[str, list[np.ndarray]] = {}
    for domain in np.unique(domains):
        by_subject.setdefault(str(domain)[:letters], []).append(np.corrcoef(values[:, domains == domain]))
    return names, np.array([np.mean(found, axis=0) for found in by_subject.values()])


def separate(names: Sequence[str], correlations: np.ndarray, pair: Pair) -> Separation:
    """Return the set of other variables with the smallest |t|."""
    return min(_partial_correlations(names, correlations, pair), key=lambda one: abs(one.t))


def _partial_correlations(names: Sequence[str], correlations: np.ndarray, pair: Pair) -> Iterator[Separation]:
    both, others = sort_pair(pair), [name for name in names if name not in pair]
    for size in range(len(others) + 1):
        for given in combinations(others, size):
            places = [names.index(name) for name in (*both, *given)]
            inverse = np.linalg.inv(correlations[:, np.array(places)[:, None], places])
            found = -inverse[:, 0, 1] / np.sqrt(inverse[:, 0, 0] * inverse[:, 1, 1])
            error = found.std(ddof=1) / np.sqrt(len(found))
            yield Separation(float(found.mean() / error), float(found.mean()), given)


def run(series: Series, method: str) -> None:
    """Print the false edges of one study."""
    columns, truth = load(series)
    found = discover(columns, domain=DOMAIN_COLUMN, method=method).graph.skeleton
    false, subjects = (
        sorted(map(sort_pair, found - truth)),
        len({str(one)[: series.subject_letters] for one in columns[DOMAIN_COLUMN]}),
    )
    print(
        f"{series.name}: {len(columns[DOMAIN_COLUMN])} rows, {subjects} subjects, {len(truth)} true edges: "
        f"{len(found & truth)} found, {len(false)} false"
    )
    names, correlations = subject_correlations(columns, series.subject_letters)
    for pair in false:
        one = separate(names, correlations, frozenset(pair))
        given = ", ".join(one.given) or "nothing"
        print(f"  {' — '.join(pair)}: smallest |t| {abs(one.t):.1f}, partial correlation {one.mean:.2f} given {given}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=["evidence", "constraint"], default=["evidence"])
    parser.add_argument(
        "--studies", nargs="+", choices=[one.name for one in SERIES], default=[one.name for one in SERIES]
    )
    options = parser.parse_args(arguments)
    there = list(available_studies(options.studies))
    for method in options.methods:
        print(f"method {method}")
        for series in SERIES:
            if series.name in there:
                run(series, method)


if __name__ == "__main__":
    main()
