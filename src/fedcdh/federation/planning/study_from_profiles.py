"""The study that follows from profiles and a declaration, or an error that says who has to change what.

The declaration takes precedence; the profiles supply the rest. Contradictions between profiles are reported here,
before any summary is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fedcdh._io.text import suggest_name
from fedcdh.data.labels import looks_like_number, strip_zero_decimals
from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipes import NumberRecipe, Recipe
from fedcdh.errors import PlanError
from fedcdh.federation.planning.declaration import Declaration, VariableDeclaration
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.study_file import Study
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.features import FeatureFamily
from fedcdh.summaries.plan import DEFAULT_CLIP, DEFAULT_FAMILY, StudyPlan
from fedcdh.summaries.profiles import Profile, pool_shares
from fedcdh.summaries.recipe_profiles import prepare_profile
from fedcdh.summaries.site_consistency import check_accepted, check_consistency
from fedcdh.summaries.variables import Variable

EMPTY_DECLARATION = Declaration()


def plan_study(
    messages: Sequence[tuple[str, ProfileMessage]] = (),
    declaration: Declaration | None = None,
    *,
    family: FeatureFamily | None = None,
    clip: float = DEFAULT_CLIP,
    accept_differences: Collection[str] = (),
) -> Study:
    """Plan a study from profiles, from a declaration, or from both.

    Parameters
    ----------
    messages : sequence of tuple of str and ProfileMessage
        The profiles, each with the name of its file, which error messages quote.
    declaration : Declaration, optional
        What is declared. It takes precedence over the profiles.
    family : FeatureFamily, optional
        The family of features; it takes precedence over the declared one.
    clip : float
        Number of scales beyond which values are clipped.
    accept_differences : collection of str, optional
        Variables whose ranges really differ between clients, or whose labels really have nothing in common.

    Returns
    -------
    Study
        The plan, the background knowledge, and the keys and profile digests of the clients.

    Raises
    ------
    PlanError
        If profiles and declaration are incomplete or contradict each other.

    Examples
    --------
    >>> import fedcdh
    >>> tables = {"north": {"age": [50.0, 61.0, 70.0]}, "south": {"age": [44.0, 58.0, 66.0]}}
    >>> profiles = [(client, ProfileMessage(fedcdh.profile(rows, client))) for client, rows in tables.items()]
    >>> plan_study(profiles).plan.clients
    ('north', 'south')
    """
    profiles = _profiles_by_client(messages)
    declared = _with_profiled_recipes(declaration or EMPTY_DECLARATION, profiles)
    recipes = declared.recipes
    _check_same_draft(messages)
    clients = _resolve_clients(profiles, declared)
    names = [one.name for one in declared.variables] or list(next(iter(profiles.values())).columns if profiles else ())
    _check_recipe_names(recipes, names, clients)
    names = [name for name in names if name not in recipes.excluded]
    profiles = _prepare_profiles(profiles, declared, names)
    variables = _resolve_variables(names, profiles, declared)
    check_accepted(accept_differences, names)
    listed = {one.name for one in declared.variables if one.levels is not None}
    listed |= {name for name, one in recipes.by_variable.items() if VariableDeclaration(name).prepare(one) is not None}
    unlisted = [name for name in names if name not in listed]
    columns = {name: {client: one.columns[name] for client, one in profiles.items()} for name in unlisted}
    check_consistency(columns, [name for name in accept_differences if name in unlisted])
    chosen = family or declared.family or DEFAULT_FAMILY
    plan = StudyPlan(variables, clients, chosen, clip, excluded=tuple(recipes.excluded), missing=declared.missing)
    return Study(
        plan,
        declared.knowledge,
        keys={one.profile.client: one.key for _, one in messages if one.key is not None},
        profiles={one.profile.client: _profile_digest(one) for _, one in messages},
    )


def _with_profiled_recipes(declared: Declaration, profiles: Mapping[str, Profile]) -> Declaration:
    """Return the declaration with the recipes of the profiles, for variables of which it has none."""
    found = {name: one.recipe for profile in profiles.values() for name, one in profile.columns.items() if one.recipe}
    recipes = Recipes({**found, **declared.recipes.by_variable}, declared.recipes.excluded)
    return replace(declared, recipes=recipes)


def _check_recipe_names(recipes: Recipes, names: Sequence[str], clients: Sequence[str]) -> None:
    """Check that every recipe is one of a variable of the study, and every conversion one of a client."""
    for name, recipe in recipes.by_variable.items():
        if name not in names:
            raise PlanError(
                f"There is a recipe of {name!r}, but the study has no such variable{_suggest_name(name, names)}. "
                "Correct the name, or leave the recipe out.",
                parameter="recipes",
            )
        for client in dict(recipe.client_conversions) if isinstance(recipe, NumberRecipe) else ():
            if client not in clients:
                raise PlanError(
                    f"The recipe of {name!r} converts the units of client {client!r}, but the study has no such client"
                    f"{_suggest_name(client, clients)}. Correct the name.",
                    parameter="recipes",
                )


def _prepare_profiles(
    profiles: Mapping[str, Profile], declared: Declaration, names: Sequence[str]
) -> dict[str, Profile]:
    """Return the profiles as they are after the recipes; variables that the declaration describes need none."""
    by_name = {one.name: one for one in declared.variables}
    found = {}
    for client, profile in profiles.items():
        columns = {}
        for name, column in profile.columns.items():
            recipe = declared.recipes.by_variable.get(name)
            if name in declared.recipes.excluded:
                continue
            if name not in names or recipe is None:
                columns[name] = column
            elif by_name.get(name, VariableDeclaration(name)).prepare(recipe) is not None:
                columns[name] = _prepare_if_possible(column, recipe, name, client)
            else:
                columns[name] = prepare_profile(column, recipe, name, client)
        found[client] = Profile(client, profile.rows, columns)
    return found


def _prepare_if_possible(column: ColumnProfile, recipe: Recipe, name: str, client: str) -> ColumnProfile:
    """Return the profile after the recipe, or, where its values do not follow and are not needed, one without them."""
    try:
        return prepare_profile(column, recipe, name, client)
    except PlanError:
        return ColumnProfile(
            recipe.kind,
            column.count,
            column.missing,
            product_share=column.product_share,
            mean_share=column.mean_share,
            recipe=recipe,
        )


def _profiles_by_client(messages: Sequence[tuple[str, ProfileMessage]]) -> dict[str, Profile]:
    origins: dict[str, str] = {}
    for origin, message in messages:
        client = message.profile.client
        if client in origins:
            raise PlanError(
                f"There are two profiles of client {client!r} ({origins[client]} and {origin}). Expected one profile "
                "of each client. Pass the right one, or correct the name of the client in the other."
            )
        origins[client] = origin
    return {one.profile.client: one.profile for _, one in sorted(messages, key=lambda pair: pair[1].profile.client)}


def _check_same_draft(messages: Sequence[tuple[str, ProfileMessage]]) -> None:
    drafts = {message.plan: message.profile.client for _, message in messages}
    if len(drafts) > 1:
        drafted = [f"{client!r} {f'plan {plan[:12]}' if plan else 'no plan'}" for plan, client in drafts.items()]
        raise PlanError(
            f"The profiles follow different draft plans (client {', '.join(drafted[:3])}). Expected the same draft. "
            "Send it to all clients, and ask for their profiles again."
        )


def _resolve_clients(profiles: Mapping[str, Profile], declared: Declaration) -> tuple[str, ...]:
    if not profiles and not declared.clients:
        raise PlanError(
            'The study has no clients. Expected at least one. Pass profiles, or declare clients = ["north", "south"].'
        )
    if profiles and declared.clients:
        for client in profiles:
            if client not in declared.clients:
                near = _suggest_name(client, declared.clients)
                raise PlanError(
                    f"There is a profile of client {client!r}, which the declaration does not name{near}. Correct the "
                    "name, or add the client to the declaration."
                )
        if lacking := [client for client in declared.clients if client not in profiles]:
            raise PlanError(
                f"There is no profile of client {lacking[0]!r}, which the declaration names. Wait for it, or remove "
                "the client from the declaration."
            )
    return tuple(profiles) or declared.clients


def _resolve_variables(
    names: Sequence[str], profiles: Mapping[str, Profile], declared: Declaration
) -> tuple[Variable, ...]:
    """Return every variable as declared, or else as the profiles describe it, in this order."""
    by_name = {one.name: one for one in declared.variables}
    for client, profile in profiles.items():
        _check_columns(client, profile, names, profiles, bool(by_name))
    recipes = declared.recipes.by_variable
    given = {name: by_name.get(name, VariableDeclaration(name)).prepare(recipes.get(name)) for name in names}
    for name in names:
        columns = {client: profile.columns[name] for client, profile in profiles.items()}
        if name not in recipes:
            _check_kinds(name, columns, by_name.get(name, VariableDeclaration(name)))
        if given[name] is None and not profiles:
            raise PlanError(
                f"The variable {name!r} is declared without values, and there are no profiles. Declare its levels, its "
                "range, or its mean and sd."
            )
    open_names = [name for name in names if given[name] is None]
    reduced = [
        Profile(one.client, one.rows, {name: one.columns[name] for name in open_names}) for one in profiles.values()
    ]
    pooled = StudyPlan.from_profiles(reduced, accept_differences=open_names).variables if open_names else ()
    found = {variable.name: variable for variable in pooled} | {name: v for name, v in given.items() if v is not None}
    return tuple(_with_shares(found[name], [one.columns[name] for one in profiles.values()]) for name in names)


def _with_shares(variable: Variable, columns: Sequence[ColumnProfile]) -> Variable:
    """Return a variable with the shares of rows that the profiles name, also where it was declared."""
    shares = pool_shares(columns)
    return replace(variable, product_share=shares.product, mean_share=shares.mean)


def _check_columns(
    client: str, profile: Profile, names: Sequence[str], profiles: Mapping[str, Profile], listed: bool
) -> None:
    """Check that a client has every variable, and without a list of variables that all have the same columns."""
    lacking = [name for name in names if name not in profile.columns]
    advice = "Add or rename it there and make the profile again, or leave it out of the study"
    if lacking:
        spare = [name for name in profile.columns if name not in names]
        raise PlanError(f"Client {client!r} has no column {lacking[0]!r}{_suggest_name(lacking[0], spare)}. {advice}.")
    extra = [name for name in profile.columns if name not in names]
    if extra and not listed:
        first = next(iter(profiles))
        raise PlanError(
            f"Client {first!r} has no column {extra[0]!r}, which client {client!r} has. {advice}: list the variables "
            "of the study in the declaration."
        )


def _check_kinds(name: str, columns: Mapping[str, ColumnProfile], declared: VariableDeclaration) -> None:
    """Check that a variable has one kind at all clients; a single text such as "n/a" makes a column categorical."""
    kinds = {kind: client for client, column in columns.items() if column.count for kind in (column.kind,)}
    number, label = kinds.get("continuous"), kinds.get("categorical")
    if label is not None and (number is not None or declared.kind == "continuous"):
        example, numeric = _example_levels(columns[label].levels)
        declared_so = declared.kind == "continuous"
        elsewhere = "but declared continuous" if declared_so else f"and continuous at client {number!r}"
        hint = f". {numeric} of its labels are numbers, so look for texts among numbers there" if numeric else ""
        if declared.levels is None:
            raise PlanError(
                f"The variable {name!r} is categorical at client {label!r} (labels such as {example}) "
                f"{elsewhere}{hint}. Correct the column and make the profile again, or list its levels in "
                f"[variables.{name}]."
            )
    if declared.kind == "categorical" and declared.levels is None and number is not None:
        raise PlanError(
            f"The variable {name!r} is declared categorical, but client {number!r} profiled it as numbers. List its "
            "levels in the declaration, or ask for the profile again with the draft plan."
        )
    if declared.levels is not None:
        _check_levels(name, columns, declared.levels)


def _check_levels(name: str, columns: Mapping[str, ColumnProfile], levels: Sequence[str]) -> None:
    for client, column in columns.items():
        # a summary takes the label 3.0 for the level 3
        if unknown := [
            level for level in column.levels if level not in levels and strip_zero_decimals(level) not in levels
        ]:
            raise PlanError(
                f"The variable {name!r} has the level {unknown[0]!r} at client {client!r}, which is not declared"
                f"{_suggest_name(unknown[0], levels)}. Correct the labels there, or add the level to the declaration."
            )


def _example_levels(levels: Sequence[str]) -> tuple[str, int]:
    """Return the labels to show, non-numbers first, and how many are numbers."""
    numbers = [level for level in levels if looks_like_number(level)]
    others = [level for level in levels if level not in set(numbers)]
    return ", ".join(map(repr, [*others, *numbers][:3])), len(numbers)


def _suggest_name(name: str, known: Collection[str]) -> str:
    return suggest_name(name, known) if known else ""


def _profile_digest(message: ProfileMessage) -> str:
    """Return the digest of the file of a profile, whose text is canonical."""
    return hashlib.sha256(profile_to_json(message).encode()).hexdigest()
