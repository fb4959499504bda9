"""What the server checks of a summary when it arrives: that some rows can have given these sums.

Every check is a law that all sums of features on the grid obey, with a tolerance, where there is one, that is derived
and not tuned: what `summarize` makes is never refused. They run from cheap to dear, and each has its own error. A
summary that passes may still be false: rows that were permuted, doubled or invented have valid sums.

The feature φ_i of a row is a whole number of steps, |φ_i| ≤ G; the constant is φ_0 = G. S = Σ φφᵀ, n rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.errors import (
    DuplicateClientError,
    InfeasibleMomentsError,
    MomentBoundsError,
    MomentIdentityError,
    NotPositiveSemidefiniteError,
    PlanMismatchError,
    RowCountError,
    SummaryError,
    UnknownClientError,
)
from fedcdh.summaries import _moment_space
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.summary import Summary, check_noise

Flags = npt.NDArray[np.bool_]

REMAKE_ADVICE = "make the summary again from the table with this plan"
MIN_DISTINCTIVE_ROWS, MIN_DISTINCTIVE_RANK = 50, 8
"""From so many rows with so many independent differences on, two clients do not have the same sums by chance: below
1e-6 even if only nine different rows exist, each as frequent, and far below with numbers that are really continuous."""
_UNIT_ROUNDOFF = 2.0**-53  # of rounding
_RARE_EXPONENT = 64.0  # what is less probable than 2 exp(−64) does not happen
_BLOCK_ROWS = 256  # rows of the matrix at a time: no copies of a matrix of 6000 columns


def admit_summaries(
    summaries: Iterable[Summary], plan: StudyPlan, *, replicate: int = 0, without: Collection[str] = ()
) -> Cohort:
    """The cohort of these summaries, each checked: one per client, and none of them another client's.

    A bootstrap copy is refused, for its rows are counted already; with `copy`, all others than that copy are. Clients
    that the study goes on `without` may be missing.

    >>> from fedcdh.summaries.accumulator import summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> messages = [summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "south")]
    >>> admit_summaries(messages, plan).client_rows
    (2, 1)
    """
    arrivals, admitted = _SummaryAdmission(plan, replicate), list[Summary]()
    with single_blas_thread():
        for summary in summaries:
            arrivals.admit(summary)
            admitted.append(summary)
    return add_up(admitted, plan, without=without)


class _SummaryAdmission:
    """Summaries that come one after the other, of which only who sent them and a mark of their sums are kept."""

    def __init__(self, plan: StudyPlan, replicate: int = 0) -> None:
        self.plan, self.replicate = plan, replicate
        self._seen: set[str] = set()
        self._makers: dict[bytes, str] = {}

    def admit(self, summary: Summary) -> None:
        """Refuses one that cannot be true, is a second one of its client, or another client's."""
        if summary.replicate != self.replicate:
            raise SummaryError(
                f"found {_describe_replicate(summary.replicate)} of {_describe_clients(summary)}, expected {_describe_replicate(self.replicate)}; one cannot stand "
                "for the other: ask the client for the right one"
            )
        validate_summary(summary, self.plan)
        if again := self._seen.intersection(summary.clients):
            raise DuplicateClientError(
                f"a second {_describe_replicate(self.replicate).removeprefix('the ')} of client {min(again)!r} came; ask the client "
                "which of them holds (it has to add up parts of its rows itself)"
            )
        mark = fingerprint_of(summary)
        maker = self._makers.get(mark, _describe_clients(summary))
        if maker != _describe_clients(summary) and is_distinctive(summary, self.plan):
            raise DuplicateClientError(
                f"the summaries of {maker} and {_describe_clients(summary)} hold the same sums of {summary.rows} rows to the last "
                "digit; one is a copy of the other: ask both clients whose rows these are"
            )
        self._seen.update(summary.clients)
        self._makers.setdefault(mark, _describe_clients(summary))


def admit_replicates(replicates: Iterable[Summary], cohort: Cohort) -> tuple[Cohort, ...]:
    """The cohorts of the bootstrap copies that all clients sent, each checked as summaries are, and as a draw of them.

    Copies that some client did not send are left out, and so are those of clients that the cohort goes on without.
    """
    numbered: dict[int, list[Summary]] = {}
    for copy in replicates:
        numbered.setdefault(copy.replicate, []).append(copy)
    complete = find_complete_replicates(
        {number: [c for s in sent for c in s.clients] for number, sent in numbered.items()}, cohort
    )
    return tuple(iter_admitted_replicates(((number, numbered[number]) for number in complete), cohort))


