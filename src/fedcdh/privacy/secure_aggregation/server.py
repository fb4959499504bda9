"""The server of secure aggregation: each round from the answers of the one before, and finally the sum.

The server keeps no secret. It sees masked vectors, mask seeds of the survivors and masking keys of the clients that
left, and learns the sum over the survivors. It validates that sum as it validates a summary, and so can find that some
client lied, but not which. It checks each message as it arrives: the signature, the session, and that there is one per
client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fedcdh.errors import SecureAggregationError
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation._unmasking import drop_absent_groups, recover_masks
from fedcdh.privacy.secure_aggregation.messages import (
    ConfirmedSurvivors,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggTerms,
    ShareDelivery,
    SignedMessage,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Words, decode_aggregate, vector_length
from fedcdh.summaries.residuals import ResidualSums, answer_length, decode_answers

ReplyT = TypeVar("ReplyT", bound=SignedMessage)


@dataclass(frozen=True)
class SecAggServer:
    """The server of a study: for every round, a check of each answer and the request of the next round.

    Parameters
    ----------
    study : Study
        The plan file, which names the keys of the clients.

    See Also
    --------
    fedcdh.privacy.secure_aggregation.run_session : All rounds, one after the other.

    Examples
    --------
    >>> from fedcdh.messages.signing import SigningKey
    >>> from fedcdh.privacy.secure_aggregation.client import SecAggClient
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> keys = {client: SigningKey.generate() for client in ("east", "north", "west")}
    >>> plan = StudyPlan((Continuous("age", 60, 15),), tuple(keys))
    >>> study = Study(plan, keys={client: key.public for client, key in keys.items()})
    >>> server, terms = SecAggServer(study), SecAggTerms.of(study)
    >>> clients = [SecAggClient(study, client, key) for client, key in keys.items()]
    >>> replies = [client.answer(terms, None, lambda: (None, False))[1] for client in clients]
    >>> server.build_roster(terms, replies).clients
    ('east', 'north', 'west')
    """

    study: Study

    # Round 1: keys

    def check_keys(self, terms: SecAggTerms, keys: PublicKeys) -> None:
        """Refuse keys that were not signed for these terms, or that no client can have made.

        Parameters
        ----------
        terms : SecAggTerms
            The terms of the session.
        keys : PublicKeys
            Answer of a client.

        Raises
        ------
        SecureAggregationError, SignatureError
            If the answer is of other terms, a key is of low order, or the signature is false.
        """
        keys.check_signature(self.study)
        keys.check_points()
        if keys.terms != terms.digest:
            raise SecureAggregationError(
                f"The keys of {keys.client} are for other terms. Expected those of this session. Ask the client to "
                "answer them"
            )

    def build_roster(self, terms: SecAggTerms, keys: Iterable[PublicKeys]) -> Roster:
        """Build the roster of the clients that sent keys.

        Parameters
        ----------
        terms : SecAggTerms
            The terms of the session.
        keys : iterable of PublicKeys
            Answers of the clients.

        Returns
        -------
        Roster
            The request of the next round.

        Raises
        ------
        SecureAggregationError
            If there are too few clients.
        """
        roster = Roster(terms, tuple(sorted(keys, key=lambda one: one.client)))
        roster.check(self.study)
        return roster

    # Round 2: shares

    def check_shares(self, roster: Roster, shares: SealedShares) -> None:
        """Refuse shares that are not for all other clients of the roster.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        shares : SealedShares
            Answer of a client.

        Raises
        ------
        SecureAggregationError, SignatureError
            If shares are missing, of another session, or the signature is false.
        """
        self._check_session(roster, shares)
        if shares.sealed.keys() != set(roster.clients) - {shares.client}:
            raise SecureAggregationError(
                f"{shares.client} sent shares for {len(shares.sealed)} clients. Expected shares for all other clients "
                "of the roster. Ask it again"
            )

    def build_delivery(self, roster: Roster, shares: Iterable[SealedShares]) -> ShareDelivery:
        """Build the delivery of the sealed shares to the clients that will mask with one another.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        shares : iterable of SealedShares
            Answers of the clients.

        Returns
        -------
        ShareDelivery
            The request of the next round.

        Raises
        ------
        SecureAggregationError
            If there are too few clients.
        """
        sent = {one.client: one for one in shares}
        roster.terms.check_present(tuple(sorted(sent)), "sent shares")
        boxes = {
            sender: {client: box for client, box in one.sealed.items() if client in sent}
            for sender, one in sent.items()
        }
        return ShareDelivery(roster.digest, boxes)

    # Round 3: masked vectors

    def check_masked(self, roster: Roster, delivery: ShareDelivery, masked: MaskedVector) -> None:
        """Refuse a vector under other masks, or of another length.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        delivery : ShareDelivery
            The delivery of the session.
        masked : MaskedVector
            Answer of a client.

        Raises
        ------
        SecureAggregationError, SignatureError
            If the vector does not fit the session, or its signature is false.
        """
        self._check_session(roster, masked)
        length = self._vector_length(roster)
        if masked.masked_with != delivery.clients or len(masked.words) != length:
            raise SecureAggregationError(
                f"The vector of {masked.client} is masked with other clients than those that sent shares, or has "
                f"{len(masked.words)} numbers. Expected {length} numbers under the masks of this session. Ask the "
                "client to answer this delivery"
            )

    def list_survivors(self, roster: Roster, clients: Iterable[str]) -> SurvivorList:
        """Build the list of the clients whose vectors arrived; from now on, the sum is over these or there is none.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        clients : iterable of str
            The clients whose vectors arrived.

        Returns
        -------
        SurvivorList
            The request of the next round.

        Raises
        ------
        SecureAggregationError
            If there are too few clients.
        """
        survivors = SurvivorList(roster.digest, tuple(sorted(clients)))
        roster.terms.check_present(survivors.clients, "sent masked vectors")
        return survivors

    # Round 4: confirmations

    def check_confirmation(self, roster: Roster, survivors: SurvivorList, confirmation: SurvivorConfirmation) -> None:
        """Refuse a signature of another list, or of a client that is not in it.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        survivors : SurvivorList
            The list of survivors.
        confirmation : SurvivorConfirmation
            Answer of a client.

        Raises
        ------
        SecureAggregationError, SignatureError
            If the answer does not fit the list, or its signature is false.
        """
        self._check_session(roster, confirmation)
        if confirmation.present != survivors.digest or confirmation.client not in survivors.clients:
            raise SecureAggregationError(
                f"{confirmation.client} signed another list of survivors, or is not in it. Expected the list of this "
                "session. Ask the client to answer it"
            )

    def collect_confirmations(
        self, roster: Roster, survivors: SurvivorList, confirmations: Iterable[SurvivorConfirmation]
    ) -> ConfirmedSurvivors:
        """Put the signatures under the list of survivors.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        survivors : SurvivorList
            The list of survivors.
        confirmations : iterable of SurvivorConfirmation
            Answers of the clients.

        Returns
        -------
        ConfirmedSurvivors
            The request of the last round.

        Raises
        ------
        SecureAggregationError
            If there are fewer signatures than the threshold.
        """
        confirmed = ConfirmedSurvivors(survivors, {one.client: one.signature for one in confirmations})
        confirmed.check(self.study, roster.terms)
        return confirmed

    # Round 5: unmasking

    def check_unmasking(
        self, roster: Roster, delivery: ShareDelivery, survivors: SurvivorList, unmasking: UnmaskingShares
    ) -> None:
        """Refuse shares that are not of the survivors' seeds and of the masking keys of those that left.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        delivery : ShareDelivery
            The delivery of the session.
        survivors : SurvivorList
            The list of survivors.
        unmasking : UnmaskingShares
            Answer of a client.

        Raises
        ------
        SecureAggregationError, SignatureError
            If the answer does not fit the session, or its signature is false.
        """
        self._check_session(roster, unmasking)
        is_of_list = unmasking.present == survivors.digest and unmasking.client in survivors.clients
        left = set(delivery.clients) - set(survivors.clients)
        if not is_of_list or unmasking.seeds.keys() != set(survivors.clients) or unmasking.keys.keys() != left:
            raise SecureAggregationError(
                f"{unmasking.client} revealed other shares than those asked for. Expected the seeds of survivors and "
                "the keys of those that left. Ask the client to answer again"
            )

    def unmask_sum(
        self,
        roster: Roster,
        shares: Mapping[str, SealedShares],
        masked: Iterable[MaskedVector],
        survivors: SurvivorList,
        unmasking: Sequence[UnmaskingShares],
    ) -> Aggregate:
        """Return the sum over the survivors, exactly that of their summaries.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        shares : mapping from str to SealedShares
            Answers of round 2, by client.
        masked : iterable of MaskedVector
            Masked vectors of the survivors.
        survivors : SurvivorList
            The list of survivors.
        unmasking : sequence of UnmaskingShares
            Answers of round 5.

        Returns
        -------
        Aggregate
            The sum, validated as a summary is.

        Raises
        ------
        SecureAggregationError
            If there are too few shares, or they do not recover the masks.
        SummaryError
            If no rows can have given this sum.
        """
        total = self._unmask(roster, shares, masked, survivors, unmasking)
        everybody = roster.terms.groups_of(roster.clients)
        present = roster.terms.groups_of(survivors.clients)
        if not roster.terms.mixtures:  # with mixtures, no client has a place of its own
            total = drop_absent_groups(self.study, total, everybody, present)
        return decode_aggregate(total, self.study.plan, present, roster.terms.mixtures)

    def unmask_answers(
        self,
        roster: Roster,
        shares: Mapping[str, SealedShares],
        masked: Iterable[MaskedVector],
        survivors: SurvivorList,
        unmasking: Sequence[UnmaskingShares],
    ) -> tuple[ResidualSums, ...]:
        """Return the sum of the survivors' answers to the request in the terms.

        Parameters
        ----------
        roster : Roster
            The roster of the session.
        shares : mapping from str to SealedShares
            Answers of round 2, by client.
        masked : iterable of MaskedVector
            Masked vectors of the survivors.
        survivors : SurvivorList
            The list of survivors.
        unmasking : sequence of UnmaskingShares
            Answers of round 5.

        Returns
        -------
        tuple of ResidualSums
            One sum per query, in their order; its rows are those of the survivors.

        Raises
        ------
        SecureAggregationError
            If there are too few shares, they do not recover the masks, or the terms have no request.
        SummaryError
            If no rows can have given this sum.
        """
        request = roster.terms.residuals
        if request is None:
            raise SecureAggregationError(
                "The session adds summaries. Expected one that adds answers to a request. Name the folder of "
                "the request"
            )
        return decode_answers(self._unmask(roster, shares, masked, survivors, unmasking), request, self.study.plan)

    def _vector_length(self, roster: Roster) -> int:
        request = roster.terms.residuals
        if request is not None:
            return answer_length(request, self.study.plan)
        groups = roster.terms.groups_of(roster.clients)
        return vector_length(self.study.plan, len(groups), roster.terms.mixtures)

    def _unmask(
        self,
        roster: Roster,
        shares: Mapping[str, SealedShares],
        masked: Iterable[MaskedVector],
        survivors: SurvivorList,
        unmasking: Sequence[UnmaskingShares],
    ) -> Words:
        """Return the sum of the survivors' vectors."""
        if len(unmasking) < roster.terms.threshold:
            clients = ", ".join(sorted(one.client for one in unmasking))
            raise SecureAggregationError(
                f"{len(unmasking)} clients have revealed their shares ({clients}). Expected at least "
                f"{roster.terms.threshold}. Wait for more"
            )
        total: Words | None = None
        for one in masked:
            total = one.words.copy() if total is None else total + one.words
        if total is None:
            raise SecureAggregationError(
                "There are no masked vectors. Expected those of all survivors. Put the files back"
            )
        return total - recover_masks(self.study, roster, shares, survivors, unmasking, len(total))

    def _check_session(
        self, roster: Roster, message: SealedShares | MaskedVector | SurvivorConfirmation | UnmaskingShares
    ) -> None:
        message.check_signature(self.study)
        if message.session != roster.digest or message.client not in roster.clients:
            raise SecureAggregationError(
                f"There is a message of {message.client} of another session, or the client is not in the roster. "
                "Expected answers of this session. Ask the client to answer this one"
            )


def index_by_client(replies: Iterable[ReplyT]) -> dict[str, ReplyT]:
    """Return the replies by client.

    Parameters
    ----------
    replies : iterable of SignedMessage
        Replies of one round.

    Returns
    -------
    dict from str to SignedMessage
        One reply per client.

    Raises
    ------
    SecureAggregationError
        If two replies of one client differ.
    """
    found: dict[str, ReplyT] = {}
    for reply in replies:
        if found.setdefault(reply.client, reply).to_bytes() != reply.to_bytes():
            raise SecureAggregationError(
                f"There are two different answers of {reply.client} in one round. Expected one. Ask it which is right, "
                "and remove the other"
            )
    return found
