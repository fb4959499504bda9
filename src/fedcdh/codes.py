"""Numbers for what goes wrong: exit codes of the command line, and all that an online site says of its troubles.

A sentence about an error may quote a path, a label or a value. At a terminal its reader is who owns them; across a
network only the number goes, and the sentence stays in the site's own log.
"""

from __future__ import annotations

from fedcdh.errors import (
    DataError,
    FedCDHError,
    KnowledgeError,
    PlanError,
    PolicyRefusal,
    SettingsError,
    SignatureError,
    SummaryError,
)

REFUSED, USAGE, DATA, PLAN, SUMMARY, SIGNATURE, POLICY, FILES, INTERNAL, INTERRUPTED = 1, 2, 3, 4, 5, 6, 7, 8, 70, 130
MEANINGS = {
    0: "all went well",
    REFUSED: "refused for another reason than those below, such as a check that did not pass",
    USAGE: "the command was not understood, or a setting is out of its range",
    DATA: "a table, a profile or a mapping of columns cannot be used as it is",
    PLAN: "a plan or declaration cannot be used, contradicts itself, or is not the one that was followed",
    SUMMARY: "a summary is damaged, impossible, twice there or missing",
    SIGNATURE: "a signature is missing, false, or by another key",
    POLICY: "the policy or the ledger of this site does not let it leave",
    FILES: "a file cannot be read or written",
    INTERNAL: "a mistake of this program; FEDCDH_DEBUG=1 shows where",
    INTERRUPTED: "interrupted with ctrl-C (add: or SIGTERM); nothing half-written is left",
}
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (PolicyRefusal, POLICY),
    (SignatureError, SIGNATURE),
    (SummaryError, SUMMARY),
    (SettingsError, USAGE),
    (PlanError, PLAN),
    (KnowledgeError, PLAN),
    (DataError, DATA),
    (FedCDHError, REFUSED),
    (OSError, FILES),
    (MemoryError, FILES),
    (KeyboardInterrupt, INTERRUPTED),
)


def code_of(problem: BaseException) -> int:
    """The number of what went wrong.

    >>> code_of(PolicyRefusal("the variable 'postcode' is withheld"))
    7
    """
    return next((code for kind, code in _CODES if isinstance(problem, kind)), INTERNAL)
