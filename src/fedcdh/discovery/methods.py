"""Engines: sets of choices that answer the questions of the search and draw conclusions from the answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fedcdh._runtime.worker_pool import crew_of
from fedcdh.discovery.algorithm import ByTests, Findings, augmented, by_evidence
from fedcdh.discovery.settings import Progress, Settings
from fedcdh.errors import PlanMismatch, SettingsError
from fedcdh.inference.independence.joint_regression_test import JointTest
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.noisy_moments_test import NoisyTest, remarks
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.independent_change import OperatorChange, PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, IndependenceTest, IndependentChange
from fedcdh.search.colliders import by_largest_p, by_separating_set
from fedcdh.search.edge_removal import every_separation, without_contradiction
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.joint import Spent, SummarySource


@dataclass(frozen=True)
class Engine:
    """One way from summaries to a graph, and the features it reads."""

    family: Callable[[int], FeatureFamily]
    check: Callable[[FeatureFamily], None]
    search: Callable[[Cohort | Aggregate, Settings, Progress | None], Findings]


def _any_family(family: FeatureFamily) -> None:
    """Regressions work with every family."""


def _fourier_only(family: FeatureFamily) -> None:
    """The paper's kernels are approximated by random Fourier features."""
    if not isinstance(family, Fourier):
        raise PlanMismatch(
            f"method 'paper' needs Fourier features, but this plan has {family}; make the plan with "
            "family=Fourier(width=5), and the summaries again"
        )


def _regressions(cohort: Cohort, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    basis = Basis.of(cohort)
    return RegressionTest(basis, crew=crew_of(settings.workers)), OperatorChange(basis)


def _paper(cohort: Cohort, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
    test = KernelTest.of_paper(cohort, seed=settings.seed)
    return test, PrintedChange(test.space)


_BY_REGRESSIONS = ByTests(
    _regressions,
    colliders=by_largest_p,
    removal=without_contradiction,
    always_given=frozenset({DOMAIN}),  # a root: no path opens, and mechanisms may differ between clients
)


def _by_noisy_tests(known: Cohort | Aggregate, settings: Settings, progress: Progress | None) -> Findings:
    """With noise in the summaries, or in their sum; independent change is too small a thing to be seen through it."""
    test = NoisyTest.of(known)
    findings = _BY_REGRESSIONS.search(augmented(known), test, None, settings, progress)
    return replace(findings, notes=tuple(remarks(test.known)))


ENGINES: Mapping[str, Engine] = {
    "evidence": Engine(lambda seed: Hermite(), _any_family, by_evidence),
    "constraint": Engine(lambda seed: Hermite(), _any_family, _BY_REGRESSIONS),
    "paper": Engine(
        lambda seed: Fourier(width=5, seed=seed),
        _fourier_only,
        ByTests(_paper, colliders=lambda test: by_separating_set, removal=every_separation, always_given=frozenset()),
    ),
}
AUTO = "evidence"
"""What "auto" stands for: the engine with the best record, as `benchmarks.bench_record` prints it."""


MOST_SETS = 1000
"""Conditioning sets that are asked about in further rounds, unless the plan's budget is used up before."""


def adaptive(method: str, source: SummarySource) -> Engine:
    """The engine that may ask clients again; there is one for "constraint"."""
    check_rounds(method, "adaptive")

    def statistics(cohort: Cohort, settings: Settings) -> tuple[IndependenceTest, IndependentChange]:
        basis = Basis.of(cohort)
        return JointTest(cohort, basis, source, MOST_SETS), OperatorChange(basis)

    def spent(test: IndependenceTest) -> Spent | None:
        return test.spent if isinstance(test, JointTest) else None

    whole_levels = sys.maxsize  # one request to the clients for each
    search = replace(_BY_REGRESSIONS, statistics=statistics, spent=spent, at_once=whole_levels)
    return replace(ENGINES["constraint"], search=search)


def check_rounds(method: str, rounds: str) -> None:
    """Refuses a method that has nothing to ask clients again."""
    if method_for(method) != "constraint" and rounds == "adaptive":
        raise SettingsError(
            f"rounds='adaptive' asks clients what tests need to know, which method {method!r} does not; choose "
            "method='constraint', or leave rounds= out"
        )


def engine_for(method: str, *, noisy: bool = False) -> Engine:
    """The engine of this name; "auto" is the one with the best record. With noise, that of tests that know about it."""
    found = ENGINES[method_for(method, noisy=noisy)]
    return replace(found, search=_by_noisy_tests) if noisy else found


def method_for(method: str, *, noisy: bool = False) -> str:
    """The name of an engine: "auto" is the one with the best record, or the only one that knows about noise."""
    name = ("constraint" if noisy else AUTO) if method == "auto" else method
    if name not in ENGINES:
        raise SettingsError(f"there is no method {method!r}; choose one of {', '.join(map(repr, ['auto', *ENGINES]))}")
    if noisy and name != "constraint":
        raise SettingsError(
            f"method {name!r} takes the noise in these summaries for dependence; choose 'auto' or 'constraint', whose "
            "tests know about it"
        )
    return name
