"""Results read back from their folder."""

from __future__ import annotations

from pathlib import Path

from fedcdh.errors import DataError
from fedcdh.reporting.html.schema import read_document
from fedcdh.reporting.saved_discovery import SavedDiscovery, find_damage


def read_result(path: Path | str) -> SavedDiscovery:
    """Read a result that `write_result` or `fedcdh discover` wrote.

    Parameters
    ----------
    path : Path or str
        The folder of the result, or its result.json. The other files of the folder say the same and are not read.

    Returns
    -------
    SavedDiscovery
        The graph with its evidence, notes, settings, drift and, where it was written, stability. `write_result` writes
        the same files from it.

    Raises
    ------
    DataError
        If there is no result.json, or it is damaged, or made by an older or newer version.

    See Also
    --------
    write_result : Writes a result.
    discover_from : Finds a result from its summaries, with everything that the files do not have.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> paths = fedcdh.write_result(result, folder := tempfile.mkdtemp())
    >>> str(read_result(folder)) == str(result)
    True
    """
    place = Path(path)
    if place.is_dir() and not (place / "result.json").exists():
        raise DataError(
            f"{place} has no result.json; expected the folder of a result; pass the folder that fedcdh.write_result or "
            "`fedcdh discover -o` wrote",
            parameter="path",
        )
    result = SavedDiscovery(read_document(place))
    if (problem := next(find_damage(result), None)) is not None:
        raise DataError(
            f"{place}: the result is damaged: {problem}. Expected a result.json as it was written. Ask for the file "
            "again, or repeat the search."
        )
    return result
