"""Marginal likelihoods of a variable given its parents, from the clients' moments alone.

- `family_score`: the score of a family, with the prior of its arrows
- `gaussian`: continuous variables
- `multinomial`: categorical variables
- `residual_score`: the score under noise of any shape and size, from sums of residuals
- `family_forms`: the linear or nonlinear form of a family, of values or of normal scores
- `residual_record`, `residual_factors`: what the clients answered, and the log Bayes factors of it
- `noise_shape`, `noise_size`: the evidence of a free density, and of a size that depends on the parents
- `tempered_scores`: weights of families that allow for a model that is not quite true
- `recorded_answers`: answers about residuals that are used again
"""

from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.evidence.multinomial import MultinomialScore
from fedcdh.inference.evidence.recorded_answers import RecordedAnswers
from fedcdh.inference.evidence.residual_record import ResidualRecord
from fedcdh.inference.evidence.residual_score import ResidualScore

__all__ = ["FamilyScore", "GaussianScore", "MultinomialScore", "RecordedAnswers", "ResidualRecord", "ResidualScore"]
