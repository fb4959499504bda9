"""Files of SPSS, Stata and SAS: labels of values, declared missing values, codes among numbers."""

from __future__ import annotations

import pandas as pd
import pytest
from table_files import values

from fedcdh.data.readers import CsvStyle, open_tables
from fedcdh.errors import DataError

pyreadstat = pytest.importorskip("pyreadstat", reason="the extra `files` is not installed")


def spss(path, cells, **options):
    pyreadstat.write_sav(pd.DataFrame(cells), str(path), **options)
    return path


def test_labels_of_values_become_levels(tmp_path):
    path = spss(
        tmp_path / "north.sav", {"sex": [1.0, 2.0, None]}, variable_value_labels={"sex": {1.0: "f", 2.0: "m", 3.0: "x"}}
    )
    rows = open_tables(path)
    assert rows.kinds() == {"sex": "categorical"}
    assert values(rows.batches(rows.kinds())) == {"sex": ["f", "m", None]}
    with pytest.raises(DataError, match="column 'sex' holds values with labels, but the study expects numbers"):
        list(rows.batches({"sex": "continuous"}))


def test_values_that_the_file_declares_missing_are_missing(tmp_path):
    path = spss(tmp_path / "north.sav", {"age": [61.0, 99.0]}, missing_ranges={"age": [99]})
    assert values(open_tables(path).batches({"age": "continuous"})) == {"age": [61.0, None]}


def test_labelled_codes_far_from_all_numbers_are_refused_until_they_are_named_as_missing(tmp_path):
    cells = {"age": [61.0, 62.0, 64.0, 999.0]}
    path = spss(tmp_path / "north.sav", cells, variable_value_labels={"age": {999.0: "refused"}})
    with pytest.raises(DataError, match=r"999 \(refused\).*add '999' to those that mean 'missing'"):
        list(open_tables(path).batches({"age": "continuous"}))
    for missing in (("999",), ("refused",)):
        rows = open_tables(path, style=CsvStyle(missing=missing))
        assert values(rows.batches({"age": "continuous"})) == {"age": [61.0, 62.0, 64.0, None]}


def test_a_scale_with_labels_at_its_ends_holds_numbers(tmp_path):
    labels = {"pain": {1.0: "none", 5.0: "worst"}}
    path = spss(tmp_path / "north.sav", {"pain": [1.0, 2.0, 3.0, 4.0, 5.0]}, variable_value_labels=labels)
    rows = open_tables(path)
    assert rows.kinds() == {"pain": "continuous"}
    assert values(rows.batches(rows.kinds())) == {"pain": [1.0, 2.0, 3.0, 4.0, 5.0]}


def test_one_label_for_two_values_is_refused(tmp_path):
    labels = {"sex": {1.0: "f", 2.0: "f"}}
    path = spss(tmp_path / "north.sav", {"sex": [1.0, 2.0]}, variable_value_labels=labels)
    with pytest.raises(DataError, match="has the label 'f' for 1 and for 2"):
        list(open_tables(path).batches({"sex": "categorical"}))


def test_dates_are_refused(tmp_path):
    path = spss(tmp_path / "north.sav", {"seen": pd.to_datetime(["2024-01-31"])})
    with pytest.raises(DataError, match="holds dates or times"):
        list(open_tables(path).batches({"seen": "categorical"}))


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".sas7bdat", ".xpt"])
def test_damaged_files_are_refused(tmp_path, suffix):
    (tmp_path / f"north{suffix}").write_bytes(b"age,sex\n61,f\n" * 50)
    with pytest.raises(DataError, match="it is not a file of SPSS, Stata or SAS, or it is damaged"):
        open_tables(tmp_path / f"north{suffix}").kinds()
