"""The release ledger: everything that left a site, and the rules that several messages have to keep to.

- `record`: a release, as the ledger keeps it;
- `ledger_file`: the ledger as an append-only file;
- `row_sketches`: sketches of rows, which show whether two releases are about the same rows;
- `differencing`: whether a release may leave after earlier ones;
- `privacy_budget`: what all noisy releases spend together;
- `round_messages`: messages of secure aggregation, of which no second one may leave;
- `unattended`: rules for a client that answers without a person;
- `gate`: records profiles, summaries and answers, or refuses them.

A release is recorded before it leaves: `ReleaseGate.record` raises DisclosureError if it must not leave, and otherwise
returns once it is on disk. Summaries, answers and masked summaries are compared with each other. Noisy summaries are
not refused for changed rows, which the noise hides; they spend a privacy budget.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.privacy.ledger.differencing import check_differencing
    from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
    from fedcdh.privacy.ledger.ledger_file import (
        LEDGER_FILE_NAME,
        ReleaseLedger,
        default_ledger,
        find_active_entries,
    )
    from fedcdh.privacy.ledger.privacy_budget import PrivacySpending, check_privacy_budget, spent_privacy
    from fedcdh.privacy.ledger.record import WITHDRAWN, LedgerEntry, Release, ReleasedColumn
    from fedcdh.privacy.ledger.row_sketches import RowSketcher, ValueSketch
    from fedcdh.privacy.ledger.unattended import check_unattended

__all__ = [
    "LEDGER_FILE_NAME",
    "WITHDRAWN",
    "LedgerEntry",
    "PrivacySpending",
    "Release",
    "ReleaseGate",
    "ReleaseLedger",
    "ReleasedColumn",
    "RowSketcher",
    "ValueSketch",
    "check_differencing",
    "check_privacy_budget",
    "check_unattended",
    "default_ledger",
    "find_active_entries",
    "spent_privacy",
    "spent_round_budget",
]

_EXPORTS = {
    "LEDGER_FILE_NAME": "fedcdh.privacy.ledger.ledger_file",
    "WITHDRAWN": "fedcdh.privacy.ledger.record",
    "LedgerEntry": "fedcdh.privacy.ledger.record",
    "PrivacySpending": "fedcdh.privacy.ledger.privacy_budget",
    "Release": "fedcdh.privacy.ledger.record",
    "ReleaseGate": "fedcdh.privacy.ledger.gate",
    "ReleaseLedger": "fedcdh.privacy.ledger.ledger_file",
    "ReleasedColumn": "fedcdh.privacy.ledger.record",
    "RowSketcher": "fedcdh.privacy.ledger.row_sketches",
    "ValueSketch": "fedcdh.privacy.ledger.row_sketches",
    "check_differencing": "fedcdh.privacy.ledger.differencing",
    "check_privacy_budget": "fedcdh.privacy.ledger.privacy_budget",
    "check_unattended": "fedcdh.privacy.ledger.unattended",
    "default_ledger": "fedcdh.privacy.ledger.ledger_file",
    "find_active_entries": "fedcdh.privacy.ledger.ledger_file",
    "spent_privacy": "fedcdh.privacy.ledger.privacy_budget",
    "spent_round_budget": "fedcdh.privacy.ledger.gate",
}
__getattr__, __dir__ = attach(__name__, _EXPORTS)
