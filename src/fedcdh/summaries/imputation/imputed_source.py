"""The rows of a site without gaps: two passes over its rows, one for a model of them and one that fills the gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.prepared_source import prepare_rows, prepare_source, source_kinds
from fedcdh.data.sources import ColumnKind, TableSource, check_rereadable, is_partitioned, to_source
from fedcdh.data.table import Table
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.encoder import continuous_values, encode_levels
from fedcdh.summaries.imputation.conditional_models import RowModel, fit_row_model
from fedcdh.summaries.imputation.row_keys import number_keys, row_keys
from fedcdh.summaries.imputation.row_sample import MAX_COUNTED_KEYS, RepetitionCounter, RowSample
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Variable

Chosen = npt.NDArray[np.bool_]

_LARGEST_KEY = (1 << 64) - 1


@dataclass(frozen=True)
class ImputedTable(Table):
    """Rows without gaps, which know what they were before.

    Attributes
    ----------
    original : Table
        The same rows with their gaps, as the site has them.
    """

    original: Table = field(default_factory=lambda: Table({}))

    def slice_rows(self, start: int, count: int) -> ImputedTable:
        """Return a range of rows; nothing is copied."""
        return ImputedTable(super().slice_rows(start, count).columns, self.original.slice_rows(start, count))

    def select_rows(self, rows: npt.NDArray[np.bool_]) -> ImputedTable:
        """Return the selected rows."""
        return ImputedTable(super().select_rows(rows).columns, self.original.select_rows(rows))


@dataclass(frozen=True, eq=False)
class ImputedSource:
    """The rows of a site after the recipes of the plan, with values in place of the missing ones.

    The first pass, when the rows are first read, fits a model of them; every further one reads the rows and fills
    their gaps. Rows without any value are left out. Rows without gaps stay as they are.

    Parameters
    ----------
    source : TableSource
        The rows of the site.
    plan : StudyPlan
        The plan, for its variables and recipes.
    client : str
        Name of the client, for its units and for errors.
    then : callable, optional
        What is done with the rows afterwards.

    Examples
    --------
    >>> from fedcdh.data import to_source
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",))
    >>> rows = to_source({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, None, 4.0]}, "client 'north'")
    >>> (table,) = ImputedSource(rows, plan, "north").batches(plan.kinds)
    >>> bool(table.columns["b"].missing.any()), table.columns["a"].values.tolist()
    (False, [1.0, 2.0, 3.0, 4.0])
    """

    source: TableSource
    plan: StudyPlan
    client: str
    then: Callable[[Table], Table] | None = None

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return the variables of the plan with their kinds."""
        return self.plan.kinds

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield the rows without gaps.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The variables to return.

        Yields
        ------
        ImputedTable
            The next rows.
        """
        fit = self.fit
        repetitions = RepetitionCounter(fit.largest_numbered)
        for original in self._read():
            prepared = self._prepare(original)
            filled = prepared if fit.model is None else self._fill(prepared, fit.model, repetitions)
            used = filled if self.then is None else self.then(filled)
            yield ImputedTable({name: used.columns[name] for name in kinds}, original)

    @cached_property
    def fit(self) -> SiteFit:
        """Return the model of the rows, after a pass over them."""
        sample, partial_rows = RowSample.empty(len(self.plan.variables)), RowSample.empty(0, MAX_COUNTED_KEYS)
        for original in self._read():
            values = self._values(self._prepare(original))
            keys = row_keys(self.plan.names, values)
            sample = sample.add(keys, values)
            partial = np.isnan(values).any(axis=0)
            if partial.any():
                partial_rows = partial_rows.add(keys[partial], np.zeros((0, int(partial.sum()))))
        if not len(partial_rows.keys):
            return SiteFit(None, 0)
        self._check_values(sample)
        largest = _LARGEST_KEY if partial_rows.is_whole else int(partial_rows.keys[-1])
        return SiteFit(fit_row_model(self.plan.variables, sample), largest)

    def followed_by(self, then: Callable[[Table], Table]) -> ImputedSource:
        """Return the same rows with a further change at the end; the model is not fitted again.

        Parameters
        ----------
        then : callable
            What is done with the rows.

        Returns
        -------
        ImputedSource
            The source.
        """
        found = ImputedSource(self.source, self.plan, self.client, then)
        found.__dict__["fit"] = self.fit
        return found

    def _read(self) -> Iterator[Table]:
        return self.source.batches(source_kinds(self.plan.kinds, self.plan.recipes))

    def _prepare(self, rows: Table) -> Table:
        return prepare_rows(rows, self.plan.recipes, self.client)

    def _check_values(self, sample: RowSample) -> None:
        """Refuse a variable of which no row, or only rare ones, has a value: nothing says what it should be."""
        empty = np.isnan(sample.values).all(axis=1)
        if empty.any():
            name = self.plan.names[int(np.flatnonzero(empty)[0])]
            raise DataError(
                f"client {self.client!r} has no value of {name!r}; expected some, from which the missing ones are "
                "drawn; leave that variable or this client out",
                parameter="variables",
            )

    def _values(self, rows: Table) -> Array:
        """Return the values as numbers, variables × rows: nan for a gap, and the place of a level."""
        found = np.full((len(self.plan.variables), rows.rows), np.nan)
        for out, variable in zip(found, self.plan.variables, strict=True):
            column = rows.columns[variable.name]
            present = ~column.missing
            out[present] = _present_values(variable, self.client, column.take(present))
        return found

    def _fill(self, rows: Table, model: RowModel, repetitions: RepetitionCounter) -> Table:
        """Return the rows with values in their gaps, except rows without any value."""
        gaps = {name: rows.columns[name].missing for name in self.plan.names}
        count = np.sum(list(gaps.values()), axis=0)
        partial = (count > 0) & (count < len(gaps))
        if not partial.any():
            return rows
        values = self._values(rows.select_rows(partial))
        keys = row_keys(self.plan.names, values)
        filled = model.fill(values, number_keys(keys, repetitions(keys)))
        columns = {
            variable.name: _with_values(variable, rows.columns[variable.name], gaps[variable.name], partial, found)
            for variable, found in zip(self.plan.variables, filled, strict=True)
        }
        return Table({**rows.columns, **columns})


class SiteFit(NamedTuple):
    """The model of a site's rows, or None where no value is missing, and the largest key whose repetitions count."""

    model: RowModel | None
    largest_numbered: int


