"""The plan of a study from profiles, from a declaration, or from both.

Modules
-------
declaration
    What the coordinator declares in TOML.
study_from_profiles
    The study that follows from profiles and declaration.
"""

from fedcdh.federation.planning.declaration import Declaration, VariableDeclaration
from fedcdh.federation.planning.study_from_profiles import plan_study

__all__ = ["Declaration", "VariableDeclaration", "plan_study"]
