"""The methods that `discover` offers: each combines a search with a test or a score, and with the features it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fedcdh._runtime.worker_pool import make_worker_pool
from fedcdh.discovery.algorithm import ConstraintSearch, Search
from fedcdh.discovery.residual_rounds import ResidualDirections
from fedcdh.discovery.score_search import ScoreSearch
from fedcdh.discovery.settings import Settings
from fedcdh.discovery.sums_text import describe_kernel_sums, describe_regression_sums
from fedcdh.errors import PlanMismatchError, SettingsError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.counted_rows import observed_shares, variable_shares
from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.noisy_moments_test import NoisyMomentsTest, describe_noise
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.independent_change import OperatorChange, PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, IndependenceTest, IndependentChange
from fedcdh.search.colliders import make_largest_p_rule, separating_set_rule
from fedcdh.search.edge_removal import remove_all, remove_consistent
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.joint import AnswerSource, Spent

DEFAULT_METHOD = "evidence"
"""The method that "auto" stands for: the one with the best record, as `benchmarks.bench_real_data` prints it."""
PAPER_FEATURES = 5
"""Random features h of each variable with "paper": the paper's value (appendix, implementation details)."""
PAPER_BANDWIDTH = 1.0
"""Deviation of the frequencies w with "paper": the paper's value, w from N(0, 1); that it holds for variables which are
standardised over all rows is the authors' program's."""
MAX_AUTO_VARIABLES = 300
"""Number of variables up to which residuals are asked about unless something else is chosen. With 600, a search by
tests takes three times as long with them, and twice the memory."""
MAX_CONDITIONING_SETS = 1000
"""Conditioning sets that adaptive rounds ask about, unless the plan's limits are reached before."""


@dataclass(frozen=True)
class Method:
    """One way from summaries to a graph.

    Attributes
    ----------
    name : str
        The name that `discover` takes.
    family : callable
        Makes the features that a plan for this method has, from a seed.
    search : Search
        The search itself.
    required_family : type, optional
        The only kind of features that the method can use. Default any.

    Examples
    --------
    >>> METHODS["paper"].family(3)
    Fourier(width=5, bandwidth=1.0, seed=3)
    """

    name: str
    family: Callable[[int], FeatureFamily]
    search: Search
    required_family: type | None = None

    def check_family(self, family: FeatureFamily) -> None:
        """Refuse features that the method cannot use.

        Parameters
        ----------
        family : FeatureFamily
            The features of a plan.

        Raises
        ------
        PlanMismatchError
            If the method needs other features.
        """
        if self.required_family is not None and not isinstance(family, self.required_family):
            raise PlanMismatchError(
                f"this plan has the features {family}, but method {self.name!r} needs {self.required_family.__name__} "
                f"features, {self.family(0)}; make the plan for this method, and all summaries again",
                parameter="family",
            )

    def with_rounds(self, source: AnswerSource, rounds: str, start: PartialGraph | None = None) -> Method:
        """Return the same method with a search that may ask the clients again.

        Parameters
        ----------
        source : AnswerSource
            Asks the clients.
        rounds : {"residuals", "adaptive"}
            What the clients are asked: sums of residuals, and with "adaptive" also joint features of conditioning
            sets.
        start : PartialGraph, optional
            A further DAG from which "evidence" may start, such as that of a larger study.

        Returns
        -------
        Method
            The method with its further rounds.

        Raises
        ------
        SettingsError
            If the method cannot use the answers.
        """
        check_rounds(self.name, rounds)
        if self.name == "evidence":
            return replace(self, search=ScoreSearch(source, start=start))
        search = _adaptive_search(source) if rounds == "adaptive" else _REGRESSION_SEARCH
        return replace(self, search=ResidualDirections(search, source))


def _adaptive_search(source: AnswerSource) -> ConstraintSearch:
    """Return the search by tests that ask for joint features of conditioning sets."""

    def statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
        cohort = _require_cohort(known)
        basis = Basis.of(cohort)
        return JointRegressionTest(cohort, basis, source, MAX_CONDITIONING_SETS), OperatorChange(basis)

    return replace(
        _REGRESSION_SEARCH,
        statistics=statistics,
        needs_clients=True,
        notes=_describe_rounds,
        spent=_count_rounds,
        max_batch_queries=sys.maxsize,  # a whole level at once: one request to the clients
    )


def get_method(name: str, *, noisy: bool = False, rounds: str = "one") -> Method:
    """Return the method of this name.

    Parameters
    ----------
    name : {"auto", "evidence", "constraint", "paper"}
        The method; "auto" is the one with the best record that can use the summaries.
    noisy : bool, default False
        Whether the summaries have noise for differential privacy. Only "constraint" has tests that allow for it.
    rounds : {"one", "residuals", "adaptive"}, default "one"
        What clients may be asked further. "paper" and noisy summaries have no further rounds.

    Returns
    -------
    Method
        The method, with the tests for noisy summaries if these are noisy.

    Raises
    ------
    SettingsError
        If there is no such method, or if it can use neither noisy summaries nor further answers.

    Examples
    --------
    >>> get_method("auto").name
    'evidence'
    >>> get_method("auto", noisy=True).name
    'constraint'
    """
    chosen = ("constraint" if noisy else DEFAULT_METHOD) if name == "auto" else name
    if chosen not in METHODS:
        raise SettingsError(
            f"there is no method {name!r}; choose one of {', '.join(map(repr, ['auto', *METHODS]))}", parameter="method"
        )
    if noisy and chosen != "constraint":
        raise SettingsError(
            f"method {chosen!r} takes the noise in these summaries for dependence; choose 'auto' or 'constraint', "
            "whose tests allow for it",
            parameter="method",
        )
    check_rounds(chosen, rounds)
    method = METHODS[chosen]
    return replace(method, search=_NOISY_SEARCH) if noisy else method


