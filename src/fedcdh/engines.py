"""Engines: sets of choices that answer the questions of the search and draw conclusions from the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fedcdh.basis import Basis
from fedcdh.change import OperatorChange, PrintedChange
from fedcdh.colliders import ColliderRule, by_largest_p, by_separating_set
from fedcdh.errors import PlanMismatch, SettingsError
from fedcdh.features import FeatureFamily, Fourier, Hermite
from fedcdh.independence.kernel import KernelTest
from fedcdh.independence.regression import RegressionTest
from fedcdh.questions import DOMAIN, IndependenceTest, IndependentChange
from fedcdh.removal import RemovalRule, every_separation, without_contradiction
from fedcdh.summary import Cohort


@dataclass(frozen=True)
class Engine:
    """One way to answer the questions of the search, and to draw conclusions from the answers."""

    family: Callable[[int], FeatureFamily]
    check: Callable[[FeatureFamily], None]
    statistics: Callable[[Cohort, int], tuple[IndependenceTest, IndependentChange]]
    colliders: Callable[[IndependenceTest], ColliderRule]
    removal: RemovalRule
    always_given: frozenset[str]


def _any_family(family: FeatureFamily) -> None:
    """Regressions work with every family."""


def _fourier_only(family: FeatureFamily) -> None:
    """The paper's kernels are approximated by random Fourier features."""
    if not isinstance(family, Fourier):
        raise PlanMismatch(
            f"method 'paper' needs Fourier features, but this plan has {family}; make the plan with "
            "family=Fourier(width=5), and the summaries again"
        )


def _regressions(cohort: Cohort, seed: int) -> tuple[IndependenceTest, IndependentChange]:
    basis = Basis.of(cohort)
    return RegressionTest(basis), OperatorChange(basis)


def _paper(cohort: Cohort, seed: int) -> tuple[IndependenceTest, IndependentChange]:
    test = KernelTest.of_paper(cohort, seed=seed)
    return test, PrintedChange(test.space)


ENGINES: Mapping[str, Engine] = {
    "constraint": Engine(
        family=lambda seed: Hermite(),
        check=_any_family,
        statistics=_regressions,
        colliders=by_largest_p,
        removal=without_contradiction,
        always_given=frozenset({DOMAIN}),  # a root: no path opens, and mechanisms may differ between clients
    ),
    "paper": Engine(
        family=lambda seed: Fourier(width=5, seed=seed),
        check=_fourier_only,
        statistics=_paper,
        colliders=lambda test: by_separating_set,
        removal=every_separation,
        always_given=frozenset(),
    ),
}


def engine_for(method: str) -> Engine:
    """The engine of this name."""
    if method not in ENGINES:
        raise SettingsError(f"there is no method {method!r}; choose one of {', '.join(map(repr, ENGINES))}")
    return ENGINES[method]
