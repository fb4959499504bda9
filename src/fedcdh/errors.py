"""Every error of this package, and the exit code that belongs to it.

    FedCDHError
    ├── PlanError (also a ValueError)          the study plan cannot be used as it is
    │   └── PlanMismatchError                       two parties follow different plans
    ├── SettingsError (also a ValueError)      a setting is out of its range, or names something unknown
    ├── DataError (also a ValueError)          a table does not fit the plan
    ├── SummaryError                           a summary is damaged, empty or does not fit the others
    │   ├── SummaryFormatError                        the bytes are not those of a summary file
    │   ├── RowCountError                   the counts of rows and missing values contradict each other
    │   ├── MomentBoundsError                        a moment is larger than bounded features allow
    │   ├── MomentIdentityError                   moments that are equal for any rows differ
    │   ├── NotPositiveSemidefiniteError                         the matrix of moments is not positive semidefinite
    │   ├── InfeasibleMomentsError                  no values within the plan's range have these moments
    │   ├── UnknownClientError                      the plan does not name the client of a summary
    │   └── DuplicateClientError                    a client has two summaries, or two clients share one
    ├── SignatureError                         a signature is missing, damaged, or by another key than expected
    ├── DisclosureError                          the policy of the site does not allow the release
    │   └── LedgerError                        the release ledger is damaged or cannot be read
    ├── KnowledgeError (also a ValueError)     the background knowledge contradicts itself
    ├── GraphError                             a graph cannot be built, or an operation does not apply to it
    │   ├── UndirectedEdgeError                only an undirected edge can be directed
    │   └── NoConsistentExtensionError                        no DAG has these arrows, this skeleton and these colliders
    ├── MessageFormatError                            a message of an online study cannot be read
    ├── QuorumError                            too few sites are left to continue an online study
    ├── SecureAggregationError                           a secure sum cannot be completed
    ├── PendingAnswersError                          sites have to answer a request before the search can continue
    ├── InvalidAnswerError                            a test or score returned a value that the search cannot use
    ├── BaselineError                         a method that is compared with FedCDH failed
    └── MissingDependencyError (also an ImportError)   an optional library is not installed

Errors about an argument are also ValueErrors, as in scikit-learn.

A message has three parts: what was found, what was expected, what to do. If a parameter is to be changed, the error
carries its name, and the front end spells it: `max_missing_share=` in Python, `--max-missing-share` in a terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of the command line, and all that an online site reports of an error.

    The text of an error may quote a path, a level or a value, so only the code crosses the network.
    """

    SUCCESS = 0
    REFUSED = 1
    USAGE = 2
    DATA = 3
    PLAN = 4
    SUMMARY = 5
    SIGNATURE = 6
    POLICY = 7
    FILES = 8
    INTERNAL = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The sentence that the documentation and the coordinator show for this code."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.SUCCESS: "the command succeeded",
    ExitCode.REFUSED: "the command refused for a reason that has no code of its own, such as a check that failed",
    ExitCode.USAGE: "the command was not understood, or a setting is out of its range",
    ExitCode.DATA: "a table, a profile or a column mapping cannot be used as it is",
    ExitCode.PLAN: "a plan or declaration cannot be used, contradicts itself, or differs from the one that was followed",
    ExitCode.SUMMARY: "a summary is damaged, impossible, duplicated or missing",
    ExitCode.SIGNATURE: "a signature is missing, invalid, or by another key",
    ExitCode.POLICY: "the policy or the ledger of this site does not allow the release",
    ExitCode.FILES: "a file cannot be read or written",
    ExitCode.INTERNAL: "the program has an error of its own; FEDCDH_DEBUG=1 shows where",
    ExitCode.INTERRUPTED: "the command was interrupted (ctrl-C or SIGTERM); no partial file is left",
}


def _spell_in_python(parameter: str) -> str:
    return f"parameter {parameter}"


