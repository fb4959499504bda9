"""The paper's experiments and ours, each a TOML file; `fedcdh experiment NAME` runs one.

- `definition`: the design of an experiment; `definitions/` has the files
- `kinds`: what an instance of a design is, and what is measured on it
- `runner`: jobs in several processes, rows in a CSV file, resumable
- `row_files`: files of rows, and merging those of several runs
- `tables`, `standings`, `statements`, `paper_comparison`: tables and sentences made from rows
- `method_groups`, `figures`, `summary_figures`: figures
- `details_page`, `results_page`: the pages of results
- `interaction_data`, `noise_shape_data`, `real_data`: studies besides those of `fedcdh.simulate`
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.evaluation.experiments.definition import (
        Experiment,
        experiment_names,
        load_experiment,
        parse_experiment,
    )
    from fedcdh.evaluation.experiments.figures import draw_figures
    from fedcdh.evaluation.experiments.interaction_data import simulate_interactions
    from fedcdh.evaluation.experiments.results_page import write_results_page
    from fedcdh.evaluation.experiments.row_files import MergeCounts, drop_rows, merge_rows
    from fedcdh.evaluation.experiments.runner import run_experiment

__all__ = [
    "Experiment",
    "MergeCounts",
    "draw_figures",
    "drop_rows",
    "experiment_names",
    "load_experiment",
    "merge_rows",
    "parse_experiment",
    "run_experiment",
    "simulate_interactions",
    "write_results_page",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Experiment": "fedcdh.evaluation.experiments.definition",
        "MergeCounts": "fedcdh.evaluation.experiments.row_files",
        "draw_figures": "fedcdh.evaluation.experiments.figures",
        "drop_rows": "fedcdh.evaluation.experiments.row_files",
        "experiment_names": "fedcdh.evaluation.experiments.definition",
        "load_experiment": "fedcdh.evaluation.experiments.definition",
        "merge_rows": "fedcdh.evaluation.experiments.row_files",
        "parse_experiment": "fedcdh.evaluation.experiments.definition",
        "run_experiment": "fedcdh.evaluation.experiments.runner",
        "simulate_interactions": "fedcdh.evaluation.experiments.interaction_data",
        "write_results_page": "fedcdh.evaluation.experiments.results_page",
    },
)
