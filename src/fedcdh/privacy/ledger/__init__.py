"""What has left a site: a ledger on its own disk, and the rules that more than one message has to keep to.

Whatever sends something about rows notes it first:

    ledger = ReleaseLedger(path)                     # made when it is first needed
    seen = Sketcher(ledger.secret())                 # call it with complete rows, batch after batch
    ...
    release = Release("noisy", client, plan.fingerprint, digest, rows, numbers=0, columns=told(seen, ...),
                      whole=seen.rows, epsilon=0.5, delta=1e-6)
    ledger.record(release, partial(check_release, release, limits=policy.limits(plan)), key)

`record` raises PolicyRefusal if the release must not leave, and otherwise returns once it is on disk: only then may the
message leave. `epsilon` and `delta` are what the release spends; `spent_epsilon` adds up what was spent on rows in
common. Releases of kind "summary", "answer" and "masked" are held to each other; "noisy" ones are not refused for rows
that changed, since noise is what hides these.
"""

from fedcdh.privacy.ledger.differencing import Limits, check_release, spent_epsilon
from fedcdh.privacy.ledger.ledger_file import NAME, Entry, ReleaseLedger, settings_folder, standing, usual_ledger
from fedcdh.privacy.ledger.record import CELLS, WITHDRAWN, Release, Told
from fedcdh.privacy.ledger.row_sketches import Sketch, Sketcher, sketch_values

__all__ = [
    "CELLS",
    "NAME",
    "WITHDRAWN",
    "Entry",
    "Limits",
    "Release",
    "ReleaseLedger",
    "Sketch",
    "Sketcher",
    "Told",
    "check_release",
    "settings_folder",
    "sketch_values",
    "spent_epsilon",
    "standing",
    "usual_ledger",
]
