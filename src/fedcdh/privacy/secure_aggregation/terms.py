"""The terms of a session: what the coordinator proposes, and every client agrees to by signing its keys with it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from fedcdh.errors import SecureAggregationError, SignatureError
from fedcdh.messages.round_files import read_request, request_to_json
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation._signed_message import SecAggMessage
from fedcdh.summaries.domain_mixtures import MAX_MIXTURES, derive_signs, find_smallest_sum
from fedcdh.summaries.integer_vectors import Groups, group_clients
from fedcdh.summaries.plan import check_equal_columns
from fedcdh.summaries.residuals import ResidualRequest
from fedcdh.summaries.summary import Integers

MIN_CLIENTS = 3
"""From a sum over two clients, each knows the other's summand."""
MAX_CLIENTS = 1000
MAX_ATTEMPTS = 1_000_000

ClientNames = tuple[str, ...]


@dataclass(frozen=True)
class SecAggTerms(SecAggMessage):
    """The terms of one session.

    Parameters
    ----------
    plan : str
        Fingerprint of the plan.
    study : str
        SHA-256 of the plan file, which names the keys of the clients.
    threshold : int
        Number of clients that have to be there at the end, and that together can unmask the sum.
    groups : mapping from str to str, optional
        Group of every client. Default: each client is a group of its own.
    attempt : int, default 1
        Counts the sessions of a study, where one failed.
    request : str, default ""
        Text of a request about residuals. The sum is then that of the clients' answers to it, not of their summaries.
    mixtures : int, default 0
        Number of mixtures of the clients' first moments that become known in the place of each client's own. 0: each
        client's, or group's, become known.

    Notes
    -----
    With n clients, the threshold t is more than n/2, so that the server cannot unmask the sums of two disjoint sets of
    clients. The default is more than 2n/3.

    Examples
    --------
    >>> from fedcdh.messages.signing import SigningKey
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> keys = {client: SigningKey.generate().public for client in ("east", "north", "south", "west")}
    >>> study = Study(StudyPlan((Continuous("age", 60, 15),), tuple(keys)), keys=keys)
    >>> SecAggTerms.of(study).threshold
    3
    """

    kind: ClassVar[str] = "terms"

    plan: str
    study: str
    threshold: int
    groups: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 1
    request: str = ""
    mixtures: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    def document(self) -> dict[str, Any]:
        """Return the fields, without a request or mixtures where there are none."""
        found = super().document()
        return {name: value for name, value in found.items() if value or name not in ("request", "mixtures")}

    @cached_property
    def residuals(self) -> ResidualRequest | None:
        """The request whose answers are added; None if summaries are."""
        request = read_request(self.request) if self.request else None
        if request is not None and not isinstance(request, ResidualRequest):
            raise SecureAggregationError(
                "The terms have a request for joint features. Expected one about residuals: tests need the joint "
                "features of every client. Use a study without masks"
            )
        return request

    @classmethod
    def of(
        cls,
        study: Study,
        *,
        threshold: int | None = None,
        groups: Mapping[str, str] | None = None,
        attempt: int = 1,
        request: ResidualRequest | None = None,
        mixtures: int = 0,
    ) -> SecAggTerms:
        """Propose terms for a study.

        Parameters
        ----------
        study : Study
            The plan file.
        threshold : int, optional
            Number of clients that can unmask the sum. Default: more than two thirds of them.
        groups : mapping from str to str, optional
            Group of every client. Default: each by itself, or all in one if the plan has noise.
        attempt : int, default 1
            Number of the session.
        request : ResidualRequest, optional
            The request whose answers are added. Default: summaries are.
        mixtures : int, default 0
            Number of mixtures of the clients' first moments, in the place of each client's own.

        Returns
        -------
        SecAggTerms
            The terms.

        Raises
        ------
        SecureAggregationError
            If too few clients would see too much.
        SignatureError
            If the plan file lacks the key of a client.
        """
        clients = study.plan.clients
        needed = 2 * len(clients) // 3 + 1 if threshold is None else threshold
        if not groups and study.plan.noise is not None:
            groups = dict.fromkeys(clients, "all clients")
        text = "" if request is None else request_to_json(request)
        terms = cls(study.plan.fingerprint, hash_study(study), needed, groups or {}, attempt, text, mixtures)
        terms.check(study)
        return terms

    def check(self, study: Study) -> None:
        """Refuse terms of another study, or under which too few clients would see too much.

        Parameters
        ----------
        study : Study
            The plan file.

        Raises
        ------
        SecureAggregationError
            If the terms do not fit the study, or the threshold or the groups are too small.
        SignatureError
            If the plan file lacks the key of a client, or two clients share one.
        """
        check_equal_columns(study.plan, "a secure sum")
        clients = study.plan.clients
        if self.plan != study.plan.fingerprint or self.study != hash_study(study):
            raise SecureAggregationError(
                "The terms are of another plan file, or of one with other keys. Expected those of the plan file here. "
                "Compare the plan files of all clients"
            )
        if not MIN_CLIENTS <= len(clients) <= MAX_CLIENTS:
            raise SecureAggregationError(
                f"The plan names {len(clients)} clients. Expected {MIN_CLIENTS} to {MAX_CLIENTS}: from a sum over two, "
                "each knows the other's summand. Make a plan with more clients, or send summaries without masks"
            )
        if not max(len(clients) // 2 + 1, MIN_CLIENTS) <= self.threshold <= len(clients):
            raise SecureAggregationError(
                f"The threshold is {self.threshold} of {len(clients)} clients. Expected more than half of them and at "
                f"least {MIN_CLIENTS}, so that the server cannot unmask the sums of two different sets of clients. "
                "Propose another threshold"
            )
        self._check_keys(study)
        if self.groups:
            _check_groups(self.groups, clients)
        if self.residuals is not None:
            self._check_request(study, self.residuals)
        if self.mixtures:
            self._check_mixtures(study)
        noise = study.plan.noise
        if noise is not None and (len(set(self.groups.values())) != 1 or self.threshold < noise.honest):
            raise SecureAggregationError(
                f"The terms have {len(set(self.groups.values()))} groups and the threshold {self.threshold}. By this "
                f"plan there is noise in the sum, of at least {noise.honest} clients; expected all clients in one "
                "group and a threshold of at least that number. Propose such terms"
            )

    def _check_request(self, study: Study, request: ResidualRequest) -> None:
        request.check(study.plan)
        if self.groups or study.plan.noise is not None:
            raise SecureAggregationError(
                "The terms have a request about residuals with groups, or by a plan with noise. Expected neither: the "
                "answers of all clients are one sum. Propose terms without groups, or use no further rounds"
            )

    def _check_mixtures(self, study: Study) -> None:
        if self.groups or self.request or study.plan.noise is not None:
            raise SecureAggregationError(
                "The terms have mixtures of clients with groups, with a request, or by a plan with noise. Expected "
                "mixtures alone: they stand in the place of groups. Propose terms with one of them"
            )
        if not 1 <= self.mixtures <= MAX_MIXTURES:
            raise SecureAggregationError(
                f"The terms have {self.mixtures} mixtures of clients. Expected 1 to {MAX_MIXTURES}. Propose another "
                "number"
            )
        smallest = find_smallest_sum(self.signs_of(study.plan.clients, study.plan.clients))
        if smallest < MIN_CLIENTS:
            raise SecureAggregationError(
                f"From {self.mixtures} mixtures of {len(study.plan.clients)} clients, sums of features over "
                f"{smallest} clients can be computed. Expected at least {MIN_CLIENTS} clients in each, since one of "
                "two knows the other's. Propose fewer mixtures, or make a plan with more clients"
            )

    def signs_of(self, planned: Collection[str], present: Collection[str]) -> Integers:
        """Return the signs in the mixtures of those present.

        Parameters
        ----------
        planned : collection of str
            All clients of the plan.
        present : collection of str
            Clients in the sum.

        Returns
        -------
        array of int64
            Signs, (mixtures, clients present).
        """
        there = {*present}
        return derive_signs(planned, self.mixtures)[:, [client in there for client in sorted(planned)]]

    def _check_keys(self, study: Study) -> None:
        if lacking := [client for client in study.plan.clients if client not in study.keys]:
            raise SignatureError(
                f"The plan file names no key for {', '.join(lacking)}. Expected one for every client: without it the "
                "server could speak in that client's name. Make the plan with the keys of all clients (fedcdh plan "
                "--site-key)"
            )
        if len(set(study.keys.values())) != len(study.keys):
            raise SignatureError(
                "Two clients have the same key in the plan file. Expected a key of its own for each. Have one of them "
                "make a new key, and make the plan again"
            )

    def check_present(self, clients: ClientNames, what: str) -> None:
        """Refuse to go on with fewer clients than the terms say, in total or in a group.

        Parameters
        ----------
        clients : tuple of str
            The clients that are there.
        what : str
            What they did, for the message of the error.

        Raises
        ------
        SecureAggregationError
            If there are too few.
        """
        if len(clients) < max(self.threshold, MIN_CLIENTS):
            raise SecureAggregationError(
                f"{len(clients)} clients {what} ({', '.join(clients)}). Expected at least {self.threshold}, or nothing "
                "can be unmasked. Wait for more, or begin another attempt"
            )
        for name, members in self.groups_of(clients) if self.groups else ():
            if len(members) < MIN_CLIENTS:
                raise SecureAggregationError(
                    f"Of the group {name!r} only {' and '.join(members)} {what}. Expected at least {MIN_CLIENTS}: the "
                    "sum of fewer reveals too much of each. Wait for more, or begin another attempt with other groups"
                )

    def groups_of(self, clients: ClientNames) -> Groups:
        """Return the groups that these clients are in.

        Parameters
        ----------
        clients : tuple of str
            Some of the clients.

        Returns
        -------
        tuple of tuple
            Names of groups, sorted, with their clients.
        """
        return group_clients(self.groups, clients)


def hash_study(study: Study) -> str:
    """Return the SHA-256 of the plan file, keys included.

    Clients compare it by another channel, such as the telephone; then they know that they have the same keys.
    """
    return hashlib.sha256(study.to_json().encode()).hexdigest()


def _check_groups(groups: Mapping[str, str], clients: ClientNames) -> None:
    if groups.keys() != set(clients):
        raise SecureAggregationError(
            "The groups do not name the clients of the plan. Expected every client in one group. Correct the groups"
        )
    for name, members in group_clients(groups, clients):
        if len(members) < MIN_CLIENTS:
            raise SecureAggregationError(
                f"The group {name!r} has the clients {', '.join(members)}. Expected at least {MIN_CLIENTS}, since its "
                "rows and means become known. Make larger groups"
            )
