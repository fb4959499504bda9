"""The plan of a study from profiles, from a declaration, or from both.

Modules
-------
declaration
    What the coordinator declares in TOML.
study_from_profiles
    The study that follows from profiles and declaration.
label_consistency, unit_consistency
    Checks for labels and units that differ between clients.
"""

from fedcdh.federation.planning.declaration import Declaration, VariableDeclaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.federation.planning.unit_consistency import UnitMismatch, find_unit_mismatch

__all__ = ["Declaration", "UnitMismatch", "VariableDeclaration", "find_unit_mismatch", "plan_study"]
