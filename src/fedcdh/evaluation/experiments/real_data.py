"""Data sets as studies: a table, the kinds of its columns, and the truth as far as it is known.

The data are not part of the package (some may not be redistributed). They are looked for in the folder `data` of
`../shared`, or of the folder that FEDCDH_SHARED names; data sets that are not there are left out. Your own copy works
as well: a folder NAME with data.csv (or data.csv.gz; a column for every variable, and one called domain) and truth.json
({"nodes": [...], "edges": [[cause, effect], ...]}). This holds for the paper's own fMRI series, too, as
`fmri_hippocampus` with columns PRC, PHC, ERC, Sub, CA1, DG and the day as domain: they are not public, but their
holders can repeat the figure.

Each is prepared the way its README.md asks for, never the way that scores best:

- sachs: logarithms; two truths, that of the paper (17 edges) and the biologists' (18), because they are contested. The
  targets of its reagents are known. But every condition also stimulates the whole cell, so that no list of the
  unchanged mechanisms exists: its changing variables are not scored.
- mtl_hippocampus_7t: every 10th frame, mean 0 and variance 1 within each domain, for subjects differ in scale by an
  order of magnitude. The correlation with the frame before goes from 0.95 to −0.35 (the signal oscillates): rows are
  still not quite independent.
- fmri_sim_net5 and 7: every 5th frame (from 0.73 to −0.04).
- bn_*: codes, declared categorical. gbn_ecoli70: all 46 genes, and the ancestral subsets named in truth.json.
- airfoil: the nodes of truth.json; the velocity is the domain.

A truth with feedback is no DAG. Its arrows are scored like others. Where a → b and b → a are both true, the pair is one
edge and either direction is right (`RealStudy.truth_given`). No DAG can then have all arrows of a longer cycle.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcdh.data.sources import ColumnKind
from fedcdh.evaluation.simulation import Simulation
from fedcdh.graphs.partial_graph import Arrow, PartialGraph

DOMAIN_COLUMN = "domain"

ColumnArrays = dict[str, NDArray[Any]]
TruthDocument = Mapping[str, Any]  # truth.json


@dataclass(frozen=True, eq=False)
class RealStudy:
    """One table with a column `domain`, and what is known about its truth."""

    name: str
    source: str  # studies of one source are one piece of evidence, not several
    columns: Mapping[str, NDArray[Any]]
    kinds: Mapping[str, ColumnKind]
    arrows: frozenset[Arrow]
    changing: frozenset[str] | None  # None: not known
    targets: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of interventions, by domain; empty: not known

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return tuple(name for name in self.columns if name != DOMAIN_COLUMN)

    @property
    def has_acyclic_truth(self) -> bool:
        """Return whether the true arrows form no cycle."""
        return self.truth_given(()) == self.arrows and PartialGraph(self.names, self.arrows).is_acyclic()

    def truth_given(self, claimed: Iterable[Arrow]) -> frozenset[Arrow]:
        """Return the true arrows, one per pair; see `keep_one_per_pair`."""
        return keep_one_per_pair(self.arrows, claimed)

    @classmethod
    def of(cls, simulation: Simulation, name: str) -> RealStudy:
        """Return a simulated study in the same form."""
        columns = MappingProxyType(simulation.columns(DOMAIN_COLUMN))
        return cls(name, name, columns, {}, simulation.arrows, simulation.changing)


def keep_one_per_pair(arrows: frozenset[Arrow], claimed: Iterable[Arrow]) -> frozenset[Arrow]:
    """Return true arrows, one per pair: where a → b and b → a are both true, the one claimed, or else the first.

    >>> sorted(keep_one_per_pair(frozenset({("a", "b"), ("b", "a"), ("b", "c")}), [("b", "a")]))
    [('b', 'a'), ('b', 'c')]
    """
    claimed = frozenset(claimed)
    mutual = {(tail, head) for tail, head in arrows if (head, tail) in arrows}
    unsaid = {(tail, head) for tail, head in mutual if (head, tail) in claimed or (head, tail) < (tail, head)}
    return arrows - (unsaid - claimed)


# Preparations: what a README.md asks to do before any test for independent rows


def keep_columns(columns: ColumnArrays) -> ColumnArrays:
    """Return the columns unchanged."""
    return columns


def take_logarithms(columns: ColumnArrays) -> ColumnArrays:
    """Take the logarithms of all variables."""
    return {name: column if name == DOMAIN_COLUMN else np.log(column) for name, column in columns.items()}


def thin_rows(columns: ColumnArrays, step: int) -> ColumnArrays:
    """Keep every `step`-th row of each domain."""
    domains = columns[DOMAIN_COLUMN]
    rows = np.sort(np.concatenate([np.flatnonzero(domains == domain)[::step] for domain in np.unique(domains)]))
    return {name: column[rows] for name, column in columns.items()}


def scale_within_domains(columns: ColumnArrays) -> ColumnArrays:
    """Scale every variable to mean 0 and variance 1 in each domain."""
    domains, scaled = columns[DOMAIN_COLUMN], dict(columns)
    for name in columns.keys() - {DOMAIN_COLUMN}:
        scaled[name] = columns[name].astype(float)
        for domain in np.unique(domains):
            rows = domains == domain
            scaled[name][rows] = (columns[name][rows] - columns[name][rows].mean()) / columns[name][rows].std()
    return scaled


@dataclass(frozen=True)
class StudyRecipe:
    """The recipe of a study: how it is made from the files of one data set."""

    source: str
    prepare: Callable[[ColumnArrays], ColumnArrays] = keep_columns
    kind: ColumnKind = "continuous"
    nodes: Callable[[TruthDocument], Iterable[str]] = lambda truth: truth["nodes"]
    edges: Callable[[TruthDocument], Iterable[Iterable[str]]] = lambda truth: truth["edges"]


REAL_STUDIES: Mapping[str, StudyRecipe] = {
    "sachs": StudyRecipe("sachs", take_logarithms),
    "sachs_18": StudyRecipe(
        "sachs", take_logarithms, edges=lambda truth: truth["alternatives"]["consensus_18"]["edges"]
    ),
    "airfoil": StudyRecipe("airfoil"),
    "mtl_hippocampus_7t": StudyRecipe(
        "mtl_hippocampus_7t", lambda columns: scale_within_domains(thin_rows(columns, 10))
    ),
    "fmri_hippocampus": StudyRecipe("fmri_hippocampus"),
    "fmri_sim_net5": StudyRecipe("fmri_sim_net5", partial(thin_rows, step=5)),
    "fmri_sim_net7": StudyRecipe("fmri_sim_net7", partial(thin_rows, step=5)),
    "bn_asia": StudyRecipe("bn_asia", kind="categorical"),
    "bn_sachs_net": StudyRecipe("bn_sachs_net", kind="categorical"),
    "bn_child": StudyRecipe("bn_child", kind="categorical"),
    "bn_alarm": StudyRecipe("bn_alarm", kind="categorical"),
    "gbn_ecoli70_8": StudyRecipe("gbn_ecoli70", nodes=lambda truth: truth["ancestral_subsets"]["8"]),
    "gbn_ecoli70_12": StudyRecipe("gbn_ecoli70", nodes=lambda truth: truth["ancestral_subsets"]["12"]),
    "gbn_ecoli70_20": StudyRecipe("gbn_ecoli70", nodes=lambda truth: truth["ancestral_subsets"]["20"]),
    "gbn_ecoli70": StudyRecipe("gbn_ecoli70"),
}


def data_folder() -> Path:
    """Return the folder of the data sets, which need not exist."""
    return Path(os.environ.get("FEDCDH_SHARED") or Path("..") / "shared") / "data"


def available_studies(names: Iterable[str] = tuple(REAL_STUDIES), say: Callable[[str], None] = print) -> Iterator[str]:
    """Yield the studies whose data are here, and report the others."""
    for name in names:
        if name not in REAL_STUDIES:
            raise SystemExit(f"found no study {name!r}; expected one of {', '.join(REAL_STUDIES)}; choose one of these")
        folder = data_folder() / REAL_STUDIES[name].source
        if _table_path(folder).exists() and (folder / "truth.json").exists():
            yield name
        else:
            say(f"{name}: {folder} not found, skipped (FEDCDH_SHARED names the folder that holds data/)")


def load_study(name: str) -> RealStudy:
    """Return the study of this name, prepared."""
    recipe = REAL_STUDIES.get(name, StudyRecipe(name))
    folder = data_folder() / recipe.source
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    nodes = tuple(recipe.nodes(truth))
    changing = truth.get("domain_changes")
    columns = recipe.prepare(_read_table(_table_path(folder), nodes, int if recipe.kind == "categorical" else float))
    for column in columns.values():
        column.setflags(write=False)
    return RealStudy(
        name=name,
        source=recipe.source,
        columns=MappingProxyType(columns),
        kinds=dict.fromkeys(nodes, recipe.kind) if recipe.kind == "categorical" else {},
        arrows=frozenset((tail, head) for tail, head in recipe.edges(truth) if {tail, head} <= {*nodes}),
        changing=None if changing is None else frozenset(changing) & {*nodes},
        targets={
            domain: frozenset(chosen) & {*nodes} for domain, chosen in truth.get("intervention_targets", {}).items()
        },
    )


def read_columns(source: str, names: Sequence[str]) -> ColumnArrays:
    """Return columns of a data set unprepared, and the column of domains."""
    return _read_table(_table_path(data_folder() / source), tuple(names), float)


def _table_path(folder: Path) -> Path:
    plain = folder / "data.csv"
    return plain if plain.exists() else folder / "data.csv.gz"


def _read_table(path: Path, nodes: tuple[str, ...], number: type[int] | type[float]) -> ColumnArrays:
    with (
        gzip.open(path, "rt", newline="", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(newline="", encoding="utf-8") as lines
    ):
        header, *rows = csv.reader(lines)
    values = dict(zip(header, zip(*rows, strict=True), strict=True))
    columns: ColumnArrays = {DOMAIN_COLUMN: np.array(values[DOMAIN_COLUMN])}
    return columns | {name: np.array([number(value) for value in values[name]]) for name in nodes}
