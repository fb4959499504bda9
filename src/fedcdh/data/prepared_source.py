"""Rows as the study wants them: a site's columns after the recipes of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fedcdh.data.recipes import Recipe
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Table


@dataclass(frozen=True, eq=False)
class PreparedSource:
    """The rows of another source, with recipes carried out on some of its columns.

    Parameters
    ----------
    source : TableSource
        The rows of the site.
    recipes : mapping from str to NumberRecipe or LabelRecipe
        Recipes by column.
    client : str
        Name of the client, for its units and for error messages.
    then : callable, optional
        What is done to the rows after the recipes.

    Examples
    --------
    >>> from fedcdh.data import to_source
    >>> from fedcdh.data.recipes import NumberRecipe
    >>> rows = to_source({"crp": [1.0, 1.0]}, "client 'north'")
    >>> (table,) = PreparedSource(rows, {"crp": NumberRecipe(logarithm="log")}, "north").batches({"crp": "continuous"})
    >>> table.columns["crp"].values.tolist()
    [0.0, 0.0]
    """

    source: TableSource
    recipes: Mapping[str, Recipe]
    client: str
    then: Callable[[Table], Table] | None = None

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return every column with its kind after its recipe."""
        return {
            name: self.recipes[name].kind if name in self.recipes else kind
            for name, kind in self.source.kinds().items()
        }

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield the rows after the recipes.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Yields
        ------
        Table
            The next rows.
        """
        for rows in self.source.batches(source_kinds(kinds, self.recipes)):
            prepared = prepare_rows(rows, self.recipes, self.client)
            yield prepared if self.then is None else self.then(prepared)


def prepare_source(source: TableSource, recipes: Mapping[str, Recipe], client: str) -> TableSource:
    """Return a source whose rows are those after the recipes; the source itself where there are none.

    Rows that are prepared already stay as they are.

    Parameters
    ----------
    source : TableSource
        The rows of the site.
    recipes : mapping from str to NumberRecipe or LabelRecipe
        Recipes by column.
    client : str
        Name of the client.

    Returns
    -------
    TableSource
        The rows after the recipes.

    Examples
    --------
    >>> from fedcdh.data import to_source
    >>> rows = to_source({"x": [1.0]}, "client 'north'")
    >>> prepare_source(rows, {}, "north") is rows
    True
    """
    done = not recipes or isinstance(source, PreparedSource)
    return source if done else PreparedSource(source, recipes, client)


def prepare_rows(rows: Table, recipes: Mapping[str, Recipe], client: str) -> Table:
    """Return the rows after the recipes.

    Parameters
    ----------
    rows : Table
        Rows of the site.
    recipes : mapping from str to NumberRecipe or LabelRecipe
        Recipes by column; those of columns that are not there are not used.
    client : str
        Name of the client.

    Returns
    -------
    Table
        The same rows and columns. What was missing is missing, and nothing else is.

    Examples
    --------
    >>> from fedcdh.data import to_table
    >>> from fedcdh.data.recipes import NumberRecipe
    >>> prepare_rows(to_table({"age": [61.0]}), {"age": NumberRecipe(step=5)}, "north").columns["age"].values.tolist()
    [60.0]
    """
    if not recipes:
        return rows
    return Table(
        {
            name: recipes[name].apply(column, f"column {name!r} at client {client!r}", client)
            if name in recipes
            else column
            for name, column in rows.columns.items()
        }
    )


def source_kinds(kinds: Mapping[str, ColumnKind], recipes: Mapping[str, Recipe]) -> dict[str, ColumnKind]:
    """Return how columns are read so that recipes can be carried out on them.

    Parameters
    ----------
    kinds : mapping from str to {"continuous", "categorical"}
        Kinds after the recipes.
    recipes : mapping from str to NumberRecipe or LabelRecipe
        Recipes by column.

    Returns
    -------
    dict from str to {"continuous", "categorical"}
        Kinds before the recipes.

    Examples
    --------
    >>> from fedcdh.data.recipes import NumberRecipe, Threshold
    >>> source_kinds({"ef": "categorical"}, {"ef": NumberRecipe(threshold=Threshold(40))})
    {'ef': 'continuous'}
    """
    return {name: recipes[name].source_kind if name in recipes else kind for name, kind in kinds.items()}
