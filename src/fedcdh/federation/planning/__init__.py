"""How a study's plan comes about: from profiles, from a declaration, or from both."""

from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.planning.study_from_profiles import plan_study

__all__ = ["Declaration", "plan_study"]
