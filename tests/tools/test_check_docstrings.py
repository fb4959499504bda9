"""The checker of docstrings finds what is missing, and is silent where nothing is."""

from __future__ import annotations

import pytest

pytest.importorskip("numpydoc", reason="numpydoc is not installed")

from tools.check_docstrings import PublicName, check_name, check_texts


def complete(rows: int) -> int:
    """Return twice the number of rows.

    Parameters
    ----------
    rows : int
        Number of rows.

    Returns
    -------
    int
        Twice that number.

    Raises
    ------
    ValueError
        If there are none.

    Examples
    --------
    >>> complete(2)
    4
    """
    if not rows:
        raise ValueError("found no rows; expected at least one; pass more")
    return 2 * rows


def bare(rows: int) -> int:
    """Return twice the number of rows."""
    if not rows:
        raise ValueError("found no rows; expected at least one; pass more")
    return 2 * rows


def third_person(rows: int) -> int:
    """Returns twice the number of rows."""
    return 2 * rows


def excused(rows: int) -> int:  # numpydoc ignore=PR01,RT01,EX01
    """Return twice the number of rows."""
    return 2 * rows


@pytest.mark.parametrize(
    ("function", "codes"),
    [
        (complete, set()),
        (bare, {"PR01", "RT01", "EX01", "RS01"}),
        (third_person, {"SS05", "PR01", "RT01", "EX01"}),
        (excused, set()),
    ],
)
def test_missing_sections_are_found(function, codes):
    assert {found.code for found in check_name(PublicName(function.__name__, function, True))} == codes


def test_a_method_needs_no_example_and_a_plain_one_no_section():
    def plain() -> int:
        """Return the number of rows."""
        return 2

    assert not list(check_name(PublicName("plain", plain, False)))
    assert {found.code for found in check_name(PublicName("plain", plain, True))} == {"RT01", "EX01"}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('"""Return the rows."""\n', []),
        ('"""Of the rows."""\n', ["HS01"]),
        ('"""Whether there are rows."""\n', ["HS01"]),
        ('"""Return rows."""\nx = "so "\\\n    "many"\n', ["HS02"]),
        ('"""Return rows."""\n# whoever reads this\n', ["HS02"]),
        ('"""Return rows that are drawn\nanew."""\n', ["HS02"]),
    ],
)
def test_words_of_texts_and_comments(tmp_path, text, codes):
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    assert [found.code for found in check_texts(path)] == codes
