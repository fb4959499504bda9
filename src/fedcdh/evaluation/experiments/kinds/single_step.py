"""Kinds of experiments whose methods have no fit to share."""

from __future__ import annotations

from typing import Any

from fedcdh.errors import SettingsError


class SingleStepKind:
    """A kind whose methods find their result in one step."""

    def fit_name(self, method: str) -> str:
        """Return that there is no fit."""
        return ""

    def fit(self, prepared: Any, method: str, seed: int) -> Any:
        """Refuse: there is nothing to fit."""
        raise SettingsError(
            f"the method {method!r} of this kind of experiment has no fit; expected none to be asked for; measure it"
        )
