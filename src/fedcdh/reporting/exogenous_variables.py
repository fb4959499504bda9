"""Variables that nothing in a study can cause, such as age and sex, and the knowledge that says so.

A search knows nothing about the meaning of names. Where it finds a cause of age, or leaves the direction at age open,
the report points that out and writes the lines of `[knowledge]` that settle it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedcdh.protocols import DOMAIN

_AGE = (
    "age alter edad idade leeftijd alder ålder aldur wiek vârstă vanus amžius vecums starost "
    "ηλικία возраст вік възраст العمر عمر سن גיל 年龄 年齡 年齢 나이 연령 उम्र आयु umur usia tuổi อายุ"
)
_SEX = (
    "sex gender geschlecht sexo género gênero genero sexe sesso geslacht kjønn sukupuoli płeć pohlaví "
    "pohlavie lytis dzimums cinsiyet φύλο пол стать الجنس جنس מין 性别 性別 성별 लिंग jantina "
    "เพศ male female ismale isfemale"
)
_BIRTH = (
    "birthyear yearofbirth birthdate dateofbirth dob yob geburtsjahr geburtsdatum annéedenaissance datedenaissance "
    "añodenacimiento fechadenacimiento fechanacimiento annodinascita datadinascita anonascimento datanascimento "
    "geboortejaar geboortedatum fødselsår fødselsdato födelseår syntymävuosi rokurodzenia doğumyılı годрождения "
    "датарождения 出生年 出生日期 生年月日 출생년도 생년월일"
)
_ORIGIN = "ethnicity ethnicgroup ethnie etnia ethnie etniciteit countryofbirth birthcountry geburtsland"
_QUALIFIER_WORDS = (
    "years year yrs yr y jahre jahren años anos anni jaar år patient patients subject person participant "
    "baseline at of the in enrolment enrollment admission diagnosis inclusion entry group groups category cat "
    "class bin band code coded gruppe grupo gruppo patienten "
)
_QUALIFIERS = frozenset(_QUALIFIER_WORDS.split())
"""Words that may stand beside a name without changing what it is."""


def _plain(text: str) -> str:
    """Return a text in lower case without accents, letters and digits only."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in parts if letter.isalnum())


_KNOWN = frozenset(_plain(name) for name in f"{_AGE} {_SEX} {_BIRTH} {_ORIGIN}".split())
_AS_WRITTEN = frozenset(["età", "yaş", "ikä", "věk", "køn", "kön"])
"""Words that mean something else, or nothing, without their accents."""


def is_exogenous_name(name: str) -> bool:
    """Return whether a name means something that no variable of a study can cause.

    Only whole words count, and only words that may stand beside them: `age_at_admission` is recognised, `age_score`
    and `dosage` are not.

    Parameters
    ----------
    name : str
        Name of a variable.

    Returns
    -------
    bool
        True for age, sex, birth and origin in several languages.

    Examples
    --------
    >>> [is_exogenous_name(name) for name in ("Age_at_admission", "sexo", "dosage", "Geschlecht", "age_gap")]
    [True, True, False, True, False]
    """
    apart = re.sub(r"(?<=[a-zß-ÿ])(?=[A-ZÀ-Þ])", " ", unicodedata.normalize("NFC", name))
    words = [word for word in re.split(r"[\W_]+", apart.casefold()) if word]
    if any(word in _AS_WRITTEN for word in words) and all(word in _AS_WRITTEN or word in _QUALIFIERS for word in words):
        return True
    if "".join(map(_plain, words)) in _KNOWN:
        return True
    kept = [word for word in words if word not in _QUALIFIERS]
    return len(kept) == 1 and _plain(kept[0]) in _KNOWN


@dataclass(frozen=True)
class CausedExogenous:
    """A variable that nothing can cause, with what the graph says against it.

    Parameters
    ----------
    name : str
        The variable.
    causes : tuple of str
        Variables with an arrow to it.
    linked : tuple of str
        Variables linked to it, where the direction is open.

    Examples
    --------
    >>> CausedExogenous("age", ("bmi",), ()).causes
    ('bmi',)
    """

    name: str
    causes: tuple[str, ...]
    linked: tuple[str, ...]


