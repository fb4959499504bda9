"""From profiles and a declaration to a study, or to a refusal that says who has to change what.

The declaration wins for what it declares; the profiles give the rest. Where profiles contradict each other, the
coordinator hears of it now, and not when the graph looks odd.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from fedcdh._io.strict_toml import suggest_name
from fedcdh.data.labels import looks_like_number, strip_zero_decimals
from fedcdh.errors import PlanError
from fedcdh.federation.planning.declaration import Declaration, VariableDeclaration
from fedcdh.federation.planning.label_consistency import find_disjoint_labels, find_spelling_variants
from fedcdh.federation.planning.unit_consistency import find_unit_mismatch
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.study_file import Study
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.features import FeatureFamily
from fedcdh.summaries.plan import DEFAULT_CLIP, DEFAULT_FAMILY, Categorical, StudyPlan, Variable
from fedcdh.summaries.profiles import Profile

EMPTY_DECLARATION = Declaration()


def plan_study(
    messages: Sequence[tuple[str, ProfileMessage]] = (),
    declaration: Declaration | None = None,
    *,
    family: FeatureFamily | None = None,
    clip: float = DEFAULT_CLIP,
    accept_differences: Collection[str] = (),
) -> Study:
    """The study of these profiles, of this declaration, or of both.

    Each message comes with the name of its file, for the case that it has to be complained about. A family given here
    wins over the declared one. `accept_differences` names the variables whose ranges really differ between clients, or
    whose labels really have nothing in common.
    """
    declared = declaration or EMPTY_DECLARATION
    profiles = _profiles_by_client(messages)
    _check_same_draft(messages)
    clients = _resolve_clients(profiles, declared)
    names = [one.name for one in declared.variables] or list(next(iter(profiles.values())).columns if profiles else ())
    variables = _resolve_variables(names, profiles, declared)
    if unknown := [name for name in accept_differences if name not in names]:
        raise PlanError(
            f"ranges of {unknown[0]!r} are accepted, but there is no such variable{_suggest_name(unknown[0], names)}"
        )
    listed = {one.name for one in declared.variables if one.levels is not None}
    _check_consistency(
        [variable for variable in variables if variable.name not in listed], profiles, set(accept_differences)
    )
    plan = StudyPlan(variables, clients, family or declared.family or DEFAULT_FAMILY, clip)
    return Study(
        plan,
        declared.knowledge,
        keys={one.profile.client: one.key for _, one in messages if one.key is not None},
        profiles={one.profile.client: _profile_digest(one) for _, one in messages},
    )


def _profiles_by_client(messages: Sequence[tuple[str, ProfileMessage]]) -> dict[str, Profile]:
    origins: dict[str, str] = {}
    for origin, message in messages:
        client = message.profile.client
        if client in origins:
            raise PlanError(
                f"client {client!r} sent two profiles ({origins[client]} and {origin}); pass the right one, or correct "
                "the name of the client in the other"
            )
        origins[client] = origin
    return {one.profile.client: one.profile for _, one in sorted(messages, key=lambda pair: pair[1].profile.client)}


def _check_same_draft(messages: Sequence[tuple[str, ProfileMessage]]) -> None:
    drafts = {message.plan: message.profile.client for _, message in messages}
    if len(drafts) > 1:
        said = [f"{client!r} {f'plan {plan[:12]}' if plan else 'no plan'}" for plan, client in drafts.items()]
        raise PlanError(
            f"the profiles were made with different draft plans (client {', '.join(said[:3])}); send all clients the "
            "same draft, and ask for their profiles again"
        )


def _resolve_clients(profiles: Mapping[str, Profile], declared: Declaration) -> tuple[str, ...]:
    if not profiles and not declared.clients:
        raise PlanError('a study needs clients: pass their profiles, or declare clients = ["north", "south"]')
    if profiles and declared.clients:
        for client in profiles:
            if client not in declared.clients:
                near = _suggest_name(client, declared.clients)
                raise PlanError(f"there is a profile of client {client!r}, which the declaration does not name{near}")
        if lacking := [client for client in declared.clients if client not in profiles]:
            raise PlanError(
                f"there is no profile of client {lacking[0]!r}, which the declaration names; wait for it, or take the "
                "client out of the declaration"
            )
    return tuple(profiles) or declared.clients


def _resolve_variables(
    names: Sequence[str], profiles: Mapping[str, Profile], declared: Declaration
) -> tuple[Variable, ...]:
    """Every variable as declared, or else as the profiles have it, in this order."""
    by_name = {one.name: one for one in declared.variables}
    for client, profile in profiles.items():
        _check_columns(client, profile, names, profiles, bool(by_name))
    given = {name: by_name[name].variable if name in by_name else None for name in names}
    for name in names:
        columns = {client: profile.columns[name] for client, profile in profiles.items()}
        _check_kinds(name, columns, by_name.get(name, VariableDeclaration(name)))
        if given[name] is None and not profiles:
            raise PlanError(
                f"variable {name!r} needs levels, a range, or a mean and an sd in the declaration, because there are "
                "no profiles to take them from"
            )
    open_names = [name for name in names if given[name] is None]
    reduced = [
        Profile(one.client, one.rows, {name: one.columns[name] for name in open_names}) for one in profiles.values()
    ]
    pooled = StudyPlan.from_profiles(reduced).variables if open_names else ()
    found = {variable.name: variable for variable in pooled} | {name: v for name, v in given.items() if v is not None}
    return tuple(found[name] for name in names)


def _check_columns(
    client: str, profile: Profile, names: Sequence[str], profiles: Mapping[str, Profile], listed: bool
) -> None:
    """Every client has every variable of the study; without a list of variables, all clients have the same columns."""
    lacking = [name for name in names if name not in profile.columns]
    advice = "add or rename it there and make the profile again, or leave it out of the study"
    if lacking:
        spare = [name for name in profile.columns if name not in names]
        raise PlanError(f"client {client!r} has no column {lacking[0]!r}{_suggest_name(lacking[0], spare)}; {advice}")
    extra = [name for name in profile.columns if name not in names]
    if extra and not listed:
        first = next(iter(profiles))
        raise PlanError(
            f"client {first!r} has no column {extra[0]!r}, which client {client!r} has; {advice}: list the variables "
            "of the study in the declaration"
        )


def _check_kinds(name: str, columns: Mapping[str, ColumnProfile], declared: VariableDeclaration) -> None:
    """Numbers here and labels there: one of them is a slip, often a single text such as "n/a" among the numbers."""
    kinds = {kind: client for client, column in columns.items() if column.count for kind in (column.kind,)}
    number, label = kinds.get("continuous"), kinds.get("categorical")
    if label is not None and (number is not None or declared.kind == "continuous"):
        example, numeric = _example_levels(columns[label].levels)
        declared_so = declared.kind == "continuous"
        elsewhere = "but declared continuous" if declared_so else f"and continuous at client {number!r}"
        hint = f"; {numeric} of its labels are numbers, so look for texts among numbers there" if numeric else ""
        if declared.levels is None:
            raise PlanError(
                f"variable {name!r} is categorical at client {label!r} (labels such as {example}) {elsewhere}{hint}; "
                f"correct the column and make the profile again, or list its levels in [variables.{name}]"
            )
    if declared.kind == "categorical" and declared.levels is None and number is not None:
        raise PlanError(
            f"variable {name!r} is declared categorical, but client {number!r} profiled it as numbers; list its levels "
            "in the declaration, or ask for the profile again with the draft plan"
        )
    if declared.levels is not None:
        _check_levels(name, columns, declared.levels)


def _check_levels(name: str, columns: Mapping[str, ColumnProfile], levels: Sequence[str]) -> None:
    for client, column in columns.items():
        # a site's label 3.0 is the level 3 when its rows are summarized, so it is one here
        if unknown := [
            level for level in column.levels if level not in levels and strip_zero_decimals(level) not in levels
        ]:
            raise PlanError(
                f"variable {name!r} has the level {unknown[0]!r} at client {client!r}, which is not declared"
                f"{_suggest_name(unknown[0], levels)}; correct the labels there, or add the level to the declaration"
            )


def _example_levels(levels: Sequence[str]) -> tuple[str, int]:
    """The labels to show, those that are no numbers first, and how many are numbers."""
    numbers = [level for level in levels if looks_like_number(level)]
    others = [level for level in levels if level not in set(numbers)]
    return ", ".join(map(repr, [*others, *numbers][:3])), len(numbers)


def _check_consistency(
    variables: Sequence[Variable], profiles: Mapping[str, Profile], accepted: Collection[str]
) -> None:
    """What the profiles say each for itself without fault, and together hardly can mean; all of it at once."""
    doubts: list[str] = []
    for variable in variables:
        name = variable.name
        columns = {client: profile.columns[name] for client, profile in profiles.items()}
        if isinstance(variable, Categorical):
            found = [
                find_spelling_variants(name, columns),
                find_disjoint_labels(name, columns) if name not in accepted else None,
            ]
        else:
            units = find_unit_mismatch(name, columns) if name not in accepted else None
            found = [str(units) if units else None]
        doubts.extend(text for text in found if text)
    if doubts:
        raise PlanError("\n".join(doubts))


def _suggest_name(name: str, known: Collection[str]) -> str:
    return suggest_name(name, known) if known else ""


def _profile_digest(message: ProfileMessage) -> str:
    """That of the file: its text is canonical."""
    return hashlib.sha256(profile_to_json(message).encode()).hexdigest()
