"""Questions about effects: two variables, and the levels that are compared where they are labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.effect import EffectKind
from fedcdh.errors import SettingsError


@dataclass(frozen=True)
class Question:
    """An effect that is asked for.

    Attributes
    ----------
    cause, outcome : str
        The variables.
    kind : {"total", "direct"}
        The kind of effect.
    levels : tuple of str, or None
        Levels of a categorical cause, from and to.
    outcome_level : str or None
        Level of a categorical outcome.
    at : tuple of float, or None
        Two values of a continuous cause, compared along the curve.
    notes : tuple of str
        Levels that were chosen for the user.

    Examples
    --------
    >>> Question("smoker", "stay", "total", ("no", "yes")).units
    'difference of stay between smoker = yes and smoker = no'
    """

    cause: str
    outcome: str
    kind: EffectKind
    levels: tuple[str, str] | None = None
    outcome_level: str | None = None
    at: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def units(self) -> str:
        """Return what the effect counts, in words."""
        outcome = self.outcome
        if self.outcome_level is not None:
            outcome = f"probability of {outcome} = {self.outcome_level}"
        if self.levels is not None:
            return (
                f"difference of {outcome} between {self.cause} = {self.levels[1]} and {self.cause} = {self.levels[0]}"
            )
        if self.at is not None:
            return f"difference of {outcome} between {self.cause} = {self.at[1]:g} and {self.cause} = {self.at[0]:g}"
        return f"change of {outcome} per unit of {self.cause}"


def ask(question: Question, variables: Mapping[str, object], levels: Mapping[str, Mapping[str, int]]) -> Question:
    """Return a question with its levels chosen and checked.

    Parameters
    ----------
    question : Question
        The question.
    variables : mapping from str
        The variables of the study.
    levels : mapping from str to mapping from str to int
        For every categorical variable, the levels that occur, in the order of the plan, with their rows.

    Returns
    -------
    Question
        The question.

    Raises
    ------
    SettingsError
        If it names something that does not exist.

    Examples
    --------
    >>> counts = {"stage": {"I": 5, "II": 9, "III": 7}}
    >>> ask(Question("stage", "stay", "total"), {"stage": 0, "stay": 0}, counts).levels
    ('II', 'III')
    """
    cause, outcome = question.cause, question.outcome
    for name in (cause, outcome):
        if name not in variables:
            raise SettingsError(f"there is no variable {name!r}; choose among {abbreviate_list(map(repr, variables))}")
    if cause == outcome:
        raise SettingsError(f"cause and outcome are both {cause!r}; expected two different variables; choose two")
    if question.kind not in ("total", "direct"):
        raise SettingsError(
            f"the kind of effect is {question.kind!r}; expected 'total' or 'direct'; choose one", parameter="kind"
        )
    _check_at(question, levels)
    chosen, said = _choose_contrast(cause, question.levels, levels.get(cause))
    level, more = _choose_level(outcome, question.outcome_level, levels.get(outcome))
    return Question(cause, outcome, question.kind, chosen, level, question.at, (*said, *more))


def _check_at(question: Question, levels: Mapping[str, object]) -> None:
    if question.at is None:
        return
    if question.cause in levels:
        raise SettingsError(
            f"two values at={question.at!r} were given, but {question.cause} has levels; pass contrast=(from, to)",
            parameter="at",
        )
    numbers = [value for value in question.at if isinstance(value, (int, float)) and abs(value) < 1e300]
    if len(question.at) != 2 or len(numbers) != 2 or numbers[0] == numbers[1]:
        raise SettingsError(
            f"at is {question.at!r}; expected two different values of {question.cause}, from and to", parameter="at"
        )


def _choose_contrast(
    name: str, contrast: tuple[str, str] | None, occur: Mapping[str, int] | None
) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    if occur is None:
        if contrast is not None:
            raise SettingsError(
                f"a contrast of levels {contrast!r} was given, but {name} is a number; leave it out",
                parameter="contrast",
            )
        return None, ()
    if contrast is not None:
        if len(contrast) != 2 or contrast[0] == contrast[1]:
            raise SettingsError(
                f"the contrast is {contrast!r}; expected two different levels of {name}, from and to",
                parameter="contrast",
            )
        for level in contrast:
            _check_level(name, level, occur, "contrast")
        return (contrast[0], contrast[1]), ()
    if len(occur) < 2:
        return None, ()
    if len(occur) == 2:
        before, after = occur
        return (before, after), ()
    before, after = _common_levels(occur)[:2]
    return (before, after), (
        f"{name} has {len(occur)} levels; the two most common are compared; contrast picks others",
    )


def _choose_level(name: str, level: str | None, occur: Mapping[str, int] | None) -> tuple[str | None, tuple[str, ...]]:
    if occur is None:
        if level is not None:
            raise SettingsError(
                f"a level {level!r} of {name} was given, but {name} is a number; leave it out",
                parameter="outcome_level",
            )
        return None, ()
    if level is not None:
        _check_level(name, level, occur, "outcome_level")
        return level, ()
    if len(occur) <= 2:
        return [*occur][-1], ()
    chosen = _common_levels(occur)[0]
    return chosen, (f"{name} has {len(occur)} levels; {chosen}, the most common, is meant; outcome_level picks others",)


def _common_levels(occur: Mapping[str, int]) -> list[str]:
    """Return the levels, the most common first; equals in the order of the plan."""
    return sorted(occur, key=lambda level: -occur[level])


def _check_level(name: str, level: str, occur: Mapping[str, int], parameter: str) -> None:
    if level not in occur:
        raise SettingsError(
            f"{name} has no level {level!r} in these rows; choose among {abbreviate_list(map(repr, occur))}",
            parameter=parameter,
        )
