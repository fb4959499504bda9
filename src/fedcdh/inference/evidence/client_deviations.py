"""How the log likelihood of families is spread over the clients: the measure of how far the evidence can be trusted.

The log likelihood of a family is a sum over clients. If the model is true and rows are independent, each client adds in
proportion to its rows, up to chance. Where the model does not hold, mechanisms differ or rows depend on each other, the
parts vary more. A deviation is a client's part, less its share of the whole; deviations sum to zero over the clients.
Where the mechanism differs between clients, every client has noise and weights of its own, as in the score.

Where clients are drawn with replacement, the scores move by weighted sums of their deviations. Averaging the posterior
over such draws makes statements as cautious as the clients disagree. Nothing new is asked of the clients.

References
----------
Vuong, "Likelihood ratio tests for model selection and non-nested hypotheses", Econometrica 57, 1989.
Huggins and Miller, "Reproducible model selection using bagged posteriors", Bayesian Analysis 18, 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.evidence.family_forms import RIDGE
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.residual_factors import fit_densities
from fedcdh.inference.evidence.residual_record import add_clients
from fedcdh.inference.evidence.residual_score import ResidualScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.residuals import ResidualQuery
from fedcdh.summaries.residuals.functions import SHAPE_FUNCTIONS, shape_bounds

CLIENTS_PER_CLIENT = 4
"""Clients that are drawn for each client of the study. With as many as there are, statements become too cautious, since
only a part of the evidence counts anyway; chosen on seeds 110 to 115 of the grid, among 1, 2 and 4."""
OWN_WEIGHT_ROWS = 10.0
"""Precision, in rows, of the prior that draws a client's own weights towards the common ones. With common weights only,
a client whose effects differ fits badly in one direction of an edge and well in the other. On linear data of the
paper's generator (12 x 10 x 6400, seeds 300 to 311), 5 mechanisms then changed falsely, and none does now."""
_MIN_VARIANCE = 1e-7
_MAX_GATHERED = 1 << 22  # numbers that are gathered at a time


class ClientDeviations(NamedTuple):
    """Deviations of the log likelihood by client.

    Attributes
    ----------
    linear : array
        (families, clients): with linear mechanisms and Gaussian noise.
    full : array
        (families, clients): with curvature, and with the shape of the noise where clients were asked about it.
    """

    linear: Array
    full: Array


class _Regression(NamedTuple):
    """A regression: the places and weights that make up its target, the places of its predictors, and whose means."""

    target: tuple[int, ...]
    weights: tuple[float, ...]
    columns: tuple[int, ...]
    differs: bool


def measure_deviations(families: Sequence[Family], score: FamilyScore, residual: ResidualScore) -> ClientDeviations:
    """Return the deviations of families; those of categorical nodes are 0.

    Parameters
    ----------
    families : sequence of Family
        Nodes with their parents.
    score : FamilyScore
        The Gaussian score, of a study whose clients are known apart.
    residual : ResidualScore
        The score under noise of any shape.

    Returns
    -------
    ClientDeviations
        Deviations in the order of the families, and of the clients of the study.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.summaries import add_up, summarize
    >>> from fedcdh.summaries.joint import LocalAnswerSource
    >>> tables = dict(fedcdh.simulate(seed=1).tables)
    >>> plan = fedcdh.StudyPlan.from_profiles([fedcdh.profile(rows, name) for name, rows in tables.items()])
    >>> known = add_up([summarize(rows, plan, name) for name, rows in tables.items()], plan)
    >>> basis = Basis.of(known)
    >>> score = FamilyScore.of(known, basis)
    >>> residual = ResidualScore(known, basis, score, LocalAnswerSource(tables, plan, known))
    >>> found = measure_deviations([Family(plan.names[0])], score, residual)
    >>> found.full.shape, bool(abs(found.full.sum()) < 1e-6)
    ((1, 10), True)
    """
    basis = score.continuous.basis
    numbers = [
        place
        for place, one in enumerate(families)
        if one.node not in score.level_counts and len(basis.targets[one.node])
    ]
    chosen = [families[place] for place in numbers]
    linear, full = np.zeros((2, len(families), len(basis.rows)))
    linear[numbers] = _gaussian_deviations(basis, [_regression(basis, one, "targets") for one in chosen])
    full[numbers] = _gaussian_deviations(basis, [_regression(basis, one, "predictors") for one in chosen])
    asked = [(place, found) for place in numbers if (found := residual.best_form(families[place])) is not None]
    if asked:
        places = [place for place, _ in asked]
        regressions = [
            _explain_score(
                _regression(basis, families[place], "predictors" if form.curved else "targets"),
                residual.forms.target(families[place].node, form.scored),
                basis.spans[families[place].node] if form.scored else basis.targets[families[place].node],
            )
            for place, (form, _) in asked
        ]
        full[places] = _gaussian_deviations(basis, regressions)
        full[places] += _shape_deviations(residual, [query for _, (_, query) in asked])
    return ClientDeviations(linear, full)


def _regression(basis: Basis, family: Family, which: str) -> _Regression:
    columns: dict[str, Indices] = getattr(basis, which)
    places = tuple(int(one) for name in sorted(family.parents - {DOMAIN}) for one in columns[name])
    return _Regression((int(basis.targets[family.node][0]),), (1.0,), places, DOMAIN in family.parents)


def _explain_score(regression: _Regression, whole: Array, places: Indices) -> _Regression:
    """Return the regression of the value or the normal score of a node, given in terms of all coordinates."""
    return regression._replace(target=tuple(places.tolist()), weights=tuple(whole[places].tolist()))