def find_complete_replicates(senders: Mapping[int, Iterable[str]], cohort: Cohort) -> list[int]:
    """The numbers of the copies that every client of the cohort sent, in ascending order."""
    return [number for number, clients in sorted(senders.items()) if {*clients} >= {*cohort.clients}]


def iter_admitted_replicates(draws: Iterable[tuple[int, Iterable[Summary]]], cohort: Cohort) -> Iterator[Cohort]:
    """The same of one number after the other: not all of them have to be in memory."""
    whole = dict(zip(cohort.clients, cohort.summaries, strict=True))
    absent = set(cohort.plan.clients) - set(whole)
    seen = {client: {fingerprint_of(summary): "its summary"} for client, summary in whole.items()}
    for number, sent in draws:
        here = (copy for copy in sent if not absent.intersection(copy.clients))
        drawn = admit_summaries(here, cohort.plan, replicate=number, without=absent)
        for client, copy in zip(drawn.clients, drawn.summaries, strict=True):
            validate_replicate(copy, whole[client])
            other = seen[client].setdefault(fingerprint_of(copy), _describe_replicate(number))
            if other != _describe_replicate(number) and is_distinctive(copy, cohort.plan):
                raise SummaryError(
                    f"{_describe_replicate(number)} and {other} of {_describe_clients(copy)} hold the same sums to the last digit, which no "
                    "two draws of rows do; ask the client to make its copies again"
                )
        yield drawn


def validate_replicate(replicate: Summary, original: Summary) -> None:
    """Refuses a bootstrap copy that was made with another summary, or is farther from it than chance takes it.

    Σ (w − 1) f over rows with Poisson weights w and |f| ≤ 1 has the variance V = Σ f², and is larger than t with a
    probability of at most 2 exp(−t²/(2(V + t/3))) (Bernstein). For products of features V ≤ Σ φ_i², Σ φ_j²; of rows,
    complete or not, it is their number.
    """
    if replicate.original != original.digest:
        raise SummaryError(
            f"{_describe_replicate(replicate.replicate)} of {_describe_clients(replicate)} belongs to another summary than the one that came: it names "
            f"{replicate.original[:12] or 'none'}, expected {original.digest[:12]}; ask the client for the files of one run, the "
            "summary and its copies, and remove older ones"
        )
    squares = original.moments.diagonal() / float(GRID**2)
    apart = np.abs(replicate.moments - original.moments) / float(GRID**2)
    far = any(
        (apart[rows] > _chance_bound(np.minimum.outer(squares[rows], squares))).any()
        for rows in _row_blocks(len(squares))
    )
    counts = [
        (replicate.rows_read, original.rows_read),
        *((replicate.missing[name], original.missing[name]) for name in original.missing),
    ]
    if far or any(abs(drawn - there) > _chance_bound(np.float64(there)) for drawn, there in counts):
        raise SummaryError(
            f"{_describe_replicate(replicate.replicate)} of {_describe_clients(replicate)} is not drawn from the rows of its summary: sums differ by more "
            "than chance explains; ask the client for the files of one run, the summary and its copies"
        )


def _chance_bound(variance: Array | np.float64) -> Any:
    """What is exceeded with a probability of 2 exp(−64), below 1e-27."""
    return (_RARE_EXPONENT / 3 + np.sqrt(_RARE_EXPONENT**2 / 9 + 2 * _RARE_EXPONENT * variance)) * (
        1 + 8 * _UNIT_ROUNDOFF
    )


def validate_summary(summary: Summary, plan: StudyPlan) -> None:
    """Refuses a summary that no rows can have given. One of several clients' sum is checked in the same way."""
    _check_plan(summary, plan)
    check_noise(summary, plan)
    _check_counts(summary, plan)
    if summary.noise:
        _check_noisy_moments(summary, plan)
        return
    _check_grid_steps(summary, plan)
    _check_bounds(summary, plan)
    _check_indicators(summary, plan)
    _check_squares(summary, plan)
    _check_positive_semidefinite(summary, plan)
    _check_moment_space(summary, plan)


# Who, and how many rows


