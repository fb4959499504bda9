"""Answers about residuals that are used again, for searches among other clients: nobody is asked a second time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fedcdh.errors import SettingsError
from fedcdh.inference.evidence.residual_record import ResidualRecord
from fedcdh.summaries.joint import JointRequest, JointSummary
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums


@dataclass(frozen=True)
class RecordedAnswers:
    """A source that answers from a record, for some of the clients.

    Without a client, regressions have slightly other weights than those that the clients were asked about. The recorded
    sums stand for them, and pay for the larger variance of their residuals. Regressions that are not in the record are
    left out.

    Attributes
    ----------
    record : ResidualRecord
        What the clients answered in the whole study.
    clients : tuple of str
        The clients that take part; one that takes part twice is named twice.

    Examples
    --------
    >>> source = RecordedAnswers(ResidualRecord({}, {}, rounds=0, entries=0, left_out=0), ("north",))
    >>> query = ResidualQuery("y", (), "shape", weights=(), widths=(), deviation=1.0)
    >>> source.ask_residuals(ResidualRequest("0" * 64, 1, {"y": Coordinates((0.0,), ((1.0,),))}, (query,)))
    {'north': ()}
    """

    record: ResidualRecord
    clients: tuple[str, ...]

    @cached_property
    def _by_question(self) -> dict[tuple[object, ...], Mapping[str, ResidualSums]]:
        return {query.question: answers for query, answers in self.record.answers.items()}

    def ask_residuals(self, request: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the recorded answers to the same questions.

        Parameters
        ----------
        request : ResidualRequest
            The regressions.

        Returns
        -------
        mapping from str to sequence of ResidualSums
            Answers by client.
        """
        asked = [query for query in request.queries if query.question in self._by_question]
        return {
            client if number == 0 else f"{client}\n{number}": tuple(self._answers(asked, client, request.coordinates))
            for number, client in _number_repetitions(self.clients)
        }

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries whose questions are in the record.

        Parameters
        ----------
        queries : sequence of ResidualQuery
            Queries, the most wanted first.
        coordinates : mapping from str to Coordinates
            Coordinates of their variables.

        Returns
        -------
        tuple of ResidualQuery
            Queries with recorded answers.
        """
        return tuple(query for query in queries if query.question in self._by_question)

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Refuse: joint features are not recorded.

        Parameters
        ----------
        request : JointRequest
            Sets of variables.

        Raises
        ------
        SettingsError
            Always.
        """
        raise SettingsError(
            "found a request for joint features, which no record holds; repeat the discovery with rounds 'residuals'",
            parameter="rounds",
        )

    def _answers(
        self, asked: Iterable[ResidualQuery], client: str, coordinates: Mapping[str, Coordinates]
    ) -> Iterable[ResidualSums]:
        for query in asked:
            answers = self._by_question[query.question]
            if client in answers:
                one = answers[client]
                yield replace(one, query=query, deviation=self._deviation(one.query, coordinates[query.node]))

    def _deviation(self, query: ResidualQuery, now: Coordinates) -> float | None:
        """Return the recorded deviation in units of the node as they are now; none where clients have their own."""
        if query.differs:
            return None
        if query.scored or query.node not in self.record.coordinates:
            return query.deviation
        return query.deviation * now.matrix[0][0] / self.record.coordinates[query.node].matrix[0][0]


def _number_repetitions(clients: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Yield every client with the number of times that it was named before."""
    seen: dict[str, int] = {}
    for client in clients:
        yield seen.get(client, 0), client
        seen[client] = seen.get(client, 0) + 1