def _gaussian_deviations(basis: Basis, regressions: Sequence[_Regression]) -> Array:
    """Return the deviations of Gaussian log likelihoods; regressions of one shape are solved together."""
    found = np.zeros((len(regressions), len(basis.rows)))
    groups: dict[tuple[int, int, bool], list[int]] = {}
    for place, one in enumerate(regressions):
        groups.setdefault((len(one.target), len(one.columns), one.differs), []).append(place)
    for (width, columns, _), places in groups.items():
        step = max(1, _MAX_GATHERED // (width + columns) ** 2)
        for start in range(0, len(places), step):
            part = places[start : start + step]
            found[part] = _solve_group(basis, [regressions[place] for place in part])
    return found


def _solve_group(basis: Basis, group: Sequence[_Regression]) -> Array:
    target, weights = np.array([one.target for one in group]), np.array([one.weights for one in group])
    columns = np.array([one.columns for one in group], dtype=np.intp).reshape(len(group), -1)
    pooled = basis.within if group[0].differs else basis.total
    inner = pooled[columns[:, :, None], columns[:, None, :]] + RIDGE * np.eye(columns.shape[1])
    cross = (pooled[columns[:, :, None], target[:, None, :]] * weights[:, None, :]).sum(axis=2)
    slopes = np.linalg.solve(inner, cross[..., None])[..., 0]
    used, residual = np.concatenate([target, columns], axis=1), np.concatenate([weights, -slopes], axis=1)
    squares = np.array([_quadratic(scatter, used, residual) for scatter in basis.scatter])
    if group[0].differs:
        own = np.array([_gain_by_own_weights(scatter, columns, used, residual) for scatter in basis.scatter])
        squares -= np.where(basis.can_regress(columns.shape[1])[:, None], own, 0.0)
        variances = np.maximum(squares / basis.rows[:, None], _MIN_VARIANCE)
        return _centre(-basis.rows[:, None] / 2 * np.log(variances), basis.rows).T
    squares += basis.rows[:, None] * (basis.means[:, used] * residual).sum(axis=2) ** 2
    variance = np.maximum(squares.sum(axis=0) / basis.total_rows, _MIN_VARIANCE)
    return _centre(-squares / variance / 2, basis.rows).T


def _gain_by_own_weights(scatter: Array, columns: Indices, used: Indices, residual: Array) -> Array:
    """Return by how much each sum of squares falls if the client's weights may deviate from the common ones."""
    inner = scatter[columns[:, :, None], columns[:, None, :]]
    cross = (scatter[columns[:, :, None], used[:, None, :]] @ residual[..., None])[..., 0]
    moves = np.linalg.solve(inner + OWN_WEIGHT_ROWS * np.eye(columns.shape[1]), cross[..., None])[..., 0]
    return np.asarray((moves * (2 * cross - (inner @ moves[..., None])[..., 0])).sum(axis=1))


def _quadratic(scatter: Array, used: Array, residual: Array) -> Array:
    """Return the sum of squares of every residual in one scatter matrix."""
    gathered = scatter[used[:, :, None], used[:, None, :]]
    return np.asarray(np.einsum("fi,fij,fj->f", residual, gathered, residual))


def _centre(parts: Array, rows: Array) -> Array:
    """Return each client's part, less its share of the whole."""
    return np.asarray(parts - rows[:, None] / rows.sum() * parts.sum(axis=0))


def _shape_deviations(residual: ResidualScore, queries: Sequence[ResidualQuery]) -> Array:
    """Return the deviations of what the shape of the noise adds."""
    weights = fit_densities([add_clients(residual.answers(query)) for query in queries], residual.counted_share)
    found = np.zeros((len(queries), len(residual.known.clients)))
    places = {client: place for place, client in enumerate(residual.known.clients)}
    for row, (query, density) in enumerate(zip(queries, weights, strict=True)):
        answers = {client: one for client, one in residual.answers(query).items() if client in places}
        rows = np.array([float(one.rows) for one in answers.values()])
        sums = np.array([one.sums[:SHAPE_FUNCTIONS] for one in answers.values()]) / GRID * shape_bounds()
        parts = residual.counted_share * (sums @ density)
        found[row, [places[client] for client in answers]] = _centre(parts[:, None], rows)[:, 0]
    return found


def draw_client_weights(basis: Basis, pairs: int, seed: Iterable[int]) -> Array:
    """Return how much more often than once each client counts, in draws of clients with replacement.

    Draws come in pairs of opposite sign, which cancel chance in the mean over draws.

    Parameters
    ----------
    basis : Basis
        The moments of the clients. They, and not names, say which client gets which weight.
    pairs : int
        Number of pairs of draws.
    seed : iterable of int
        Seed of the draws.

    Returns
    -------
    array
        (draws, clients); each draw sums to zero.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> basis = Basis.of(fedcdh.discover(study.columns("site"), domain="site").cohort)
    >>> weights = draw_client_weights(basis, 2, [0])
    >>> weights.shape, bool(abs(weights.sum(axis=0)).max() == 0)
    ((4, 10), True)
    """
    clients = len(basis.rows)
    random = np.random.default_rng([*seed])
    drawn = random.multinomial(CLIENTS_PER_CLIENT * clients, np.full(clients, 1 / clients), size=pairs)
    excess = np.zeros((pairs, clients))
    excess[:, _order_by_content(basis)] = drawn / CLIENTS_PER_CLIENT - 1
    return np.concatenate([excess, -excess])


def _order_by_content(basis: Basis) -> list[int]:
    """Return the clients in an order that depends neither on their names nor on those of variables."""
    spreads = np.sort(basis.scatter.diagonal(axis1=1, axis2=2), axis=1)
    keys = [(rows, *(f"{one:.9g}" for one in values)) for rows, values in zip(basis.rows, spreads, strict=True)]
    return sorted(range(len(keys)), key=lambda place: keys[place])
