"""Everything this package refuses to do, as one family.

    FedCDHError
    ├── PlanError (also a ValueError)          the study plan cannot be used as it is
    │   └── PlanMismatch                       two parties follow different plans
    ├── SettingsError (also a ValueError)      a setting is out of its range, or names what does not exist
    ├── DataError (also a ValueError)          a table does not fit the plan
    ├── SummaryError                           a summary is damaged, empty or does not fit the others
    ├── KnowledgeError (also a ValueError)     what is said to be known contradicts itself
    ├── GraphError                             a graph cannot be built, or cannot do what is asked
    │   ├── NotAnUndirectedEdge                only a line can be turned into an arrow
    │   └── NoExtension                        no DAG has these arrows, this skeleton and these colliders
    └── AnswerError                            a test or measure gave no usable answer to the search

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


class KnowledgeError(FedCDHError, ValueError):
    """Background knowledge contradicts itself or speaks of variables that do not exist."""


class GraphError(FedCDHError):
    """A graph cannot be built as described, or is not of the kind an operation needs."""


class NotAnUndirectedEdge(GraphError):
    """An edge was to be directed that is not an undirected edge of the graph."""


class NoExtension(GraphError):
    """No DAG keeps the arrows and the skeleton of the graph without adding a collider."""


class AnswerError(FedCDHError):
    """An independence test or a measure of change answered with something the search cannot use."""
