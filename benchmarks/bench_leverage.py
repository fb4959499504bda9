"""How often an honest table has a row with high leverage, so that the policy of a site does not let its summary leave.

    python -m benchmarks.bench_leverage [--tables 100]

One variable, a plan made from its own profile, default features. Leverage is that of the outermost values; above 0.99
(the default of `max_leverage`), a person's other values could be computed to within a tenth of a standard deviation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedcdh import StudyPlan
from fedcdh.privacy.disclosure.leverage import compute_leverages
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows

Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]
DISTRIBUTIONS: dict[str, Draw] = {
    "uniform": lambda rng, n: rng.random(n),
    "age in years (beta)": lambda rng, n: np.round(30 + 55 * rng.beta(2, 2, n)),
    "normal": lambda rng, n: rng.standard_normal(n),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "lognormal, sigma 0.5": lambda rng, n: rng.lognormal(0, 0.5, n),
    "lognormal, sigma 1": lambda rng, n: rng.lognormal(0, 1, n),
    "t, 3 degrees of freedom": lambda rng, n: rng.standard_t(3, n),
    "0 in 9 of 10, else exponential": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.exponential(1, n)),
}


def max_leverage_of(values: npt.NDArray[np.float64]) -> float:
    table = {"x": values}
    plan = StudyPlan.from_tables({"site": table})
    found = scan_rows(table, plan, "site", ScanOptions())
    return compute_leverages(found.summary(0.5), plan, found.extremes.values)["x"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    number, limit = parser.parse_args().tables, Policy().max_leverage
    print(f"median leverage, and % of {number} variables above {limit} (seeds 1000..{999 + number})")
    sizes = (250, 1000, 5000)
    print(f"{'':32}" + "".join(f"{f'n = {rows}':>16}" for rows in sizes))
    for name, draw in DISTRIBUTIONS.items():
        cells = []
        for rows in sizes:
            found = [max_leverage_of(draw(np.random.default_rng(1000 + k), rows)) for k in range(number)]
            cells.append(f"{np.median(found):.2f}, {100 * np.mean(np.array(found) > limit):.0f} %")
        print(f"{name:32}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
