"""Pseudo-confounders ψ: functions of the client that several mechanisms have in common (Assumption 1 of the paper).

Mechanisms that all follow one ψ change *together*. Given the client, ψ is a number, so that it confounds nothing within
clients. But the independent change principle, by which the direction between two changing mechanisms is found, does not
hold for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from fedcdh.errors import SettingsError


@dataclass(frozen=True)
class PseudoConfounder:
    """One ψ(k), drawn from N(0, 1) for every client k, and its effect on the mechanisms of some variables.

    A variable V_i = Σ_j σ_ij f_i(V_j) + γ ε_i becomes Σ_j σ_ij f_i(V_j) + γ exp(spread · ψ(k)) ε_i + level · ψ(k) at
    client k.

    Parameters
    ----------
    variables : tuple of str
        Names of at least two variables, whose mechanisms follow ψ.
    level : float, default 1.0
        By how much the level of a variable rises with ψ.
    spread : float, default 0.0
        By how much the logarithm of the size of its noise rises with ψ.

    Raises
    ------
    SettingsError
        If fewer than two variables are named, one is named twice, or ψ has no effect.

    Examples
    --------
    >>> from fedcdh import simulate
    >>> shared = PseudoConfounder(("v1", "v2"), level=2.0)
    >>> study = simulate(variables=3, changing=0, confounders=(shared,), seed=1)
    >>> sorted(study.changing)
    ['v1', 'v2']
    """

    variables: tuple[str, ...]
    level: float = 1.0
    spread: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        if len(self.variables) < 2 or len({*self.variables}) < len(self.variables):
            raise SettingsError(
                f"found a pseudo-confounder of {', '.join(self.variables) or 'no variable'}; expected two or more "
                "different variables, whose mechanisms change together; name them",
                parameter="confounders",
            )
        if not (isfinite(self.level) and isfinite(self.spread)) or self.level == self.spread == 0:
            raise SettingsError(
                f"found a pseudo-confounder with level {self.level} and spread {self.spread}; expected finite numbers, "
                "not both 0; choose others",
                parameter="confounders",
            )


@dataclass(frozen=True)
class SharedChange:
    """The change of one mechanism at one client that it has in common with others: a level, and a factor of noise."""

    level: float = 0.0
    noise_factor: float = 1.0


def combine_confounders(
    confounders: Sequence[PseudoConfounder], values: Sequence[float], variable: str
) -> SharedChange:
    """Return the effect of all pseudo-confounders, which have these values at a client, on one variable."""
    level = spread = 0.0
    for confounder, value in zip(confounders, values, strict=True):
        if variable in confounder.variables:
            level += confounder.level * value
            spread += confounder.spread * value
    return SharedChange(level, float(np.exp(spread)))


def check_confounders(confounders: Sequence[PseudoConfounder], names: Sequence[str], clients: int) -> None:
    """Refuse pseudo-confounders of unknown variables, and of a single client."""
    unknown = sorted({name for one in confounders for name in one.variables} - {*names})
    if unknown:
        raise SettingsError(
            f"found a pseudo-confounder of {', '.join(unknown)}; expected some of {', '.join(names)}; name these",
            parameter="confounders",
        )
    if confounders and clients < 2:
        raise SettingsError(
            "found a pseudo-confounder and a single client; expected at least 2 clients, between which it differs; "
            "simulate more clients",
            parameter="confounders",
        )
