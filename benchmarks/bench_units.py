"""When clients are doubted to use other units, rightly and wrongly: python -m benchmarks.bench_units --help

1. Doubted without reason: variables of `simulate`, of the demo and of real data; variables whose clients differ in
   level only; variables whose clients really differ by a factor, which nothing in a profile tells from a unit.
2. Found: one or two clients whose numbers are in another unit.

Everything goes the way of a study: tables are profiled, and `find_unit_mismatch` sees the profiles. The constants in
`fedcdh.summaries.unit_consistency` were chosen on seeds below 1000 (and on the real data); claims rest on
seeds from 1000 upwards. Simulated variables are drawn once for every seed: one seed, one variable.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_graphs import DIALECTS
from fedcdh.evaluation.demo import hospital_study
from fedcdh.evaluation.experiments import real_data
from fedcdh.evaluation.simulation import keyed_generator, name_clients, simulate
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.unit_consistency import UnitMismatch, find_unit_mismatch

Array = np.ndarray[Any, Any]
Tables = Mapping[str, Mapping[str, Array]]  # client → variable → values

FRESH = 1000
"""The first seed that nothing was chosen on."""
SIZES = ((2, 100), (3, 100), (3, 1000), (5, 25), (10, 100))  # clients, rows of each


class Reported(NamedTuple):
    """How many variables were looked at, and which were doubted."""

    variables: int
    doubts: dict[str, UnitMismatch]


def report_on(tables: Tables) -> Reported:
    """What an agreement would say of these clients' tables."""
    profiles = [profile(table, client) for client, table in tables.items()]
    names = [name for name, column in profiles[0].columns.items() if column.kind == "continuous"]
    found = {name: find_unit_mismatch(name, {one.client: one.columns[name] for one in profiles}) for name in names}
    return Reported(len(names), {name: one for name, one in found.items() if one})


def combine(parts: Mapping[str, Reported]) -> Reported:
    """Several studies as one; `parts` is by what to write before a variable's name."""
    doubts = {f"{where}, {name}": one for where, part in parts.items() for name, one in part.doubts.items()}
    return Reported(sum(part.variables for part in parts.values()), doubts)


def show(label: str, found: Reported) -> None:
    print(f"  {label:44}{len(found.doubts):6d} of {found.variables:6d}", flush=True)


def show_each(doubts: Mapping[str, UnitMismatch]) -> None:
    for where, one in doubts.items():
        low, high = len(one.low), len(one.high)
        medians = f"{one.low_median:.4g} at {low} of {low + high} clients, {one.high_median:.4g} at {high}"
        print(f"    {where}: median {medians}; {one.conversion.units}?", flush=True)


def format_seeds(seeds: range) -> str:
    return f"seeds {seeds[0]}..{seeds[-1]}"


# Doubted without reason: studies


def report_on_simulation(model: Any, dialect: str, seed: int) -> Reported:
    parts = {}
    for clients, rows in SIZES:
        study = simulate(model, clients=clients, rows=rows, seed=seed, dialect=DIALECTS[dialect])
        tables = {client: dict(zip(study.names, table.T, strict=True)) for client, table in study.tables.items()}
        parts[f"{clients} clients of {rows} rows"] = report_on(tables)
    return combine(parts)


def report_on_demo(seed: int) -> Reported:
    return report_on(hospital_study(seed).tables)


def show_studies(pool: ProcessPoolExecutor, seeds: range) -> None:
    sizes = ", ".join(f"{clients} × {rows}" for clients, rows in SIZES)
    print(f"\nvariables of `simulate` (clients × rows: {sizes}) and of the demo, {format_seeds(seeds)}")
    everything = {}
    for model, dialect in product(("linear", "general"), DIALECTS):
        label = f"simulate, {model}, {dialect}"
        everything[label] = sum_over_seeds(pool, partial(report_on_simulation, model, dialect), seeds)
        show(label, everything[label])
        show_each(everything[label].doubts)
    show("simulate, all", combine(everything))
    found = sum_over_seeds(pool, report_on_demo, seeds)
    show("demo", found)
    show_each(found.doubts)


def sum_over_seeds(pool: ProcessPoolExecutor, study: Callable[[int], Reported], seeds: range) -> Reported:
    parts = zip(seeds, pool.map(study, seeds, chunksize=5), strict=True)
    return combine({f"seed {seed}": part for seed, part in parts})


# Doubted without reason: data that exist


def split_by_domain(columns: Mapping[str, Array]) -> Tables:
    domains = columns[real_data.DOMAIN_COLUMN]
    names = [name for name in columns if name != real_data.DOMAIN_COLUMN]
    return {str(one): {name: columns[name][domains == one] for name in names} for one in np.unique(domains)}


def prepared_studies() -> Iterator[tuple[str, Tables]]:
    """One study of every source, the largest, the way `real_data` prepares it; codes of levels have no unit."""
    names = {recipe.source: name for name, recipe in real_data.REAL_STUDIES.items() if recipe.kind == "continuous"}
    for name in real_data.available_studies(names.values(), say=lambda text: print(f"  {text}")):
        yield real_data.REAL_STUDIES[name].source, split_by_domain(real_data.load_study(name).columns)


