"""How a study's plan comes about: from profiles, from a declaration, or from both."""

from fedcdh.agreement.agreeing import study_from
from fedcdh.agreement.declaration import Declaration

__all__ = ["Declaration", "study_from"]
