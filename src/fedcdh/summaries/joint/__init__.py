"""Adaptive rounds: joint features of sets of variables that the search conditions on.

A summary holds sums of products of functions of *single* variables, so a regression on several variables is additive.
For sets that the search conditions on, products of functions of their members are requested as well, each set once:
then a regression also covers interactions.

- `request`: requests, answers (`JointSummary`), and their sizes;
- `encoder`: the joint features;
- `answer`: a client's answer, one more pass over its rows;
- `round_budget`: how much a client may answer by its plan;
- `scheduling`: what is requested;
- `sources`: who answers.

The last three also serve requests about residuals (`fedcdh.summaries.residuals`): both kinds share one budget.
"""

from fedcdh.summaries.joint.answer import answer_request
from fedcdh.summaries.joint.encoder import JointEncoder, joint_terms
from fedcdh.summaries.joint.request import JointRequest, JointSummary, Spent, to_variable_set
from fedcdh.summaries.joint.round_budget import DEFAULT_MAX_ROUNDS, RoundBudget, default_max_bytes
from fedcdh.summaries.joint.scheduling import (
    allow_all,
    plan_requests,
    plan_residual_requests,
    select_affordable_queries,
    select_answers,
    select_residuals,
)
from fedcdh.summaries.joint.sources import AnswerSource, LocalAnswerSource

__all__ = [
    "DEFAULT_MAX_ROUNDS",
    "AnswerSource",
    "JointEncoder",
    "JointRequest",
    "JointSummary",
    "LocalAnswerSource",
    "RoundBudget",
    "Spent",
    "allow_all",
    "answer_request",
    "default_max_bytes",
    "joint_terms",
    "plan_requests",
    "plan_residual_requests",
    "select_affordable_queries",
    "select_answers",
    "select_residuals",
    "to_variable_set",
]