def _check_plan(summary: Summary, plan: StudyPlan) -> None:
    if summary.plan != plan.fingerprint:
        raise PlanMismatchError(
            f"the summary of {_describe_clients(summary)} follows plan {summary.plan[:12]}, not this plan "
            f"({plan.fingerprint[:12]}); {REMAKE_ADVICE}"
        )
    if summary.moments.shape != (plan.layout.n_columns, plan.layout.n_columns):
        raise SummaryError(
            f"the summary of {_describe_clients(summary)} has {len(summary.moments)} columns, the plan {plan.layout.n_columns}; {REMAKE_ADVICE}"
        )
    if not summary.clients or (strangers := sorted(set(summary.clients) - plan.client_set)):
        raise UnknownClientError(
            f"a summary came from {abbreviate_list(strangers) if summary.clients else 'nobody'}, but the plan names only "
            f"{abbreviate_list(plan.clients)}; correct the name, or make a plan with this client for all"
        )


def _check_counts(summary: Summary, plan: StudyPlan) -> None:
    """A row is left out if and only if a value is missing: max(missing) ≤ rows left out ≤ Σ missing."""
    if set(summary.missing) != set(plan.names):
        raise RowCountError(
            f"the summary of {_describe_clients(summary)} counts missing values of {', '.join(map(str, summary.missing))}, but "
            f"the plan's variables are {', '.join(plan.names)}; {REMAKE_ADVICE}"
        )
    missing, left = list(summary.missing.values()), summary.rows_read - summary.rows
    if not (summary.rows >= 1 and min(missing) >= 0 and max(missing) <= left <= sum(missing)):
        raise RowCountError(
            f"the summary of {_describe_clients(summary)} uses {summary.rows} of {summary.rows_read} rows, with {sum(missing)} "
            f"values missing and {max(missing)} in one variable: these cannot all be true, or no row is left; {REMAKE_ADVICE}"
        )
    most = plan.max_rows_per_client * len(summary.clients)
    if 0 < most < summary.rows and not summary.replicate:  # copies are held to their summary
        raise SummaryError(
            f"the summary of {_describe_clients(summary)} counts {summary.rows} rows, and the plan lets a client have "
            f"{plan.max_rows_per_client}, so that none outweighs all others; summarize so many rows, chosen at random, or ask "
            "the coordinator for a plan with a higher max_rows_per_client"
        )


# Whole steps of the grid


def _check_grid_steps(summary: Summary, plan: StudyPlan) -> None:
    """S_00 = n G² and S_0i = G Σφ_i. Whole numbers y have y² ≡ y mod 2 and y² ≥ y: so have sums of y = φ_i − k.

    The sharpest k is the mean, rounded down.
    """
    first, squares, n = summary.moments[0], summary.moments.diagonal(), np.int64(summary.rows)
    _raise_at_column(MomentIdentityError, first[:1] & (GRID**2 - 1) != 0, summary, plan, "a whole number of rows")
    _raise_at_column(MomentIdentityError, first & (GRID - 1) != 0, summary, plan, "whole steps of the grid")
    sums = first // GRID
    _raise_at_column(
        MomentIdentityError, (squares ^ sums) & 1 != 0, summary, plan, "a sum of squares as odd or even as the sum"
    )
    mean = sums // n
    rest = sums - mean * n
    about = squares - 2 * mean * rest - mean * mean * n
    _raise_at_column(
        MomentBoundsError,
        (squares < 0) | (about < rest),
        summary,
        plan,
        "squares that are as large as the sums ask for",
    )


def _check_bounds(summary: Summary, plan: StudyPlan) -> None:
    """Σ w φ_j of a weight w ≥ 0 is at most G Σw in size; weights are G + φ_i, G − φ_i, and φ_i where never negative.

    And |S_ij| ≤ √S_ii √S_jj, in float64 with the few roundings that takes.
    """
    top, root = summary.moments[0] >> 1, np.sqrt(summary.moments.diagonal().astype(np.float64))
    positive = _nonnegative_columns(plan)
    for rows in _row_blocks(len(top)):
        # halves, as a sum of two entries may need 65 bits; each is up to one half too small
        part, weight = summary.moments[rows] >> 1, top[rows, None]
        wrong = (np.abs(top + part) > top[0] + weight + 2) | (np.abs(top - part) > top[0] - weight + 2)
        wrong |= positive[rows, None] & ((np.abs(part) > weight + 1) | (positive & (part < 0)))
        _raise_at_product(wrong, rows, summary, plan, "products within the bounds that the sums set")
        largest: Array = np.multiply.outer(root[rows], root) * (1 + 8 * _UNIT_ROUNDOFF)
        wrong = np.asarray(np.abs(summary.moments[rows]) > largest)
        _raise_at_product(wrong, rows, summary, plan, "products no larger than the squares allow")