def check_rounds(method: str, rounds: str) -> None:
    """Refuse further rounds for a method that has nothing to ask the clients.

    Parameters
    ----------
    method : str
        Name of a method.
    rounds : {"one", "residuals", "adaptive"}
        What clients may be asked further.

    Raises
    ------
    SettingsError
        If the method cannot use the answers.

    Examples
    --------
    >>> check_rounds("constraint", "adaptive")
    """
    able = {"one": METHODS.keys(), "residuals": {"evidence", "constraint"}, "adaptive": {"constraint"}}
    if rounds in able and method not in able[rounds]:
        raise SettingsError(
            f"rounds is {rounds!r}, but method {method!r} has nothing of this kind to ask the clients; choose method "
            f"{' or '.join(map(repr, sorted(able[rounds])))}, or rounds 'one'",
            parameter="rounds",
        )


def resolve_rounds(rounds: str, method: str, *, noisy: bool = False, variables: int = 0) -> str:
    """Return what clients are asked further, where they can be asked.

    Parameters
    ----------
    rounds : {"auto", "one", "residuals", "adaptive"}
        The choice of the user.
    method : str
        Name of the method.
    noisy : bool, default False
        Whether the summaries have noise for differential privacy.
    variables : int, default 0
        Number of variables of the study.

    Returns
    -------
    str
        The choice; for "auto", "residuals" if the method can use them and the study is not too large.

    Examples
    --------
    >>> resolve_rounds("auto", "evidence"), resolve_rounds("auto", "paper")
    ('residuals', 'one')
    """
    if rounds != "auto":
        return rounds
    able = method in ("evidence", "constraint") and not noisy
    return "residuals" if able and variables <= MAX_AUTO_VARIABLES else "one"


def _require_cohort(known: Cohort | Aggregate) -> Cohort:
    """Return the cohort that `ConstraintSearch` has checked for."""
    assert isinstance(known, Cohort)
    return known


def _regression_statistics(
    known: Cohort | Aggregate, settings: Settings
) -> tuple[IndependenceTest, IndependentChange | None]:
    """Make the test, and the measure of change where the regressions of single clients are known."""
    basis = Basis.of(known)
    pool, shares = make_worker_pool(settings.workers), variable_shares(known.plan)
    change = OperatorChange(basis) if basis.has_client_scatter else None
    return RegressionTest(basis, pool=pool, shares=shares, observed=observed_shares(known)), change


def _noisy_statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, None]:
    """Make a test that allows for noise; differences between mechanisms are too small to be measured through it."""
    return NoisyMomentsTest.of(known), None


def _paper_statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    test = KernelTest.of_paper(known, seed=settings.seed)
    return test, PrintedChange(test.space)


def _describe_noisy(known: Cohort | Aggregate, test: IndependenceTest) -> tuple[str, ...]:
    return tuple(describe_noise(test.known)) if isinstance(test, NoisyMomentsTest) else ()


def _describe_rounds(known: Cohort | Aggregate, test: IndependenceTest) -> tuple[str, ...]:
    spent = _count_rounds(test)
    return (str(spent),) if spent else ()


def _count_rounds(test: IndependenceTest) -> Spent | None:
    return test.spent if isinstance(test, JointRegressionTest) else None


_REGRESSION_SEARCH = ConstraintSearch(
    _regression_statistics,
    colliders=make_largest_p_rule,
    removal=remove_consistent,
    always_given=frozenset({DOMAIN}),  # a root: no path opens, and mechanisms may differ between clients
    notes=lambda known, test: describe_regression_sums(known),
)
_NOISY_SEARCH = replace(_REGRESSION_SEARCH, statistics=_noisy_statistics, notes=_describe_noisy)
# Owners of what "paper" consists of; that of `PAPER_RIDGE` is the authors' program:
_PAPER_SEARCH = ConstraintSearch(
    _paper_statistics,  # the paper's: Eqs. 40-43, Theorems 5 and 6, and random features of the domain
    colliders=lambda test: separating_set_rule,  # the paper's rules for directions, as meant (docs/paper-in-code.md)
    removal=remove_all,  # ours: all separations of one size remove their edges together, so that no order matters
    always_given=frozenset(),  # the paper's: the domain is a variable like others
    notes=lambda known, test: describe_kernel_sums(known),
    uses_mixtures=True,  # the paper's: sums over clients have random features of the domain as weights
)
METHODS: Mapping[str, Method] = {
    "evidence": Method("evidence", lambda seed: Hermite(), ScoreSearch(tests=_REGRESSION_SEARCH)),
    "constraint": Method("constraint", lambda seed: Hermite(), _REGRESSION_SEARCH),
    "paper": Method(
        "paper",
        lambda seed: Fourier(PAPER_FEATURES, PAPER_BANDWIDTH, seed),
        _PAPER_SEARCH,
        required_family=Fourier,
    ),
}
"""The methods by name."""
