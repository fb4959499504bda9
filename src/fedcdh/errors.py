"""Everything this package refuses to do, as one family.

    FedCDHError
    ├── PlanError (also a ValueError)          the study plan cannot be used as it is
    │   └── PlanMismatch                       two parties follow different plans
    ├── SettingsError (also a ValueError)      a setting is out of its range, or names what does not exist
    ├── DataError (also a ValueError)          a table does not fit the plan
    ├── SummaryError                           a summary is damaged, empty or does not fit the others
    │   ├── NotASummary                        the bytes are not those of a summary file
    │   ├── RowsInconsistent                   the counts of rows and missing values contradict each other
    │   ├── OutOfBounds                        an entry is larger than bounded features allow
    │   ├── IdentityViolated                   sums that are equal for any rows are not
    │   ├── Indefinite                         no rows have these moments: the matrix has a negative direction
    │   ├── ImpossibleMoments                  a variable's moments are those of no values within the plan's range
    │   ├── UnknownClient                      a summary of a client that the plan does not name
    │   └── DuplicateClient                    a second summary of one client, or one client's summary as another's
    ├── SignatureError                         a signature is missing, damaged, or by another key than expected
    ├── PolicyRefusal                          the site's policy does not let this leave
    ├── KnowledgeError (also a ValueError)     what is said to be known contradicts itself
    ├── GraphError                             a graph cannot be built, or cannot do what is asked
    │   ├── NotAnUndirectedEdge                only a line can be turned into an arrow
    │   └── NoExtension                        no DAG has these arrows, this skeleton and these colliders
    ├── NotAMessage                            what came over the network is no message of an online study
    ├── TooFewSites                            too few sites are left for an online study to go on
    ├── MaskingError                           a masked sum cannot go on: a message is not what the rounds ask for
    ├── AnswersNeeded                          sites have to answer a request before the search can go on
    ├── AnswerError                            a test or measure gave no usable answer to the search
    ├── BaselineFailed                         a program that stands beside ours for comparison gave up
    └── MissingLibrary (also an ImportError)   an optional library is not installed

Those that blame an argument are also `ValueError`s, so callers in the manner of scikit-learn can catch just that.
"""
# ruff: noqa: N818  (a name says what went wrong; "NoExtensionError" would not say it better)


class FedCDHError(Exception):
    """Any refusal of this package; catch it to catch them all."""


class PlanError(FedCDHError, ValueError):
    """The study plan is incomplete or contradicts itself."""


class PlanMismatch(PlanError):
    """Two parties follow different study plans, so their numbers do not mean the same."""


class SettingsError(FedCDHError, ValueError):
    """A setting of the search or of reading is out of its range, or names something that does not exist."""


class DataError(FedCDHError, ValueError):
    """A table does not hold what the study plan promises."""


class SummaryError(FedCDHError):
    """A summary is damaged, empty or does not fit the other summaries."""


class NotASummary(SummaryError):
    """The bytes are not those of a summary file, or were changed on the way."""


class RowsInconsistent(SummaryError):
    """The numbers of rows read, rows used and values missing cannot all be true."""


class OutOfBounds(SummaryError):
    """An entry is larger than so many rows of bounded features can make it."""


class IdentityViolated(SummaryError):
    """Sums that are equal (or nearly so) whatever the rows are, are not."""


class Indefinite(SummaryError):
    """No rows have these moments: in some direction, a sum of squares would be negative."""


class ImpossibleMoments(SummaryError):
    """The moments of a variable are those of no values in the plan's range: wrong features, scale or number of rows."""


class UnknownClient(SummaryError):
    """A summary of a client that the plan does not name."""


class DuplicateClient(SummaryError):
    """A second summary of one client, or the summary of one client under the name of another."""


class SignatureError(FedCDHError):
    """A signature is missing, damaged, or made by another key than the one expected."""


class PolicyRefusal(FedCDHError):
    """The policy of the site does not let this leave."""


class LedgerError(PolicyRefusal):
    """What left this site before is not known for sure, so nothing leaves."""


class KnowledgeError(FedCDHError, ValueError):
    """Background knowledge contradicts itself or speaks of variables that do not exist."""


class GraphError(FedCDHError):
    """A graph cannot be built as described, or is not of the kind an operation needs."""


class NotAnUndirectedEdge(GraphError):
    """An edge was to be directed that is not an undirected edge of the graph."""


class NoExtension(GraphError):
    """No DAG keeps the arrows and the skeleton of the graph without adding a collider."""


class NotAMessage(FedCDHError):
    """What came over the network is no message of an online study, or not one that was asked for."""


class TooFewSites(FedCDHError):
    """An online study has fewer sites left than its coordinator wants at least."""


class MaskingError(FedCDHError):
    """A message of a masked sum is not the one that its rounds ask for, or too few sites are left to open the sum."""


class AnswersNeeded(FedCDHError):
    """The search has come to a question that sites have to answer first."""


class AnswerError(FedCDHError):
    """An independence test or a measure of change answered with something the search cannot use."""


class BaselineFailed(FedCDHError):
    """A method that stands beside ours for comparison could not deal with the rows."""


class MissingLibrary(FedCDHError, ImportError):
    """A conversion or a plot needs an optional library that is not installed."""
