"""Requests for sums of residuals, and a client's answer.

The coordinator fits a regression of a variable on its possible causes from the summaries. It then asks every client for
sums of bounded functions of the residuals of that regression. The sums show whether the noise is Gaussian, and whether
its size depends on the causes, which no summary holds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanMismatchError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.functions import MAX_COORDINATE, SHAPE_FUNCTIONS
from fedcdh.summaries.variables import Continuous

Integers = npt.NDArray[np.int64]

MAX_QUERIES = 10_000
"""Regressions in one request: more than any client will answer."""
SIZE, SHAPE, TIES, PRODUCTS = "size", "shape", "ties", "products"
"""Subjects of a query: how the size of the noise depends on the parents, the shape of its density, whether many
rows share one value, so that there is no density, or whether the residuals depend on products of two parents."""


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a variable: linear combinations of its features, standardised over all rows of the study.

    Attributes
    ----------
    centre : tuple of float
        Pooled mean of each feature of the variable.
    matrix : tuple of tuple of float
        Weights of the features, one row per coordinate. The first coordinate is the standardised value itself.
    score : tuple of float, default ()
        Weights of the features for the normal score of the variable, a monotone function of its value; empty if no
        query asks about it.

    Examples
    --------
    >>> Coordinates((0.5,), ((2.0,),)).width
    1
    """

    centre: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]
    score: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = [*self.centre, *self.score, *(weight for row in self.matrix for weight in row)]
        even = all(len(row) == len(self.centre) for row in (*self.matrix, self.score or self.centre))
        if not self.matrix or not even or not all(map(math.isfinite, numbers)):
            raise SummaryError(
                "the request has coordinates that are empty, uneven or not finite; expected one finite weight per "
                "feature; ask the coordinator for the request again"
            )

    @property
    def width(self) -> int:
        """Return the number of coordinates."""
        return len(self.matrix)

    def __call__(self, features: Array) -> Array:
        """Return the coordinates of rows, and last the score: (features, rows) gives (coordinates + 1, rows)."""
        weights = np.array([*self.matrix, self.score or (0.0,) * len(self.centre)])
        return np.asarray(weights @ (features - np.array(self.centre)[:, None]))


@dataclass(frozen=True)
class ResidualQuery:
    """One regression, and what is asked about its residuals.

    Attributes
    ----------
    node : str
        The variable that is explained, a continuous one.
    parents : tuple of str
        The variables that explain it, sorted; possibly none.
    about : {"size", "shape", "ties", "products"}
        Whether the sums tell how the size of the noise depends on the parents, the shape of its density, whether many
        rows share one value of the node, or how the residuals depend on products of two parents.
    weights : tuple of float
        Weights of the parents' coordinates, in the order of the parents; each parent has its first coordinate, or as
        many as `widths` says.
    widths : tuple of int
        Number of coordinates of each parent that the regression uses.
    deviation : float
        Standard deviation of the residuals over all rows, in standard deviations of the node.
    differs : bool
        Whether the mechanism differs between clients. Each client then adapts weights, level and deviation to its own
        rows before it standardises.
    scored : bool
        Whether the normal score of the node is explained, instead of its value.
    size : tuple of float
        Coefficients of the logarithm of the noise variance: its level, then two for each continuous parent, of x and
        x² − 1. Empty if the size is constant.
    product : tuple of str
        Two continuous parents whose product is in the regression as well, sorted; empty without a product. Only a
        query about a shape with noise of constant size has one.
    product_weights : tuple of float
        Weight of that product in standard deviations of the residuals, its mean, and its slopes on the two parents.
        The product counts less its regression on the two parents. Slopes are at most 4, as steep as a product of
        clipped values is, so that they stand for no other regression. Where the mechanism differs between clients,
        each client uses its own mean and slopes.

    Examples
    --------
    >>> query = ResidualQuery("y", ("x",), "shape", weights=(0.6,), widths=(1,), deviation=0.8)
    >>> query.differs, query.size
    (False, ())
    """

    node: str
    parents: tuple[str, ...]
    about: str
    weights: tuple[float, ...]
    widths: tuple[int, ...]
    deviation: float
    differs: bool = False
    scored: bool = False
    size: tuple[float, ...] = ()
    product: tuple[str, ...] = ()
    product_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        finite = all(map(math.isfinite, (*self.weights, *self.size, *self.product_weights, self.deviation)))
        matching = len(self.widths) == len(self.parents) and sum(self.widths) == len(self.weights)
        in_order = list(self.parents) == sorted({*self.parents}) and self.node not in self.parents
        matching = matching and self._has_fitting_product
        known = self.about in (SIZE, SHAPE, TIES, PRODUCTS)
        if not (known and finite and matching and in_order) or self.deviation <= 0:
            raise SummaryError(
                f"the request asks about {self.node!r} with parents, weights or a deviation that cannot be; expected "
                "sorted parents, one finite weight per coordinate and a positive deviation; ask the coordinator again"
            )

    @property
    def _has_fitting_product(self) -> bool:
        """Return whether there is no product, or one of two parents in a query about a shape."""
        if not self.product:
            return not self.product_weights
        two = len(self.product) == 2 and list(self.product) == sorted({*self.product} & {*self.parents})
        if not two or len(self.product_weights) != 4 or self.about != SHAPE or self.size:
            return False
        _, mean, *slopes = map(abs, self.product_weights)
        return mean <= MAX_COORDINATE**2 and max(slopes) <= MAX_COORDINATE

    @property
    def key(self) -> str:
        """Return the text that identifies the query."""
        fields: list[object] = [self.node, self.parents, self.about, self.weights, self.widths]
        fields += [self.deviation, self.differs, self.scored, self.size]
        fields += [self.product, self.product_weights] if self.product else []
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    @property
    def question(self) -> tuple[object, ...]:
        """Return what is asked, whatever the weights, the deviation and the coefficients are."""
        form = (self.widths, self.differs, self.scored, bool(self.size))
        return (self.node, self.parents, self.about, *form, *([self.product] if self.product else []))

    def count_entries(self, plan: StudyPlan) -> int:
        """Return how many numbers a client releases in answer.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Returns
        -------
        int
            Number of sums.
        """
        if self.about == TIES:
            return 1
        if self.about == SIZE:
            return 1 + 2 * len(self.continuous_parents(plan))
        if self.about == PRODUCTS:
            return len(self.pairs(plan))
        return SHAPE_FUNCTIONS + (2 if self.size else 0) + (1 if self.product else 0)

    def continuous_parents(self, plan: StudyPlan) -> tuple[str, ...]:
        """Return the parents on which the size of the noise may depend.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Returns
        -------
        tuple of str
            The continuous parents, sorted.
        """
        continuous = {variable.name for variable in plan.variables if isinstance(variable, Continuous)}
        return tuple(name for name in self.parents if name in continuous)

    @property
    def has_products(self) -> bool:
        """Return whether the query is about products of two parents, or has one in its regression."""
        return self.about == PRODUCTS or bool(self.product)

    def pairs(self, plan: StudyPlan) -> tuple[tuple[str, str], ...]:
        """Return the pairs of parents that have a product.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Returns
        -------
        tuple of (str, str)
            All pairs of continuous parents, sorted.
        """
        return tuple(combinations(self.continuous_parents(plan), 2))


