"""Background knowledge from TOML and from other programs: causal-learn, pgmpy and Tetrad.

Reading is strict: a rule that is not understood is refused with a KnowledgeError, never left out. Contradictions are
refused here; unknown variables are refused when the knowledge is used.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

from fedcdh._io import strict_toml
from fedcdh._io.strict_toml import Refuse, abbreviate, expect_integer, expect_strings, expect_table
from fedcdh.errors import KnowledgeError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow

__all__ = ["from_causal_learn", "from_pgmpy", "from_tetrad", "from_toml"]

TETRAD_SECTIONS = ("addtemporal", "forbiddirect", "requiredirect", "forbiddengroup", "requiredgroup")


def from_toml(text: str | bytes) -> Knowledge:
    r"""Read the table `[knowledge]` of a TOML text, such as the declaration of a study.

    Parameters
    ----------
    text : str or bytes
        The TOML text; other tables of a declaration are ignored.

    Returns
    -------
    Knowledge
        The knowledge.

    Raises
    ------
    KnowledgeError
        If the table cannot be read, or the knowledge contradicts itself.

    Examples
    --------
    >>> from_toml('[knowledge]\nrequired = [["smoking", "cancer"]]').required
    frozenset({('smoking', 'cancer')})
    """
    found = strict_toml.parse_toml(text, refuse=_knowledge_error)
    return _check_consistent(parse_knowledge(found.get("knowledge", {}), refuse=_knowledge_error))


def _knowledge_error(reason: str) -> KnowledgeError:
    return KnowledgeError(f"this knowledge cannot be used: {reason}; correct it there")


def parse_knowledge(found: Any, *, refuse: Refuse) -> Knowledge:
    """Read the table `[knowledge]` of a TOML document."""
    expect_table(found, ("required", "forbidden", "tiers", "forbid_within_tier"), "[knowledge]", refuse=refuse)
    lists = {key: found.get(key, []) for key in ("required", "forbidden", "tiers", "forbid_within_tier")}
    for key, value in lists.items():
        if not isinstance(value, list):
            raise refuse(f"{key} in [knowledge] should be a list, found {abbreviate(value)}")
    arrows_and_tiers = {
        key: [expect_strings(one, f"each of {key} in [knowledge]", refuse=refuse) for one in lists[key]]
        for key in ("required", "forbidden", "tiers")
    }
    within = [
        expect_integer(one, "forbid_within_tier in [knowledge]", refuse=refuse) for one in lists["forbid_within_tier"]
    ]
    try:
        return Knowledge(**arrows_and_tiers, forbid_within_tier=within)
    except KnowledgeError as problem:
        raise refuse(f"in [knowledge], {problem}") from None


def from_causal_learn(found: Any, variables: Sequence[str] | None = None) -> Knowledge:
    """Convert a `BackgroundKnowledge` of causal-learn.

    Parameters
    ----------
    found : causallearn.utils.PCUtils.BackgroundKnowledge.BackgroundKnowledge
        The knowledge.
    variables : sequence of str, optional
        The variables of the study; required if there are rules by pattern.

    Returns
    -------
    Knowledge
        The same knowledge.

    Raises
    ------
    KnowledgeError
        If it contradicts itself, or has patterns and no variables are given.

    Examples
    --------
    >>> from causallearn.graph.GraphNode import GraphNode
    >>> from causallearn.utils.PCUtils.BackgroundKnowledge import BackgroundKnowledge
    >>> known = BackgroundKnowledge().add_required_by_node(GraphNode("x"), GraphNode("y"))
    >>> from_causal_learn(known).required
    frozenset({('x', 'y')})
    """
    patterns = (found.required_pattern_rules_specs, found.forbidden_pattern_rules_specs)
    if any(patterns) and variables is None:
        raise KnowledgeError(
            "some of the rules are patterns; expected the variables of the study as well. Name them",
            parameter="variables",
        )
    required, forbidden = (_match_patterns(rules, variables or ()) for rules in patterns)
    tiers = sorted(tier for tier, nodes in found.tier_map.items() if nodes or tier in found.forbidden_within_tiers)
    return _check_consistent(
        Knowledge(
            required=required | {_rule_names(rule) for rule in found.required_rules_specs},
            forbidden=forbidden | {_rule_names(rule) for rule in found.forbidden_rules_specs},
            tiers=[sorted(node.get_name() for node in found.tier_map[tier]) for tier in tiers],
            forbid_within_tier=[tiers.index(tier) for tier in found.forbidden_within_tiers],
        )
    )


def from_pgmpy(found: Any, variables: Sequence[str] | None = None) -> Knowledge:
    """Convert an `ExpertKnowledge` of pgmpy.

    Parameters
    ----------
    found : pgmpy.estimators.ExpertKnowledge
        The knowledge.
    variables : sequence of str, optional
        The variables of the study; required if there is a search space, which forbids all other arrows between them.

    Returns
    -------
    Knowledge
        The same knowledge.

    Raises
    ------
    KnowledgeError
        If it contradicts itself, or has a search space and no variables are given.

    Examples
    --------
    >>> from pgmpy.estimators import ExpertKnowledge
    >>> from_pgmpy(ExpertKnowledge(required_edges=[("x", "y")])).required
    frozenset({('x', 'y')})
    """
    forbidden = {(str(tail), str(head)) for tail, head in found.forbidden_edges}
    if allowed := {(str(tail), str(head)) for tail, head in found.search_space}:
        if variables is None:
            raise KnowledgeError(
                "the knowledge has a search space; expected the variables of the study as well. Name them",
                parameter="variables",
            )
        forbidden |= {arrow for arrow in permutations(variables, 2) if arrow not in allowed}
    return _check_consistent(
        Knowledge(
            required={(str(tail), str(head)) for tail, head in found.required_edges},
            forbidden=forbidden,
            tiers=[list(map(str, tier)) for tier in found.temporal_order if len(tier)],
        )
    )


def from_tetrad(text: str) -> Knowledge:
    r"""Read the text of a knowledge file of Tetrad.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    Knowledge
        The knowledge.

    Raises
    ------
    KnowledgeError
        If a line is not understood, or the knowledge contradicts itself.

    Examples
    --------
    >>> known = from_tetrad("/knowledge\naddtemporal\n1* age sex\n2 dose\n\nrequiredirect\nage dose")
    >>> known.tiers, sorted(known.forbid_within_tier), sorted(known.required)
    ((('age', 'sex'), ('dose',)), [0], [('age', 'dose')])
    """
    rows: dict[str, list[tuple[int, list[str]]]] = {section: [] for section in TETRAD_SECTIONS}
    for section, number, words in _read_tetrad_rows(text):
        rows[section].append((number, words))
    tiers, within = _parse_tiers(rows["addtemporal"])
    return _check_consistent(
        Knowledge(
            required=[*map(_parse_arrow, rows["requiredirect"]), *_expand_groups(rows["requiredgroup"])],
            forbidden=[*map(_parse_arrow, rows["forbiddirect"]), *_expand_groups(rows["forbiddengroup"])],
            tiers=[tiers[tier] for tier in sorted(tiers)],
            forbid_within_tier=[sorted(tiers).index(tier) for tier in within],
        )
    )


def _check_consistent(knowledge: Knowledge) -> Knowledge:
    """Return the knowledge, unless it contradicts itself."""
    arrows = knowledge.required | knowledge.forbidden
    knowledge.check({name for arrow in arrows for name in arrow}.union(*knowledge.tiers))
    return knowledge


def _rule_names(rule: Iterable[Any]) -> Arrow:
    tail, head = rule
    return tail.get_name(), head.get_name()


def _match_patterns(rules: Iterable[tuple[str, str]], variables: Sequence[str]) -> frozenset[Arrow]:
    """Return the arrows that patterns stand for; they match at the beginning of a name, as in causal-learn."""
    found = set()
    for tails, heads in rules:
        try:
            both = [[name for name in variables if re.match(pattern, name)] for pattern in (tails, heads)]
        except re.error as problem:
            raise KnowledgeError(
                f"{tails!r} or {heads!r} is not a regular expression ({problem}); correct it"
            ) from None
        found |= {(tail, head) for tail, head in product(*both) if tail != head}
    return frozenset(found)


def _read_tetrad_rows(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the words of every row with its section and its number; comments begin with //."""
    section = None
    for number, row in enumerate(map(str.strip, text.splitlines()), 1):
        if not row or row.startswith("//") or (section is None and row.lower() == "/knowledge"):
            continue
        if row.lower() in TETRAD_SECTIONS:
            section = row.lower()
        elif section is None:
            raise _line_error(number, f"found {row[:80]!r}; expected one of {', '.join(TETRAD_SECTIONS)}")
        else:
            yield section, number, _split_words(number, row)


