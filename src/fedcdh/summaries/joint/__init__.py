"""Further rounds: what a server may ask once it knows which sets of variables matter, and what a client answers.

One message holds sums of products of functions of *single* variables, so a regression on several variables is one on
sums of functions. For sets that the search comes to condition on, products of functions of their members are asked for
as well, each set once: then a regression sees how the members act together.
"""

from fedcdh.summaries.joint.answer import answer_joint
from fedcdh.summaries.joint.encoder import JointEncoder, joint_columns
from fedcdh.summaries.joint.request import JointRequest, JointSummary, Spent, sort_set
from fedcdh.summaries.joint.round_budget import Ledger
from fedcdh.summaries.joint.scheduling import answers_to, requests_for
from fedcdh.summaries.joint.sources import SummarySource, TablesSource

__all__ = [
    "JointEncoder",
    "JointRequest",
    "JointSummary",
    "Ledger",
    "Spent",
    "SummarySource",
    "TablesSource",
    "answer_joint",
    "answers_to",
    "joint_columns",
    "requests_for",
    "sort_set",
]
