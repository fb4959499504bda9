"""The context of a release: names of columns, and invitations that a client accepts."""

from __future__ import annotations

import pytest

from fedcdh.errors import DisclosureError, SignatureError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.release_context import ReleaseContext, check_invitation, invert_renames
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

PLAN = StudyPlan((Continuous("age"),), ("north", "south"))


def test_names_lead_from_the_study_to_the_site():
    assert invert_renames({"alter": "age", "puls": "pulse"}) == {"age": "alter", "pulse": "puls"}


def test_the_plan_names_the_key_of_the_client_or_none():
    own, other = SigningKey.generate(), SigningKey.generate()
    context = ReleaseContext("north")
    check_invitation(Study(PLAN), None, context)
    check_invitation(Study(PLAN, keys={"north": own.public}), None, context, own)
    for key, found in ((other, "the key here is"), (None, "there is no key here")):
        with pytest.raises(SignatureError, match=f"For north {found}"):
            check_invitation(Study(PLAN, keys={"north": own.public}), None, context, key)


def test_a_renamed_column_does_not_evade_the_lists():
    policy = Policy(excluded_variables=frozenset({"alter"}))
    check_invitation(Study(PLAN), None, ReleaseContext("north", policy))
    with pytest.raises(DisclosureError, match=r"'age' \(here 'alter'\)"):
        check_invitation(Study(PLAN), None, ReleaseContext("north", policy, {"age": "alter"}))