@dataclass(frozen=True)
class ResidualRequest:
    """The regressions whose residuals are asked about in one round.

    Attributes
    ----------
    plan : str
        Fingerprint of the plan.
    number : int
        Number of the round, from 1.
    coordinates : mapping from str to Coordinates
        Coordinates of every variable that a query names.
    queries : tuple of ResidualQuery
        The queries, sorted by their keys, none twice.
    coarse : bool, default False
        Whether clients answer with coarse sums, the coarser the fewer rows they have.

    Examples
    --------
    >>> query = ResidualQuery("y", (), "shape", weights=(), widths=(), deviation=1.0)
    >>> ResidualRequest("0" * 64, 1, {"y": Coordinates((0.0,), ((1.0,),))}, (query,)).queries[0].node
    'y'
    """

    plan: str
    number: int
    coordinates: Mapping[str, Coordinates]
    queries: tuple[ResidualQuery, ...]
    coarse: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        object.__setattr__(self, "coordinates", {name: self.coordinates[name] for name in sorted(self.coordinates)})
        keys = [query.key for query in self.queries]
        if keys != sorted(set(keys)) or not 0 < len(keys) <= MAX_QUERIES:
            raise SummaryError(
                f"the request has {len(keys)} queries that are none, too many or out of order; expected 1 to "
                f"{MAX_QUERIES} different queries, sorted; ask the coordinator for the request again"
            )
        if not isinstance(self.number, int) or self.number < 1:
            raise SummaryError(
                f"the request has the number {self.number!r}; expected a whole number from 1 upwards; ask the "
                "coordinator for the request again"
            )

    def check(self, plan: StudyPlan) -> None:
        """Raise an error if a request belongs to another study, or names what the plan does not have.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Raises
        ------
        PlanMismatchError
            If the request follows another plan.
        SummaryError
            If a query names an unknown variable, or coordinates do not fit the features of the plan.
        """
        if self.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"the request follows plan {self.plan[:12]}, not this plan ({plan.fingerprint[:12]}); ask the "
                "coordinator for the request of this study"
            )
        continuous = {variable.name for variable in plan.variables if isinstance(variable, Continuous)}
        for query in self.queries:
            self._check_query(query, plan, continuous)
        for name, one in self.coordinates.items():
            if name not in plan.layout.spans or len(one.centre) != plan.layout.width(name):
                raise _unfitting(f"the coordinates of {name!r}")

    def _check_query(self, query: ResidualQuery, plan: StudyPlan, continuous: set[str]) -> None:
        known = {*query.parents, query.node} <= self.coordinates.keys()
        if query.node not in continuous or not known:
            raise _unfitting(f"the query about {query.node!r}")
        if any(width > self.coordinates[name].width for name, width in zip(query.parents, query.widths, strict=True)):
            raise _unfitting(f"the query about {query.node!r}")
        if query.scored and not self.coordinates[query.node].score:
            raise _unfitting(f"the query about the normal score of {query.node!r}")
        if query.size and len(query.size) != 1 + 2 * len(query.continuous_parents(plan)):
            raise _unfitting(f"the size of the noise of {query.node!r}")
        if query.about == SIZE and not query.continuous_parents(plan):
            raise _unfitting(f"the query about the size of the noise of {query.node!r}")
        if query.about == PRODUCTS and not query.pairs(plan):
            raise _unfitting(f"the query about products of parents of {query.node!r}")
        if not continuous.issuperset(query.product):
            raise _unfitting(f"the product of parents of {query.node!r}")
        if self.coarse and query.has_products:
            raise _unfitting(f"a product in the coarse query about {query.node!r}")

    @cached_property
    def digest(self) -> str:
        """Return a digest of plan, coordinates and queries, whatever the number of the request."""
        coordinates = {name: [one.centre, one.matrix, one.score] for name, one in self.coordinates.items()}
        content: list[object] = [self.plan, coordinates, [query.key for query in self.queries]]
        content += ["coarse"] if self.coarse else []
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """A client's answer to one query: sums of bounded functions of the residuals over its rows. Additive: `a + b`.

    Attributes
    ----------
    query : ResidualQuery
        The query.
    rows : int
        Number of rows.
    sums : array of int64
        One sum per function, each function scaled to [-1, 1], in steps of the grid.
    mean_square : float, optional
        Mean of z² over these rows before any clipping, and before any division by a varying size. No client sends it:
        the coordinator computes it from the summary. It is 1 over all rows of the study.
    deviation : float, optional
        The deviation by which residuals were divided, if it is not that of the query.
    coarseness : float, default 1.0
        How many times coarser than usual the sums are rounded; of several clients, the root mean square over rows.

    Examples
    --------
    >>> query = ResidualQuery("y", (), "shape", weights=(), widths=(), deviation=1.0)
    >>> one = ResidualSums(query, 1, np.ones(14, dtype=np.int64))
    >>> (one + one).rows
    2
    """

    query: ResidualQuery
    rows: int
    sums: Integers
    mean_square: float | None = None
    deviation: float | None = None
    coarseness: float = 1.0

    def __post_init__(self) -> None:
        found = np.asarray(self.sums)
        whole = np.array(found, dtype=np.int64) if np.can_cast(found.dtype, np.int64) else np.zeros(0, np.int64)
        whole.setflags(write=False)
        object.__setattr__(self, "sums", whole)
        if self.rows < 1 or whole.ndim != 1 or not len(whole) or np.abs(whole).max() > self.rows * GRID:
            raise SummaryError(
                f"the answer about {self.query.node} is damaged: its sums are not integers within the bounds of "
                f"{self.rows} rows; ask the site for it again"
            )

    def __add__(self, other: ResidualSums) -> ResidualSums:
        """Add the answers of two clients, or of two parts of a client's rows."""
        if self.query != other.query or self.deviation != other.deviation:
            raise SummaryError("the answers are about different regressions; add answers to one query")
        rows, square = self.rows + other.rows, None
        if self.mean_square is not None and other.mean_square is not None:
            square = (self.rows * self.mean_square + other.rows * other.mean_square) / rows
        coarseness = self.coarseness
        if coarseness != other.coarseness:
            coarseness = math.sqrt((self.rows * coarseness**2 + other.rows * other.coarseness**2) / rows)
        return ResidualSums(self.query, rows, self.sums + other.sums, square, self.deviation, coarseness)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResidualSums):
            return NotImplemented
        same = (self.query, self.rows) == (other.query, other.rows)
        return same and np.array_equal(self.sums, other.sums)


def add_answers(answers: Sequence[ResidualSums]) -> ResidualSums:
    """Add the answers of all clients to one query.

    Parameters
    ----------
    answers : sequence of ResidualSums
        One or more answers to the same query.

    Returns
    -------
    ResidualSums
        Their sum.

    Examples
    --------
    >>> query = ResidualQuery("y", (), "ties", weights=(), widths=(), deviation=1.0)
    >>> add_answers([ResidualSums(query, rows, np.zeros(1, dtype=np.int64)) for rows in (20, 30)]).rows
    50
    """
    total = answers[0]
    for one in answers[1:]:
        total = total + one
    return total


def _unfitting(what: str) -> SummaryError:
    return SummaryError(
        f"{what} in the request does not fit the plan; expected continuous variables of the plan, with coordinates of "
        "their features; check that the request belongs to this plan"
    )
