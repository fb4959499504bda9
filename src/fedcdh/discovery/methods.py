"""Engines: sets of choices that answer the questions of the search and draw conclusions from the answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fedcdh._runtime.worker_pool import make_worker_pool
from fedcdh.discovery.algorithm import ConstraintSearch, SearchResult, by_evidence, with_domain
from fedcdh.discovery.settings import Settings
from fedcdh.errors import PlanMismatchError, SettingsError
from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.noisy_moments_test import NoisyMomentsTest, describe_noise
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.independent_change import OperatorChange, PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, IndependenceTest, IndependentChange, Progress
from fedcdh.search.colliders import make_largest_p_rule, separating_set_rule
from fedcdh.search.edge_removal import remove_all, remove_consistent
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.joint import AnswerSource, Spent


@dataclass(frozen=True)
class Method:
    """One way from summaries to a graph, and the features it reads."""

    family: Callable[[int], FeatureFamily]
    check: Callable[[FeatureFamily], None]
    search: Callable[[Cohort | Aggregate, Settings, Progress | None], SearchResult]


def _accept_any_family(family: FeatureFamily) -> None:
    """Regressions work with every family."""


def _require_fourier(family: FeatureFamily) -> None:
    """The paper's kernels are approximated by random Fourier features."""
    if not isinstance(family, Fourier):
        raise PlanMismatchError(
            f"method 'paper' needs Fourier features, but this plan has {family}; make the plan with "
            "family=Fourier(width=5), and the summaries again"
        )


def _regression_statistics(cohort: Cohort, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    basis = Basis.of(cohort)
    return RegressionTest(basis, pool=make_worker_pool(settings.workers)), OperatorChange(basis)


def _paper_statistics(cohort: Cohort, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    test = KernelTest.of_paper(cohort, seed=settings.seed)
    return test, PrintedChange(test.space)


_REGRESSION_SEARCH = ConstraintSearch(
    _regression_statistics,
    colliders=make_largest_p_rule,
    removal=remove_consistent,
    always_given=frozenset({DOMAIN}),  # a root: no path opens, and mechanisms may differ between clients
)


def _search_noisy(known: Cohort | Aggregate, settings: Settings, progress: Progress | None) -> SearchResult:
    """With noise in the summaries, or in their sum; independent change is too small a thing to be seen through it."""
    test = NoisyMomentsTest.of(known)
    findings = _REGRESSION_SEARCH.search(with_domain(known), test, None, settings, progress)
    return replace(findings, notes=tuple(describe_noise(test.known)))


METHODS: Mapping[str, Method] = {
    "evidence": Method(lambda seed: Hermite(), _accept_any_family, by_evidence),
    "constraint": Method(lambda seed: Hermite(), _accept_any_family, _REGRESSION_SEARCH),
    "paper": Method(
        lambda seed: Fourier(width=5, seed=seed),
        _require_fourier,
        ConstraintSearch(
            _paper_statistics, colliders=lambda test: separating_set_rule, removal=remove_all, always_given=frozenset()
        ),
    ),
}
DEFAULT_METHOD = "evidence"
"""What "auto" stands for: the engine with the best record, as `benchmarks.bench_real_data` prints it."""


MAX_CONDITIONING_SETS = 1000
"""Conditioning sets that are asked about in further rounds, unless the plan's budget is used up before."""


def adaptive_method(method: str, source: AnswerSource) -> Method:
    """The engine that may ask clients again; there is one for "constraint"."""
    check_rounds(method, "adaptive")

    def statistics(cohort: Cohort, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
        basis = Basis.of(cohort)
        return JointRegressionTest(cohort, basis, source, MAX_CONDITIONING_SETS), OperatorChange(basis)

    def spent(test: IndependenceTest) -> Spent | None:
        return test.spent if isinstance(test, JointRegressionTest) else None

    whole_levels = sys.maxsize  # one request to the clients for each
    search = replace(_REGRESSION_SEARCH, statistics=statistics, spent=spent, at_once=whole_levels)
    return replace(METHODS["constraint"], search=search)


def check_rounds(method: str, rounds: str) -> None:
    """Refuses a method that has nothing to ask clients again."""
    if resolve_method_name(method) != "constraint" and rounds == "adaptive":
        raise SettingsError(
            f"rounds='adaptive' asks clients what tests need to know, which method {method!r} does not; choose "
            "method='constraint', or leave rounds= out"
        )


def get_method(method: str, *, noisy: bool = False) -> Method:
    """The engine of this name; "auto" is the one with the best record. With noise, that of tests that know about it."""
    found = METHODS[resolve_method_name(method, noisy=noisy)]
    return replace(found, search=_search_noisy) if noisy else found


def resolve_method_name(method: str, *, noisy: bool = False) -> str:
    """The name of an engine: "auto" is the one with the best record, or the only one that knows about noise."""
    name = ("constraint" if noisy else DEFAULT_METHOD) if method == "auto" else method
    if name not in METHODS:
        raise SettingsError(f"there is no method {method!r}; choose one of {', '.join(map(repr, ['auto', *METHODS]))}")
    if noisy and name != "constraint":
        raise SettingsError(
            f"method {name!r} takes the noise in these summaries for dependence; choose 'auto' or 'constraint', whose "
            "tests know about it"
        )
    return name
