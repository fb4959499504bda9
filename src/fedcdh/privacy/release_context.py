"""The context of a release: the client that releases something, and the rules it is held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedcdh.errors import SignatureError
from fedcdh.messages.signing import SigningKey, key_fingerprint
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate


@dataclass(frozen=True)
class ReleaseContext:
    """The client that releases something, and the rules it is held to.

    Parameters
    ----------
    client : str
        Name of the client.
    policy : Policy, optional
        Policy of the site. Default: the default limits.
    local_names : mapping from str to str, optional
        From the study's names of variables to the site's own column names, where these differ.
    gate : ReleaseGate, optional
        Records releases in the ledger of the site. Default: nothing is recorded.
    max_missing_share : float, default 0.5
        Largest share of rows that may be left out for missing values.
    workers : int, default 1
        Number of threads that share the work on a summary.

    Examples
    --------
    >>> ReleaseContext("north", Policy(min_rows=300)).label
    "client 'north'"
    """

    client: str
    policy: Policy = field(default_factory=Policy)
    local_names: Mapping[str, str] = field(default_factory=dict)
    gate: ReleaseGate | None = None
    max_missing_share: float = 0.5
    workers: int = 1

    @property
    def label(self) -> str:
        """The name of the client in errors."""
        return f"client {self.client!r}"


def invert_renames(renames: Mapping[str, str]) -> dict[str, str]:
    """Return the mapping from the study's names to the site's own, given the mapping the other way."""
    return {study_name: own_name for own_name, study_name in renames.items()}


def check_invitation(
    study: Study, signed_by: str | None, context: ReleaseContext, key: SigningKey | None = None
) -> None:
    """Refuse, before any row is read, a plan that the policy does not accept or that names another key.

    Parameters
    ----------
    study : Study
        The plan file.
    signed_by : str or None
        Public key whose signature of the plan was verified.
    context : ReleaseContext
        The client and its rules.
    key : SigningKey, optional
        Key of the client.

    Raises
    ------
    DisclosureError
        If the policy does not accept the plan.
    SignatureError
        If the plan names another key for this client.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> study = Study(StudyPlan((Continuous("postcode"),), ("north", "south")))
    >>> check_invitation(study, None, ReleaseContext("north"))
    >>> policy = Policy(excluded_variables=frozenset({"postcode"}))
    >>> check_invitation(study, None, ReleaseContext("north", policy))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: This plan is not followed here, by the policy of this site:
    - variable 'postcode' is among the excluded_variables of the policy; ...
    """
    context.policy.check_plan(study.plan.for_client(context.client), signed_by, context.local_names)
    expected = study.keys.get(context.client)
    if expected is not None and (key is None or key.public != expected):
        found = f"the key here is {key_fingerprint(key.public)}" if key else "there is no key here"
        raise SignatureError(
            f"For {context.client} {found}, expected {key_fingerprint(expected)}, which the plan names. Name the right "
            "key with --key, or ask the coordinator for a plan with your new key"
        )