def find_exogenous(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables of a result that nothing can cause, in their order.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    tuple of str
        Those with a common name for age, sex, birth or origin, and those of the first tier of the knowledge. A
        variable with a required cause is not among them.

    Examples
    --------
    >>> knowledge = {"required": [], "tiers": [["dose"], ["pain"]]}
    >>> find_exogenous({"variables": ["pain", "dose", "sex"], "settings": {"knowledge": knowledge}})
    ('dose', 'sex')
    """
    knowledge = document["settings"]["knowledge"]
    first = set(knowledge["tiers"][0]) if len(knowledge["tiers"]) > 1 else set()
    caused = {head for tail, head in knowledge["required"] if tail != DOMAIN}
    return tuple(
        name for name in document["variables"] if name not in caused and (name in first or is_exogenous_name(name))
    )


def find_caused_exogenous(document: Mapping[str, Any]) -> tuple[CausedExogenous, ...]:
    """Return the variables that nothing can cause, but that have a cause or an open direction in the graph.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    tuple of CausedExogenous
        One for each such variable.

    Examples
    --------
    >>> knowledge = {"required": [], "tiers": []}
    >>> graph = {"arrows": [["bmi", "age"]], "lines": []}
    >>> made = {"variables": ["age", "bmi"], "settings": {"knowledge": knowledge}, "graph": graph}
    >>> find_caused_exogenous(made)
    (CausedExogenous(name='age', causes=('bmi',), linked=()),)
    """
    found = []
    for name in find_exogenous(document):
        causes = tuple(sorted(tail for tail, head in document["graph"]["arrows"] if head == name))
        lines = [set(line) for line in document["graph"]["lines"] if name in line]
        linked = tuple(sorted(other for line in lines for other in line - {name}))
        if causes or linked:
            found.append(CausedExogenous(name, causes, linked))
    return tuple(found)


def suggest_knowledge(document: Mapping[str, Any]) -> str:
    """Return lines of TOML which say that nothing causes the exogenous variables, beside all that was known before.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    str
        The table `[knowledge]` of a declaration. It takes the place of the one that the study had.

    Examples
    --------
    >>> knowledge = {"required": [["bmi", "pain"]], "forbidden": [], "tiers": []}
    >>> made = {"variables": ["age", "bmi", "pain", "sex"], "settings": {"knowledge": knowledge}}
    >>> print(suggest_knowledge(made))
    [knowledge]
    tiers = [["age", "sex"], ["bmi", "pain"]]
    forbid_within_tier = [0]
    required = [["bmi", "pain"]]
    """
    exogenous, knowledge = find_exogenous(document), document["settings"]["knowledge"]
    tiers, within = _put_first(exogenous, document["variables"], knowledge)
    placed = {name for tier in tiers for name in tier}
    free = [name for name in document["variables"] if name not in placed]
    forbidden = [*knowledge["forbidden"], *([name, head] for name in free for head in exogenous)]
    lines = ["[knowledge]", f"tiers = [{', '.join(map(_format_list, tiers))}]"]
    lines += [f"forbid_within_tier = [{', '.join(map(str, within))}]"] if within else []
    for key, arrows in (("required", knowledge["required"]), ("forbidden", forbidden)):
        lines += [f"{key} = [{', '.join(map(_format_list, arrows))}]"] if arrows else []
    return "\n".join(lines)


def _put_first(
    exogenous: Sequence[str], variables: Sequence[str], knowledge: Mapping[str, Any]
) -> tuple[list[list[str]], list[int]]:
    """Return the tiers with the exogenous variables before all others, and the tiers without edges inside."""
    before = [[name for name in tier if name not in exogenous] for tier in knowledge["tiers"]]
    apart = {at for at in knowledge.get("forbid_within_tier", ()) if at < len(before)}
    kept = [at for at, tier in enumerate(before) if tier]
    rest = [before[at] for at in kept] or [[name for name in variables if name not in exogenous]]
    within = [0] if len(exogenous) > 1 else []
    within += [place + 1 for place, at in enumerate(kept) if at in apart]
    return [list(exogenous), *(tier for tier in rest if tier)], within


def _format_list(names: Iterable[str]) -> str:
    return f"[{', '.join(map(_quote, names))}]"


def _quote(name: str) -> str:
    """Return a basic string of TOML, in which characters that cannot be seen are escaped."""
    return "".join(map(_escape, json.dumps(name, ensure_ascii=False)))


def _escape(letter: str) -> str:
    if letter == " " or unicodedata.category(letter)[0] not in "CZ":
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown_names(names: Collection[str]) -> str:
    """Return names as they stand in TOML, separated by commas."""
    return ", ".join(map(_quote, names))
