"""Names that differ and look the same: in another script, in capitals, or by characters that nobody sees.

Two clients with such names would be two sites to the program and one to every reader. Digits that resemble letters are
not among them: they do differ on the screen, and sites are often numbered.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_LATIN = "ABEKMHOPCTXYIJSQWaeopcxyijshdqwlABEZHIKMNOPTYXaovpiiag"
_OTHER = (
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0406\u0408\u0405\u051a\u051c"  # Cyrillic
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u04cf"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"  # Greek
    "\u03b1\u03bf\u03bd\u03c1\u03b9"
    "\u0131\u0251\u0261"  # Latin: dotless i, and the letters of phonetics
)
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_QUOTES = "\u2018\u2019\u02bc"
_SHAPES = str.maketrans(_OTHER + _DASHES + _QUOTES, _LATIN + "-" * len(_DASHES) + "'" * len(_QUOTES))
_INVISIBLE_LETTERS = "\u034f\u115f\u1160\u3164\uffa0"


def look_alike_keys(name: str) -> frozenset[str]:
    r"""Return keys of a name; two names that share one look alike.

    >>> look_alike_keys("north") & look_alike_keys("N\u043erth ") != frozenset()
    True
    >>> look_alike_keys("north") & look_alike_keys("south")
    frozenset()
    """
    visible = unicodedata.normalize("NFKC", "".join(letter for letter in name if not _is_invisible(letter)))
    words = " ".join(visible.split())
    return frozenset((words.casefold(), words.translate(_SHAPES).casefold()))


def find_look_alikes(names: Iterable[str]) -> tuple[str, str] | None:
    r"""Return the first two different names that look alike, or None.

    >>> find_look_alikes(["north", "south", "South"])
    ('south', 'South')
    """
    seen: dict[str, str] = {}
    for name in names:
        for key in sorted(look_alike_keys(name)):
            if seen.setdefault(key, name) != name:
                return seen[key], name
    return None


def describe_look_alike(name: str, known: Iterable[str]) -> str:
    r"""Return a remark that a name looks like a known one and is another, or the empty text.

    >>> describe_look_alike("n\u043erth", ["north", "south"])
    " (it looks like 'north', but is written 'n\\u043erth')"
    """
    keys = look_alike_keys(name)
    near = next((one for one in known if one != name and keys & look_alike_keys(one)), None)
    return "" if near is None else f" (it looks like {near!a}, but is written {name!a})"


def _is_invisible(letter: str) -> bool:
    """Return whether a character takes no room: joiners, soft hyphens, selectors of variants, fillers."""
    selector = "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"
    return unicodedata.category(letter) == "Cf" or letter in _INVISIBLE_LETTERS or selector
