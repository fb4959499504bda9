"""How an edge is drawn: its width shows the size of the effect, its darkness the probability, and a sign the direction.

Weak and uncertain edges are dotted and light. The three drawings (report, notebook and plot) share the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

from fedcdh.reporting.phrases import shown_probability, slope_sign

MIN_CLEAR_PROBABILITY = 0.9
"""Probability below which a drawn edge is uncertain: of ten such edges, one or more is expected to be wrong."""
MIN_CLEAR_STRENGTH = 0.05
"""Share of variance below which the effect of a drawn edge is weak."""
MIN_CERTAINTY_OPACITY = 0.45
"""Opacity of an edge that is as likely as not; that of a certain edge is 1."""
TENTATIVE_OPACITY = 0.7
"""Largest opacity of a weak or an uncertain edge."""
MIN_WIDTH, MAX_WIDTH = 0.7, 2.0
"""Widths of the edges with the smallest and the largest effects, in parts of the usual width."""
FULL_STRENGTH = 0.5
"""Share of variance from which an edge has its full width."""

Sign = Literal["+", "\N{MINUS SIGN}", ""]


@dataclass(frozen=True)
class EdgeStyle:
    """The knowledge about an edge that decides how it is drawn.

    Parameters
    ----------
    probability : float, optional
        Probability of the arrow, or of the line; None where it is not known.
    strength : float, optional
        Share of variance that the cause explains, of what the other causes leave; None where it is not known.
    sign : str, default ""
        "+" if more of the cause goes with more of the effect, "−" if with less; empty if there is no clear sign.

    Examples
    --------
    >>> EdgeStyle(probability=0.6, strength=0.2).is_uncertain, EdgeStyle(probability=0.99, strength=0.03).is_weak
    (True, True)
    """

    probability: float | None = None
    strength: float | None = None
    sign: Sign = ""

    @property
    def is_uncertain(self) -> bool:
        """Return whether the probability is below `MIN_CLEAR_PROBABILITY`."""
        return self.probability is not None and self.probability < MIN_CLEAR_PROBABILITY

    @property
    def is_weak(self) -> bool:
        """Return whether the edge explains less than `MIN_CLEAR_STRENGTH` of the variance."""
        return self.strength is not None and self.strength < MIN_CLEAR_STRENGTH

    @property
    def is_tentative(self) -> bool:
        """Return whether the edge is weak or uncertain, and is therefore drawn dotted and light."""
        return self.is_uncertain or self.is_weak

    @property
    def opacity(self) -> float:
        """Return how dark the edge is drawn: likely edges are darker."""
        certainty = 1.0 if self.probability is None else min(1.0, max(0.0, 2 * self.probability - 1))
        found = MIN_CERTAINTY_OPACITY + (1 - MIN_CERTAINTY_OPACITY) * certainty
        return round(min(found, TENTATIVE_OPACITY) if self.is_tentative else found, 2)

    @property
    def relative_width(self) -> float:
        """Return the width of the edge in parts of the usual width: edges with larger effects are thicker."""
        if self.strength is None:
            return 1.0
        size = sqrt(min(1.0, max(0.0, self.strength) / FULL_STRENGTH))
        return round(MIN_WIDTH + (MAX_WIDTH - MIN_WIDTH) * size, 2)


def style_edge(edge: Mapping[str, Any]) -> EdgeStyle:
    """Return the style of an edge of a result document.

    Parameters
    ----------
    edge : mapping
        The edge.

    Returns
    -------
    EdgeStyle
        Its probability, strength and sign.

    Examples
    --------
    >>> style_edge({"mark": "—", "probability": 0.7, "strength": 0.1, "slope": -2.0}).sign
    '−'
    """
    strength = edge.get("strength")
    return EdgeStyle(shown_probability(edge), None if strength is None else float(strength), slope_sign(edge))
