"""Disclosure control: the policy of a site, and what it has to know about the rows.

- `policy`: limits and lists that plans, profiles, summaries and answers have to keep to;
- `rules`: one sentence for each finding;
- `thresholds`: how many rows and people a message needs;
- `row_scan`: one pass over the rows for the summary and for all checks;
- `small_cells`: people with each value of discrete variables;
- `rare_cells`: rare levels and pairs of levels, made coarser before a summary leaves;
- `recoded_rows`: the rows as such a summary has them;
- `leverage`: rows that determine a summary by themselves;
- `group_leverage`: small groups of rows that a summary separates from all others;
- `scale_bounds`: the plan's scale beside the spread of the site's values;
- `row_count`: rows are counted before memory is taken for a wide plan;
- `joint_risk`: the same for answers about joint features;
- `residual_counts`: how many sums of residuals a site may answer, and that no question is answered twice;
- `residual_risk`: whether these sums could single out people.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.privacy.disclosure.leverage import ExtremeValues, HighLeverageRows, compute_leverages
    from fedcdh.privacy.disclosure.policy import Policy
    from fedcdh.privacy.disclosure.row_scan import RowScan, ScanOptions, scan_rows
    from fedcdh.privacy.disclosure.small_cells import CellCounter
    from fedcdh.privacy.disclosure.thresholds import (
        count_released_numbers,
        information_loads,
        required_cell_count,
        required_rows,
    )

__all__ = [
    "CellCounter",
    "ExtremeValues",
    "HighLeverageRows",
    "Policy",
    "RowScan",
    "ScanOptions",
    "compute_leverages",
    "count_released_numbers",
    "information_loads",
    "required_cell_count",
    "required_rows",
    "scan_rows",
]

_EXPORTS = {
    "CellCounter": "fedcdh.privacy.disclosure.small_cells",
    "ExtremeValues": "fedcdh.privacy.disclosure.leverage",
    "HighLeverageRows": "fedcdh.privacy.disclosure.leverage",
    "Policy": "fedcdh.privacy.disclosure.policy",
    "RowScan": "fedcdh.privacy.disclosure.row_scan",
    "ScanOptions": "fedcdh.privacy.disclosure.row_scan",
    "compute_leverages": "fedcdh.privacy.disclosure.leverage",
    "count_released_numbers": "fedcdh.privacy.disclosure.thresholds",
    "information_loads": "fedcdh.privacy.disclosure.thresholds",
    "required_cell_count": "fedcdh.privacy.disclosure.thresholds",
    "required_rows": "fedcdh.privacy.disclosure.thresholds",
    "scan_rows": "fedcdh.privacy.disclosure.row_scan",
}
__getattr__, __dir__ = attach(__name__, _EXPORTS)