def _present_values(variable: Variable, client: str, column: Column) -> Array:
    """Return values that are there, or the places of levels."""
    if isinstance(variable, Categorical):
        return encode_levels(variable, client, column).astype(np.float64)
    return continuous_values(variable, client, Table({variable.name: column}))


def _with_values(variable: Variable, column: Column, gaps: Chosen, partial: Chosen, filled: Array) -> Column:
    """Return a column with the values of filled rows in its gaps."""
    here = gaps & partial
    if not here.any():
        return column
    drawn = filled[gaps[partial]]
    if isinstance(variable, Categorical):
        codes = np.full(len(column), -1, dtype=np.int64)
        present = ~gaps
        codes[present] = encode_levels(variable, "", column.take(present))
        codes[here] = drawn.astype(np.int64)
        return CategoricalColumn(variable.levels, codes)
    values = np.array(column.values if isinstance(column, NumericColumn) else drawn)
    values[here] = drawn
    return NumericColumn(values)


def impute_rows(table: Any, plan: StudyPlan, client: str) -> Any:
    """Return the rows that a summary by this plan uses: as they are, or with values in place of missing ones.

    Parameters
    ----------
    table : table, list of batches, files opened with `open_tables`, or PartitionedSource
        Rows of the client.
    plan : StudyPlan
        The plan, which says what is done with missing values.
    client : str
        Name of the client.

    Returns
    -------
    table or ImputedSource
        The table itself if the plan asks for complete rows. Rows that are imputed already stay as they are.

    Raises
    ------
    SettingsError
        If the rows are on a cluster, which gives them in no order.
    DataError
        If the rows can be read only once.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan, table = StudyPlan((Continuous("a"),), ("north",)), {"a": [1.0, None]}
    >>> impute_rows(table, plan, "north") is table
    True
    """
    if plan.missing == "complete" or isinstance(table, ImputedSource):
        return table
    label = f"client {client!r}"
    if is_partitioned(table) and not isinstance(table, TableSource):
        raise SettingsError(
            f"the rows are a {type(table).__name__}, whose parts are read where they lie, and the plan asks for "
            "imputed values, for which one program has to see all rows of a site; pass the table, or its files with "
            "fedcdh.open_tables(...), or make the plan with missing values 'complete'",
            parameter="missing",
        )
    check_rereadable(table, label, "a model for missing values")
    return ImputedSource(to_source(table, label, names=plan.names, only=plan.names), plan, client)


def prepare_study_rows(source: TableSource, plan: StudyPlan, client: str) -> TableSource:
    """Return a source whose rows are those after the recipes of the plan; imputed rows are so already.

    Parameters
    ----------
    source : TableSource
        The rows of the site, from `impute_rows`, as a whole or a thread's part of them.
    plan : StudyPlan
        The plan.
    client : str
        Name of the client.

    Returns
    -------
    TableSource
        The rows after the recipes.
    """
    return prepare_source(source, plan.recipes, client) if plan.missing == "complete" else source


def original_rows(rows: Table) -> Table:
    """Return rows with their gaps, as the site has them."""
    return rows.original if isinstance(rows, ImputedTable) else rows


def change_rows(rows: Table, change: Callable[[Table], Table]) -> Table:
    """Return rows after a change of their columns; imputed rows still know what they were before."""
    changed = change(rows)
    return ImputedTable(changed.columns, rows.original) if isinstance(rows, ImputedTable) else changed
