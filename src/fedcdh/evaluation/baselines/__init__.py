"""Published methods to compare ours with, on the same tables and with all that they send counted.

- `registry`, `entry`, `listings`: all methods by name, with what each assumes (the page "Rivals" has the table)
- `interface`: what methods have in common: tables in, a `BaselineResult` out, a channel that counts bytes between
- `fedpc`, `feddag`, `feddag_networks`, `notears_admm`, `notears_mlp_admm`, `admm`: federated methods
- `federated_bic`, `peri`, `iperi`, `fedges`, `graph_votes`: federated methods by scores
- `gaussian_bic`, `family_messages`: the score of linear Gaussian families, and families and graphs as messages
- `ges_bic`: greedy equivalence search on all rows
- `fedc2sl`, `label_search`, `label_counts`, `label_scores`: federated methods for labels
- `fedcsl`, `fedacd`, `local_structure`, `directed_votes`: clients vote on neighbours and directions
- `fedci_pc`, `federated_glm`, `labelled_rows`: PC with likelihood ratios of federated regressions
- `lingam_cumulants`: linear models with noise that is not Gaussian, from cumulants of pairs
- `fedcdh_program`, `random_feature_test`: FedCDH as its authors' program has it
- `characteristic_test`: a test by characteristic functions, for the experiment on power
- `darlis`, `darlis_clients`, `darlis_rounds`; `fed_cd`, `fed_cd_learner`; `sparse_bnsl`, `private_sparse_bnsl`, `zcdp`:
  federated methods that talk in many rounds; `column_scales` is their first message
- `var_sort`: sorting by variance, which is no causal method
- `pooled_references`, `cdnod_change`, `lingam_references`: programs that need all rows in one place, and what perfect
  tests would find
- `fedcdh_methods`: our own methods, in the same form

>>> from fedcdh import simulate
>>> study = simulate(seed=1)
>>> found = find_baseline("fedpc")(study.tables, study.names)
>>> found.traffic.bytes_up < find_baseline("sort-by-variance")(study.tables, study.names).traffic.bytes_up
True
"""

from fedcdh.evaluation.baselines.entry import BaselineEntry, MethodAssumptions
from fedcdh.evaluation.baselines.interface import BaselineMethod, BaselineResult, Traffic
from fedcdh.evaluation.baselines.pooled_references import oracle_result
from fedcdh.evaluation.baselines.registry import (
    BASELINES,
    find_baseline,
    to_markdown_table,
)
from fedcdh.evaluation.baselines.var_sort import varsortability

__all__ = [
    "BASELINES",
    "BaselineEntry",
    "BaselineMethod",
    "BaselineResult",
    "MethodAssumptions",
    "Traffic",
    "find_baseline",
    "oracle_result",
    "to_markdown_table",
    "varsortability",
]
