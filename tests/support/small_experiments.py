"""A small experiment, its case and its rows."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

from fedcdh.evaluation.experiments.definition import Experiment, parse_experiment

CASE = {
    "model": "linear",
    "variables": 4,
    "clients": 3,
    "rows": 60,
    "density": 1.0,
    "changing": 1,
    "dialect": "paper",
    "scale": "raw",
    "sizes": "equal",
    "order": "given",
    "width": 0,
}


def small(**changed: object) -> Experiment:
    experiment = parse_experiment(
        "small",
        """
        title = "Small"
        kind = "graphs"
        seeds = "1:4"
        methods = ["oracle", "fedpc", "sort-by-variance"]
        [base]
        """
        + "\n".join(f"{name} = {value!r}" for name, value in CASE.items())
        + """
        [sweep]
        rows = [30, 60]
        """,
    )
    return replace(experiment, **changed)


def without_seconds(path: Path) -> list[list[str]]:
    rows = list(csv.reader(path.read_text().splitlines()))
    clock = rows[0].index("seconds")
    return [row[:clock] + row[clock + 1 :] for row in rows]


def row(method: str, seed: int, value: float, **more: str) -> dict[str, str]:
    return {"method": method, "seed": str(seed), "f1": str(value), "rows": "5", "graph": "g", **more}
