"""Profile files: one message, one text, and nothing damaged or contradictory gets through."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mutated

from fedcdh._io.text import is_key
from fedcdh.errors import DataError, FedCDHError
from fedcdh.messages.profile_file import FORMAT, ProfileMessage, profile_from_json, profile_to_json
from fedcdh.summaries.profiles import Profile, profile

KEY = "ed25519:" + base64.b64encode(bytes(range(32))).decode()
MESSAGE = ProfileMessage(profile(studies.mixed(1, (40,))["clinic a"], "north"), "0f" * 32, KEY, "fedcdh 0.1.0")
TEXT = profile_to_json(MESSAGE)

printable = st.characters(exclude_categories=["C", "Zl", "Zp"])
label = st.text(printable, max_size=6)
numbers = st.lists(st.none() | st.floats(-1e100, 1e100), min_size=5, max_size=5)
labels = st.lists(st.none() | label, min_size=5, max_size=5)
names = st.text(printable, min_size=1, max_size=6)


def table(columns: dict) -> dict:
    return {
        name: np.array([np.nan if cell is None else cell for cell in cells])
        if any(isinstance(cell, float) for cell in cells)
        else np.array(cells, dtype=object)
        for name, cells in columns.items()
    }


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(names, st.one_of(numbers, labels), min_size=1, max_size=4), names, st.booleans())
def test_what_is_written_is_read_back(columns, client, keyed):
    cells = table(columns)
    numeric = {name: "continuous" for name, column in cells.items() if column.dtype == float}  # 1e16 is no identifier
    message = ProfileMessage(
        profile(cells, client, kinds=numeric), "ab" * 32 if keyed else None, KEY if keyed else None
    )
    text = profile_to_json(message)
    assert profile_from_json(text) == profile_from_json(text.encode()) == message
    assert profile_to_json(profile_from_json(text)) == text
    assert list(profile_from_json(text).profile.columns) == list(message.profile.columns), (
        "the order of columns is kept"
    )


def test_the_text_is_for_people_and_says_what_it_is():
    assert TEXT.endswith("}\n")
    document = json.loads(TEXT)
    assert document["format"] == FORMAT
    assert [column["name"] for column in document["columns"]] == ["age", "dose", "group", "sex", "score", "flag"]
    assert document["columns"][2]["levels"] == ["high", "low", "middle"]
    assert "mean" not in document["columns"][2]
    assert ProfileMessage(MESSAGE.profile).software.startswith("fedcdh")


def test_a_changed_byte_is_refused_or_is_another_message():
    """A profile has no digest (its signature or the study's record of its SHA-256 is one): another number is another
    message, with its own text. Nothing is read that does not say exactly what it says."""
    rng, blob, read = random.Random(0), TEXT.encode(), 0
    for _ in range(4000):
        damaged = mutated(blob, rng)
        try:
            found = profile_from_json(damaged)
        except DataError:
            continue
        assert profile_to_json(found).encode() == damaged
        assert (found == MESSAGE) == (damaged == blob)
        read += damaged != blob
    assert read < 1500


def damaged(**changes: object) -> str:
    document = json.loads(TEXT)
    for path, value in changes.items():
        *way, last = path.split("__")
        place = document
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


UNREADABLE = ["n" * 201, "n" * 120_000, "a\n", "\x1b[2J", "\x9b", "a\u200bb", "\u2028", "a\u202e"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[]", FORMAT),
        ("{}", FORMAT),
        ("[" * 100_000, "nested"),
        ("1" * 5000, "digits"),
        (b"\xff\xfe", "UTF-8"),
        (TEXT[:-1], "the way this program writes"),
        (TEXT.replace("\n", "\r\n"), "the way this program writes"),
        (TEXT.replace('"rows"', '"rows": 40,\n  "rows"'), "twice"),
        (json.dumps(json.loads(TEXT)), "the way this program writes"),
        (damaged(format="fedcdh-profile-0"), FORMAT),
        (damaged(more=1), "the way this program writes"),
        (damaged(columns__0__more=1), "more"),
        (damaged(client=""), "needs a name"),
        (damaged(client=7), "needs a name"),
        *((damaged(client=text), "needs a name") for text in UNREADABLE),
        *((damaged(columns__0__name=text), "a column needs a name") for text in UNREADABLE),
        *((damaged(columns__2__levels=["high", "low", text]), "different texts") for text in UNREADABLE),
        (damaged(rows="7" * 100_000), "whole number"),
        (damaged(columns__0__kind="k" * 100_000), "continuous or categorical"),
        (damaged(columns__0__count="7" * 100_000), "add up"),
        (damaged(rows=True), "whole number"),
        (damaged(rows=40.0), "whole number"),
        (damaged(rows=41), "add up to the 41 rows"),
        (damaged(rows=1 << 60), "whole number"),
        (damaged(columns=[]), "0 columns"),
        (damaged(columns={}), "0 columns"),
        (damaged(columns="age"), "'str'"),
        (damaged(columns__1__name="age"), "the way this program writes"),
        (damaged(columns__0__name=["age"]), "list"),
        (damaged(columns__0__kind="ordinal"), "continuous or categorical"),
        (damaged(columns__0__kind="categorical"), "no mean"),
        (damaged(columns__0__count=39), "add up"),
        (damaged(columns__0__count=-1, columns__0__missing=41), "add up"),
        (damaged(columns__0__mean=50), "finite numbers, written with a point"),
        (damaged(columns__0__mean="50"), "finite numbers"),
        (damaged(columns__0__mean=1e200), "beyond"),
        (damaged(columns__0__mean=500.0), "have these quantiles"),
        (damaged(columns__0__squares=-1.0), "negative"),
        (damaged(columns__0__quantiles=[1.0, 2.0]), "5 quantiles"),
        (damaged(columns__0__quantiles="12345"), "expected a list"),
        (damaged(columns__0__quantiles=[50.0, 40.0, 55.0, 56.0, 57.0]), "ascend"),
        (damaged(columns__0__levels=["a"]), "no levels"),
        (damaged(columns__2__levels=["high", "low"]), "as many counts"),
        (damaged(columns__2__levels=["high", "low", "low"]), "different texts"),
        (damaged(columns__2__levels=["high", "low", 3]), "different texts"),
        (damaged(columns__2__counts=[1, 2, 3]), "add up to 6, expected 40"),
        (damaged(columns__2__counts=[41, 0, -1]), "whole numbers"),
        (damaged(columns__2__quantiles=[1.0] * 5), "no quantiles"),
        (damaged(columns__0__product_share=0.0), "above 0 and at most 1"),
        (damaged(columns__0__product_share=1.1), "above 0 and at most 1"),
        (damaged(columns__2__mean_share=0.123), "with two digits"),
        (damaged(columns__2__mean_share="0.1"), "with two digits"),
        (damaged(columns__2__mean_share=1.0), "the way this program writes"),
        (damaged(plan="0F" * 32), "fingerprint"),
        (damaged(plan=7), "fingerprint"),
        (damaged(key="rsa:AAAA"), "public key"),
        (damaged(software="\x1b[31m"), "software"),
        (damaged(software=None), "software"),
    ],
)
def test_what_is_damaged_is_refused_with_advice(text, reason):
    with pytest.raises(DataError, match=r"ask the site for the file again|make it again with this version") as refused:
        profile_from_json(text)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 600


def test_what_is_too_long_is_refused_before_it_is_read():
    with pytest.raises(DataError, match="longer than"):
        profile_from_json(b" " * 16_000_001)


def test_half_a_letter_cannot_be_written():
    column = MESSAGE.profile.columns["age"]
    for broken in (Profile("\ud800", 40, {"age": column}), Profile("north", 40, {"\udfff": column})):
        with pytest.raises(FedCDHError, match="name"):
            ProfileMessage(broken)
    sex = replace(MESSAGE.profile.columns["sex"], levels=("f", "\ud800"))
    with pytest.raises(FedCDHError, match="different texts"):
        ProfileMessage(Profile("north", 40, {"sex": sex}))


def test_a_column_without_values_and_a_constant_can_be_written():
    empty = {"x": np.full(4, np.nan), "y": np.full(4, 1e-200), "z": np.array([0.0, 1e-170, 0, 0]), "w": [0.1] * 4}
    message = ProfileMessage(profile(empty, "north"))
    assert profile_from_json(profile_to_json(message)) == message


@pytest.mark.parametrize("key", [KEY[:-1], KEY + "=", KEY[:-2] + "9=", KEY.replace("A", "é", 1), "ed25519:", 7, None])
def test_a_key_has_one_spelling(key):
    assert is_key(KEY)
    assert not is_key(key)


def test_shares_of_rows_are_written_where_they_are_below_1():
    message = profile_from_json(TEXT)
    assert "share" not in TEXT
    columns = dict(message.profile.columns)
    name = next(iter(columns))
    columns[name] = replace(columns[name], product_share=0.25, mean_share=0.081)
    some = replace(message, profile=replace(message.profile, columns=columns))
    assert '"mean_share": 0.081' in profile_to_json(some)
    assert profile_from_json(profile_to_json(some)) == some
