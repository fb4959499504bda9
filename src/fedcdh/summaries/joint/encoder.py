"""Joint features of a set of variables: products of functions of its members, the same at every client.

Each member has a short list of functions of rising degree. A continuous member has its value, clipped at `MAX_SCALES`
scales, and four Hermite functions of the value with compressed tails; a categorical one has the indicators of all its
levels but the first. The joint features are the products of functions of two members or more, up to a total degree.
Most functions of single members are in the summary already; the roughest one is not, and is added. A tensor basis of
total degree needs no more columns than random features of the joint values for the same calibration, and is not random.

Values lie in [-1, 1] and are rounded to the grid of the summary: sums of products are exact integers here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import Table
from fedcdh.errors import PlanError
from fedcdh.summaries.encoder import GRID, continuous_values, encode_levels
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous, Variable

MAX_SCALES = 8.0
"""Scales at which a value is clipped before it is multiplied: products of bounded values keep their digits."""
MAX_DEGREE = 6
"""Largest total degree: at 5, z1 sin 2z2 is not followed closely enough (0.17 for 0.05 with three conditions)."""
MAX_SET_COLUMNS = 70
"""Columns of a set; above, the degree is lowered. Three continuous variables have 68 at degree 6."""
_HERMITE_FUNCTIONS = ((0, 2), (3, 3), (2, 4), (5, 5))
"""Hermite functions of a continuous variable besides its value, with their degrees. The first is a bump, which with a
constant is a square; the second replaces the cube; e₁ is nearly the value itself and e₄ nearly spanned."""
_EXTRA_FUNCTION = len(_HERMITE_FUNCTIONS)
"""Number of the function of a continuous variable that the summary does not hold."""
_HERMITE = Hermite(width=6, bandwidth=2.0)


@dataclass(frozen=True)
class JointTerm:
    """One joint feature: name and number of the function of each factor."""

    factors: tuple[tuple[str, int], ...]
    degree: int
    plain: bool  # values and indicators only: these come first, and may have coefficients per client


@lru_cache(maxsize=4096)
def joint_terms(plan: StudyPlan, names: tuple[str, ...]) -> tuple[JointTerm, ...]:
    """Return the joint features of these variables in their fixed order: plain products first, then by degree.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    names : tuple of str
        Set of variables.

    Returns
    -------
    tuple of JointTerm
        Empty for a single variable, and where products of two already make too many columns.

    Raises
    ------
    PlanError
        If a name is not that of a variable of the plan.

    Examples
    --------
    >>> from fedcdh.summaries import Categorical, Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15), Continuous("dose"), Categorical("sex", ("f", "m"))), ("north",))
    >>> [term.factors for term in joint_terms(plan, ("dose", "sex"))][:2]
    [(('dose', 0), ('sex', 0)), (('dose', 1), ('sex', 0))]
    >>> len(joint_terms(plan, ("age", "dose")))
    17
    """
    known = {variable.name: variable for variable in plan.variables}
    if unknown := [name for name in names if name not in known]:
        raise PlanError(
            f"the request names {unknown[0]!r}, which is not a variable of the plan; check that it belongs to this plan"
        )
    degrees = {name: _function_degrees(known[name]) for name in sorted(names)}
    for most in range(MAX_DEGREE, 1, -1):
        terms = [*_single_terms(degrees, most), *_product_terms(degrees, most)] if len(degrees) > 1 else []
        if len(terms) <= MAX_SET_COLUMNS:
            return tuple(sorted(terms, key=lambda term: (not term.plain, term.degree)))
    return ()


def _function_degrees(variable: Variable) -> tuple[int, ...]:
    if isinstance(variable, Categorical):
        return (1,) * (len(variable.levels) - 1)
    return (1, *(degree for _, degree in _HERMITE_FUNCTIONS))


def _single_terms(degrees: Mapping[str, tuple[int, ...]], most: int) -> Iterator[JointTerm]:
    for name, of_each in degrees.items():
        if of_each[-1:] > (1,) and of_each[_EXTRA_FUNCTION] <= most:
            yield JointTerm(((name, _EXTRA_FUNCTION),), of_each[_EXTRA_FUNCTION], plain=False)


def _product_terms(degrees: Mapping[str, tuple[int, ...]], most: int) -> Iterator[JointTerm]:
    for count in range(2, min(len(degrees), most) + 1):
        for members in combinations(degrees, count):
            for chosen in product(*(range(len(degrees[name])) for name in members)):
                of_each = [degrees[name][which] for name, which in zip(members, chosen, strict=True)]
                if sum(of_each) <= most:
                    yield JointTerm(tuple(zip(members, chosen, strict=True)), sum(of_each), max(of_each) == 1)


class JointEncoder:
    """Computes the joint features of complete rows for several sets at once, in whole steps of the grid.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client, for errors.
    sets : sequence of tuple of str
        Sets of variables.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> from fedcdh.summaries import Categorical, StudyPlan
    >>> plan = StudyPlan((Categorical("a", ("0", "1")), Categorical("b", ("0", "1"))), ("north",))
    >>> encode = JointEncoder(plan, "north", [("a", "b")])
    >>> [block.tolist() for _, block in encode(to_table({"a": ["1", "0"], "b": ["1", "1"]}))]
    [[[262144.0, 0.0]]]
    """

    def __init__(self, plan: StudyPlan, client: str, sets: Sequence[tuple[str, ...]]) -> None:
        self._client = client
        self._terms = {names: joint_terms(plan, names) for names in sets}
        needed = {name for names in sets for name in names}
        self._variables = [variable for variable in plan.variables if variable.name in needed]

    def __call__(self, table: Table) -> Iterator[tuple[tuple[str, ...], Array]]:
        """Yield every set with its features, columns × rows."""
        functions = {variable.name: self._functions(variable, table) for variable in self._variables}
        for names, terms in self._terms.items():
            block = np.empty((len(terms), table.rows))
            for row, term in zip(block, terms, strict=True):
                first, *others = (functions[name][which] for name, which in term.factors)
                np.multiply(first, GRID, out=row)
                for other in others:
                    row *= other
            yield names, np.rint(block, out=block)

    def _functions(self, variable: Variable, table: Table) -> Array:
        """Return the functions of a variable, functions × rows, each within [-1, 1]."""
        if isinstance(variable, Categorical):
            codes = encode_levels(variable, self._client, table.columns[variable.name])
            return np.asarray(codes == np.arange(1, len(variable.levels))[:, None], dtype=np.float64)
        return _continuous_functions(variable, continuous_values(variable, self._client, table))


def _continuous_functions(variable: Continuous, values: Array) -> Array:
    linear = np.clip((values - variable.location) / (MAX_SCALES * variable.scale), -1.0, 1.0)
    centre, spread = variable.centre_and_spread
    with np.errstate(over="ignore"):  # a plan made by hand may have a tiny spread
        inside = np.clip((values - centre) / spread, -1e150, 1e150)
    curves = _HERMITE(np.arcsinh(inside)).T
    return np.stack([linear, *(curves[which] for which, _ in _HERMITE_FUNCTIONS)])
