"""The methods that `discover` offers: each combines a search with a test or a score, and with the features it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fedcdh._runtime.worker_pool import make_worker_pool
from fedcdh.discovery.algorithm import ConstraintSearch, Search
from fedcdh.discovery.score_search import ScoreSearch
from fedcdh.discovery.settings import Settings
from fedcdh.errors import PlanMismatchError, SettingsError
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

    def with_rounds(self, source: AnswerSource) -> Method:
        """Return the same method with a test that may ask the clients again.

        Parameters
        ----------
        source : AnswerSource
            Asks the clients.

        Returns
        -------
        Method
            "constraint" with joint features of conditioning sets.

        Raises
        ------
        SettingsError
            If the method is not "constraint".
        """
        check_rounds(self.name, "adaptive")

        def statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
            cohort = _require_cohort(known)
            basis = Basis.of(cohort)
            return JointRegressionTest(cohort, basis, source, MAX_CONDITIONING_SETS), OperatorChange(basis)

        search = replace(
            _REGRESSION_SEARCH,
            statistics=statistics,
            notes=_describe_rounds,
            spent=_count_rounds,
            max_batch_queries=sys.maxsize,  # a whole level at once: one request to the clients
        )
        return replace(self, search=search)


def get_method(name: str, *, noisy: bool = False, rounds: str = "one") -> Method:
    """Return the method of this name.

    Parameters
    ----------
    name : {"auto", "evidence", "constraint", "paper"}
        The method; "auto" is the one with the best record that can use the summaries.
    noisy : bool, default False
        Whether the summaries have noise for differential privacy. Only "constraint" has tests that allow for it.
    rounds : {"one", "adaptive"}, default "one"
        Whether clients may be asked again. Only "constraint" can use their answers.

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
    """Refuse adaptive rounds for a method that has nothing to ask the clients.

    Parameters
    ----------
    method : str
        Name of a method, or "auto".
    rounds : {"one", "adaptive"}
        Whether clients may be asked again.

    Raises
    ------
    SettingsError
        If `rounds` is "adaptive" and the method is not "constraint".

    Examples
    --------
    >>> check_rounds("constraint", "adaptive")
    """
    if rounds == "adaptive" and method != "constraint":
        raise SettingsError(
            f"rounds is 'adaptive', but method {method!r} has nothing to ask the clients again; choose method "
            "'constraint', or leave rounds at 'one'",
            parameter="rounds",
        )


def _require_cohort(known: Cohort | Aggregate) -> Cohort:
    """Return the cohort that `ConstraintSearch` has checked for."""
    assert isinstance(known, Cohort)
    return known


def _regression_statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    basis = Basis.of(known)
    return RegressionTest(basis, pool=make_worker_pool(settings.workers)), OperatorChange(basis)


def _noisy_statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, None]:
    """Make a test that allows for noise; differences between mechanisms are too small to be measured through it."""
    return NoisyMomentsTest.of(known), None


def _paper_statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    test = KernelTest.of_paper(_require_cohort(known), seed=settings.seed)
    return test, PrintedChange(test.space)


def _describe_noisy(test: IndependenceTest) -> tuple[str, ...]:
    return tuple(describe_noise(test.known)) if isinstance(test, NoisyMomentsTest) else ()


def _describe_rounds(test: IndependenceTest) -> tuple[str, ...]:
    spent = _count_rounds(test)
    return (str(spent),) if spent else ()


def _count_rounds(test: IndependenceTest) -> Spent | None:
    return test.spent if isinstance(test, JointRegressionTest) else None


_REGRESSION_SEARCH = ConstraintSearch(
    _regression_statistics,
    colliders=make_largest_p_rule,
    removal=remove_consistent,
    always_given=frozenset({DOMAIN}),  # a root: no path opens, and mechanisms may differ between clients
)
_NOISY_SEARCH = replace(_REGRESSION_SEARCH, statistics=_noisy_statistics, needs_clients=False, notes=_describe_noisy)
_PAPER_SEARCH = ConstraintSearch(
    _paper_statistics, colliders=lambda test: separating_set_rule, removal=remove_all, always_given=frozenset()
)
METHODS: Mapping[str, Method] = {
    "evidence": Method("evidence", lambda seed: Hermite(), ScoreSearch()),
    "constraint": Method("constraint", lambda seed: Hermite(), _REGRESSION_SEARCH),
    "paper": Method("paper", lambda seed: Fourier(width=5, seed=seed), _PAPER_SEARCH, required_family=Fourier),
}
"""The methods by name."""
