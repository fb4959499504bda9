"""Every error of this package, and the exit code that belongs to it.

    FedCDHError
    ├── PlanError (ValueError)                   the study plan cannot be used as it is
    │   └── PlanMismatchError                    two parties follow different plans
    ├── SettingsError (ValueError)               a setting is out of its range, or names something unknown
    ├── DataError (ValueError)                   a table does not fit the plan
    ├── SummaryError                             a summary is damaged, empty or does not fit the others
    │   ├── SummaryFormatError                   the bytes are not those of a summary file
    │   ├── RowCountError                        the counts of rows and missing values contradict each other
    │   ├── MomentBoundsError                    a moment is larger than bounded features allow
    │   ├── MomentIdentityError                  moments that are equal for any rows differ
    │   ├── NotPositiveSemidefiniteError         the matrix of moments is not positive semidefinite
    │   ├── InfeasibleMomentsError               no values within the plan's range have these moments
    │   ├── UnknownClientError                   the plan does not name the client of a summary
    │   └── DuplicateClientError                 a client has two summaries, or two clients share one
    ├── SignatureError                           a signature is missing, damaged, or by another key than expected
    ├── DisclosureError                          the policy of the site does not allow the release
    │   └── LedgerError                          the release ledger is damaged or cannot be read
    ├── KnowledgeError (ValueError)              the background knowledge contradicts itself
    ├── GraphError                               a graph cannot be built, or an operation does not apply to it
    │   ├── UndirectedEdgeError                  only an undirected edge can be directed
    │   └── NoConsistentExtensionError           no DAG has these arrows, this skeleton and these colliders
    ├── MessageFormatError                       a message of an online study cannot be read
    ├── QuorumError                              too few clients are left to continue an online study
    ├── SecureAggregationError                   a secure sum cannot be completed
    ├── PendingAnswersError                      clients have to answer a request before the search can continue
    ├── InvalidAnswerError                       a test or score returned a value that the search cannot use
    ├── BaselineError                            a method that is compared with FedCDH failed
    └── MissingDependencyError (ImportError)     an optional library is not installed

The classes in brackets are further base classes: errors about an argument are also ValueErrors, as in scikit-learn.

A message has three parts: what was found, what was expected, what to do. If a parameter is to be changed, the error
carries its name, and the front end spells it: `max_missing_share=` in Python, `--max-missing-share` in a terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import ClassVar

__all__ = [
    "BaselineError",
    "DataError",
    "DisclosureError",
    "DuplicateClientError",
    "ExitCode",
    "FedCDHError",
    "GraphError",
    "InfeasibleMomentsError",
    "InvalidAnswerError",
    "KnowledgeError",
    "LedgerError",
    "MessageFormatError",
    "MissingDependencyError",
    "MomentBoundsError",
    "MomentIdentityError",
    "NoConsistentExtensionError",
    "NotPositiveSemidefiniteError",
    "PendingAnswersError",
    "PlanError",
    "PlanMismatchError",
    "QuorumError",
    "RowCountError",
    "SecureAggregationError",
    "SettingsError",
    "SignatureError",
    "SummaryError",
    "SummaryFormatError",
    "UndirectedEdgeError",
    "UnknownClientError",
    "exit_code_of",
]


class ExitCode(IntEnum):
    """Exit codes of the command line; an online client reports nothing else about an error.

    The text of an error may quote a path, a level or a value, so only the code crosses the network.

    Examples
    --------
    >>> ExitCode(7).name
    'POLICY'
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
        """Return the sentence that the documentation and the coordinator show for this code."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.SUCCESS: "the command succeeded",
    ExitCode.REFUSED: "the command refused for a reason that has no code of its own, such as a check that failed",
    ExitCode.USAGE: "the command was not understood, or a setting is out of its range",
    ExitCode.DATA: "a table, a profile or a column mapping cannot be used as it is",
    ExitCode.PLAN: (
        "a plan or declaration cannot be used, contradicts itself, or differs from the one that was followed"
    ),
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
        """Return the message, followed by the parameter as the front end spells it.

        Parameters
        ----------
        spell : callable, optional
            Returns the spelling of a parameter's name; the default is that of Python.

        Returns
        -------
        str
            The text to show.
        """
        return self.message if self.parameter is None else f"{self.message} ({spell(self.parameter)})"

    def __str__(self) -> str:
        return self.text()


class PlanError(FedCDHError, ValueError):
    """The study plan is incomplete or contradicts itself."""

    exit_code = ExitCode.PLAN


class PlanMismatchError(PlanError):
    """Two parties follow different study plans, so their summaries cannot be combined."""


class SettingsError(FedCDHError, ValueError):
    """A setting is out of its range, or names something that does not exist."""

    exit_code = ExitCode.USAGE


class DataError(FedCDHError, ValueError):
    """A table cannot be read, or does not fit the study plan."""

    exit_code = ExitCode.DATA


class SummaryError(FedCDHError):
    """A summary is damaged, empty or does not fit the other summaries."""

    exit_code = ExitCode.SUMMARY


class SummaryFormatError(SummaryError):
    """The bytes are not those of a summary file, or were changed during transport."""


class RowCountError(SummaryError):
    """The numbers of rows read, rows used and missing values contradict each other."""


class MomentBoundsError(SummaryError):
    """A moment is larger than this number of rows with bounded features allows."""


class MomentIdentityError(SummaryError):
    """Two moments that are equal for any rows differ."""


class NotPositiveSemidefiniteError(SummaryError):
    """The matrix of moments is not positive semidefinite, so no rows have these moments."""


class InfeasibleMomentsError(SummaryError):
    """No values within the plan's range have these moments: features, scale or number of rows are wrong."""


