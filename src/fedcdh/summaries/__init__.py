"""Study plan, profiles, features, sufficient statistics, their sums, their validation, and bootstrap.

- `plan`, `variables`, `feature_layout`, `dp_parameters`: what all parties agree on;
- `profiles`, `column_profiles`: the few numbers from which a plan is made;
- `site_consistency`, `unit_consistency`, `label_consistency`: whether all clients mean the same by a variable;
- `features`, `encoder`: from rows to features on a grid;
- `summary`, `accumulator`: the moments of features, exact and additive;
- `client_changes`: clients that leave a study or join it;
- `aggregation`: the summaries of all clients, or their sum;
- `validation`: whether any rows can have given a summary;
- `bootstrap`: replicates of resampled rows;
- `noisy_moments`: moments with the noise of differential privacy;
- `descriptives`: means, standard deviations and counts in a summary;
- `noisy_moments`: moments of summaries with noise;
- `opened_by_sums`: words for what a sum over clients opens about each of them;
- `integer_vectors`: a summary as a vector for secure aggregation;
- `joint`: joint features of adaptive rounds;
- `residuals`: sums of functions of residuals.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.summaries.accumulator import summarize as summarize
    from fedcdh.summaries.aggregation import Aggregate as Aggregate
    from fedcdh.summaries.aggregation import Cohort as Cohort
    from fedcdh.summaries.aggregation import add_up as add_up
    from fedcdh.summaries.bootstrap import admit_replicates as admit_replicates
    from fedcdh.summaries.bootstrap import bootstrap_summaries as bootstrap_summaries
    from fedcdh.summaries.client_changes import ClientChange as ClientChange
    from fedcdh.summaries.client_changes import change_clients as change_clients
    from fedcdh.summaries.column_profiles import ColumnProfile as ColumnProfile
    from fedcdh.summaries.descriptives import descriptive_statistics as descriptive_statistics
    from fedcdh.summaries.descriptives import level_counts as level_counts
    from fedcdh.summaries.descriptives import summary_to_csv as summary_to_csv
    from fedcdh.summaries.dp_parameters import DPParameters as DPParameters
    from fedcdh.summaries.dp_parameters import calibrate_deviation as calibrate_deviation
    from fedcdh.summaries.dp_parameters import compose_releases as compose_releases
    from fedcdh.summaries.encoder import Encoder as Encoder
    from fedcdh.summaries.feature_layout import FeatureLayout as FeatureLayout
    from fedcdh.summaries.features.fourier import Fourier as Fourier
    from fedcdh.summaries.features.hermite import Hermite as Hermite
    from fedcdh.summaries.features.one_hot import OneHot as OneHot
    from fedcdh.summaries.plan import StudyPlan as StudyPlan
    from fedcdh.summaries.profiles import Profile as Profile
    from fedcdh.summaries.profiles import merge_profiles as merge_profiles
    from fedcdh.summaries.profiles import profile as profile
    from fedcdh.summaries.summary import Summary as Summary
    from fedcdh.summaries.summary import sum_summaries as sum_summaries
    from fedcdh.summaries.unit_consistency import UnitMismatch as UnitMismatch
    from fedcdh.summaries.unit_consistency import find_unit_mismatch as find_unit_mismatch
    from fedcdh.summaries.validation import admit_summaries as admit_summaries
    from fedcdh.summaries.validation import validate_summary as validate_summary
    from fedcdh.summaries.variables import Categorical as Categorical
    from fedcdh.summaries.variables import Continuous as Continuous

__all__ = [
    "Aggregate",
    "Categorical",
    "ClientChange",
    "Cohort",
    "ColumnProfile",
    "Continuous",
    "DPParameters",
    "Encoder",
    "FeatureLayout",
    "Fourier",
    "Hermite",
    "OneHot",
    "Profile",
    "StudyPlan",
    "Summary",
    "UnitMismatch",
    "add_up",
    "admit_replicates",
    "admit_summaries",
    "bootstrap_summaries",
    "calibrate_deviation",
    "change_clients",
    "compose_releases",
    "descriptive_statistics",
    "find_unit_mismatch",
    "level_counts",
    "merge_profiles",
    "profile",
    "sum_summaries",
    "summarize",
    "summary_to_csv",
    "validate_summary",
]

_HOMES = {
    "Aggregate": "fedcdh.summaries.aggregation",
    "Categorical": "fedcdh.summaries.variables",
    "ClientChange": "fedcdh.summaries.client_changes",
    "Cohort": "fedcdh.summaries.aggregation",
    "ColumnProfile": "fedcdh.summaries.column_profiles",
    "Continuous": "fedcdh.summaries.variables",
    "DPParameters": "fedcdh.summaries.dp_parameters",
    "Encoder": "fedcdh.summaries.encoder",
    "FeatureLayout": "fedcdh.summaries.feature_layout",
    "Fourier": "fedcdh.summaries.features.fourier",
    "Hermite": "fedcdh.summaries.features.hermite",
    "OneHot": "fedcdh.summaries.features.one_hot",
    "Profile": "fedcdh.summaries.profiles",
    "StudyPlan": "fedcdh.summaries.plan",
    "Summary": "fedcdh.summaries.summary",
    "UnitMismatch": "fedcdh.summaries.unit_consistency",
    "add_up": "fedcdh.summaries.aggregation",
    "admit_replicates": "fedcdh.summaries.bootstrap",
    "admit_summaries": "fedcdh.summaries.validation",
    "bootstrap_summaries": "fedcdh.summaries.bootstrap",
    "calibrate_deviation": "fedcdh.summaries.dp_parameters",
    "change_clients": "fedcdh.summaries.client_changes",
    "compose_releases": "fedcdh.summaries.dp_parameters",
    "descriptive_statistics": "fedcdh.summaries.descriptives",
    "find_unit_mismatch": "fedcdh.summaries.unit_consistency",
    "level_counts": "fedcdh.summaries.descriptives",
    "merge_profiles": "fedcdh.summaries.profiles",
    "profile": "fedcdh.summaries.profiles",
    "sum_summaries": "fedcdh.summaries.summary",
    "summarize": "fedcdh.summaries.accumulator",
    "summary_to_csv": "fedcdh.summaries.descriptives",
    "validate_summary": "fedcdh.summaries.validation",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
