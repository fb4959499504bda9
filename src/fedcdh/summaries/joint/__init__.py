"""Adaptive rounds: joint features of sets of variables that the search conditions on.

A summary holds sums of products of functions of *single* variables, so a regression on several variables is additive.
For sets that the search conditions on, products of functions of their members are requested as well, each set once:
then a regression also covers interactions.

- `request`: requests, answers (`JointSummary`), and their sizes;
- `encoder`: the joint features;
- `answer`: a client's answer, one more pass over its rows;
- `round_budget`: how much a client may answer by its plan;
- `scheduling`: which sets are requested;
- `sources`: who answers.
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
