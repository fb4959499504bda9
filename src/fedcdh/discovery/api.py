"""Find a causal graph from tables or from summaries: the two functions most users need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, overload

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.data.loaded_tables import load_tables
from fedcdh.data.missing_indicators import add_missing_indicators, indicator_name
from fedcdh.data.ordered_source import with_order_column
from fedcdh.data.recipe_file import NO_RECIPES, Recipes
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table, split_by_client
from fedcdh.discovery.ancestral_discovery import AncestralDiscovery
from fedcdh.discovery.degenerate_search import DegenerateSearch
from fedcdh.discovery.hidden_causes import choose_tests, name_method, name_rounds
from fedcdh.discovery.methods import Method, check_rounds, get_method, resolve_rounds
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.settings import (
    DEFAULT_MIN_ARROW_PROBABILITY,
    DEFAULT_MIN_EFFECT,
    DEFAULT_MIN_PROBABILITY,
    Settings,
    SummaryOptions,
    TableOptions,
    default_alpha,
)
from fedcdh.errors import PlanMismatchError, SettingsError, SummaryError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.protocols import Progress
from fedcdh.summaries.absent_columns import AbsentRule
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.client_changes import check_client_names
from fedcdh.summaries.imputation.imputed_source import impute_rows
from fedcdh.summaries.joint import AnswerSource, LocalAnswerSource
from fedcdh.summaries.plan import MissingValues, StudyPlan
from fedcdh.summaries.summary import Summary, check_noise

MAX_ROUNDS, MAX_BYTES = 20, 10_000_000
"""Limits of the further rounds of `discover`, where all clients are in one process."""


@overload
def discover(data: Any, *, hidden: Literal[False] = False, **options: Unpack[TableOptions]) -> Discovery: ...


@overload
def discover(data: Any, *, hidden: Literal[True], **options: Unpack[TableOptions]) -> AncestralDiscovery: ...


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
    rounds: str = "auto",
    max_rounds: int = MAX_ROUNDS,
    workers: int = 1,
    order_by: str | None = None,
    min_probability: float = DEFAULT_MIN_PROBABILITY,
    min_arrow_probability: float = DEFAULT_MIN_ARROW_PROBABILITY,
    min_effect: float = DEFAULT_MIN_EFFECT,
    recipes: Recipes = NO_RECIPES,
    absent: AbsentRule = "refuse",
    accept_differences: Collection[str] = (),
    exclude: Collection[str] = (),
    missing: MissingValues = "complete",
    missing_indicators: Sequence[str] = (),
    hidden: bool = False,
) -> Discovery | AncestralDiscovery:
    """Find the causal graph of several clients' tables.

    Each client's rows are used only for its profile and its summary, so the result equals that of a
    federated run.

    Parameters
    ----------
    data : data frame, mapping of columns, array, file, or mapping from client to table
        One table with a column `domain` that names the client of each row, or one table per client.
        A table is a data frame (pandas, polars, pyarrow, ...), a mapping from name to column, a
        two-dimensional array with `names`, the name of a file, or what `open_tables` returns.
    domain : str, optional
        Name of the column that holds the client. Required if `data` is one table.
    names : sequence of str, optional
        Names of the columns, if the tables are arrays. Default ``x1``, ``x2``, ...
    variables : sequence of str, optional
        The columns to study. Default all columns but `domain`.
    kinds : mapping from str to {"continuous", "categorical"}, optional
        The kind of single variables, for example of numbers that are codes. By default numbers are
        continuous, texts and truth values are categorical.
    method : {"auto", "evidence", "constraint", "paper"}, default "auto"
        "evidence" maximises the marginal likelihood, "constraint" uses conditional independence tests,
        "paper" the tests of Algorithm 1 as printed. "auto" is "evidence"; if clients lack variables, it is
        "constraint".
    alpha : float, optional
        Significance level of the tests. Default 0.05; smaller for "constraint" with more than 30 variables
        (see `fedcdh.discovery.default_alpha`). "evidence" does not use it.
    knowledge : Knowledge, optional
        Required arrows, forbidden arrows and tiers. Default none.
    max_conditioning_size : int, optional
        The largest number of variables in a conditioning set ("constraint", "paper"), or of parents of a
        variable ("evidence"). The domain does not count. Default no limit.
    max_missing_share : float, default 0.5
        The largest share of a client's rows that may be left out because a value is missing.
    seed : int, default 0
        Seed of the random features of "paper", and of the orders from which "evidence" starts where there
        are many variables. "constraint" draws nothing at random.
    progress : callable, optional
        Called before each batch with two integers: (size of the conditioning sets, number of queries), or
        (families scored so far, families to score) for "evidence".
    rounds : {"auto", "one", "residuals", "adaptive"}, default "auto"
        What the clients are asked after their summaries. "one": nothing. "residuals": sums of bounded functions
        of the residuals of some regressions, which decide directions where noise is not Gaussian ("evidence",
        "constraint"). "adaptive": also moments of several conditioning variables jointly ("constraint").
        "auto" is "residuals" if the method can use them, for up to 300 variables. The notes say how much was
        asked.
    max_rounds : int, default 20
        Largest number of further rounds. With 2, "evidence" asks about residuals in one request for all that may
        matter and one for what its answers call for: fewer rounds, more sums.
    workers : int, default 1
        How many threads answer the queries of "constraint", -1 for one per processor. Inside
        ``joblib.parallel_config`` they run on that cluster instead. The result does not depend on it;
        adaptive rounds use one worker.
    order_by : str, optional
        Column with the time of each row: numbers, or texts such as dates like 2024-01-31. It is no variable unless
        `variables` names it. Rows that depend on the rows before them count as fewer rows, and the notes say so.
        Default: the order of the rows as they are, if a client's table is not sorted by one of its variables.
    min_probability : float, default 0.5
        The smallest probability of an edge, or of a difference between clients, that "evidence" draws.
    min_arrow_probability : float, default 0.8
        The smallest probability of an arrow. Edges whose likelier direction has less are lines ("evidence").
    min_effect : float, default 0.02
        The smallest share of variance that an edge explains, if "evidence" is to draw it. A quarter of it is enough for
        an edge that shows at nearly all clients. The notes name edges that are left out.
    recipes : Recipes, optional
        What every client does with its columns first, such as logarithms and groups of levels; see
        `fedcdh.data.Recipes`.
    absent : {"refuse", "allow"} or mapping from str to sequence of str, default "refuse"
        Whether single clients may lack columns that others have ("evidence", "constraint"), or the columns that each
        may lack. "allow" accepts no column for which the client has another with nearly the same name.
    accept_differences : collection of str, default ()
        Variables whose ranges or labels really differ between clients. Others are refused where clients seem to have
        different units, different spellings of a label, or no label in common.
    exclude : collection of str, default ()
        Columns that are no variables, such as identifiers, dates and free text. They may hold anything.
    missing : {"complete", "impute"}, default "complete"
        What is done with rows in which a value is missing: "complete" leaves them out; with "impute", every client
        draws a value from a model of its own rows, and tests and scores count fewer rows.
    missing_indicators : sequence of str, default ()
        Columns whose gaps may mean something: for each, such as ``chol``, there is a further variable ``chol missing``
        with the levels no and yes. Only with "impute".
    hidden : bool, default False
        Whether something unmeasured may be behind two variables. The result is then a partial ancestral graph, found
        with the tests of "constraint", which "auto" is then; `max_conditioning_size` limits the search (anytime FCI).

    Returns
    -------
    Discovery
        The graph, the variables whose mechanism differs between clients, and the evidence for every edge. With
        `hidden`, an `AncestralDiscovery`.

    Raises
    ------
    DataError
        If a table cannot be read, or does not fit the other clients' tables.
    SettingsError
        If a parameter is out of its range, or two parameters exclude each other.
    KnowledgeError
        If the knowledge contradicts itself or names a variable that is not there.
    PlanError
        If no study can be planned from these tables, for example without variables, or because clients seem to have
        different units or spellings.

    See Also
    --------
    discover_from : The same from summaries that were received.
    simulate_federation : The same through the messages that a federated run exchanges.
    FedCDH : The same as a scikit-learn estimator.

    Notes
    -----
    The steps are those of Algorithm 1 of the paper; `fedcdh.discovery.algorithm` shows them on one page.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site")
    >>> result.changing == study.changing
    True

    One table per client, and something that is known beforehand:

    >>> tables = fedcdh.demo.hospital_study().tables
    >>> known = fedcdh.Knowledge(forbidden=[("cholesterol", "smoker")])
    >>> result = fedcdh.discover(tables, method="constraint", alpha=0.01, knowledge=known)
    >>> ("cholesterol", "smoker") in result.graph.arrows
    False
    """
    columns = with_order_column(variables, order_by)
    wanted = None if absent != "refuse" and domain is None else columns  # a client may lack some
    loaded = load_tables(data, kinds, wanted, domain, exclude)
    tables = split_by_client(loaded, domain, names, wanted, exclude)
    tables = _with_indicators(tables, missing_indicators, missing)
    if variables is not None:
        used = [name for name in variables if name not in exclude]
        variables = [*used, *map(indicator_name, missing_indicators)]
    every = {name for table in tables.values() for name in table.columns} - {order_by}
    studied = set(variables or every) - recipes.excluded
    n_variables = len(studied)
    choice = get_method(name_method(method) if hidden else method, lacking=_has_gaps(tables, studied, absent))
    rounds = resolve_rounds(name_rounds(rounds) if hidden else rounds, choice.name, variables=n_variables)
    check_rounds(choice.name, rounds)
    settings = Settings(
        choice.name,
        default_alpha(choice.name, n_variables) if alpha is None else alpha,
        knowledge or NO_KNOWLEDGE,
        max_conditioning_size,
        seed,
        rounds,
        workers,
        min_probability,
        min_arrow_probability,
        min_effect,
    )
    plan = StudyPlan.from_tables(
        tables,
        kinds=kinds,
        family=choice.family(seed),
        variables=variables,
        order_by=order_by,
        recipes=recipes,
        absent=absent,
        accept_differences=accept_differences,
        missing=missing,
    )
    settings.knowledge.check(plan.names)
    if rounds != "one":
        plan = replace(plan, max_rounds=_check_max_rounds(max_rounds), max_bytes=MAX_BYTES)
    rows = {client: impute_rows(table, plan, client) for client, table in tables.items()}
    summaries = [  # Algorithm 1, step 1
        summarize(table, plan, client, max_missing_share=max_missing_share) for client, table in rows.items()
    ]
    cohort = add_up(summaries, plan)
    if rounds != "one":
        choice = choice.with_rounds(LocalAnswerSource(rows, plan, cohort), rounds)
    search = _search_hidden_causes if hidden else _search
    return search(cohort, choice, settings, progress)


@overload
def discover_from(
    summaries: Iterable[Summary] | Cohort | Aggregate,
    plan: StudyPlan,
    *,
    hidden: Literal[False] = False,
    **options: Unpack[SummaryOptions],
) -> Discovery: ...


@overload
def discover_from(
    summaries: Iterable[Summary] | Cohort | Aggregate,
    plan: StudyPlan,
    *,
    hidden: Literal[True],
    **options: Unpack[SummaryOptions],
) -> AncestralDiscovery: ...


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
    rounds: str = "auto",
    workers: int = 1,
    min_probability: float = DEFAULT_MIN_PROBABILITY,
    min_arrow_probability: float = DEFAULT_MIN_ARROW_PROBABILITY,
    min_effect: float = DEFAULT_MIN_EFFECT,
    without: Collection[str] = (),
    hidden: bool = False,
) -> Discovery | AncestralDiscovery:
    """Find the causal graph from the clients' summaries.

    This is the coordinator's part of a federated run: it needs no rows.

    Parameters
    ----------
    summaries : iterable of Summary, Cohort or Aggregate
        One summary or more of every client, or their sum. A `Cohort` may lack clients of the plan that dropped out.
    plan : StudyPlan
        The plan that all clients followed.
    method : {"auto", "evidence", "constraint", "paper"}, default "auto"
        "evidence" maximises the marginal likelihood, "constraint" uses conditional independence tests,
        "paper" the tests of Algorithm 1 as printed. "auto" is "evidence"; if the summaries have noise for
        differential privacy, or clients lack variables, it is "constraint".
    alpha : float, optional
        Significance level of the tests. Default 0.05; smaller for "constraint" with more than 30 variables
        (see `fedcdh.discovery.default_alpha`). "evidence" does not use it.
    knowledge : Knowledge, optional
        Required arrows, forbidden arrows and tiers. Default none.
    max_conditioning_size : int, optional
        The largest number of variables in a conditioning set ("constraint", "paper"), or of parents of a
        variable ("evidence"). The domain does not count. Default no limit.
    seed : int, default 0
        Seed of the random features of "paper", and of the orders from which "evidence" starts where there
        are many variables.
    progress : callable, optional
        Called before each batch with two integers: (size of the conditioning sets, number of queries), or
        (families scored so far, families to score) for "evidence".
    source : AnswerSource, optional
        Asks the clients again, within the limits of the plan. Default none: their summaries are all that is known.
    rounds : {"auto", "one", "residuals", "adaptive"}, default "auto"
        What the source is asked for, see `discover`. Without a source it is "one".
    workers : int, default 1
        How many threads answer the queries of "constraint", -1 for one per processor. The result does not
        depend on it.
    min_probability : float, default 0.5
        The smallest probability of an edge, or of a difference between clients, that "evidence" draws.
    min_arrow_probability : float, default 0.8
        The smallest probability of an arrow. Edges whose likelier direction has less are lines ("evidence").
    min_effect : float, default 0.02
        The smallest share of variance that an edge explains, if "evidence" is to draw it. A quarter of it is enough for
        an edge that shows at nearly all clients. The notes name edges that are left out.
    without : collection of str, default ()
        Clients of the plan that are left out, for instance because they dropped out. Their summaries may be missing;
        any that are there are not used. The result is that of a study by the same plan without these clients, and
        its notes name them.
    hidden : bool, default False
        Whether something unmeasured may be behind two variables, see `discover`.

    Returns
    -------
    Discovery
        The graph, the variables whose mechanism differs between clients, and the evidence for every edge. With
        `hidden`, an `AncestralDiscovery`.

    Raises
    ------
    PlanError
        If a client of `without` is not in the plan.
    SummaryError
        If summaries are missing, duplicated, or bootstrap replicates; or if a sum has a client of `without`.
    PlanMismatchError
        If a summary follows another plan, or the plan has features that the method cannot use.
    SettingsError
        If a parameter is out of its range, or the method needs more than the summaries hold.
    KnowledgeError
        If the knowledge contradicts itself or names a variable that is not there.

    See Also
    --------
    discover : The same from tables.
    summarize : The client's part.
    add_up : The sum of summaries, with the clients that dropped out.

    Examples
    --------
    >>> import fedcdh
    >>> tables = fedcdh.demo.hospital_study().tables
    >>> plan = fedcdh.StudyPlan.from_tables(tables)
    >>> summaries = [fedcdh.summarize(table, plan, client) for client, table in tables.items()]
    >>> result = fedcdh.discover_from(summaries, plan)
    >>> ("smoker", "cholesterol") in result.graph.arrows
    True
    """
    chosen = name_method(method) if hidden else method
    choice = get_method(chosen, noisy=plan.noise is not None, lacking=bool(plan.absent))
    rounds = name_rounds(rounds) if hidden else rounds
    rounds = (
        "one"
        if source is None
        else resolve_rounds(rounds, choice.name, noisy=plan.noise is not None, variables=len(plan.names))
    )
    check_rounds(choice.name, rounds)
    if source is not None and rounds != "one":
        choice = choice.with_rounds(source, rounds)
    settings = Settings(
        choice.name,
        default_alpha(choice.name, len(plan.names)) if alpha is None else alpha,
        knowledge or NO_KNOWLEDGE,
        max_conditioning_size,
        seed,
        rounds,
        workers,
        min_probability,
        min_arrow_probability,
        min_effect,
    )
    choice.check_family(plan.family)
    settings.knowledge.check(plan.names)
    known = _to_cohort(summaries, plan, frozenset(without))
    _refuse_replicates(known)
    search = _search_hidden_causes if hidden else _search
    return search(known, choice, settings, progress)


def _with_indicators(tables: dict[str, Table], names: Sequence[str], missing: MissingValues) -> dict[str, Table]:
    """Return the tables with indicators of missing values; complete rows have none."""
    if isinstance(names, str) or (names and missing == "complete"):
        raise SettingsError(
            f"missing_indicators is {names!r}, with missing={missing!r}; expected a list of columns, and 'impute': in "
            "complete rows nothing is missing; pass both",
            parameter="missing_indicators",
        )
    return add_missing_indicators(tables, names) if names else tables


def _check_max_rounds(max_rounds: int) -> int:
    """Return the number of further rounds; there is at least one."""
    if not isinstance(max_rounds, int) or max_rounds < 1:
        raise SettingsError(
            f"max_rounds is {max_rounds!r}; expected 1, 2, ...; choose rounds 'one' to ask for summaries only",
            parameter="max_rounds",
        )
    return max_rounds


def _search(known: Cohort | Aggregate, choice: Method, settings: Settings, progress: Progress | None) -> Discovery:
    """Run steps 2 to 5 of Algorithm 1, or the search by score."""
    _check_absent(known, settings)
    with single_blas_thread():
        return Discovery(known, settings, DegenerateSearch(choice.search)(known, settings, progress))


def _has_gaps(tables: Mapping[str, Table], studied: Collection[str], absent: AbsentRule) -> bool:
    """Return whether some client lacks a variable, or does not use one, where that is accepted."""
    if absent == "refuse":
        return False
    named = isinstance(absent, Mapping) and any(absent.values())
    return named or not all(table.columns.keys() >= set(studied) for table in tables.values())


def _check_absent(known: Cohort | Aggregate, settings: Settings) -> None:
    """Refuse clients that lack variables where a method needs all columns of all clients."""
    if not isinstance(known, Cohort) or not known.lacks_columns:
        return
    if settings.method == "paper":
        raise SettingsError(
            "some clients lack variables, but method 'paper' needs the features of all variables from every client, "
            "as printed; choose method 'evidence' or 'constraint', or leave these variables out",
            parameter="method",
        )
    if settings.rounds == "adaptive":
        raise SettingsError(
            "some clients lack variables, but adaptive rounds ask all clients about the same variables; choose rounds "
            "'residuals' or 'one', or leave these variables out",
            parameter="rounds",
        )


def _search_hidden_causes(
    known: Cohort | Aggregate, choice: Method, settings: Settings, progress: Progress | None
) -> AncestralDiscovery:
    """Run FCI with the tests of the method."""
    if isinstance(known, Cohort) and known.lacks_columns:
        raise SettingsError(
            "some clients lack variables, but a search for hidden causes asks all clients about all pairs; leave these "
            "variables or clients out, or search without hidden causes",
            parameter="hidden",
        )
    with single_blas_thread():
        return AncestralDiscovery(known, settings, choose_tests(choice.search)(known, settings, progress))


def _to_cohort(
    summaries: Iterable[Summary] | Cohort | Aggregate, plan: StudyPlan, without: frozenset[str]
) -> Cohort | Aggregate:
    """Check summaries against the plan and add up those of one client, without the clients that are left out."""
    check_client_names(without, plan.clients)
    if isinstance(summaries, Aggregate):
        return _check_sum(summaries, plan, without)
    absent = set(without)
    if isinstance(summaries, Cohort):  # a cohort says who dropped out
        absent |= plan.client_set - set(summaries.clients)
        summaries = summaries.summaries
    return add_up((one for one in summaries if without.isdisjoint(one.clients)), plan, without=absent)


def _check_sum(known: Aggregate, plan: StudyPlan, without: frozenset[str]) -> Aggregate:
    """Check that a sum follows the plan and has no client that is left out."""
    if known.plan.fingerprint != plan.fingerprint:
        raise PlanMismatchError(
            f"the sum of the summaries follows plan {known.plan.fingerprint[:12]}, expected this plan "
            f"({plan.fingerprint[:12]}); pass the plan with which the sum was made"
        )
    if held := sorted(without.intersection(known.total.clients)):
        raise SummaryError(
            f"the sum of the summaries has {abbreviate_list(held)}; expected a sum without the clients that are left "
            "out, because a sum cannot be taken apart; add up the summaries of the others again, if they were sent in "
            "the "
            "open (a second secure sum would disclose what these clients sent)",
            parameter="without",
        )
    check_noise(known.total, plan)
    return known


def _refuse_replicates(known: Cohort | Aggregate) -> None:
    """Refuse bootstrap replicates: they say how stable a graph is, but the graph is found from the rows themselves."""
    if number := known.summaries[0].replicate:
        raise SummaryError(
            f"these are bootstrap replicates (number {number}); expected summaries of the rows themselves; pass those "
            "to discover_from, and the replicates to result.stability(replicates=...)"
        )
