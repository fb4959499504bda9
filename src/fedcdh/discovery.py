"""From summaries to a causal graph: Algorithm 1 of the paper on one screen (`discover_from`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fedcdh.basis import Basis
from fedcdh.change import OperatorChange, PrintedChange
from fedcdh.colliders import ColliderRule, by_largest_p, by_separating_set
from fedcdh.conditioning import Remembering
from fedcdh.errors import DataError, SettingsError
from fedcdh.features import FeatureFamily, Fourier, Hermite
from fedcdh.independence.kernel import KernelTest
from fedcdh.independence.regression import RegressionTest
from fedcdh.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.orientation import orient
from fedcdh.plan import StudyPlan
from fedcdh.profile import Kind, profile
from fedcdh.questions import DOMAIN, IndependenceTest, IndependentChange
from fedcdh.removal import RemovalRule, every_separation, without_contradiction
from fedcdh.result import Discovery, Settings
from fedcdh.skeleton import Progress, find_skeleton
from fedcdh.summary import Cohort, Summary, add_up, summarize
from fedcdh.tables import Table, as_table


@dataclass(frozen=True)
class Engine:
    """One way to answer the questions of the search, and to draw conclusions from the answers."""

    family: Callable[[int], FeatureFamily]
    statistics: Callable[[Cohort, int], tuple[IndependenceTest, IndependentChange]]
    colliders: Callable[[IndependenceTest], ColliderRule]
    removal: RemovalRule
    always_given: frozenset[str]


def _regressions(cohort: Cohort, seed: int) -> tuple[IndependenceTest, IndependentChange]:
    basis = Basis.of(cohort)
    return RegressionTest(basis), OperatorChange(basis)


def _paper(cohort: Cohort, seed: int) -> tuple[IndependenceTest, IndependentChange]:
    test = KernelTest.of_paper(cohort, seed=seed)
    return test, PrintedChange(test.space)


ENGINES: Mapping[str, Engine] = {
    "constraint": Engine(
        family=lambda seed: Hermite(),
        statistics=_regressions,
        colliders=by_largest_p,
        removal=without_contradiction,
        always_given=frozenset({DOMAIN}),  # a root: no path opens, and mechanisms may differ between clients
    ),
    "paper": Engine(
        family=lambda seed: Fourier(width=5, seed=seed),
        statistics=_paper,
        colliders=lambda test: by_separating_set,
        removal=every_separation,
        always_given=frozenset(),
    ),
}


def discover_from(
    summaries: Iterable[Summary],
    plan: StudyPlan,
    *,
    method: str = "constraint",
    alpha: float = 0.05,
    knowledge: Knowledge | None = None,
    max_conditioning: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Discovery:
    """The causal graph, from the clients' summaries alone (Algorithm 1, server side).

    >>> from fedcdh.demo import hospital_study
    >>> tables = hospital_study().tables
    >>> plan = StudyPlan.from_profiles(profile(table, client) for client, table in tables.items())
    >>> result = discover_from((summarize(table, plan, client) for client, table in tables.items()), plan)
    >>> ("smoker", "cholesterol") in result.graph.arrows
    True
    """
    engine, known = _engine(method), knowledge or NOTHING_KNOWN
    known.check(plan.names)
    with threadpool_limits(1, user_api="blas"):  # small matrices: more threads only get in each other's way
        cohort = add_up(summaries, plan)  # step 2: n = Σ n_k, C = Σ C_k
        nodes = (DOMAIN, *plan.names) if len(cohort.clients) > 1 else plan.names  # step 3: V ∪ {℧}
        answers, change = engine.statistics(cohort, seed)
        test, always = Remembering(answers), engine.always_given & {*nodes}
        skeleton = find_skeleton(  # step 4: FCIT
            nodes, test, alpha, known, max_conditioning, progress, always, engine.removal
        )
        directed = orient(skeleton, engine.colliders(test), known, change)  # steps 4 and 5: FICP
    return Discovery(cohort, Settings(method, alpha, known, max_conditioning, seed), skeleton, directed)


def discover(
    data: Any,
    *,
    domain: str | None = None,
    names: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    method: str = "constraint",
    alpha: float = 0.05,
    knowledge: Knowledge | None = None,
    max_conditioning: int | None = None,
    max_dropped: float = 0.5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Discovery:
    """The causal graph of one table with a column `domain`, or of one table per client.

    Tables are data frames (pandas, polars, pyarrow, ...), mappings of columns, or numpy arrays with `names`. Each
    client's rows are used for its profile and its summary only, so the result is what a federated run would give.

    >>> from fedcdh.simulate import simulate
    >>> study = simulate(seed=1)
    >>> result = discover(study.columns("site"), domain="site")
    >>> result.changing == study.changing
    True
    """
    tables = _tables(data, domain, names, variables)
    plan = StudyPlan.from_profiles(
        (profile(table, client, kinds=kinds) for client, table in tables.items()), family=_engine(method).family(seed)
    )
    summaries = [summarize(table, plan, client, max_dropped=max_dropped) for client, table in tables.items()]  # step 1
    return discover_from(
        summaries,
        plan,
        method=method,
        alpha=alpha,
        knowledge=knowledge,
        max_conditioning=max_conditioning,
        seed=seed,
        progress=progress,
    )


def _engine(method: str) -> Engine:
    if method not in ENGINES:
        raise SettingsError(f"there is no method {method!r}; choose one of {', '.join(map(repr, ENGINES))}")
    return ENGINES[method]


def _tables(
    data: Any, domain: str | None, names: Sequence[str] | None, variables: Sequence[str] | None
) -> dict[str, Table]:
    if domain is not None:
        only = None if variables is None else [*variables, domain]
        return as_table(data, names, only=only).split(domain)
    if isinstance(data, Mapping) and data and not any(_is_column(value) for value in data.values()):
        return {
            str(client): as_table(table, names, only=variables, owner=f"client {client!r}")
            for client, table in data.items()
        }
    raise DataError(
        "say which client a row belongs to: pass one table with domain='its column', or a mapping from client to table"
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple, str)) or getattr(value, "ndim", 2) == 1