def _split_words(number: int, row: str) -> list[str]:
    """Return the words between blanks, tabs or commas; a name with spaces stands in quotes."""
    reader = shlex.shlex(row, posix=True, punctuation_chars=False)
    reader.whitespace, reader.whitespace_split, reader.commenters, reader.quotes = " \t,", True, "", '"'
    reader.escape = ""
    try:
        words = list(reader)
    except ValueError:
        raise _line_error(number, "a quote is opened and not closed") from None
    if not all(words) or not words:
        raise _line_error(number, f"found {row[:80]!r}; expected names")
    return words


def _parse_tiers(rows: Iterable[tuple[int, list[str]]]) -> tuple[dict[int, list[str]], set[int]]:
    """Return the variables of every tier by its number, and the tiers with a star, which have no edges inside."""
    tiers: dict[int, list[str]] = {}
    within = set()
    for number, (tier, *names) in rows:
        found = re.fullmatch(r"([1-9][0-9]{0,5})(\*?)", tier)
        if not found:
            raise _line_error(
                number, f"found {tier[:40]!r}; expected the number of a tier, from 1, as in `1 age sex` or `1* age`"
            )
        tiers.setdefault(int(found[1]), []).extend(names)
        if found[2]:
            within.add(int(found[1]))
    return tiers, within


def _parse_arrow(row: tuple[int, list[str]]) -> Arrow:
    number, words = row
    if len(words) != 2:
        raise _line_error(number, f"found {len(words)} words; expected a cause and an effect")
    return words[0], words[1]


def _expand_groups(rows: Sequence[tuple[int, list[str]]]) -> Iterator[Arrow]:
    """Yield the arrows of groups, two rows at a time: from every name of the first to every name of the second."""
    if len(rows) % 2:
        raise _line_error(rows[-1][0], "found a group of causes; expected a row of effects below it")
    for (_, tails), (_, heads) in zip(rows[::2], rows[1::2], strict=True):
        yield from product(tails, heads)


def _line_error(number: int, reason: str) -> KnowledgeError:
    return KnowledgeError(f"line {number} of the knowledge file: {reason}; correct it there")