def raw_studies() -> Iterator[tuple[str, Tables]]:
    """Every table with a column `domain`, with all its columns of numbers, as its file has them."""
    labels = {recipe.source for recipe in real_data.REAL_STUDIES.values() if recipe.kind == "categorical"}
    folder = real_data.data_folder()
    if not folder.is_dir():
        print(f"  {folder} not found, skipped (FEDCDH_SHARED names the folder that holds data/)")
        return
    for path in sorted([*folder.glob("*/data.csv"), *folder.glob("*/data.csv.gz")]):
        if path.parent.name not in labels and real_data.DOMAIN_COLUMN in (columns := read_numbers(path)):
            yield path.parent.name, split_by_domain(columns)


def read_numbers(path: Path) -> dict[str, Array]:
    """The domain and the columns of numbers; an empty entry is missing."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as lines:
        header, *rows = csv.reader(lines)
    columns = {}
    for name, values in zip(header, zip(*rows, strict=True), strict=True):
        if name == real_data.DOMAIN_COLUMN:
            columns[name] = np.array(values)
        else:
            with suppress(ValueError):  # words have no unit
                columns[name] = np.array([float(value or "nan") for value in values])
    return columns


def show_real(studies: Iterable[tuple[str, Tables]]) -> None:
    found = {name: report_on(tables) for name, tables in studies}
    if found:
        print(f"  {', '.join(found)}")
        show(f"all {len(found)}", combine(found))
        show_each(combine(found).doubts)


# Variables made up


class Difference(NamedTuple):
    """How clients differ: standard deviations of their levels, in the quantity's, and of the logarithm of spread."""

    level: float
    spread: float


class Quantity(NamedTuple):
    """Normal with this mean and deviation; or lognormal with this median and deviation of the logarithm."""

    name: str
    middle: float
    deviation: float
    lognormal: bool = False

    def draw(self, seed: int, client: str, rows: int, differ: Difference) -> Array:
        rng = keyed_generator(seed, "units", self.name, client)
        level, spread = differ.level * rng.standard_normal(), math.exp(differ.spread * rng.standard_normal())
        standard = level + spread * rng.standard_normal(rows)
        if self.lognormal:
            return np.asarray(self.middle * np.exp(self.deviation * standard))
        return np.asarray(self.middle + self.deviation * standard)


def simulate_tables(
    quantity: Quantity, clients: int, rows: int, differ: Difference, seeds: range
) -> dict[str, dict[str, Array]]:
    """One variable per seed, named after it."""
    return {
        client: {str(seed): quantity.draw(seed, client, rows, differ) for seed in seeds}
        for client in name_clients(clients)
    }


def count_false_alarms(seeds: range, cell: tuple[Quantity, int, Difference]) -> Reported:
    quantity, clients, differ = cell
    return report_on(simulate_tables(quantity, clients, 200, differ, seeds))


def show_grid(pool: ProcessPoolExecutor, seeds: range, rows: Mapping[str, list[tuple[Quantity, Difference]]]) -> None:
    """One row per label; columns are its quantities, with 2 clients and with 5. In per cent."""
    cells = [(quantity, clients, differ) for row in rows.values() for clients in (2, 5) for quantity, differ in row]
    found = iter([100 * len(one.doubts) / one.variables for one in pool.map(partial(count_false_alarms, seeds), cells)])
    for label, row in rows.items():
        print(f"  {label:32}" + "".join(f"{next(found):9.1f}" for _ in range(2 * len(row))), flush=True)


def show_simulated(pool: ProcessPoolExecutor, seeds: range) -> None:
    what = f"% of {len(seeds)} variables of clients with 200 rows, {format_seeds(seeds)}"
    means, sigmas = (10, 3, 1), (0.3, 0.6, 1.0)

    def head(texts: Iterable[str]) -> str:
        return "".join(f"{f'{text}, {k}':>9}" for k, text in product((2, 5), texts))

    print(f"\n{what}: levels differ (normal; spreads by 20 %)\n  columns: mean in standard deviations from 0, clients")
    print(f"  {'level differs by':32}{head(map(str, means))}")
    levels = {
        f"{level:g} standard deviations": [
            (Quantity(f"normal {mean}", mean, 1.0), Difference(level, 0.2)) for mean in means
        ]
        for level in (0.5, 1, 2, 3, 5)
    }
    show_grid(pool, seeds, levels)
    print(f"\n{what}: levels and spreads really differ by a factor (lognormal)\n  columns: σ of the logarithm, clients")
    print(f"  {'typical factor':32}{head(map(str, sigmas))}")
    factors = {
        f"exp({log}) = {math.exp(log):.2f}": [
            (Quantity(f"lognormal {sigma}", 1.0, sigma, lognormal=True), Difference(log / sigma, 0.0))
            for sigma in sigmas
        ]
        for log in (0.3, 0.7, 1.2)
    }
    show_grid(pool, seeds, factors)


