"""Result documents to make reports of: random, of any size, and with names that try to break out of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import combinations
from random import Random
from typing import Any

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.result_files import FORMAT

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a & b < c > d",
    'it\'s "quoted" `here` ${1+1} $title \\',
    "<!--",
    "ضغط الدم",
    "\u202egnp.exe",
    "収縮期血圧",
    "long " * 60,
    "longer" * 50,
    "new\nline",
)


def document(names: Sequence[str], seed: int = 0, **more: Any) -> dict[str, Any]:
    """A result with a random graph over these names; the last of them has no edges."""
    random = Random(seed)
    order = list(names)[:-1]
    random.shuffle(order)
    arrows = {
        (order[random.randrange(max(0, at - 20), at)], order[at])
        for at in range(1, len(order))
        for _ in range(random.choice([0, 1, 1, 2, 2]))
    }
    lines = {arrow for arrow in sorted(arrows) if random.random() < 0.15}
    changing = sorted(random.sample(list(names), max(1, len(names) // 8)))
    marks = {arrow: "—" if arrow in lines else "→" for arrow in sorted(arrows)}
    marks |= {(DOMAIN, name): "→" if name in changing else "" for name in names}
    joined = {frozenset(pair) for pair in marks}
    marks |= {pair: "" for pair in combinations(names, 2) if frozenset(pair) not in joined}
    edges = [_edge(*pair, mark, random) for pair, mark in marks.items()]
    return {
        "format": FORMAT,
        "software": "fedcdh 0.1.0",
        "plan": "0123456789abcdef" * 4,
        "settings": {
            "method": "evidence",
            "alpha": 0.05,
            "knowledge": {"required": [], "forbidden": [], "tiers": [], "forbid_within_tier": []},
            "max_conditioning_size": None,
            "seed": 0,
            "min_probability": 0.5,
            "min_arrow_probability": 0.8,
            "min_effect": 0.005,
        },
        "clients": [
            {"client": site, "rows": 90, "rows_read": 100, "missing": {names[0]: 10}} for site in ("north", "south")
        ],
        "variables": list(names),
        "graph": {"arrows": sorted(arrows - lines), "lines": sorted(map(sorted, lines))},
        "changing": changing,
        "dag": sorted(arrows),
        "probability_of_change": {edge["target"]: edge["probability"] for edge in edges if edge["source"] == DOMAIN},
        "edges": edges,
        "notes": ["a note"],
        **more,
    }


def _edge(source: str, target: str, mark: str, random: Random) -> dict[str, Any]:
    reasons = ("collider", "meek-1", "evidence", "independent-change", "knowledge")
    return {
        "source": source,
        "target": target,
        "mark": mark,
        "p_value": None,
        "separating_set": None,
        "oriented_by": "domain" if source == DOMAIN else random.choice(reasons) if mark == "→" else None,
        "change_forward": None,
        "change_backward": None,
        "log_bayes_presence": 3 + random.expovariate(1 / 50),
        "log_bayes_direction": random.gauss(0, 20) if mark else None,
        **_probabilities(source, target, mark),
    }


def _probabilities(source: str, target: str, mark: str) -> dict[str, float | None]:
    """Probabilities that fit the mark: arrows from 0.8, lines from 0.5, other pairs below."""
    random = Random(f"{source} {target}")
    least = {"→": 0.8, "—": 0.5}.get(mark)
    probability = 0.5 * random.random() ** 20 if least is None else random.uniform(least, 1)
    forward = probability if mark == "→" else probability * random.uniform(0.3, 0.7)
    if source == DOMAIN:
        forward = probability
    strength = random.uniform(0.01, 0.6) if mark and source != DOMAIN else None
    return {"probability": probability, "probability_forward": forward, "strength": strength}


def by_tests(made: Mapping[str, Any]) -> dict[str, Any]:
    """The same result as a search by tests would have it: p-values, separating sets and independent change."""
    settings = {**made["settings"], "method": "constraint", "max_conditioning_size": 2}
    first = made["variables"][0]
    edges = [
        {
            **edge,
            "log_bayes_presence": None,
            "log_bayes_direction": None,
            "probability": None,
            "probability_forward": None,
            "strength": None,
            "p_value": 0.0 if at == 0 else 1e-9 if edge["mark"] else 0.4,
            "separating_set": None if edge["mark"] else [first] if first not in edge.values() else [],
            "change_forward": 0.125 if edge["mark"] else None,
            "change_backward": 0.75 if edge["mark"] else None,
        }
        for at, edge in enumerate(made["edges"])
    ]
    return {**made, "settings": settings, "edges": edges, "probability_of_change": None}


def drift(made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every site's deviation in two quantities of every changing mechanism; one cannot be told."""
    told = {"estimate": 1.5, "low": 1.0, "high": 2.0, "pooled": 1.2, "p_value": 1e-4, "note": ""}
    return [
        {"variable": name, "client": client["client"], "quantity": quantity, "flagged": by > 3, "deviation": by, **told}
        for name in made["changing"]
        for at, quantity in enumerate(("level", f"effect of {made['variables'][0]}", "noise"))
        for by, client in zip((4.25 + at, -7.5), made["clients"], strict=False)
    ] + [
        {"variable": made["changing"][0], "client": "south", "quantity": "share", "deviation": None, "note": "too few"}
    ]


def stability(made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every link found again in three runs of four."""
    return [
        {"source": edge["source"], "target": edge["target"], "presence": 0.75, "direction": 0.5, "runs": 4}
        for edge in made["edges"]
        if edge["mark"]
    ]


_VOID_ELEMENTS = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source"}


class ParsedPage(HTMLParser):
    """The elements of a page with their attributes, and its text; fails if a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID_ELEMENTS:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.text += data