def _nonnegative_columns(plan: StudyPlan) -> Flags:
    """The constant, indicators, squares, and the first eigenfunction, which is a bell."""
    found = np.zeros(plan.layout.n_columns, dtype=np.bool_)
    found[0] = True
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Categorical):
            found[span] = True
        else:
            found[span.start + 1 : span.start + 2 + isinstance(plan.family, Hermite)] = True
    return found


# Columns that know of each other


def _check_indicators(summary: Summary, plan: StudyPlan) -> None:
    """Of a variable's indicators, one is G in every row, the others 0: products with any φ_j add up to its sum."""
    labels = np.zeros(plan.layout.n_columns, dtype=np.bool_)
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if not isinstance(variable, Categorical):
            continue
        labels[span] = True
        own, all_levels = summary.moments[span, span], summary.moments[span].sum(axis=0)
        what = f"the levels of {variable.name!r}"
        wrong = np.zeros(plan.layout.n_columns, dtype=np.bool_)
        wrong[span] = (own != np.diag(summary.moments[0, span])).any(axis=0)
        _raise_at_column(MomentIdentityError, wrong, summary, plan, f"{what} to exclude one another")
        _raise_at_column(
            MomentIdentityError, all_levels != summary.moments[0], summary, plan, f"{what} to cover all rows"
        )
    digits = np.zeros(plan.layout.n_columns, dtype=np.int64)  # all binary digits that occur
    for rows in _row_blocks(len(labels)):
        digits |= np.bitwise_or.reduce(summary.moments[rows][labels[rows]], axis=0)
    _raise_at_column(
        MomentIdentityError, digits & (GRID - 1) != 0, summary, plan, "whole steps in sums over the rows of a level"
    )
    wrong = labels & (digits & (GRID**2 - 1) != 0)
    _raise_at_column(MomentIdentityError, wrong, summary, plan, "a whole number of rows with two levels")


def _check_squares(summary: Summary, plan: StudyPlan) -> None:
    """φ = G l + e and ψ = G l² + e', |e|, |e'| ≤ 1/2, so that φ² − Gψ = 2φe − e² − Ge'.

    Summed: at most Σ|φ| + n/4 + nG/2 in size, and Σ|φ| ≤ √(n Σφ²). A step for the last digits of l² in float64.
    """
    n = summary.rows
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Continuous):
            squares, sums = (int(summary.moments[k]) for k in ((span.start, span.start), (0, span.start + 1)))
            if abs(squares - sums) > isqrt(n * squares) + n * (GRID // 2 + 1) + 1:
                raise MomentIdentityError(
                    f"the summary of {_describe_clients(summary)} has two different sums of squares of {variable.name!r}, of the "
                    f"value and of the column of squares; {REMAKE_ADVICE}"
                )


# The matrix as a whole


def _check_positive_semidefinite(summary: Summary, plan: StudyPlan) -> None:
    """S = Σ φφᵀ has no negative direction: with a unit diagonal and a shift, Cholesky's method goes through.

    Entries in float64, divided by two roots, are off by at most 8 roundings u, which moves eigenvalues by at most 8pu;
    the method goes through if the least eigenvalue is above p(p+1)u/(1 − (p+1)u) (Demmel; Higham, Theorem 10.7).
    """
    squares = summary.moments.diagonal()
    empty = squares == 0  # and so is all of such a column: its products are bounded by its squares
    p = len(squares)
    scale = 1.0 / np.sqrt(np.where(empty, 1, squares).astype(np.float64))
    matrix = summary.moments * scale
    matrix *= scale[:, None]
    matrix[np.diag_indices(p)] = 1.0 + 2 * p * (p + 8) * _UNIT_ROUNDOFF
    # of the transpose, which is the same matrix in the order that saves a copy
    _, stopped = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if stopped:
        where = _describe_column(plan, stopped - 1)
        raise NotPositiveSemidefiniteError(
            f"no rows have the moments in the summary of {_describe_clients(summary)}: some sum of squares would be negative, the "
            f"first with {where}; {REMAKE_ADVICE}"
        )


def _check_moment_space(summary: Summary, plan: StudyPlan) -> None:
    """The moments of each continuous variable are those of some values in the plan's range."""
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Continuous):
            columns = np.array([0, *range(span.start, span.stop)])
            moments = summary.moments[columns[:, None], columns] / float(summary.rows * GRID**2)
            if not _moment_space.is_feasible(moments, variable, plan):
                raise InfeasibleMomentsError(
                    f"the moments of {variable.name!r} in the summary of {_describe_clients(summary)} are those of no "
                    f"{summary.rows} values within {plan.clip:g} scales of {variable.location:g}; look for other "
                    f"units, another seed or a wrong number of rows, and {REMAKE_ADVICE}"
                )


