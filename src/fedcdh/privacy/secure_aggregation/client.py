"""The client of secure aggregation: what it remembers, what it answers, and what it refuses.

A client trusts the plan file, its own disk and its own random numbers, but not the server. It masks once in a session
and signs one list of survivors. For every other client it reveals either its share of the mask seed, if that client is
in the list, or its share of the masking key, if it is not: with both, the server could remove all masks of that
client. A repeated request is answered with the same bytes. Any other request is refused, also after a restart, because
the state is on disk before an answer leaves.

One sum of summaries is unmasked per plan file. The sums over two sets of clients differ by the clients in only one of
them. So the client begins a second attempt only if it has not revealed anything in the first. After that sum, its
clients may add answers about residuals: one sum for each request, with a state of its own, and over all clients of the
sum of summaries or none.
"""

from __future__ import annotations

import hashlib
import secrets as system_random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fedcdh.errors import SecureAggregationError, SignatureError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.differential.mechanism import add_noise, add_noise_share
from fedcdh.privacy.secure_aggregation.limits import SecureSumLimits
from fedcdh.privacy.secure_aggregation.masking import (
    KEY_BYTES,
    NONCE_BYTES,
    agree_secret,
    derive_pair_mask_key,
    derive_public_key,
    derive_self_mask_key,
    expand_mask,
    seal,
    unseal,
)
from fedcdh.privacy.secure_aggregation.messages import (
    BytesByClient,
    ClientNames,
    ConfirmedSurvivors,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggReply,
    SecAggRequest,
    SecAggTerms,
    ShareDelivery,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import SHARE_BYTES, RandomBytes, split_secret
from fedcdh.summaries.integer_vectors import Words, encode_summary
from fedcdh.summaries.residuals import ResidualSums, encode_answers
from fedcdh.summaries.summary import Summary

SummaryProvider = Callable[[], tuple[Summary, bool]]
"""Returns the summary that the policy lets leave, and whether disclosure control was on."""
AnswerProvider = Callable[[SecAggTerms], tuple[tuple[ResidualSums, ...], bool]]
"""Returns the answers to the request in the terms that the policy lets leave, and whether disclosure control was on."""


@dataclass(frozen=True)
class ClientSecrets:
    """Secrets that nobody else may know: two private keys, the seed of the client's own mask, and the shares of others.

    `held` has both shares of every client that shared its secrets.
    """

    sealing: bytes = field(repr=False)
    masking: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    held: BytesByClient = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", MappingProxyType(dict(self.held)))

    @classmethod
    def new(cls, random: RandomBytes) -> ClientSecrets:
        """Draw new secrets."""
        return cls(random(KEY_BYTES), random(KEY_BYTES), random(KEY_BYTES))


@dataclass(frozen=True)
class SecAggMember:
    """State of a client in a session. After it has revealed its shares, it holds no secrets any more.

    Parameters
    ----------
    terms : SecAggTerms
        The terms that the client agreed to.
    keys : PublicKeys
        The keys that it sent.
    secrets : ClientSecrets or None
        Its secrets, until it has revealed its shares.
    roster : Roster, optional
        The roster that it answered.
    shares : SealedShares, optional
        The shares that it sent.
    masked : MaskedVector, optional
        The masked vector that it sent.
    present : SurvivorList, optional
        The list that it signed.
    opened : UnmaskingShares, optional
        The shares that it revealed.
    """

    terms: SecAggTerms
    keys: PublicKeys
    secrets: ClientSecrets | None = field(repr=False)
    roster: Roster | None = None
    shares: SealedShares | None = None
    masked: MaskedVector | None = None
    present: SurvivorList | None = None
    opened: UnmaskingShares | None = None

    @property
    def client(self) -> str:
        """Name of the client."""
        return self.keys.client

    @property
    def session(self) -> str:
        """Digest of the roster; empty before there is one."""
        return "" if self.roster is None else self.roster.digest


@dataclass(frozen=True)
class ResidualPart:
    """A client's part in sums of answers about residuals.

    Parameters
    ----------
    before : SecAggMember or None
        Its state in the sum of summaries.
    provide : callable
        Returns its answers to the request in the terms, and whether disclosure control was on.

    Examples
    --------
    >>> ResidualPart(None, lambda terms: ((), True)).clients  # none before a sum of summaries
    ()
    """

    before: SecAggMember | None = field(repr=False)
    provide: AnswerProvider

    @property
    def clients(self) -> ClientNames:
        """Names of the clients in the sum of summaries; none before this client has signed their list."""
        return () if self.before is None or self.before.present is None else self.before.present.clients

    @property
    def min_threshold(self) -> int:
        """Threshold of the sum of summaries."""
        return 0 if self.before is None else self.before.terms.threshold


@dataclass(frozen=True)
class SecAggClient:
    """A client of a study that takes part in secure aggregation.

    Parameters
    ----------
    study : Study
        The plan file.
    client : str
        Name of the client.
    key : SigningKey
        Its key.
    random : callable, optional
        Returns the given number of random bytes; for tests only. Default: the operating system's generator.
    residuals : ResidualPart, optional
        Its part in sums of answers about residuals. Default: it takes part in none.
    limits : SecureSumLimits, optional
        What it asks of the terms. Default: the default limits.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> keys = {client: SigningKey.generate() for client in ("east", "north", "west")}
    >>> plan = StudyPlan((Continuous("age", 60, 15),), tuple(keys))
    >>> study = Study(plan, keys={client: key.public for client, key in keys.items()})
    >>> client = SecAggClient(study, "north", keys["north"])
    >>> state, reply = client.answer(SecAggTerms.of(study), None, lambda: (None, False))
    >>> reply.kind
    'keys'
    """

    study: Study
    client: str
    key: SigningKey
    random: RandomBytes = field(default_factory=lambda: system_random.token_bytes, repr=False)
    residuals: ResidualPart | None = None
    limits: SecureSumLimits = field(default_factory=SecureSumLimits)

    def answer(
        self, request: SecAggRequest, state: SecAggMember | None, provide: SummaryProvider
    ) -> tuple[SecAggMember, SecAggReply]:
        """Answer a request of the server.

        Parameters
        ----------
        request : SecAggRequest
            Terms, roster, delivery, list of survivors, or confirmations.
        state : SecAggMember or None
            What the client remembers.
        provide : callable
            Returns the summary, and whether disclosure control was on. Called in the round of masks only, and not in
            a sum of answers.

        Returns
        -------
        state : SecAggMember
            What has to be remembered before the answer leaves.
        reply : SecAggReply
            The answer.

        Raises
        ------
        SecureAggregationError
            If the request does not follow the protocol.
        SignatureError
            If a signature is missing or false.
        DisclosureError
            If the limits of this client are not kept.
        """
        if isinstance(request, SecAggTerms):
            return self._send_keys(request, state)
        if state is None or state.secrets is None:
            return self._answer_after_end(request, state)
        if isinstance(request, Roster):
            return self._share_secrets(request, state)
        if isinstance(request, ShareDelivery):
            return self._mask_vector(request, state, provide)
        if isinstance(request, SurvivorList):
            return self._confirm_survivors(request, state)
        return self._reveal_shares(request, state)

    # Round 1: keys

    def _send_keys(self, terms: SecAggTerms, state: SecAggMember | None) -> tuple[SecAggMember, PublicKeys]:
        terms.check(self.study)
        if self.study.keys.get(self.client) != self.key.public:
            raise SignatureError(
                f"The plan file names another key for {self.client}, or does not name this client. Expected the key "
                "here. Use the key that the plan file names, or ask for a plan with the new one"
            )
        if state is not None and terms == state.terms:
            return state, state.keys
        self._check_request(terms, state)
        if state is not None and terms.attempt <= state.terms.attempt:
            raise SecureAggregationError(
                f"There are new terms for attempt {terms.attempt}, but this client has agreed to others for attempt "
                f"{state.terms.attempt}. Expected a higher number. Begin another attempt"
            )
        if state is not None and state.opened is not None:
            raise SecureAggregationError(
                "This client has already helped to unmask a sum of this study. Expected one sum per plan: the sums "
                "over two sets of clients differ by single clients. If there has to be another, make a new plan, after "
                "asking the person responsible for data protection"
            )
        self._check_limits(terms, self.study.plan.clients)
        secrets = ClientSecrets.new(self.random)
        public = derive_public_key(secrets.sealing), derive_public_key(secrets.masking)
        keys = PublicKeys(self.client, terms.digest, *public).signed(self.key)
        return SecAggMember(terms, keys, secrets), keys

    def _check_request(self, terms: SecAggTerms, state: SecAggMember | None) -> None:
        """Refuse a request about residuals before the sum of summaries, or in the place of another request."""
        if state is not None and terms.request != state.terms.request:
            raise SecureAggregationError(
                "There are terms with another request than this client has agreed to under the same number. Expected "
                "the same request. Do not go on, and ask the coordinator"
            )
        if not terms.request:
            return
        if self.residuals is None or self.client not in self.residuals.clients:
            raise SecureAggregationError(
                "There are terms with a request about residuals, but this client has not signed who is in a sum of "
                "summaries by this plan. Expected that sum first. Begin with the sum of the summaries"
            )
        if terms.threshold < self.residuals.min_threshold:
            raise SecureAggregationError(
                f"The threshold is {terms.threshold}. Expected at least {self.residuals.min_threshold}, that of the "
                "sum of summaries. Propose that threshold"
            )

    def _check_limits(self, terms: SecAggTerms, present: ClientNames) -> None:
        """Refuse terms and clients that this client's own policy does not admit."""
        self.limits.check(terms, self.client, self.study.plan.clients, present)

    def _check_complete(self, terms: SecAggTerms, clients: ClientNames, what: str) -> None:
        """Refuse a sum of answers over other clients than the sum of summaries."""
        expected = () if self.residuals is None else self.residuals.clients
        if terms.request and {*clients} != {*expected}:
            raise SecureAggregationError(
                f"The {what} names {', '.join(clients)}. Expected {', '.join(expected) or 'nobody'}, the clients of "
                "the sum of summaries: sums over two sets of clients differ by single clients. Do not go on, and ask "
                "the coordinator"
            )

    # Round 2: shares of two secrets

    def _share_secrets(self, roster: Roster, state: SecAggMember) -> tuple[SecAggMember, SealedShares]:
        if state.roster is not None and state.shares is not None:
            if roster != state.roster:
                raise SecureAggregationError(
                    "There is a second roster in this attempt. Expected the one that this client has answered. Ask the "
                    "coordinator why"
                )
            return state, state.shares
        roster.check(self.study)
        if roster.terms != state.terms or state.keys not in roster.keys:
            raise SecureAggregationError(
                "The roster is of another attempt, or has other keys for this client. Expected the keys that it sent. "
                "Do not go on, and ask the coordinator"
            )
        self._check_limits(roster.terms, roster.clients)
        self._check_complete(roster.terms, roster.clients, "roster")
        secrets = _require_secrets(state)
        parts = self._split_secrets(roster, secrets)
        boxes = {client: self._seal_share(roster, secrets, client, part) for client, part in parts.items()}
        commitment = commit_to_seed(secrets.seed, roster.digest)
        others = _drop_client(boxes, self.client)
        shares = SealedShares(self.client, roster.digest, commitment, others).signed(self.key)
        holding = replace(secrets, held={self.client: parts[self.client]})
        return replace(state, secrets=holding, roster=roster, shares=shares), shares

    def _split_secrets(self, roster: Roster, secrets: ClientSecrets) -> dict[str, bytes]:
        """Return, for every client of the roster, its share of the seed, then that of the masking key."""
        places = {client: point for client, point in share_points(self.study).items() if client in roster.clients}
        threshold = roster.terms.threshold
        seeds = split_secret(secrets.seed, threshold, places.values(), self.random)
        keys = split_secret(secrets.masking, threshold, places.values(), self.random)
        return {client: seeds[point] + keys[point] for client, point in places.items()}

    def _seal_share(self, roster: Roster, secrets: ClientSecrets, client: str, part: bytes) -> bytes:
        secret = agree_secret(secrets.sealing, roster.keys_of(client).sealing)
        return seal(secret, roster.digest, self.client, client, part, self.random(NONCE_BYTES))

    # Round 3: the masked vector

    def _mask_vector(
        self, delivery: ShareDelivery, state: SecAggMember, provide: SummaryProvider
    ) -> tuple[SecAggMember, MaskedVector]:
        roster, secrets = _require_roster(state, delivery.session), _require_secrets(state)
        clients = delivery.clients
        if state.masked is not None:
            if clients != state.masked.masked_with:
                raise SecureAggregationError(
                    f"The delivery names {', '.join(clients)}. Expected {', '.join(state.masked.masked_with)}, with "
                    "which this client has masked its vector. Do not go on, and ask the coordinator"
                )
            return state, state.masked
        if self.client not in clients or not set(clients) <= set(roster.clients):
            raise SecureAggregationError(
                "The clients that sent shares are not those of the roster, or this client is not among them. Expected "
                "clients of the roster, this one included. Do not go on, and ask the coordinator"
            )
        roster.terms.check_present(clients, "sent shares")
        self._check_limits(roster.terms, clients)
        self._check_complete(roster.terms, clients, "delivery")
        held = {
            sender: self._unseal_share(roster, secrets, sender, delivery) for sender in clients if sender != self.client
        }
        words, disclosure_control = self._encode_own(roster, provide)
        masked = words + self._sum_masks(roster, secrets, clients, len(words))
        message = MaskedVector(self.client, roster.digest, clients, disclosure_control, masked).signed(self.key)
        return replace(state, secrets=replace(secrets, held={**secrets.held, **held}), masked=message), message

    def _encode_own(self, roster: Roster, provide: SummaryProvider) -> tuple[Words, bool]:
        """Return the vector of the client's answers or of its summary, and whether disclosure control was on."""
        if roster.terms.request and self.residuals is not None:
            answers, disclosure_control = self.residuals.provide(roster.terms)
            return encode_answers(answers), disclosure_control
        summary, disclosure_control = provide()
        terms = roster.terms
        groups = terms.groups_of(roster.clients)
        words = encode_summary(self._with_noise(summary), self.study.plan, groups, terms.mixtures)
        return words, disclosure_control

    def _with_noise(self, summary: Summary) -> Summary:
        """Add the noise that the plan asks for, unless the summary has it."""
        noise = self.study.plan.noise
        if noise is None or summary.noise:
            return summary
        return (add_noise if not noise.distributed else add_noise_share)(summary, self.study.plan, self.random)

    def _unseal_share(self, roster: Roster, secrets: ClientSecrets, sender: str, delivery: ShareDelivery) -> bytes:
        box = delivery.boxes[sender].get(self.client)
        if box is None:
            raise SecureAggregationError(
                f"The delivery has no shares of {sender} for {self.client}. Expected shares of every sender. Ask the "
                "coordinator for the delivery again"
            )
        secret = agree_secret(secrets.sealing, roster.keys_of(sender).sealing)
        part = unseal(secret, roster.digest, sender, self.client, box)
        if len(part) != 2 * SHARE_BYTES:
            raise SecureAggregationError(
                f"{sender} sealed {len(part)} bytes for {self.client}. Expected two shares of {SHARE_BYTES} bytes. Ask "
                f"{sender} which version of fedcdh it runs"
            )
        return part

    def _sum_masks(self, roster: Roster, secrets: ClientSecrets, clients: ClientNames, count: int) -> Words:
        """Sum the own mask and the pair masks: of two clients, the first by name adds, the other subtracts."""
        total = expand_mask(derive_self_mask_key(secrets.seed, roster.digest, self.client), count).copy()
        for other in clients:
            if other != self.client:
                secret = agree_secret(secrets.masking, roster.keys_of(other).masking)
                mask = expand_mask(derive_pair_mask_key(secret, roster.digest, self.client, other), count)
                total = total + mask if self.client < other else total - mask
        return total

    # Rounds 4 and 5: the list of survivors, and the shares for unmasking

    def _confirm_survivors(
        self, survivors: SurvivorList, state: SecAggMember
    ) -> tuple[SecAggMember, SurvivorConfirmation]:
        roster = _require_roster(state, survivors.session)
        if state.present is not None and survivors != state.present:
            raise SecureAggregationError(
                "There is a second list of survivors in this session. Expected the one that this client has signed: "
                "two lists would unmask two sums. Do not go on, and ask the coordinator"
            )
        if self.client not in survivors.clients or not set(survivors.clients) <= set(_mask_partners(state)):
            raise SecureAggregationError(
                "The list of survivors names clients that this one has no masks with, or does not name this client. "
                "Expected clients that masked together, this one included. Do not go on, and ask the coordinator"
            )
        roster.terms.check_present(survivors.clients, "sent masked vectors")
        self._check_limits(roster.terms, survivors.clients)
        self._check_complete(roster.terms, survivors.clients, "list of survivors")
        confirmation = SurvivorConfirmation(self.client, roster.digest, survivors.digest).signed(self.key)
        return replace(state, present=survivors), confirmation

    def _reveal_shares(
        self, confirmed: ConfirmedSurvivors, state: SecAggMember
    ) -> tuple[SecAggMember, UnmaskingShares]:
        survivors = confirmed.present
        roster, secrets = _require_roster(state, survivors.session), _require_secrets(state)
        if survivors != state.present:
            raise SecureAggregationError(
                "This is another list of survivors. Expected the one that this client has signed. Do not go on, and "
                "ask the coordinator"
            )
        confirmed.check(self.study, roster.terms)
        seeds = {client: secrets.held[client][:SHARE_BYTES] for client in survivors.clients}
        absent = set(_mask_partners(state)) - set(survivors.clients)
        keys = {client: secrets.held[client][SHARE_BYTES:] for client in sorted(absent)}
        message = UnmaskingShares(self.client, roster.digest, survivors.digest, seeds, keys).signed(self.key)
        return replace(state, secrets=None, masked=None, opened=message), message

    def _answer_after_end(self, request: SecAggRequest, state: SecAggMember | None) -> tuple[SecAggMember, SecAggReply]:
        """Repeat the last answer for the same request; refuse any other, for which the secrets are gone."""
        if state is None:
            raise SecureAggregationError(
                "This client has sent no keys for secure aggregation of this study. Expected the terms first. Begin "
                "with the terms"
            )
        if isinstance(request, ConfirmedSurvivors) and request.present == state.present and state.opened is not None:
            return state, state.opened
        raise SecureAggregationError(
            "This client has revealed its shares and deleted all secrets of this session. Expected no further request: "
            "the session is over. Make a new plan if another sum is needed"
        )


def share_points(study: Study) -> dict[str, int]:
    """Return the point of every client, at which its shares are."""
    return {client: place for place, client in enumerate(study.plan.clients, start=1)}


def commit_to_seed(seed: bytes, session: str) -> str:
    """Return a digest that identifies a seed and reveals nothing about it."""
    return hashlib.sha256(bytes.fromhex(session) + seed).hexdigest()


def _require_secrets(state: SecAggMember) -> ClientSecrets:
    if state.secrets is None:
        raise SecureAggregationError(
            "The secrets of this session are deleted. Expected a session that is not over. Make a new plan if another "
            "sum is needed"
        )
    return state.secrets


def _mask_partners(state: SecAggMember) -> ClientNames:
    return () if state.masked is None else state.masked.masked_with


def _require_roster(state: SecAggMember, session: str) -> Roster:
    if state.roster is None or session != state.session:
        expected = f"the session {state.session[:12]} of this client" if state.roster else "a roster first"
        raise SecureAggregationError(
            f"The request is of the session {session[:12]}. Expected {expected}. Do not go on with it, and ask the "
            "coordinator"
        )
    return state.roster


def _drop_client(boxes: Mapping[str, bytes], client: str) -> dict[str, bytes]:
    return {other: box for other, box in boxes.items() if other != client}
