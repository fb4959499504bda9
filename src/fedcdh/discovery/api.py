"""From tables or summaries to a causal graph: the two calls most users need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table, to_table
from fedcdh.discovery.methods import adaptive_method, check_rounds, get_method, resolve_method_name
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.settings import DEFAULT_ALPHA, Settings, default_alpha
from fedcdh.errors import DataError, PlanMismatchError, SettingsError, SummaryError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.protocols import Progress
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.joint import AnswerSource, LocalAnswerSource
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary, check_noise

MAX_ROUNDS, MAX_BYTES = 20, 10_000_000
"""What `discover` lets a client answer in further rounds: it is all in one process."""


def discover_from(
    summaries: Iterable[Summary] | Cohort | Aggregate,
    plan: StudyPlan,
    *,
    method: str = "auto",
    alpha: float | None = None,
    knowledge: Knowledge | None = None,
    max_conditioning_size: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    source: AnswerSource | None = None,
    workers: int = 1,
) -> Discovery:
    """The causal graph, from the clients' summaries alone (Algorithm 1, server side).

    With a `source`, method "constraint" may ask clients again, within the budget that the plan states: for every level
    of the search once, about the conditioning sets that occur there (`fedcdh.summaries.joint`).

    Where the plan has noise, tests are used that know about it (`independence.noisy`), under the name of "constraint".

    >>> from fedcdh.evaluation.demo import hospital_study
    >>> tables = hospital_study().tables
    >>> plan = StudyPlan.from_tables(tables)
    >>> result = discover_from((summarize(table, plan, client) for client, table in tables.items()), plan)
    >>> ("smoker", "cholesterol") in result.graph.arrows
    True
    """
    rounds = "one" if source is None else "adaptive"
    noisy = plan.noise is not None
    name = resolve_method_name(method, noisy=noisy)
    level = default_alpha(name, len(plan.names)) if alpha is None else alpha
    settings = Settings(name, level, knowledge or NO_KNOWLEDGE, max_conditioning_size, seed, rounds, workers)
    engine = get_method(method, noisy=noisy) if source is None else adaptive_method(name, source)
    engine.check(plan.family)
    settings.knowledge.check(plan.names)
    with single_blas_thread():
        known = _to_cohort(summaries, plan)  # step 2: n = Σ n_k, C = Σ C_k
        _refuse_replicates(known)
        findings = engine.search(known, settings, progress)  # steps 3 to 5: `algorithm`
    return Discovery(known, settings, findings)


def _to_cohort(summaries: Iterable[Summary] | Cohort | Aggregate, plan: StudyPlan) -> Cohort | Aggregate:
    if isinstance(summaries, Cohort):  # whoever made it knows who is not in it
        return add_up(summaries.summaries, plan, without=set(plan.clients) - set(summaries.clients))
    if not isinstance(summaries, Aggregate):
        return add_up(summaries, plan)
    if summaries.plan.fingerprint != plan.fingerprint:
        raise PlanMismatchError(
            "the sum of the summaries follows another plan than this one; pass the plan it was made with"
        )
    check_noise(summaries.total, plan)
    return summaries


def _refuse_replicates(known: Cohort | Aggregate) -> None:
    """A graph is found from the rows themselves; their copies tell how sure it is."""
    if number := known.summaries[0].copy:
        raise SummaryError(
            f"these are bootstrap copies (number {number}), not summaries of the rows themselves; pass those, and the "
            "copies to result.stability(copies=...)"
        )


def discover(
    data: Any,
    *,
    domain: str | None = None,
    names: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    method: str = "auto",
    alpha: float | None = None,
    knowledge: Knowledge | None = None,
    max_conditioning_size: int | None = None,
    max_missing_share: float = 0.5,
    seed: int = 0,
    progress: Progress | None = None,
    rounds: str = "one",
    workers: int = 1,
) -> Discovery:
    """The causal graph of one table with a column `domain`, or of one table per client.

    Tables are data frames (pandas, polars, pyarrow, ...), mappings of columns, or numpy arrays with `names`. Each
    client's rows are used for its profile and its summary only, so the result is what a federated run would give.

    - `variables`: the columns of the study, if not all; `kinds`: "continuous" or "categorical" for some of them, where
      numbers are codes.
    - `method`: "auto", the one with the best record ("evidence"); "evidence", which weighs graphs by their marginal
      likelihood; "constraint", our tests; or "paper", the paper's own tests.
    - `alpha`: the level of the tests; if left out 0.05 and, for "constraint" with more than 30 variables, the less the
      more pairs there are (`fedcdh.discovery.settings.default_alpha`).
    - `knowledge`: required and forbidden arrows, tiers.
    - `max_conditioning_size`: the largest number of variables to condition on, or of causes, besides the domain.
    - `max_missing_share`: the share of a client's rows that may be left out for missing values.
    - `seed`: of the random features of "paper", and of the orders that "evidence" starts from where there are many
      variables; "constraint" has nothing random.
    - `rounds`: "adaptive" lets the tests of "constraint" ask clients again, how conditioning variables act together;
      the result notes how often and how much.
    - `workers`: how many answer the questions of "constraint" at a time, -1 for one per core; they are threads, unless
      `joblib.parallel_config` names a cluster. The result is the same. Adaptive rounds have one.
    - `progress`: called as the search goes on, with (level, questions) or, by evidence, (families scored, families).

    >>> from fedcdh.evaluation.simulation import simulate
    >>> study = simulate(seed=1)
    >>> result = discover(study.columns("site"), domain="site")
    >>> result.changing == study.changing
    True
    """
    level = DEFAULT_ALPHA if alpha is None else alpha
    Settings(
        method, level, knowledge or NO_KNOWLEDGE, max_conditioning_size, seed, rounds, workers
    )  # before data is read
    check_rounds(method, rounds)
    family = get_method(method).family(seed)
    plan = StudyPlan.from_tables(tables := split_by_client(data, domain, names, variables), kinds=kinds, family=family)
    if rounds == "adaptive":
        plan = replace(plan, max_rounds=MAX_ROUNDS, max_bytes=MAX_BYTES)
    summaries = [
        summarize(table, plan, client, max_missing_share=max_missing_share) for client, table in tables.items()
    ]  # step 1
    cohort = add_up(summaries, plan)
    return discover_from(
        cohort,
        plan,
        method=method,
        alpha=alpha,
        knowledge=knowledge,
        max_conditioning_size=max_conditioning_size,
        seed=seed,
        progress=progress,
        source=LocalAnswerSource(tables, plan, cohort) if rounds == "adaptive" else None,
        workers=workers,
    )


def split_by_client(
    data: Any, domain: str | None, names: Sequence[str] | None, variables: Sequence[str] | None
) -> dict[str, Table]:
    """One table per client, from one table with a column that says whose a row is, or from a mapping."""
    if isinstance(variables, str):
        raise SettingsError(f"variables= is the text {variables!r}; pass a list of column names")
    per_client = isinstance(data, Mapping) and data and not any(_is_column(value) for value in data.values())
    if domain is not None and per_client:
        raise SettingsError("one table per client needs no domain=; leave it out, or pass one table of all rows")
    if domain is not None:
        only = None if variables is None else [*variables, domain]
        return to_table(data, names, only=only).split(domain)
    if per_client:
        return {
            str(client): to_table(table, names, only=variables, owner=f"client {client!r}")
            for client, table in data.items()
        }
    raise DataError(
        f"found {type(data).__name__} and no domain=: say which client a row belongs to, with one table and "
        "domain='its column', or with a mapping from client to table"
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple, str)) or getattr(value, "ndim", 2) == 1
