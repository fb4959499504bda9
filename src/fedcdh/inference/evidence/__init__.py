"""Marginal likelihoods of a variable given its parents, from the clients' moments alone.

- `family_score`: the score of a family, with the prior of its arrows
- `gaussian`: continuous variables
- `multinomial`: categorical variables
"""

from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.evidence.multinomial import MultinomialScore

__all__ = ["FamilyScore", "GaussianScore", "MultinomialScore"]
