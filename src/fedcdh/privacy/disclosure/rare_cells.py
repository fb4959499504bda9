"""Rare cells: what a summary says about levels and pairs of levels that few people have, made coarser before it leaves.

For a level, a summary holds the sums of every number's columns over the people who have it. From the sums over too few
people their values follow, so a level with fewer people than the minimum cell count is merged, at this site only, with
the most common level of its variable: the site sends the summary of the recoded rows.

For a pair of levels, a summary holds the number of people and nothing else, since it has no products of three features.
So a rare pair need not be kept back. Its count alone is coarsened, as offices of statistics do: a count from 1 to the
minimum pair count is sent as a multiple of half that minimum. Of the two multiples around it, it is the one nearer to
the count that the levels would have if they were independent, which the margins show anyway: so the choice says little
about the count. The other counts of the two variables change so that every level keeps its number of people.

The result depends on the counts of the two variables only, so the same rows give the same counts in every plan. The
rule is public: it shows the range from which a count was rounded, and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.errors import NotPositiveSemidefiniteError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary
from fedcdh.summaries.validation import validate_summary
from fedcdh.summaries.variables import Categorical

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RareLevel:
    """A level that few people at a site have, and the level with which it is merged there.

    Parameters
    ----------
    variable : str
        Name of the variable.
    level : str
        The rare level.
    into : str
        The most common level of the variable at this site.
    """

    variable: str
    level: str
    into: str


def coarsen_summary(
    summary: Summary, plan: StudyPlan, min_cell_count: int, min_pair_count: int
) -> tuple[Summary, tuple[RareLevel, ...]]:
    """Merge the rare levels of a summary and round the counts of its rare pairs.

    Where levels follow nearly from other variables, no rows may have the rounded counts. Then the rarest level of the
    two variables at fault is merged as well, and so on: a summary with all rare levels merged is one of rows.

    Parameters
    ----------
    summary : Summary
        Exact summary of a site's rows.
    plan : StudyPlan
        The plan that it follows.
    min_cell_count : int
        Fewest people who may share a level.
    min_pair_count : int
        Fewest people with two levels whose number is sent exactly.

    Returns
    -------
    summary : Summary
        The summary that may leave, with marks of what is coarser in it.
    merged : tuple of RareLevel
        The levels that were merged.

    Examples
    --------
    >>> from fedcdh.summaries import summarize
    >>> plan = StudyPlan((Categorical("stage", ("I", "II", "III")),), ("north",))
    >>> summary = summarize({"stage": ["I"] * 20 + ["II"] * 12 + ["III"] * 2}, plan, "north")
    >>> coarse, merged = coarsen_summary(summary, plan, 12, 8)
    >>> dict(coarse.coarsened), merged
    ({('stage',): 1}, (RareLevel(variable='stage', level='III', into='I'),))
    """
    merged = find_rare_levels(summary, plan, min_cell_count)
    n_worst = 1
    while True:
        recoded = merge_rare_levels(summary, plan, merged)
        tables = list(_rare_tables(recoded, plan, min_pair_count))
        if not tables:
            return recoded, merged
        coarse = round_rare_pairs(recoded, plan, min_pair_count)
        faults = [pair for pair in tables if pair not in coarse.coarsened] or _find_faults(recoded, coarse, plan)
        if not faults:
            return coarse, merged
        worst = dict.fromkeys(_rarest_level(recoded, plan, pair) for pair in faults[:n_worst])
        merged, n_worst = (*merged, *worst), 2 * n_worst  # few attempts, however many labels there are


def find_rare_levels(summary: Summary, plan: StudyPlan, min_cell_count: int) -> tuple[RareLevel, ...]:
    """Find levels with fewer people than the minimum cell count, but with somebody.

    Parameters
    ----------
    summary : Summary
        Exact summary of a site's rows.
    plan : StudyPlan
        The plan that it follows.
    min_cell_count : int
        Fewest people who may share a level.

    Returns
    -------
    tuple of RareLevel
        The rare levels. The most common level of a variable is not among them, however few people have it.

    Examples
    --------
    >>> from fedcdh.summaries import summarize
    >>> plan = StudyPlan((Categorical("stage", ("I", "II", "III")),), ("north",))
    >>> summary = summarize({"stage": ["I"] * 20 + ["II"] * 9 + ["III"] * 2}, plan, "north")
    >>> [(one.level, one.into) for one in find_rare_levels(summary, plan, 8)]
    [('III', 'I')]
    """
    found = list[RareLevel]()
    for variable in plan.variables:
        if isinstance(variable, Categorical):
            counts = summary.moments[0, plan.layout.spans[variable.name]] // GRID**2
            into = int(counts.argmax())
            found += [
                RareLevel(variable.name, variable.levels[i], variable.levels[into])
                for i in np.flatnonzero((counts > 0) & (counts < min_cell_count)).tolist()
                if i != into
            ]
    return tuple(found)


def merge_rare_levels(summary: Summary, plan: StudyPlan, rare: tuple[RareLevel, ...]) -> Summary:
    """Return the summary of the rows in which rare levels are replaced by the levels they are merged with.

    Parameters
    ----------
    summary : Summary
        Exact summary of a site's rows.
    plan : StudyPlan
        The plan that it follows.
    rare : tuple of RareLevel
        The levels to merge.

    Returns
    -------
    Summary
        T S Tᵀ, where T adds the indicator of each rare level to another one: the summary of the recoded rows.

    Examples
    --------
    >>> from fedcdh.summaries import summarize
    >>> plan = StudyPlan((Categorical("stage", ("I", "II", "III")),), ("north",))
    >>> summary = summarize({"stage": ["I"] * 20 + ["II"] * 9 + ["III"] * 2}, plan, "north")
    >>> recoded = summarize({"stage": ["I"] * 22 + ["II"] * 9}, plan, "north")
    >>> merged = merge_rare_levels(summary, plan, find_rare_levels(summary, plan, 8))
    >>> bool((merged.moments == recoded.moments).all()), dict(merged.coarsened)
    (True, {('stage',): 1})
    """
    if not rare:
        return summary
    moments, marks = summary.moments.copy(), dict(summary.coarsened)
    levels = {v.name: v.levels for v in plan.variables if isinstance(v, Categorical)}
    for one in rare:
        start = plan.layout.spans[one.variable].start
        source, target = (start + levels[one.variable].index(level) for level in (one.level, one.into))
        for matrix in (moments, moments.T):
            matrix[target] += matrix[source]
            matrix[source] = 0
        marks[one.variable,] = marks.get((one.variable,), 0) + 1
    return replace(summary, moments=moments, coarsened=marks)


def round_rare_pairs(summary: Summary, plan: StudyPlan, min_pair_count: int) -> Summary:
    """Return the summary with coarse counts of the pairs of levels that few people have.

    Parameters
    ----------
    summary : Summary
        Summary of a site's rows.
    plan : StudyPlan
        The plan that it follows.
    min_pair_count : int
        Fewest people with two levels whose number is sent exactly.

    Returns
    -------
    Summary
        Summary in which two variables with rare pairs have the counts of `round_table`, and are marked as such. A pair
        of variables whose counts cannot be rounded is as before, and not marked.

    Examples
    --------
    >>> from fedcdh.summaries import summarize
    >>> plan = StudyPlan((Categorical("sex", ("f", "m")), Categorical("stage", ("I", "II"))), ("north",))
    >>> rows = {"sex": ["f"] * 30 + ["m"] * 70, "stage": ["I"] * 3 + ["II"] * 27 + ["I"] * 20 + ["II"] * 50}
    >>> coarse = round_rare_pairs(summarize(rows, plan, "north"), plan, 8)
    >>> count_pairs(coarse, plan, "sex", "stage").tolist(), dict(coarse.coarsened)
    ([[4, 26], [19, 51]], {('sex', 'stage'): 1})
    """
    moments, marks = summary.moments.copy(), dict(summary.coarsened)
    for one, other in _rare_tables(summary, plan, min_pair_count):
        exact = count_pairs(summary, plan, one, other)
        rounded = round_table(exact, min_pair_count)
        if rounded is not None:
            rows, columns = plan.layout.spans[one], plan.layout.spans[other]
            moments[rows, columns] = rounded * GRID**2
            moments[columns, rows] = rounded.T * GRID**2
            marks[one, other] = int(((exact > 0) & (exact < min_pair_count)).sum())
    return replace(summary, moments=moments, coarsened=marks)


def round_table(counts: Integers, min_count: int) -> Integers | None:
    """Round the small counts of a two-way table to multiples of ⌈`min_count`/2⌉, and keep its margins.

    Small counts are rounded one after the other, from the smallest on. What a count gains, the largest other count of
    its row and that of its column lose, as far as these have not been rounded before, and the count where these two
    cross gains it. A small count is not rounded itself if it has made up for others, and none is left to make up for
    it: all other counts of its row or column are small, or that where these cross is.

    Parameters
    ----------
    counts : array of int64
        Number of people by the levels of two variables.
    min_count : int
        Counts from 1 to below this one are small.

    Returns
    -------
    array of int64 or None
        The rounded table; None if a small count cannot be rounded, since the others are too small to make up for it.

    Examples
    --------
    >>> round_table(np.array([[5, 6, 4], [100, 90, 95]]), 8).tolist()
    [[4, 7, 4], [101, 89, 95]]
    """
    step = -(-min_count // 2)
    table, expected = counts.copy(), np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(int(counts.sum()), 1)
    small = np.argwhere((counts > 0) & (counts < min_count))
    done = np.zeros(counts.shape, dtype=np.bool_)
    for i, j in small[np.argsort(counts[tuple(small.T)], kind="stable")].tolist():
        done[i, j] = True
        if done[i][table[i] > 0].all() or done[:, j][table[:, j] > 0].all():
            continue
        targets = surrounding_multiples(int(table[i, j]), float(expected[i, j]), step)
        moved = any(_move(table, done, i, j, target - int(table[i, j])) for target in targets)
        if not moved and table[i, j] == counts[i, j]:
            return None
    return table


def surrounding_multiples(count: int, expected: float, step: int) -> tuple[int, ...]:
    """Return the multiples between which a count lies, or the count itself if it is a multiple.

    Parameters
    ----------
    count : int
        A count.
    expected : float
        The count that is expected if the two levels are independent. The multiple nearer to it comes first.
    step : int
        Step of the multiples.

    Returns
    -------
    tuple of int
        One or two multiples.

    Examples
    --------
    >>> surrounding_multiples(3, 1.0, 4), surrounding_multiples(3, 5.0, 4), surrounding_multiples(4, 1.0, 4)
    ((0, 4), (4, 0), (4,))
    """
    below = count // step * step
    around = {below, below + step} if count % step else {count}
    return tuple(sorted(around, key=lambda multiple: (abs(multiple - expected), multiple)))


def _move(table: Integers, done: Flags, i: int, j: int, change: int) -> bool:
    """Add to a count, subtract as much in its row and column, add it where these cross; False if nothing can."""
    if change == 0:
        return True
    rows = [k for k in np.argsort(-table[:, j], kind="stable").tolist() if k != i and not done[k, j]]
    columns = [k for k in np.argsort(-table[i], kind="stable").tolist() if k != j and not done[i, k]]
    for k in rows:
        for m in columns:
            if not done[k, m] and min(table[k, j] - change, table[i, m] - change, table[k, m] + change) >= 0:
                table[[i, k], [j, m]] += change
                table[[k, i], [j, m]] -= change
                return True
    return False


def count_pairs(summary: Summary, plan: StudyPlan, one: str, other: str) -> Integers:
    """Return the number of people with each pair of levels of two categorical variables."""
    spans = plan.layout.spans
    return np.asarray(summary.moments[spans[one], spans[other]] // GRID**2)


def _rare_tables(summary: Summary, plan: StudyPlan, min_pair_count: int) -> Iterator[tuple[str, str]]:
    """Yield the pairs of variables with a pair of levels that few people have."""
    names = [variable.name for variable in plan.variables if isinstance(variable, Categorical)]
    for one, other in combinations(names, 2):
        counts = count_pairs(summary, plan, one, other)
        if ((counts > 0) & (counts < min_pair_count)).any():
            yield one, other


def _find_faults(exact: Summary, coarse: Summary, plan: StudyPlan) -> list[tuple[str, str]]:
    """Return the rounded pairs of variables, first that which makes a sum of squares most negative.

    There are none if some rows can have these sums.

    With the unit vector u of the least eigenvalue, uᵀ(S' − S)u is the sum of what each pair of variables contributes.
    """
    try:
        validate_summary(coarse, plan)
    except NotPositiveSemidefiniteError:
        pass
    else:
        return []
    scale = 1.0 / np.sqrt(np.maximum(coarse.moments.diagonal(), 1).astype(np.float64))
    with single_blas_thread():  # the same choice for any number of threads
        least = np.linalg.eigh(coarse.moments * scale * scale[:, None])[1][:, 0] * scale
    change, spans = (coarse.moments - exact.moments).astype(np.float64), plan.layout.spans
    pairs = [(names[0], names[1]) for names in coarse.coarsened if len(names) == 2]

    def contribution(pair: tuple[str, str]) -> float:
        rows, columns = spans[pair[0]], spans[pair[1]]
        return float(least[rows] @ change[rows, columns] @ least[columns])

    return sorted(pairs, key=contribution)


def _rarest_level(summary: Summary, plan: StudyPlan, names: tuple[str, str]) -> RareLevel:
    """Return the rarest level of two variables, with the most common one of its variable."""
    candidates = list[tuple[int, RareLevel]]()
    for variable in plan.variables:
        if isinstance(variable, Categorical) and variable.name in names:
            counts = summary.moments[0, plan.layout.spans[variable.name]] // GRID**2
            present, into = np.flatnonzero(counts), int(counts.argmax())
            least = min((int(i) for i in present if i != into), key=lambda i: int(counts[i]), default=None)
            if least is not None:
                pair = RareLevel(variable.name, variable.levels[least], variable.levels[into])
                candidates.append((int(counts[least]), pair))
    return min(candidates, key=lambda found: found[0])[1]