class UnknownClientError(SummaryError):
    """The plan does not name the client of a summary."""


class DuplicateClientError(SummaryError):
    """A client has two summaries, or two clients have the same summary."""


class SignatureError(FedCDHError):
    """A signature is missing, damaged, or made by another key than the expected one."""

    exit_code = ExitCode.SIGNATURE


class DisclosureError(FedCDHError):
    """The policy of the site does not allow the release.

    `findings` has one sentence for each thing that must not leave, where the error has them; the message groups them
    by cause.
    """

    exit_code = ExitCode.POLICY
    findings: tuple[str, ...] = ()


class LedgerError(DisclosureError):
    """The release ledger is damaged or cannot be read, so earlier releases are unknown and nothing is released."""


class KnowledgeError(FedCDHError, ValueError):
    """The background knowledge contradicts itself or names unknown variables."""

    exit_code = ExitCode.PLAN


class GraphError(FedCDHError):
    """A graph cannot be built, or an operation does not apply to it."""


class UndirectedEdgeError(GraphError):
    """An edge cannot be directed because it is not an undirected edge of the graph."""


class NoConsistentExtensionError(GraphError):
    """No DAG has the arrows and the skeleton of the graph without a new collider."""


class MessageFormatError(FedCDHError):
    """A message of an online study cannot be read, or was not expected."""


class QuorumError(FedCDHError):
    """An online study has fewer clients left than its coordinator requires."""


class SecureAggregationError(FedCDHError):
    """A secure sum cannot be completed: a message is not the expected one, or too few clients are left."""


class PendingAnswersError(FedCDHError):
    """One or more clients have to answer a request before the search can continue."""


class InvalidAnswerError(FedCDHError):
    """A test, a score or a measure of change returned a value that the search cannot use."""


class BaselineError(FedCDHError):
    """A method that is compared with FedCDH failed."""


class MissingDependencyError(FedCDHError, ImportError):
    """An optional library is not installed."""


_BUILT_IN: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (OSError, ExitCode.FILES),
    (MemoryError, ExitCode.FILES),
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
)


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code of any exception.

    Parameters
    ----------
    error : BaseException
        The exception.

    Returns
    -------
    ExitCode
        The code of an error of this package, or of a file error, lack of memory or interruption; else INTERNAL.

    Examples
    --------
    >>> exit_code_of(DisclosureError("the variable 'postcode' is excluded")).name
    'POLICY'
    """
    if isinstance(error, FedCDHError):
        return error.exit_code
    return next((code for kind, code in _BUILT_IN if isinstance(error, kind)), ExitCode.INTERNAL)
