"""Declarations: everything said is understood, and everything else is refused with the place and a hint."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.errors import FedCDHError, PlanError
from fedcdh.federation.planning.declaration import Declaration, VariableDeclaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.variables import Categorical, Continuous

TEXT = """
clients = ["north", "south", "coast"]

[variables.age]
kind = "continuous"
range = [18, 100]

[variables.weight]
mean = 75
sd = 14.5

[variables.smoker]
levels = ["no", "yes"]

[variables.grade]
kind = "categorical"
levels = [0, 1, 2]

[variables.bmi]

[knowledge]
tiers = [["age"], ["smoker", "bmi"]]
required = [["age", "bmi"], ["__domain__", "bmi"]]
forbidden = [["smoker", "bmi"]]
forbid_within_tier = [1]

[features]
family = "fourier"
width = 6
bandwidth = 2
seed = 7
"""


def test_everything_said_is_understood():
    made = Declaration.from_toml(TEXT)
    assert made == Declaration.from_toml(TEXT.encode()) == Declaration.from_toml(TEXT.replace("\n", "\r\n"))
    assert made.clients == ("north", "south", "coast")
    assert [one.name for one in made.variables] == ["age", "weight", "smoker", "grade", "bmi"]
    age, weight, smoker, grade, bmi = (one.variable for one in made.variables)
    assert age == Continuous("age", 59, 82 / 12**0.5)
    assert weight == Continuous("weight", 75, 14.5)
    assert (smoker, grade) == (Categorical("smoker", ("no", "yes")), Categorical("grade", ("0", "1", "2")))
    assert bmi is None
    assert [one.kind for one in made.variables] == ["continuous", "continuous", "categorical", "categorical", None]
    known = Knowledge([("age", "bmi"), (DOMAIN, "bmi")], [("smoker", "bmi")], [["age"], ["smoker", "bmi"]], [1])
    assert made.knowledge == known
    assert made.family == Fourier(6, 2.0, 7)


def test_nothing_has_to_be_said():
    assert Declaration.from_toml("") == Declaration()
    assert Declaration().knowledge == NO_KNOWLEDGE
    assert Declaration.from_toml("[features]").family == Hermite()
    assert Declaration.from_toml("[features]\nwidth = 3").family == Hermite(3)
    assert Declaration.from_toml('[variables.x]\nkind = "categorical"').variables == (
        VariableDeclaration("x", "categorical"),
    )


@settings(deadline=None)
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_a_range_is_that_of_even_values(low, high):
    text = f"[variables.x]\nrange = [{low!r}, {high!r}]"
    try:
        (x,) = Declaration.from_toml(text).variables
    except PlanError:
        assert not low < high or high / 2 - low / 2 == 0
        return
    assert low <= x.location <= high
    assert x.scale == pytest.approx((high / 2 - low / 2) / 3**0.5)
    assert isinstance(x.variable, Continuous)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("client = ['a']", "unknown key 'client', did you mean 'clients'?"),
        ("x = 1", "known are clients, variables, recipes, knowledge, features"),
        ("clients = 'north'", "list of texts"),
        ("clients = ['a', 'a']", "different names"),
        ("clients = ['']", "not empty"),
        ("clients = [1]", "list of texts"),
        ("variables = 1", r"\[variables\] should be a table"),
        ("[variables]\nage = 1", r"\[variables.age\] should be a table"),
        ("[variables.age]\nKind = 'continuous'", "did you mean 'kind'?"),
        ("[variables.age]\nkind = 'number'", '"continuous" or "categorical"'),
        ("[variables.age]\nkind = []", '"continuous" or "categorical"'),
        ("[variables.age]\nkind = 'continuous'\nlevels = ['a']", "levels are for categorical"),
        ("[variables.age]\nkind = 'categorical'\nrange = [0, 1]", "levels are for categorical"),
        ("[variables.age]\nrange = [0, 1]\nlevels = ['a']", "levels are for categorical"),
        ("[variables.age]\nrange = [1, 0]", "from a smaller to a larger"),
        ("[variables.age]\nrange = [1, 1]", "from a smaller to a larger"),
        ("[variables.age]\nrange = [0, inf]", "finite number"),
        ("[variables.age]\nrange = [nan, 1]", "finite number"),
        ("[variables.age]\nrange = [false, true]", "finite number"),
        (f"[variables.age]\nrange = [0, 1{'0' * 400}]", "finite number"),
        ("[variables.age]\nrange = [0, 1, 2]", "two numbers"),
        ("[variables.age]\nrange = 5", "two numbers"),
        ("[variables.age]\nmean = 5", "a mean and an sd"),
        ("[variables.age]\nmean = 5\nsd = 1\nrange = [0, 1]", "either a range"),
        ("[variables.age]\nmean = 5\nsd = 0", "positive"),
        ("[variables.age]\nmean = '5'\nsd = 1", "finite number"),
        ("[variables.age]\nlevels = []", "one or more different"),
        ("[variables.age]\nlevels = ['1', 1]", "one or more different"),
        ("[variables.age]\nlevels = [true, false]", r"\[0, 1\]"),
        ("[variables.age]\nlevels = [1.5]", r"\[0, 1\]"),
        ("[variables.age]\nlevels = 'no'", r"\[0, 1\]"),
        ("[knowledge]\ntier = []", "did you mean 'tiers'?"),
        ("[knowledge]\ntiers = ['age']", "list of texts"),
        ("[knowledge]\ntiers = 'age'", "should be a list"),
        ("[knowledge]\nrequired = [['a']]", "expected a tail and a head"),
        ("[knowledge]\nrequired = ['ab']", "list of texts"),
        ("[knowledge]\nforbid_within_tier = [0.5]", "whole number"),
        ("[knowledge]\nforbid_within_tier = [-1]", "whole number"),
        ("[features]\nfamily = 'wavelet'", "hermite, fourier"),
        ("[features]\nfamily = ['hermite']", "hermite, fourier"),
        ("[features]\nseed = 1", "fourier"),
        ("[features]\nwidth = 3.0", "whole number"),
        ("[features]\nbandwidth = true", "finite number"),
        ("[variables.age]\nkind = 1979-05-27", '"continuous"'),
        ("a = ", "not TOML"),
        ("a = 1\na = 2", "not TOML"),
        ("a = 1" + "0" * 5000, "not TOML"),
        ("x = " + "[" * 50_000, "nested too deeply"),
        ("x = " + "{a=" * 30_000, "nested too deeply"),
        ("a." * 400_000 + "b = 1", "200 dots"),
        (b"\xff", "UTF-8"),
        ("a = '\ud800'", "UTF-8"),
        (" " * 1_000_001, "longer than"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text, reason):
    with pytest.raises(PlanError, match=reason) as refused:
        Declaration.from_toml(text)
    assert "Correct it there" in str(refused.value)


def test_a_slip_of_the_pen_never_crashes():
    rng = random.Random(0)
    for _ in range(3000):
        at, letters = rng.randrange(len(TEXT)), "".join(rng.choices('[]{}=",.#\n01ax_ ', k=rng.randint(0, 3)))
        try:
            Declaration.from_toml(TEXT[:at] + letters + TEXT[at + rng.randint(0, 3) :])
        except FedCDHError:
            continue


def test_levels_and_ranges_are_declared_before_or_after_a_recipe():
    made = Declaration.from_toml(
        """
        clients = ["north"]
        [variables.nyha]
        levels = ["I", "II", "III", "IV"]
        [variables.ward]
        levels = ["a", "b"]
        [variables.crp]
        range = [1, 100]
        [variables.ef]
        [recipes.nyha]
        groups = { "III/IV" = ["III", "IV"] }
        [recipes.ward]
        other = true
        [recipes.crp]
        clip = [0.1, 50]
        log = true
        [recipes.ef]
        binary = { above = 40 }
        """
    )
    plan = plan_study((), made).plan
    assert [variable.levels for variable in plan.variables if isinstance(variable, Categorical)] == [
        ("I", "II", "III/IV"),
        ("a", "b", "other"),
        ("no", "yes"),
    ]
    crp = plan.variables[2]
    assert crp.location == pytest.approx(np.log(50) / 2)
    assert crp.scale == pytest.approx(np.log(50) / np.sqrt(12))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[variables.a]\nmean = 1\nsd = 1\n[recipes.a]\nlog = true", "Declare its range"),
        ("[variables.a]\nrange = [0, 9]\n[recipes.a]\nlog = true", "above 0 for a logarithm"),
        ("[variables.age]\nrange = [0, 9]\n[recipes.agee]\nlog = true", "did you mean 'age'"),
        ("[variables.a]\nrange = [0, 9]\n[recipes.a.clients.nort]\nfactor = 2", "did you mean 'north'"),
        ("[variables.a]\nrange = [0, 9]\n[recipes.a]\ngroups = {x = ['y']}", "recipe gives a categorical"),
    ],
)
def test_recipes_that_do_not_fit_the_declaration_are_refused(text, reason):
    with pytest.raises(PlanError, match=reason):
        plan_study((), Declaration.from_toml('clients = ["north"]\n' + text))
