"""What has left a site: a ledger on its own disk, and the rules that more than one message has to keep to.

Whatever sends something about rows notes it first:

    ledger = ReleaseLedger(path)                     # made when it is first needed
    seen = Sketcher(ledger.secret())                 # call it with complete rows, batch after batch
    ...
    release = Release("noisy", client, plan.fingerprint, digest, rows, numbers=0, columns=told(seen, ...),
                      whole=seen.rows, epsilon=0.5, delta=1e-6)
    ledger.record(release, partial(check_release, release, limits=policy.limits(plan)), key)

`record` raises DisclosureError if the release must not leave, and otherwise returns once it is on disk: only then may the
message leave. `epsilon` and `delta` are what the release spends; `spent_epsilon` adds up what was spent on rows in
common. Releases of kind "summary", "answer" and "masked" are held to each other; "noisy" ones are not refused for rows
that changed, since noise is what hides these.
"""

from fedcdh.privacy.ledger.differencing import DifferencingLimits, check_differencing, spent_epsilon
from fedcdh.privacy.ledger.ledger_file import (
    LEDGER_FILE_NAME,
    LedgerEntry,
    ReleaseLedger,
    default_ledger,
    find_active_entries,
    settings_folder,
)
from fedcdh.privacy.ledger.record import CELLS_KEY, WITHDRAWN, Release, ReleasedColumn
from fedcdh.privacy.ledger.row_sketches import RowSketcher, ValueSketch, sketch_values

__all__ = [
    "CELLS_KEY",
    "LEDGER_FILE_NAME",
    "WITHDRAWN",
    "DifferencingLimits",
    "LedgerEntry",
    "Release",
    "ReleaseLedger",
    "ReleasedColumn",
    "RowSketcher",
    "ValueSketch",
    "check_differencing",
    "default_ledger",
    "find_active_entries",
    "settings_folder",
    "sketch_values",
    "spent_epsilon",
]
