"""Terms that cannot be kept are refused at once."""

from __future__ import annotations

import pytest
from federations import (
    ADAPTIVE,
)

from fedcdh.discovery.methods import METHODS
from fedcdh.errors import SettingsError
from fedcdh.federation import (
    StudyTerms,
)
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.secure_sum import SecureSumOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum": 0},
        {"timeout": 0.0},
        {"alpha": 2.0},
        {"method": "guess"},
        {"rounds": "many"},
        {"rounds": "adaptive"},
        {**ADAPTIVE, "max_rounds": 0},
        {**ADAPTIVE, "max_bytes": 0},
    ],
)
def test_impossible_terms_are_refused_at_once(wrong):
    with pytest.raises(SettingsError):
        StudyTerms(**wrong)


def test_a_secure_sum_goes_with_every_method_but_not_with_joint_features():
    with pytest.raises(SettingsError, match="reveals only sums over clients"):
        StudyTerms(secure_sum=SecureSumOptions(), **ADAPTIVE)
    for method in METHODS:
        assert StudyTerms(secure_sum=SecureSumOptions(), method=method).secure_sum is not None


def test_the_coordinator_waits_for_all_that_are_expected():
    declared = Declaration(clients=("a", "b", "c"))
    assert StudyTerms().expected_clients == 2
    assert StudyTerms(declaration=declared).expected_clients == 3
    assert StudyTerms(declaration=declared, expected=5).expected_clients == 5


def test_the_profile_request_names_declared_variables_and_kinds():
    text = '[variables.sex]\nlevels = ["f", "m"]\n[variables.age]\n'
    terms = StudyTerms(declaration=Declaration.from_toml(text), kinds={"age": "continuous"})
    request = terms.profile_request
    assert request.variables == ("sex", "age")
    assert dict(request.kinds) == {"sex": "categorical", "age": "continuous"}
    assert StudyTerms().profile_request.variables is None


@pytest.mark.parametrize(
    ("given", "asks"),
    [
        ({}, True),
        ({"rounds": "one"}, False),
        ({"method": "paper"}, False),
        ({"method": "constraint", "rounds": "residuals"}, True),
        ({"secure_sum": SecureSumOptions()}, True),
        ({"secure_sum": SecureSumOptions(), "rounds": "one"}, False),
    ],
)
def test_sites_are_asked_again_where_the_method_can_use_it(given, asks):
    assert StudyTerms(**given).asks_again is asks