# Wrong units


class WrongUnit(NamedTuple):
    """A quantity that some clients have as factor · value + offset."""

    quantity: Quantity
    factor: float
    offset: float = 0.0


WRONG = (
    WrongUnit(Quantity("temperature, °F for °C", 36.9, 0.6), 1.8, 32.0),
    WrongUnit(Quantity("glucose, mg/dl for mmol/l", 5.6, 1.2), 18.016),
    WrongUnit(Quantity("cholesterol, mg/dl for mmol/l", 5.2, 1.0), 38.67),
    WrongUnit(Quantity("creatinine, µmol/l for mg/dl (lognormal)", 0.9, 0.35, lognormal=True), 88.42),
    WrongUnit(Quantity("HbA1c, mmol/mol for % (lognormal)", 6.2, 0.15, lognormal=True), 10.93, -23.5),
    WrongUnit(Quantity("haemoglobin, g/l for g/dl", 13.5, 1.6), 10.0),
    WrongUnit(Quantity("height, inch for cm", 170.0, 9.0), 1 / 2.54),
    WrongUnit(Quantity("weight, lb for kg (75 ± 14)", 75.0, 14.0), 2.20462),
    WrongUnit(Quantity("urea, mg/dl for mmol/l (not in the list)", 5.0, 1.2), 2.8),
    WrongUnit(Quantity("mean 5 deviations from 0, × 1000", 5.0, 1.0), 1000.0),
    WrongUnit(Quantity("mean 3 deviations from 0, × 10", 3.0, 1.0), 10.0),
    WrongUnit(Quantity("mean 2 deviations from 0, × 100", 2.0, 1.0), 100.0),
    WrongUnit(Quantity("mean 1 deviation from 0, × 1000", 1.0, 1.0), 1000.0),
    WrongUnit(Quantity("CRP, × 1000 (lognormal, σ = 1)", 3.0, 1.0, lognormal=True), 1000.0),
    WrongUnit(Quantity("CRP, × 10 (lognormal, σ = 1)", 3.0, 1.0, lognormal=True), 10.0),
)
PLACES = ((1, 2), (1, 5), (2, 5))  # clients in the wrong unit, of how many
DIFFERENCES = (Difference(0.3, 0.15), Difference(0.6, 0.25))


class Detection(NamedTuple):
    """Of the variables with a wrong unit: doubted, with the right clients on either side, and by the right factor."""

    doubted: int
    clients: int
    factor: int


def count_detections(seeds: range, cell: tuple[WrongUnit, Difference, tuple[int, int]]) -> Detection:
    (quantity, factor, offset), differ, (wrong, clients) = cell
    tables = simulate_tables(quantity, clients, 100, differ, seeds)
    guilty = [*tables][:wrong]
    for client in guilty:
        tables[client] = {name: factor * values + offset for name, values in tables[client].items()}
    doubts = report_on(tables).doubts.values()
    times = max(factor, 1 / factor)
    return Detection(
        doubted=len(doubts),
        clients=sum({*guilty} in ({*one.low}, {*one.high}) for one in doubts),
        factor=sum(abs(one.conversion.factor / times - 1) < 0.01 for one in doubts),
    )


def show_wrong(pool: ProcessPoolExecutor, seeds: range) -> None:
    print(f"\n2. Found, % of {len(seeds)} variables, clients with 100 rows, {format_seeds(seeds)}")
    print("  columns: clients in the wrong unit; how clients differ otherwise (level in standard deviations, spread)")
    print("  last: of all that were found, % with the right clients, and % with the right conversion")
    heads = [f"{differ.level:g}, {differ.spread:.0%}" for differ in DIFFERENCES for _ in PLACES]
    print(f"  {'':44}" + "".join(f"{head:>10}" for head in heads))
    heads = [f"{wrong} of {clients}" for _ in DIFFERENCES for wrong, clients in PLACES]
    print(f"  {'':44}" + "".join(f"{head:>10}" for head in [*heads, "clients", "factor"]))
    for wrong in WRONG:
        found = list(pool.map(partial(count_detections, seeds), product([wrong], DIFFERENCES, PLACES)))
        doubted, *right = map(sum, zip(*found, strict=True))
        shares = [100 * one.doubted / len(seeds) for one in found] + [100 * one / max(doubted, 1) for one in right]
        print(f"  {wrong.quantity.name:44}" + "".join(f"{share:10.0f}" for share in shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=150, help="studies of every kind (default 150)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    fresh = range(FRESH, FRESH + options.studies)
    print("1. Doubted without reason")
    with ProcessPoolExecutor(options.workers) as pool:
        show_studies(pool, range(options.studies))
        show_studies(pool, fresh)
        print("\nreal and benchmark data, as they come")
        show_real(raw_studies())
        print("\nthe same, as `real_data` prepares them (Sachs: logarithms)")
        show_real(prepared_studies())
        show_simulated(pool, range(FRESH, FRESH + 2 * options.studies))
        show_wrong(pool, fresh)


if __name__ == "__main__":
    main()