# With noise


def _check_noisy_moments(summary: Summary, plan: StudyPlan) -> None:
    """What holds of S + E, but with a probability below exp(−64): the noise E hides all finer laws.

    With the constant divided by √3 the noise of p columns has no direction uᵀEu below −(2√p + t)σ, but with a
    probability of exp(−t²/4); S has none below 0. And |features|² ≤ 1 in every row, so Σ_i S_ii ≤ S_00; the two
    differ, by noise, with a variance of 2(p − 1)σ² + 18σ².
    """
    deviation, scale = float(summary.noise) ** 0.5, np.ones(len(summary.moments))
    scale[0] = CONSTANT_VARIANCE_RATIO**-0.5
    p = len(scale)
    least = float(np.linalg.eigvalsh(summary.moments * scale[:, None] * scale)[0])
    if least < -(2 * p**0.5 + 2 * _RARE_EXPONENT**0.5) * deviation * (1 + 1e-6):
        raise NotPositiveSemidefiniteError(
            f"the summary of {_describe_clients(summary)} has a direction in which squares add up to less than noise explains; "
            f"{REMAKE_ADVICE}"
        )
    beyond = float(summary.moments.diagonal()[1:].astype(np.float64).sum()) - float(summary.moments[0, 0])
    if beyond > (2 * _RARE_EXPONENT * (2 * p + 2 * CONSTANT_VARIANCE_RATIO**2)) ** 0.5 * deviation + GRID**2:
        raise MomentBoundsError(
            f"the summary of {_describe_clients(summary)} has squares that add up to more than its rows and noise explain; {REMAKE_ADVICE}"
        )


# Words


def _raise_at_column(error: type[SummaryError], wrong: Flags, summary: Summary, plan: StudyPlan, expected: str) -> None:
    """With the first column that is wrong."""
    if wrong.any():
        where = _describe_column(plan, int(np.argmax(wrong)))
        raise error(
            f"the summary of {_describe_clients(summary)} does not fit together at {where}: expected {expected}; {REMAKE_ADVICE}"
        )


def _raise_at_product(wrong: Flags, rows: slice, summary: Summary, plan: StudyPlan, expected: str) -> None:
    """With the first two columns whose product is wrong, in these rows of the matrix."""
    if wrong.any():
        i, j = (int(index) for index in np.argwhere(wrong)[0])
        raise MomentBoundsError(
            f"the summary of {_describe_clients(summary)} does not fit together at {_describe_column(plan, rows.start + i)} times "
            f"{_describe_column(plan, j)}: expected {expected}; {REMAKE_ADVICE}"
        )


def _describe_column(plan: StudyPlan, column: int) -> str:
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if span.start <= column < span.stop:
            return f"column {column - span.start + 1} of {variable.name!r}"
    return "the column of ones"


def fingerprint_of(summary: Summary) -> bytes:
    """Tells sums apart, and takes no memory."""
    return hashlib.sha256(np.ascontiguousarray(summary.moments).data).digest()


def _describe_replicate(copy: int) -> str:
    return f"bootstrap copy {copy}" if copy else "the summary"


def _describe_clients(summary: Summary) -> str:
    return f"client {abbreviate_list(map(repr, summary.clients))}"


def _row_blocks(columns: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK_ROWS) for start in range(0, columns, _BLOCK_ROWS))


def is_distinctive(summary: Summary, plan: StudyPlan) -> bool:
    """Whether the rows differ in so many ways that others do not have the same sums by chance."""
    if summary.rows < MIN_DISTINCTIVE_ROWS or not any(isinstance(variable, Continuous) for variable in plan.variables):
        return False
    _, scatter = replace(summary, moments=summary.moments[:_BLOCK_ROWS, :_BLOCK_ROWS]).means_and_scatter()
    noise = len(scatter) * summary.rows / GRID**2  # what rounding alone can make of columns that depend on others
    return int((np.linalg.eigvalsh(scatter) > noise).sum()) >= MIN_DISTINCTIVE_RANK
