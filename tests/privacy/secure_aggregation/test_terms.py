"""The terms of a session: enough clients, a key for each, a sufficient threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from masked_studies import a_study

from fedcdh.errors import SecureAggregationError, SignatureError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.messages import (
    SecAggTerms,
)
from fedcdh.summaries.plan import Categorical, StudyPlan


def test_two_sites_are_too_few():
    with pytest.raises(SecureAggregationError, match="2 clients"):
        SecAggTerms.of(a_study(2)[0])


def test_every_site_needs_a_key_of_its_own():
    study, keys, _ = a_study(3)
    with pytest.raises(SignatureError, match="site2"):
        SecAggTerms.of(replace(study, keys={c: study.keys[c] for c in ("site0", "site1")}))
    with pytest.raises(SignatureError, match="same key"):
        SecAggTerms.of(replace(study, keys=dict.fromkeys(keys, keys["site0"].public)))


@pytest.mark.parametrize(("sites", "threshold"), [(3, 3), (4, 3), (5, 4), (6, 5), (9, 7), (10, 7), (100, 67)])
def test_more_than_two_thirds_open_the_sum(sites, threshold):
    clients = tuple(f"c{k}" for k in range(sites))
    keys = {client: SigningKey.generate().public for client in clients}
    study = Study(StudyPlan((Categorical("sex", ("f", "m")),), clients), keys=keys)
    assert SecAggTerms.of(study).threshold == threshold
    with pytest.raises(SecureAggregationError, match="threshold"):
        SecAggTerms.of(study, threshold=sites // 2 if sites > 5 else 2)