class FedCDHError(Exception):
    """Base class of all errors of this package.

    Parameters
    ----------
    message : str
        What was found, what was expected and what to do.
    parameter : str, optional
        Python name of the parameter that the reader should change.

    Examples
    --------
    >>> error = SettingsError("alpha is 2; expected a number between 0 and 1", parameter="alpha")
    >>> str(error)
    'alpha is 2; expected a number between 0 and 1 (parameter alpha)'
    >>> error.text(lambda name: "option --" + name)
    'alpha is 2; expected a number between 0 and 1 (option --alpha)'
    """

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED

    def __init__(self, message: str = "", *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.parameter = parameter

    def text(self, spell: Callable[[str], str] = _spell_in_python) -> str:
        """Return the message, followed by the parameter as the front end spells it."""
        return self.message if self.parameter is None else f"{self.message} ({spell(self.parameter)})"

    def __str__(self) -> str:
        return self.text()


class PlanError(FedCDHError, ValueError):
    """The study plan is incomplete or contradicts itself."""

    exit_code = ExitCode.PLAN


class PlanMismatchError(PlanError):
    """Two parties follow different study plans, so their numbers do not mean the same."""


class SettingsError(FedCDHError, ValueError):
    """A setting of the search or of reading is out of its range, or names something that does not exist."""

    exit_code = ExitCode.USAGE


class DataError(FedCDHError, ValueError):
    """A table does not hold what the study plan promises."""

    exit_code = ExitCode.DATA


class SummaryError(FedCDHError):
    """A summary is damaged, empty or does not fit the other summaries."""

    exit_code = ExitCode.SUMMARY


class SummaryFormatError(SummaryError):
    """The bytes are not those of a summary file, or were changed on the way."""


class RowCountError(SummaryError):
    """The numbers of rows read, rows used and values missing cannot all be true."""


class MomentBoundsError(SummaryError):
    """An entry is larger than so many rows of bounded features can make it."""


class MomentIdentityError(SummaryError):
    """Sums that are equal (or nearly so) whatever the rows are, are not."""


class NotPositiveSemidefiniteError(SummaryError):
    """No rows have these moments: in some direction, a sum of squares would be negative."""


class InfeasibleMomentsError(SummaryError):
    """The moments of a variable are those of no values in the plan's range: wrong features, scale or number of rows."""


class UnknownClientError(SummaryError):
    """A summary of a client that the plan does not name."""


class DuplicateClientError(SummaryError):
    """A second summary of one client, or the summary of one client under the name of another."""


class SignatureError(FedCDHError):
    """A signature is missing, damaged, or made by another key than the one expected."""

    exit_code = ExitCode.SIGNATURE


class DisclosureError(FedCDHError):
    """The policy of the site does not let this leave."""

    exit_code = ExitCode.POLICY


class LedgerError(DisclosureError):
    """What left this site before is not known for sure, so nothing leaves."""


class KnowledgeError(FedCDHError, ValueError):
    """Background knowledge contradicts itself or speaks of variables that do not exist."""

    exit_code = ExitCode.PLAN


class GraphError(FedCDHError):
    """A graph cannot be built as described, or is not of the kind an operation needs."""


class UndirectedEdgeError(GraphError):
    """An edge was to be directed that is not an undirected edge of the graph."""


class NoConsistentExtensionError(GraphError):
    """No DAG keeps the arrows and the skeleton of the graph without adding a collider."""


class MessageFormatError(FedCDHError):
    """What came over the network is no message of an online study, or not one that was asked for."""


class QuorumError(FedCDHError):
    """An online study has fewer sites left than its coordinator wants at least."""


class SecureAggregationError(FedCDHError):
    """A message of a masked sum is not the one that its rounds ask for, or too few sites are left to open the sum."""


class PendingAnswersError(FedCDHError):
    """The search has come to a question that sites have to answer first."""


class InvalidAnswerError(FedCDHError):
    """An independence test or a measure of change answered with something the search cannot use."""


class BaselineError(FedCDHError):
    """A method that stands beside ours for comparison could not deal with the rows."""


class MissingDependencyError(FedCDHError, ImportError):
    """A conversion or a plot needs an optional library that is not installed."""


_BUILT_IN: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (OSError, ExitCode.FILES),
    (MemoryError, ExitCode.FILES),
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
)


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code of any exception.

    >>> exit_code_of(DisclosureError("the variable 'postcode' is excluded")).name
    'POLICY'
    """
    if isinstance(error, FedCDHError):
        return error.exit_code
    return next((code for kind, code in _BUILT_IN if isinstance(error, kind)), ExitCode.INTERNAL)
