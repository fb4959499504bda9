"""Privacy at a site: what may leave it, and in which form.

- `advice`: the smallest change of recipes that lets a summary leave;
- `disclosure`: disclosure control, the policy of a site;
- `ledger`: the record of everything that left, and rules for several releases;
- `recipe_changes`: another recipe of a column that has left before;
- `release_context`: the client that releases something, and the rules it is held to;
- `releases`: profiles, summaries and answers that policy and ledger let leave;
- `differential`: differential privacy by noise in summaries;
- `secure_aggregation`: sums over clients of which the server sees only the total (experimental);
- `homomorphic`: the same sums under homomorphic encryption.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.privacy.advice import Advice, advise, advise_from_profile, plan_from_profile
    from fedcdh.privacy.differential.mechanism import add_noise, add_noise_share
    from fedcdh.privacy.disclosure.policy import Policy
    from fedcdh.privacy.ledger.gate import ReleaseGate
    from fedcdh.privacy.ledger.ledger_file import ReleaseLedger, default_ledger
    from fedcdh.privacy.releases import (
        ReleaseContext,
        check_invitation,
        release,
        release_answer,
        release_profile,
        release_summary,
        try_summary,
    )

__all__ = [
    "Advice",
    "Policy",
    "ReleaseContext",
    "ReleaseGate",
    "ReleaseLedger",
    "add_noise",
    "add_noise_share",
    "advise",
    "advise_from_profile",
    "check_invitation",
    "default_ledger",
    "plan_from_profile",
    "release",
    "release_answer",
    "release_profile",
    "release_summary",
    "try_summary",
]

_EXPORTS = {
    "Advice": "fedcdh.privacy.advice",
    "Policy": "fedcdh.privacy.disclosure.policy",
    "ReleaseContext": "fedcdh.privacy.release_context",
    "ReleaseGate": "fedcdh.privacy.ledger.gate",
    "ReleaseLedger": "fedcdh.privacy.ledger.ledger_file",
    "add_noise": "fedcdh.privacy.differential.mechanism",
    "add_noise_share": "fedcdh.privacy.differential.mechanism",
    "advise": "fedcdh.privacy.advice",
    "advise_from_profile": "fedcdh.privacy.advice",
    "check_invitation": "fedcdh.privacy.release_context",
    "default_ledger": "fedcdh.privacy.ledger.ledger_file",
    "plan_from_profile": "fedcdh.privacy.advice",
    "release": "fedcdh.privacy.releases",
    "release_answer": "fedcdh.privacy.releases",
    "release_profile": "fedcdh.privacy.releases",
    "release_summary": "fedcdh.privacy.releases",
    "try_summary": "fedcdh.privacy.releases",
}
__getattr__, __dir__ = attach(__name__, _EXPORTS)
