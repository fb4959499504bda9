"""Feasibility of the moments of one continuous variable: whether any values at all can have given them.

The features of one value x are a point φ(x) = (1, x/clip, (x/clip)², f₁, f₂, ...). As x runs through the plan's range
the products φ_i φ_j trace a curve, and the moments of any rows, divided by their number, lie in its convex hull.
Moments outside of the hull are those of no values: the number of rows is false, or features, seed, scale or centre
are others.

A summary is refused only with a witness: a quadratic form R with ⟨R, moments⟩ > max_x φ(x)ᵀ R φ(x) + Σ|R_ij| t_ij. The
search for one (the nearest point of the hull, by non-negative least squares) may stop early or be inexact, and then
accepts; the witness is what is proved. Its maximum over x is bounded from points along the curve, with a cell of width
h between two of them: at a distance d ≤ h/2 from one, g(s + d) ≤ g + g'd + γd²/2, where γ, the largest g'' in the cell,
exceeds the larger of those at its ends by at most h²/8 · max|g''''|. The tolerances t_ij hold the rest: rounding to the
grid, and the term h⁴/64 · max|g''''| (`_tolerance`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, isfinite

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from fedcdh._runtime.array_types import Array
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

Jets = Array
"""(orders, points, columns): functions at some points with their derivatives, or bounds on the sizes of these."""
Standardisation = tuple[float, float, float, float]

MAX_FAMILY_COLUMNS = 6
"""Columns of the family that are used: with the powers they make 44 products, and time grows with that number."""
MIN_CELLS, MAX_CELLS = 256, 8192
CELL_ERROR_TARGET = 2.0**-22
"""Points are so close that the term in g'''' stays below this, an eighth of the effect of rounding on a feature."""
MAX_CELL_ERROR = 2.0**-10
"""Products for which even the most cells leave a larger term than this are not used."""
MAX_STRETCH = 1e5
"""Where compression of tails stretches or squeezes by more than this, too few digits are left: only powers are used."""
FEATURE_ERROR = 1e-8
"""Largest error of a feature in float64: generous, as MAX_STRETCH · 2⁻⁵² is 2e-11 and sines are better."""
MAX_ITERATIONS = 30
_N_START_POINTS = 24  # points on the curve at the start; the search adds those it needs


@dataclass(frozen=True, eq=False)
class MomentCurve:
    """The curve (1, φ) with two derivatives at points along the range, and bounds on products between points."""

    columns: tuple[int, ...]  # those that are used, of (1, columns of the variable)
    jets: Jets  # (3, points, columns)
    widths: Array  # of the cells, in the parameter of the derivatives
    beyond: Array  # (columns, columns): max over cells of h⁴/64 · |(φ_i φ_j)''''|

    @cached_property
    def products(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the indices i and j of all products that are used."""
        i, j = np.triu_indices(len(self.beyond))
        used = (self.beyond[i, j] <= MAX_CELL_ERROR) & (j > 0)
        return i[used], j[used]

    @cached_property
    def starts(self) -> tuple[Array, Array]:
        """Return the points to begin with, and their products."""
        atoms = self.jets[0][:: max(1, len(self.widths) // _N_START_POINTS)]
        i, j = self.products
        return atoms, atoms[:, i] * atoms[:, j]


def is_feasible(moments: Array, variable: Continuous, plan: StudyPlan) -> bool:
    """Return whether some values in the plan's range have these mean products of (1, columns of the variable)."""
    bulk = (variable.location, variable.scale, *variable.centre_and_spread) if plan.family.compresses_tails else None
    curve = build_curve(plan.family, float(plan.clip), bulk)
    return not _is_separable(curve, moments[np.ix_(curve.columns, curve.columns)])


# The curve


@lru_cache(maxsize=128)
def build_curve(family: FeatureFamily, clip: float, bulk: Standardisation | None) -> MomentCurve:
    """Compute the curve over ±clip scales, for a variable with this standardisation if the family compresses tails."""
    with np.errstate(all="ignore"):
        cells = MIN_CELLS
        curve = _discretise_curve(family, clip, bulk, cells)
        while cells < MAX_CELLS and (ratio := float(curve.beyond.max()) / CELL_ERROR_TARGET) > 1:
            cells = int(min(cells * max(1.1, 1.05 * ratio**0.25), MAX_CELLS))
            curve = _discretise_curve(family, clip, bulk, cells)
        # a column without a usable bound may not even be finite
        usable = np.flatnonzero(curve.beyond[0] <= MAX_CELL_ERROR)
    columns = tuple(int(column) for column in usable)
    return MomentCurve(columns, curve.jets[:, :, usable], curve.widths, curve.beyond[np.ix_(usable, usable)])


def _discretise_curve(family: FeatureFamily, clip: float, bulk: Standardisation | None, cells: int) -> MomentCurve:
    """Compute all columns on some cells. The parameter is the compressed value where there is one, else x/clip."""
    if bulk is None:
        place, linear, bounds = _linear_parameter(cells)
        jets, sizes = _fourier_jets(family, clip, place) if isinstance(family, Fourier) else _no_family_columns(cells)
    elif _is_well_conditioned(clip, *bulk):
        place, linear, bounds = _arcsinh_parameter(clip, bulk, cells)
        jets, sizes = _hermite_jets(family, place) if isinstance(family, Hermite) else _no_family_columns(cells)
    else:
        place, linear, bounds = _linear_parameter(cells)
        jets, sizes = _no_family_columns(cells)
    values, limits = _prepend_powers(linear, jets), _prepend_powers(bounds, sizes)
    widths = np.diff(place)
    fourth = sum(
        comb(4, k) * np.einsum("pi,pj->pij", limits[k], limits[4 - k] * (widths**4 / 64)[:, None]) for k in range(5)
    )
    beyond = np.asarray(fourth).max(axis=0)
    beyond[~(beyond < np.inf)] = np.inf
    return MomentCurve(tuple(range(len(beyond))), values, widths, beyond)


def _is_well_conditioned(clip: float, location: float, scale: float, centre: float, spread: float) -> bool:
    """Return whether value and compressed value determine each other to ten digits, everywhere in the range."""
    reach = clip * scale + abs(location - centre)
    ratios = (reach / spread, max(spread, reach) / (clip * scale)) if clip * scale > 0 else (np.inf,)
    return all(map(isfinite, ratios)) and max(ratios) <= MAX_STRETCH


def _linear_parameter(cells: int) -> tuple[Array, Jets, Jets]:
    """Return the parameter s = x/clip, x/clip as a function of it, and bounds on that in the cells."""
    place = np.linspace(-1.0, 1.0, cells + 1)
    flat = np.zeros_like(place)
    return place, np.array([place, flat + 1, flat]), np.array([flat + 1, flat + 1, flat, flat, flat])[:, 1:]


def _arcsinh_parameter(clip: float, bulk: Standardisation, cells: int) -> tuple[Array, Jets, Jets]:
    """Return the same for s = asinh((x·scale + shift)/spread): x/clip = (spread · sinh s − shift)/(scale · clip)."""
    location, scale, centre, spread = bulk
    shift = location - centre
    low, high = np.arcsinh((np.array([-clip, clip]) * scale + shift) / spread)
    x = np.clip((np.sinh(np.linspace(low, high, cells + 1)) * spread - shift) / scale, -clip, clip)
    x[0], x[-1] = -clip, clip
    place = np.arcsinh((x * scale + shift) / spread)  # as the encoder has it
    unit = spread / (scale * clip)
    steepest = np.cosh(_max_abs_per_cell(place)) * unit
    linear = np.array([x / clip, np.cosh(place) * unit, np.sinh(place) * unit])
    return place, linear, np.array([np.ones(cells), steepest, steepest, steepest, steepest])


def _prepend_powers(linear: Array, family: Jets) -> Jets:
    """Return the columns 1, x/clip, its square (by Leibniz' rule) and the family's."""
    orders = range(len(linear))
    square = [sum(comb(n, k) * linear[k] * linear[n - k] for k in range(n + 1)) for n in orders]
    one = np.zeros_like(linear)
    one[0] = 1.0
    return np.concatenate([np.stack([one, linear, np.array(square)], axis=-1), family], axis=-1)


def _no_family_columns(cells: int) -> tuple[Jets, Jets]:
    return np.zeros((3, cells + 1, 0)), np.zeros((5, cells, 0))


def _fourier_jets(family: Fourier, clip: float, place: Array) -> tuple[Jets, Jets]:
    """Differentiate cos(w x + b) by s = x/clip; its k-th derivative is at most (w · clip)^k."""
    frequencies, phases = family.frequencies_and_phases
    speeds = (frequencies * clip)[:MAX_FAMILY_COLUMNS]
    angles = np.multiply.outer(place, speeds) + phases[:MAX_FAMILY_COLUMNS]
    jets = np.array([np.cos(angles), -speeds * np.sin(angles), -(speeds**2) * np.cos(angles)])
    sizes = np.array([np.broadcast_to(np.abs(speeds) ** k, (len(place) - 1, len(speeds))) for k in range(5)])
    return jets, sizes


def _hermite_jets(family: Hermite, place: Array) -> tuple[Jets, Jets]:
    """Differentiate the eigenfunctions by their recurrence, and bound their derivatives in each cell.

    Columns from the first that the encoder may clip at ±1 on are left out, because a clipped function has a kink.
    """
    wide = min(family.width, MAX_FAMILY_COLUMNS)
    decay, chain = family.derivative_recurrence
    features, widths = family(place)[:, :wide], np.diff(place)[:, None]
    largest = _max_abs_per_cell(place)
    # sizes of 2 hold for what comes out below 1: |f| ≤ larger end + h²/8 |f''|, and |f''| is linear in the sizes
    curved = widths**2 / 8 * _differentiate(np.full((len(widths), wide), 2.0), largest, decay, chain, 3)[2]
    most = np.maximum(np.abs(features[1:]), np.abs(features[:-1])) + curved
    whole = int(np.cumprod((most < 1).all(axis=0)).sum())
    jets = _differentiate(features[:, :whole], place, -decay, chain, 3)
    return jets, _differentiate(most[:, :whole], largest, decay, chain, 5)


def _differentiate(columns: Array, place: Array, slope: float, chain: Array, orders: int) -> Jets:
    """Differentiate f_j' = slope · s f_j + chain_j f_{j−1}; with positive slope and sizes, the results are bounds."""
    jets = [columns]
    for order in range(1, orders):
        before = np.zeros_like(columns)
        before[:, 1:] = jets[-1][:, :-1] * chain[1 : columns.shape[1]]
        twice = (order - 1) * jets[-2] if order > 1 else 0.0
        jets.append(slope * (place[:, None] * jets[-1] + twice) + before)
    return np.array(jets)


def _max_abs_per_cell(place: Array) -> Array:
    """Return the largest |s| in each cell."""
    return np.asarray(np.maximum(np.abs(place[1:]), np.abs(place[:-1])))


# The witness


def _tolerance(curve: MomentCurve, moments: Array) -> Array:
    """Return how far a mean product may be from that of the curve, for (i, j).

    A feature on the grid is f + e with |e| ≤ half a step, and |mean(f_i f_j) − mean(φ_i φ_j)| ≤ e_i √mean(φ_j²) +
    e_j √mean(φ_i²) + e_i e_j, by Cauchy and Schwarz. The constant is exact.
    """
    off = np.full(len(moments), 0.5 / GRID + FEATURE_ERROR)
    off[0] = 0.0
    size = np.sqrt(np.maximum(moments.diagonal(), 0.0))
    crossed = np.multiply.outer(off, size)
    return np.asarray(crossed + crossed.T + np.multiply.outer(off, off) + curve.beyond)


def _is_separable(curve: MomentCurve, moments: Array) -> bool:
    """Return whether there is a witness that these moments are outside of the hull."""
    i, j = curve.products
    target, within = moments[i, j], _tolerance(curve, moments)[i, j]
    atoms, crossed = curve.starts
    for _ in range(MAX_ITERATIONS):
        apart = (target - crossed) / within
        weights = _nearest_hull_weights(apart)
        residual = weights @ apart
        if np.abs(residual).max() <= 1.0:  # the hull has a point as near as for any honest summary
            return False
        witness = residual / within / np.linalg.norm(residual)
        form = np.zeros_like(moments)
        form[i, j] = witness
        form = (form + form.T) / 2
        tops, places = _cell_maxima(curve, form)
        if witness @ target > tops.max() + np.abs(witness) @ within:
            return True
        peaks = _local_maxima(tops, float(np.einsum("ai,ij,aj->a", atoms, form, atoms).max()))
        if not len(peaks):
            return False
        atoms = np.concatenate([atoms[weights > 0], _evaluate_near(curve, peaks, places[peaks])])
        crossed = atoms[:, i] * atoms[:, j]
    return False


def _nearest_hull_weights(apart: Array) -> Array:
    """Return weights of the convex combination of these rows that is nearest to 0, as nearly as least squares finds it.

    min |Σ w_k a_k|² + (1 − Σ w_k)² over w ≥ 0 has the same direction w, and is non-negative least squares.
    """
    lengths = np.sort(np.einsum("ij,ij->i", apart, apart))
    scaled = np.ones((apart.shape[1] + 1, len(apart)))
    np.divide(apart.T, np.sqrt(lengths[len(lengths) // 2] + 1.0), out=scaled[:-1])
    aim = np.zeros(len(scaled))
    aim[-1] = 1.0
    try:
        weights, _ = nnls(scaled, aim, maxiter=100 * len(apart))
    except RuntimeError:  # too many iterations; other points may do better
        weights = np.ones(len(apart))
    return np.asarray(weights / weights.sum())


def _cell_maxima(curve: MomentCurve, form: Array) -> tuple[Array, Array]:
    """Bound g = φᵀ R φ within half a cell of each point, without the last term, and return where the maximum is.

    g(s + d) ≤ g + g' d + γ d²/2, with γ the larger of g'' at the ends of the cell.
    """
    zeroth, first, second = curve.jets
    turned, half = zeroth @ form, curve.widths / 2
    slope = 2 * np.einsum("pi,pi->p", turned, first)
    bend = 2 * (np.einsum("pi,pi->p", turned, second) + np.einsum("pi,pi->p", first @ form, first))
    bend = np.maximum(bend[1:], bend[:-1])
    tops = np.einsum("pi,pi->p", turned, zeroth)
    heights, places = tops.copy(), np.zeros_like(tops)
    for side, sign in ((slice(None, -1), 1.0), (slice(1, None), -1.0)):
        rise = sign * slope[side]
        step = np.where(bend < 0, np.clip(rise / np.maximum(-bend, 1e-30), 0.0, half), half)
        height = heights[side] + rise * step + bend * step**2 / 2
        places[side] = np.where(height > tops[side], sign * step, places[side])
        tops[side] = np.maximum(tops[side], height)
    return tops, places


def _evaluate_near(curve: MomentCurve, points: npt.NDArray[np.intp], places: Array) -> Array:
    """Evaluate (1, φ) at a small distance from some points, by its derivatives: precise enough for the search."""
    zeroth, first, second = curve.jets[:, points]
    return np.asarray(zeroth + places[:, None] * (first + places[:, None] / 2 * second))


def _local_maxima(tops: Array, level: float) -> npt.NDArray[np.intp]:
    """Return the points where g has a local maximum above those of the points chosen before."""
    padded = np.concatenate([[-np.inf], tops, [-np.inf]])
    high = tops > level + 1e-9 * np.abs(tops).max()
    return np.flatnonzero(high & (tops >= padded[:-2]) & (tops >= padded[2:]))
