"""Further rounds: what a server may ask once it knows which sets of variables matter, and what a client answers.

One message holds sums of products of functions of *single* variables, so a regression on several variables is one on
sums of functions. For sets that the search comes to condition on, products of functions of their members are asked for
as well, each set once: then a regression sees how the members act together.
"""

from fedcdh.summaries.joint.answer import answer_request
from fedcdh.summaries.joint.encoder import JointEncoder, joint_terms
from fedcdh.summaries.joint.request import JointRequest, JointSummary, Spent, to_variable_set
from fedcdh.summaries.joint.round_budget import RoundBudget
from fedcdh.summaries.joint.scheduling import plan_requests, select_answers
from fedcdh.summaries.joint.sources import AnswerSource, LocalAnswerSource

__all__ = [
    "AnswerSource",
    "JointEncoder",
    "JointRequest",
    "JointSummary",
    "LocalAnswerSource",
    "RoundBudget",
    "Spent",
    "answer_request",
    "joint_terms",
    "plan_requests",
    "select_answers",
    "to_variable_set",
]
