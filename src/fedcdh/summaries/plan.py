"""The study plan: what all parties agree on before any data is used."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.look_alikes import find_look_alikes
from fedcdh._io.text import cut_repr
from fedcdh.data.recipe_file import NO_RECIPES, Recipes, parse_recipe, recipe_to_document
from fedcdh.data.recipes import Recipe
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import PlanError
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.absent_columns import (
    AbsentRule,
    check_absent,
    check_kinds,
    columns_by_client,
    describe_absent,
    kinds_of,
)
from fedcdh.summaries.client_changes import ClientChange, check_client_changes, iter_earlier_plans
from fedcdh.summaries.dp_parameters import MAX_NOISY_COLUMNS, DPParameters
from fedcdh.summaries.feature_layout import FeatureLayout
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite, bounded
from fedcdh.summaries.overviews import format_plan, name_plan, render_plan_html
from fedcdh.summaries.profiles import Profile, merge_profiles, profile
from fedcdh.summaries.site_consistency import check_accepted, check_consistency, has_decided_levels
from fedcdh.summaries.variables import Categorical, Continuous, Variable, check_name

FORMAT = "fedcdh-plan-5"
"""Version 5 may record which clients joined or left."""
DEFAULT_FAMILY = Hermite()
DEFAULT_CLIP = 30.0
"""Scales at which values are clipped: far out, because a clipped effect no longer follows from its causes."""
MAX_NOISY_CLIP = 10.0
"""Scales at which values are clipped at the latest in a plan with noise."""
MAX_COLUMNS = 20_000
"""Columns of the moment matrix, which then takes 3.2 GB."""
MAX_LIMIT = 1 << 40
"""Largest number of rounds, bytes or rows that a plan may name."""
_FAMILIES: dict[str, type[Hermite] | type[Fourier]] = {"hermite": Hermite, "fourier": Fourier}
MissingValues = Literal["complete", "impute"]
"""Treatment of rows in which a value is missing: they are left out, or a value is drawn."""
_ADVICE = "ask the coordinator for the file again"
_SHARES = ("product_share", "mean_share")
_LIMITS = ("max_rounds", "max_bytes", "max_rows_per_client")


@dataclass(frozen=True)
class StudyPlan:
    """Variables, clients and features of a study. The same plan and the same rows give the same bytes.

    Attributes
    ----------
    variables : tuple of Continuous or Categorical
        Variables of the study, in the order of the columns.
    clients : tuple of str
        Names of the clients, sorted.
    family : Fourier or Hermite, default Hermite()
        Feature family of continuous variables.
    clip : float, default 30.0
        Values further than this from the variable's location, in units of its scale, are clipped. This bounds the
        contribution of one row.
    study : str, default ""
        Name of the study. It distinguishes the study from an older one with the same plan.
    max_rounds : int, default 0
        Number of adaptive rounds that a client answers. 0: the summary is all that a client sends.
    max_bytes : int, default 0
        Number of bytes that a client sends in all of its answers.
    max_rows_per_client : int, default 0
        Number of rows that one client may have, so that none outweighs all others. 0: no limit.
    noise : DPParameters, optional
        Differential privacy of the summaries. Features are then those of `fedcdh.summaries.features.bounded`.
    excluded : tuple of str, default ()
        Columns that a recipe excludes from the study, for people who read the plan; sorted.
    absent : mapping from str to sequence of str, default {}
        Variables that single clients lack. Their summaries have no columns of these. Every variable is there at one
        client at least.
    part_of : tuple of str, default ()
        Fingerprints of the whole plan and of its earlier ones, where this is the part of it that one client follows;
        see `for_client`.
    client_changes : tuple of ClientChange, default ()
        Clients that joined or left since the first plan of the study; see `fedcdh.summaries.change_clients`.
    missing : {"complete", "impute"}, default "complete"
        Whether a site uses its complete rows only, or all rows, with values drawn in place of missing ones
        (`fedcdh.summaries.imputation`).

    Raises
    ------
    PlanError
        If names, features, limits or noise cannot be used together.

    See Also
    --------
    summarize : Computes a summary by the plan.
    fedcdh.federation.plan_study : Makes the plan from profiles and a declaration.

    Examples
    --------
    >>> from fedcdh.summaries import Categorical, Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15), Categorical("smoker", ("no", "yes"))), ("north", "south"))
    >>> StudyPlan.from_json(plan.to_json()) == plan
    True
    """

    variables: tuple[Variable, ...]
    clients: tuple[str, ...]
    family: FeatureFamily = DEFAULT_FAMILY
    clip: float = DEFAULT_CLIP
    study: str = ""
    max_rounds: int = 0
    max_bytes: int = 0
    max_rows_per_client: int = 0
    noise: DPParameters | None = None
    excluded: tuple[str, ...] = ()
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    part_of: tuple[str, ...] = ()
    client_changes: tuple[ClientChange, ...] = ()
    missing: MissingValues = "complete"

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "clients", tuple(sorted(self.clients)))
        object.__setattr__(self, "excluded", tuple(sorted(self.excluded)))
        lacking = {client: tuple(sorted(set(names))) for client, names in sorted(self.absent.items()) if names}
        object.__setattr__(self, "absent", lacking)
        object.__setattr__(self, "client_changes", tuple(self.client_changes))
        self._check_names()
        self._check_absent()
        self._check_features()
        for limit in _LIMITS:
            found = getattr(self, limit)
            if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MAX_LIMIT:
                raise PlanError(
                    f"the plan's {limit} is {cut_repr(found)}; expected a whole number from 0 to {MAX_LIMIT}",
                    parameter=limit,
                )
        self._check_missing()
        if self.noise is not None:
            self._check_noise(self.noise)
        if self.layout.n_columns > MAX_COLUMNS:
            raise PlanError(
                f"the variables of this plan take {self.layout.n_columns} columns of features; expected at most "
                f"{MAX_COLUMNS}; leave variables out, group levels, or choose a smaller feature width"
            )

    def _check_names(self) -> None:
        for what, found in (("variables", list(self.names)), ("clients", list(self.clients))):
            if not found or len(set(found)) != len(found) or "" in found:
                raise PlanError(
                    f"the plan has the {what} {cut_repr(found)}; expected at least one, with different names that are "
                    "not empty; correct the names"
                )
        for client in self.clients:
            check_name(client, "the name of a client")
        if (alike := find_look_alikes(self.clients)) is not None:
            raise PlanError(
                f"the plan names the clients {alike[0]!a} and {alike[1]!a}, which look alike; expected names "
                "that people can tell apart; rename one of them, or keep the one that is meant"
            )
        check_client_changes(self.clients, self.client_changes)
        check_name(self.study, "the name of the study")
        for name in self.excluded:
            check_name(name, "the name of an excluded column")
        if both := sorted(set(self.names) & set(self.excluded)):
            raise PlanError(
                f"{both[0]!r} is a variable of the plan and excluded from it; correct the plan", parameter="recipes"
            )
        if DOMAIN in self.names:
            raise PlanError(f"a variable is called {DOMAIN!r}, which is the name of the client index; rename it")

    def _check_absent(self) -> None:
        for client, names in self.absent.items():
            if client not in self.clients or (unknown := sorted(set(names) - set(self.names))):
                what = f"the client {client!r}" if client not in self.clients else f"the variable {unknown[0]!r}"
                raise PlanError(
                    f"the plan says what client {client!r} lacks, but has not {what}; correct the name",
                    parameter="absent",
                )
            if len(names) == len(self.variables):
                raise PlanError(
                    f"client {client!r} lacks all variables of the plan; leave the client out", parameter="absent"
                )
        for change in self.client_changes:
            if strange := sorted({name for names in change.absent.values() for name in names} - set(self.names)):
                raise PlanError(
                    f"the plan says that a client which left lacked {strange[0]!r}, which is no variable of the plan; "
                    f"{_ADVICE}",
                    parameter="absent",
                )
        lacked = Counter(name for names in self.absent.values() for name in names)
        if nowhere := sorted(name for name, times in lacked.items() if times == len(self.clients)):
            raise PlanError(
                f"no client has the variable {nowhere[0]!r}; expected one at least; leave the variable out",
                parameter="absent",
            )
        if self.absent and self.noise is not None:
            raise PlanError(
                "the plan asks for noise, and some clients lack variables; expected all variables at all clients: the "
                "noise is made for features of one length; leave out these variables or clients, or the noise",
                parameter="absent",
            )
        if self.absent and self.missing == "impute":
            raise PlanError(
                "the plan asks for imputed values, and some clients lack variables; expected all variables at all "
                "clients: how many rows count was measured for one of the two only; use complete rows, or leave out "
                "these variables or clients",
                parameter="missing",
            )

    def _check_features(self) -> None:
        whole = isinstance(self.family.width, int) and 2 <= self.family.width <= 64
        if not whole or not 0 < self.family.bandwidth < math.inf or not 1 <= self.clip <= 100:
            raise PlanError(
                f"the feature family has width {self.family.width} and bandwidth {self.family.bandwidth}, and values "
                f"are clipped at {self.clip} scales; expected a whole width from 2 to 64, a positive bandwidth and a "
                "clip from 1 to 100; correct the plan"
            )

    def _check_missing(self) -> None:
        if self.missing not in get_args(MissingValues):
            raise PlanError(
                f"the plan says {cut_repr(self.missing)} about missing values; expected 'complete' (rows with a "
                "missing value are left out) or 'impute' (a value is drawn for it); choose one of these",
                parameter="missing",
            )
        if self.missing != "complete" and self.noise is not None:
            raise PlanError(
                "the plan asks for noise and for imputed values; a person's row would then change what is drawn for "
                "others, which the noise does not cover; use complete rows, or leave the noise out",
                parameter="missing",
            )

    def _check_noise(self, noise: DPParameters) -> None:
        if self.family != DEFAULT_FAMILY or self.clip > MAX_NOISY_CLIP:
            raise PlanError(
                f"the plan asks for noise, with {self.family} and a clip of {self.clip:g}; expected the default "
                f"feature family and a clip of at most {MAX_NOISY_CLIP:g}; leave the family out, and set the clip to "
                f"{bounded.BOUNDED_CLIP:g}",
                parameter="clip",
            )
        if self.max_rounds or self.max_bytes:
            raise PlanError(
                "the plan asks for noise and for adaptive rounds; noise covers the summary only, not answers in "
                "adaptive rounds; leave the rounds out",
                parameter="max_rounds",
            )
        if self.layout.n_columns > MAX_NOISY_COLUMNS:
            raise PlanError(
                f"the variables of this plan take {self.layout.n_columns} columns of features; expected at most "
                f"{MAX_NOISY_COLUMNS} in a plan with noise; leave variables out, group levels, or lower the degree"
            )
        if noise.honest > len(self.clients):
            raise PlanError(
                f"the plan counts on {noise.honest} honest clients; expected at most its {len(self.clients)} clients; "
                "lower the number",
                parameter="honest",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return tuple(variable.name for variable in self.variables)

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """Return the kind of every variable, in the order of the variables."""
        return {v.name: "categorical" if isinstance(v, Categorical) else "continuous" for v in self.variables}

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """Return the recipes of those variables that have one, in the order of the variables."""
        return {v.name: v.recipe for v in self.variables if v.recipe is not None}

    @cached_property
    def layout(self) -> FeatureLayout:
        """Return where the features of each variable stand in the moment matrix."""
        return FeatureLayout.of(self.variables, self.family, self.clip, self.noise)

    def for_client(self, client: str) -> StudyPlan:
        """Return the part of the plan that a client follows: without the variables that it lacks.

        Parameters
        ----------
        client : str
            Name of the client.

        Returns
        -------
        StudyPlan
            The plan itself where the client lacks nothing; else one with fewer variables and the same fingerprint.

        Examples
        --------
        >>> from fedcdh.summaries import Continuous
        >>> plan = StudyPlan((Continuous("age"), Continuous("crp")), ("north", "south"), absent={"north": ["crp"]})
        >>> plan.for_client("north").names, plan.for_client("south") is plan
        (('age',), True)
        """
        lacking = self.absent.get(client, ())
        return self.for_variables([name for name in self.names if name not in lacking]) if lacking else self

    def for_variables(self, names: Collection[str]) -> StudyPlan:
        """Return the part of the plan that has these variables only.

        Parameters
        ----------
        names : collection of str
            Names of variables of the plan.

        Returns
        -------
        StudyPlan
            The plan itself if it has no others; else one with the same fingerprint, in which no client lacks anything.
        """
        kept = frozenset(names)
        if kept.issuperset(self.names):
            return self
        found = self._parts.get(kept)
        if found is None:
            variables = tuple(variable for variable in self.variables if variable.name in kept)
            earlier = sorted(self.fingerprints - {self.fingerprint})
            found = replace(self, variables=variables, absent={}, part_of=(self.fingerprint, *earlier))
            self._parts[kept] = found
        return found

    @cached_property
    def _parts(self) -> dict[frozenset[str], StudyPlan]:
        """Return the cache of `for_variables`."""
        return {}

    def spans_all(self, names: Iterable[str]) -> bool:
        """Return whether all of these are variables of the plan.

        Parameters
        ----------
        names : iterable of str
            Names.

        Returns
        -------
        bool
            False if one is not.
        """
        return self.layout.spans.keys() >= set(names)

    def lacking(self, name: str) -> tuple[str, ...]:
        """Return the clients that lack a variable.

        Parameters
        ----------
        name : str
            Name of a variable.

        Returns
        -------
        tuple of str
            Names of clients, sorted.
        """
        return tuple(client for client, names in self.absent.items() if name in names)

    @cached_property
    def client_set(self) -> frozenset[str]:
        """Return the clients as a set, for fast look-up among ten thousand of them."""
        return frozenset(self.clients)

    def __hash__(self) -> int:
        """Return the hash of the fingerprint, so that a look-up does not hash every client."""
        return hash(self.fingerprint)

    def to_json(self) -> str:
        """Write the plan as canonical JSON.

        Returns
        -------
        str
            The one text of this plan. `from_json` returns the same plan.
        """
        document = {
            "format": FORMAT,
            "clients": self.clients,
            "clip": float(self.clip),
            "family": {
                "name": type(self.family).__name__.lower(),
                **asdict(self.family),
                "bandwidth": float(self.family.bandwidth),
            },
            "variables": [_variable_to_json(v) for v in self.variables],
            **({"study": self.study} if self.study else {}),
            **{limit: found for limit in _LIMITS if (found := getattr(self, limit))},
            **({"noise": asdict(self.noise)} if self.noise else {}),
            **({"excluded": self.excluded} if self.excluded else {}),
            **({"absent": self.absent} if self.absent else {}),
            **({"client_changes": [one.to_document() for one in self.client_changes]} if self.client_changes else {}),
            **({"missing": self.missing} if self.missing != "complete" else {}),
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> StudyPlan:
        """Read a plan that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON text of a plan.

        Returns
        -------
        StudyPlan
            The plan.

        Raises
        ------
        PlanError
            If the text is not that of a plan, or of an earlier format.
        """
        try:
            document = json.loads(text)
            if mismatch := find_format_mismatch(document.pop("format"), FORMAT):
                reason, advice = (*mismatch, _ADVICE)[:2]
                raise PlanError(f"this plan cannot be read: {reason}; {advice}")
            levels = (v.get("levels") for v in document["variables"])
            lacking = document.get("absent", {}).values()
            _reject_strings(document["clients"], document.get("excluded"), *levels, *lacking)
            if "part_of" in document:
                raise TypeError("'part_of' is no part of a plan file")
            family = dict(document.pop("family"))
            changes = tuple(_change_from_json(one) for one in document.pop("client_changes", ()))
            if "noise" in document:
                document["noise"] = DPParameters(**document["noise"])
            return cls(
                variables=tuple(_variable_from_json(v) for v in document.pop("variables")),
                family=_FAMILIES[family.pop("name")](**family),
                client_changes=changes,
                **document,
            )
        except PlanError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as problem:
            raise PlanError(
                f"this is not a study plan ({cut_repr(problem)}); expected the text that StudyPlan.to_json wrote; "
                f"{_ADVICE}"
            ) from None

    def __repr__(self) -> str:
        """Return the plan in one line."""
        return f"<{name_plan(self)}>"

    def __str__(self) -> str:
        """Return the plan as a small table."""
        return format_plan(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return render_plan_html(self)

    @cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the plan's canonical JSON, in hexadecimal digits; for a part, that of the whole."""
        return self.part_of[0] if self.part_of else hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of this plan and of the earlier ones, whose summaries are valid by it as well."""
        if self.part_of:
            return frozenset(self.part_of)
        return frozenset({self.fingerprint, *(earlier.fingerprint for earlier in iter_earlier_plans(self))})

    @cached_property
    def numbers(self) -> StudyPlan:
        """Return the plan with nothing but what decides the numbers of a summary."""
        clients = tuple(f"client {number + 1}" for number in range(max(1, self.noise.honest if self.noise else 1)))
        plain = replace(self, absent={}, part_of=())
        return replace(plain, clients=clients, study="", max_rounds=0, max_bytes=0, excluded=(), client_changes=())

    @cached_property
    def numbers_fingerprint(self) -> str:
        """Return the fingerprint of all that decides the numbers of a summary: variables, scales, recipes, features.

        Plans with the same one, for whatever clients, ask a site for the same numbers about the same rows.
        """
        return self.numbers.fingerprint

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, Any],
        *,
        kinds: Mapping[str, ColumnKind] | None = None,
        family: FeatureFamily = DEFAULT_FAMILY,
        variables: Sequence[str] | None = None,
        order_by: str | None = None,
        recipes: Recipes = NO_RECIPES,
        absent: AbsentRule = "refuse",
        accept_differences: Collection[str] = (),
        exclude: Collection[str] = (),
        missing: MissingValues = "complete",
    ) -> StudyPlan:
        """Make the plan of the clients' tables, by way of their profiles.

        Parameters
        ----------
        tables : mapping from str to table
            One table per client.
        kinds : mapping from str to {"continuous", "categorical"}, optional
            The kind of single variables, for example of numbers that are codes. By default numbers are continuous,
            texts and truth values are categorical.
        family : Fourier or Hermite, default Hermite()
            Feature family of continuous variables.
        variables : sequence of str, optional
            Columns to use. Default: all columns.
        order_by : str, optional
            Column by which the rows of each client are sorted, such as a time; see `profile`.
        recipes : Recipes, optional
            What every client does with its columns first.
        absent : {"refuse", "allow"} or mapping from str to sequence of str, default "refuse"
            Whether clients may lack columns that others have, or the columns that they may lack.
        accept_differences : collection of str, default ()
            Variables whose ranges or labels really differ between clients, so that they are not taken for different
            units or spellings.
        exclude : collection of str, default ()
            Columns that are no variables. They may hold anything.
        missing : {"complete", "impute"}, default "complete"
            What every client does with rows in which a value is missing.

        Returns
        -------
        StudyPlan
            The plan.

        Raises
        ------
        DataError
            If a table cannot be read.
        PlanError
            If clients have different columns or kinds, seem to have different units or spellings, or a variable has no
            value.
        """
        chosen = dict.fromkeys(tables, (variables, kinds))
        if absent != "refuse":
            present = columns_by_client(tables, variables, order_by, absent)
            check_kinds(kinds, present)
            chosen = {client: (names, kinds_of(kinds, names)) for client, names in present.items()}
        profiles = [
            profile(
                table,
                client,
                variables=chosen[client][0],
                kinds=chosen[client][1],
                order_by=order_by,
                recipes=recipes,
                exclude=exclude,
            )
            for client, table in tables.items()
        ]
        plan = cls.from_profiles(profiles, family=family, accept_differences=accept_differences, absent=absent)
        return replace(plan, excluded=tuple(recipes.excluded), missing=missing)

    @classmethod
    def from_profiles(
        cls,
        profiles: Iterable[Profile],
        *,
        family: FeatureFamily = DEFAULT_FAMILY,
        clip: float = DEFAULT_CLIP,
        absent: AbsentRule = "refuse",
        accept_differences: Collection[str] = (),
    ) -> StudyPlan:
        """Make the plan of the clients' profiles: pooled locations and scales, and the union of their levels.

        Parameters
        ----------
        profiles : iterable of Profile
            One profile per client.
        family : Fourier or Hermite, default Hermite()
            Feature family of continuous variables.
        clip : float, default 30.0
            Values further than this from the location, in units of the scale, are clipped.
        absent : {"refuse", "allow"} or mapping from str to sequence of str, default "refuse"
            Whether clients may lack columns that others have, or the columns that they may lack.
        accept_differences : collection of str, default ()
            Variables whose ranges or labels really differ between clients, so that they are not taken for different
            units or spellings.

        Returns
        -------
        StudyPlan
            The plan.

        Raises
        ------
        PlanError
            If clients have different columns or kinds, seem to have different units or spellings, or a variable has no
            value.
        """
        profiles = sorted(profiles, key=lambda one: one.client)
        lacking = check_absent({one.client: one.columns for one in profiles}, absent)
        variables = describe_variables(profiles, lacking)
        columns = {
            one.name: {
                p.client: p.columns[one.name]
                for p in profiles
                if one.name in p.columns and one.name not in lacking.get(p.client, ())
            }
            for one in variables
        }
        check_accepted(accept_differences, columns)
        open_names = [one.name for one in variables if not has_decided_levels(one.recipe)]
        accepted = [name for name in accept_differences if name in open_names]
        check_consistency({name: columns[name] for name in open_names}, accepted)
        return cls(variables, tuple(one.client for one in profiles), family, clip, absent=lacking)


def describe_variables(
    profiles: Sequence[Profile], absent: Mapping[str, Collection[str]] | None = None
) -> tuple[Variable, ...]:
    """Return the variables of some profiles: pooled locations and scales, and the union of their levels.

    Parameters
    ----------
    profiles : sequence of Profile
        One profile per client.
    absent : mapping from str to collection of str, optional
        Columns that clients lack, or that are not to be used there.

    Returns
    -------
    tuple of Continuous or Categorical
        The variables.

    Examples
    --------
    >>> [one.name for one in describe_variables([profile({"age": [30, 40]}, "north")])]
    ['age']
    """
    pooled = merge_profiles(profiles, absent=absent)
    return tuple(
        Categorical(name, column.levels, column.product_share, column.mean_share, column.recipe)
        if (column := pooled[name]).kind == "categorical"
        else Continuous(
            name,
            column.location,
            column.scale,
            column.centre,
            column.spread,
            column.product_share,
            column.mean_share,
            column.recipe,
        )
        for name in pooled
    )


def check_equal_columns(plan: StudyPlan, what: str) -> None:
    """Refuse what needs the same columns of all clients.

    Parameters
    ----------
    plan : StudyPlan
        The whole plan.
    what : str
        What needs them, as the subject of a sentence.

    Raises
    ------
    PlanError
        If a client lacks variables.

    Examples
    --------
    >>> check_equal_columns(StudyPlan((Continuous("age"),), ("north",)), "a secure sum")
    """
    if plan.absent:
        raise PlanError(
            f"{describe_absent(plan.absent)} by this plan, and {what} needs the same columns of all clients; collect "
            "single summaries, or make a plan of the variables that all clients have",
            parameter="absent",
        )


def _reject_strings(*lists: object) -> None:
    """Refuse a string where a list is expected: as a sequence, it would be taken for a list of letters."""
    for found in lists:
        if isinstance(found, str):
            raise TypeError(f"expected a list, found {cut_repr(found)}")


def _change_from_json(document: Mapping[str, Any]) -> ClientChange:
    absent = document.get("absent", {})
    lists = {key: names for key, names in document.items() if key != "absent"}
    _reject_strings(*lists.values(), *absent.values())
    return ClientChange(**{key: tuple(names) for key, names in lists.items()}, absent=absent)


def _variable_to_json(variable: Variable) -> dict[str, Any]:
    """Return the fields of a variable; shares of rows and a recipe only where there are any."""
    fields = {"kind": type(variable).__name__.lower(), **asdict(replace(variable, recipe=None))}
    shown = {name: value for name, value in fields.items() if name not in _SHARES or value != 1.0}
    del shown["recipe"]
    return shown if variable.recipe is None else {**shown, "recipe": recipe_to_document(variable.recipe)}


def _variable_from_json(document: Mapping[str, Any]) -> Variable:
    fields = dict(document)
    kinds: dict[str, type[Variable]] = {"continuous": Continuous, "categorical": Categorical}
    if "recipe" in fields:
        fields["recipe"] = parse_recipe(fields["recipe"], f"the recipe of {cut_repr(fields['name'])}", refuse=PlanError)
    return kinds[fields.pop("kind")](**fields)
