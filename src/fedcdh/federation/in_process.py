"""A federation in one process: real clients and real messages without a network.

Clients can be made to fail in the ways in which clients of a network fail, to see what becomes of the study.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

from fedcdh.data.loaded_tables import load_tables
from fedcdh.data.ordered_source import with_order_column
from fedcdh.data.recipe_file import NO_RECIPES, Recipes
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table, split_by_client
from fedcdh.discovery.settings import SearchOptions
from fedcdh.errors import ExitCode, SettingsError
from fedcdh.federation.coordinator import conduct_study
from fedcdh.federation.journal import safe_file_name
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.federation.site import ClientNode
from fedcdh.federation.study_terms import StudyOutcome, StudyTerms
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.messages.envelope import ANSWER, MASKING, PROFILE, REFUSAL, SUMMARY, Envelope, describe_round, sha256_hex
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import LEDGER_FILE_NAME, ReleaseLedger
from fedcdh.privacy.secure_aggregation.messages import REQUEST_TYPES
from fedcdh.protocols import Progress
from fedcdh.summaries.plan import MissingValues

Fault = Literal["silent", "late", "repeated", "contradicting", "failed", "crashed", "garbled"]
"""A failure of a client: it never answers, answers in the next round, answers twice with the same reply, twice with
different replies, or with an error code; the network reports that it failed; its reply is changed on the way."""


@dataclass
class InProcessTransport:
    """A transport to clients in this process, which answer one after the other.

    Parameters
    ----------
    nodes : mapping of str to ClientNode
        The clients by address.
    faults : mapping, optional
        Failures by address and round. Rounds are "profile", "summary", "answer" (all adaptive rounds), "answer 1",
        "answer 2", and so on.

    Examples
    --------
    >>> node = ClientNode("north", lambda: {"age": [50.0, 61.0, 70.0]})
    >>> InProcessTransport({"north": node}).addresses(1, 0.0)
    ['north']
    """

    nodes: Mapping[str, ClientNode]
    faults: Mapping[tuple[str, str], Fault] = field(default_factory=dict)
    _late: list[tuple[str, bytes]] = field(default_factory=list, init=False)

    def addresses(self, expected: int, timeout: float) -> Sequence[str]:
        """Return all addresses at once.

        Parameters
        ----------
        expected : int
            Not used: all clients are there from the start.
        timeout : float
            Not used.

        Returns
        -------
        list of str
            The addresses.
        """
        return list(self.nodes)

    def exchange(self, requests: Mapping[str, bytes], timeout: float) -> Iterator[tuple[str, bytes | None]]:
        """Yield the late replies of the round before, then the reply of each client.

        Parameters
        ----------
        requests : mapping of str to bytes
            The request for each address.
        timeout : float
            Not used.

        Yields
        ------
        tuple of str and bytes
            An address and its reply; None instead of a reply if the client crashed.
        """
        late, self._late = self._late, []
        yield from late
        for address, request in requests.items():
            envelope = Envelope.from_bytes(request)
            fault = self.faults.get((address, describe_round(envelope)), self.faults.get((address, envelope.kind)))
            if fault == "silent":
                continue
            reply = self.nodes[address].answer(request)
            if fault == "late":
                self._late.append((address, reply))
            else:
                yield from ((address, one) for one in _deliver(reply, request, fault))


def _deliver(reply: bytes, request: bytes, fault: Fault | None) -> Iterator[bytes | None]:
    """Yield the reply as it arrives under a fault."""
    refusal = Envelope(REFUSAL, in_reply_to=sha256_hex(request), code=ExitCode.INTERNAL).to_bytes()
    if fault == "failed":
        yield refusal
    elif fault == "crashed":
        yield None
    elif fault == "garbled":
        middle = len(reply) // 2
        yield reply[:middle] + bytes([reply[middle] ^ 1]) + reply[middle + 1 :]
    else:
        yield reply
    if fault == "repeated":
        yield reply
    elif fault == "contradicting":
        yield refusal


def simulate_federation(
    data: Any,
    *,
    domain: str | None = None,
    names: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    knowledge: Knowledge | None = None,
    max_missing_share: float = 0.5,
    accept_differences: Collection[str] = (),
    order_by: str | None = None,
    policy: Policy | Mapping[str, Policy] | None = None,
    faults: Mapping[tuple[str, str], Fault] | None = None,
    minimum: int = 1,
    secure_sum: SecureSumOptions | None = None,
    folder: Path | str | None = None,
    progress: Progress | None = None,
    recipes: Recipes = NO_RECIPES,
    exclude: Collection[str] = (),
    missing: MissingValues = "complete",
    **search: Unpack[SearchOptions],
) -> StudyOutcome:
    """Run a federated study in this process, with all its messages.

    Without faults and policies, the result is that of `fedcdh.discover`, byte for byte.

    Parameters
    ----------
    data : table, mapping of str to table
        The rows, as for `fedcdh.discover`.
    domain : str, optional
        The column that names the client of each row.
    names : sequence of str, optional
        Names of the columns of arrays.
    variables : sequence of str, optional
        The variables of the study. By default all columns.
    kinds : mapping of str, optional
        "continuous" or "categorical" for variables whose kind is not to be taken from the data.
    knowledge : Knowledge, optional
        Background knowledge.
    max_missing_share : float, default 0.5
        Largest share of rows with missing values that a client may leave out.
    accept_differences : collection of str, optional
        Variables whose ranges or levels really differ between clients.
    order_by : str, optional
        Column with the time of each row, as for `fedcdh.discover`.
    policy : Policy or mapping of str to Policy, optional
        The policy of all clients, or of each. By default, disclosure control is switched off.
    faults : mapping, optional
        What goes wrong, such as ``{("north", "summary"): "silent"}``. Rounds are "profile", "summary", "answer" (all
        adaptive rounds), "answer 1", "answer 2", and so on; with `secure_sum`, "masking terms", "masking roster",
        "masking delivery", "masking present" and "masking confirmations" replace "summary", and a fault of them is
        one in the sums of answers as well. Faults are "silent", "late", "repeated", "contradicting", "failed",
        "crashed" and "garbled".
    minimum : int, default 1
        Smallest number of clients in a result.
    secure_sum : SecureSumOptions, optional
        Add the summaries, and answers about residuals, by secure aggregation, with keys made for this study.
    folder : Path or str, optional
        Where to keep the result, the journal, the record of participation and, in `sites`, the ledgers of the clients.
        By default nothing is kept.
    progress : callable, optional
        Called with the progress of the search.
    recipes : Recipes, optional
        What every client does with its columns first, as for `fedcdh.discover`.
    exclude : collection of str, default ()
        Columns that are no variables, as for `fedcdh.discover`.
    missing : {"complete", "impute"}, default "complete"
        What every client does with rows in which a value is missing.
    **search
        Settings of the search, as for `discover`: method, alpha, max_conditioning_size, seed, rounds, max_rounds,
        min_probability, min_arrow_probability, min_effect.

    Returns
    -------
    StudyOutcome
        The result, the study as it was planned, and the record of participation.

    Raises
    ------
    QuorumError
        If fewer clients than the minimum take part.
    SettingsError
        If a fault names an unknown client, round or failure.

    See Also
    --------
    fedcdh.discover : The same result without messages.

    Examples
    --------
    >>> from fedcdh.evaluation.demo import hospital_study
    >>> study = hospital_study().columns()
    >>> outcome = simulate_federation(study, domain="hospital", faults={("coast", "summary"): "silent"})
    >>> dict(outcome.missing)
    {'coast': 'summary: did not answer in time'}
    >>> [event.client for event in outcome.participation.events if (event.round, event.what) == ("summary", "accepted")]
    ['city', 'north', 'south', 'valley']
    """
    terms = StudyTerms(
        declaration=Declaration(knowledge=knowledge or NO_KNOWLEDGE, recipes=recipes, missing=missing),
        kinds=kinds or {},
        accept_differences=accept_differences,
        minimum=minimum,
        secure_sum=secure_sum,
        **search,
    )
    columns = with_order_column(variables, order_by)
    loaded = load_tables(data, kinds, columns, domain, exclude)
    tables = split_by_client(loaded, domain, names, columns, exclude)
    variables = None if variables is None else [name for name in variables if name not in exclude]
    _check_faults(faults or {}, tables)
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="fedcdh-") as place:
        nodes = {
            client: _build_node(client, table, _client_policy(policy, client), Path(place, "sites"))
            for client, table in tables.items()
        }
        options: dict[str, Any] = {"max_missing_share": max_missing_share, "variables": variables, "order_by": order_by}
        nodes = {client: replace(node, **options) for client, node in nodes.items()}
        if secure_sum is not None:
            nodes = {client: replace(node, key=SigningKey.generate()) for client, node in nodes.items()}
        return conduct_study(InProcessTransport(nodes, faults or {}), terms, place, progress=progress)


def _build_node(client: str, table: Table, policy: Policy, sites: Path) -> ClientNode:
    """Return a client with a folder of its own, and with a ledger if its policy controls disclosure."""
    memory = sites / safe_file_name(client)
    gate = None
    if policy.disclosure_control:
        gate = ReleaseGate(ReleaseLedger(memory / LEDGER_FILE_NAME), max_plans=1)
    return ClientNode(client, partial(_return_table, table), policy, gate=gate, memory=memory)


def _return_table(table: Table) -> Table:
    return table


def _client_policy(policy: Policy | Mapping[str, Policy] | None, client: str) -> Policy:
    if isinstance(policy, Policy):
        return policy
    return (policy or {}).get(client, Policy(disclosure_control=False))


def _check_faults(faults: Mapping[tuple[str, str], Fault], clients: Collection[str]) -> None:
    rounds = (PROFILE, SUMMARY, ANSWER, MASKING, *(f"{MASKING} {one.kind}" for one in REQUEST_TYPES))
    for (client, round_), fault in faults.items():
        known = round_ in rounds or re.fullmatch(f"{ANSWER} [1-9][0-9]*", round_)
        if client not in clients or not known or fault not in get_args(Fault):
            raise SettingsError(
                f"There is the fault {(client, round_)!r}: {fault!r}. Expected one of the clients "
                f"{', '.join(clients)}, one of the rounds {PROFILE!r}, {SUMMARY!r}, {ANSWER!r} or '{ANSWER} 1', and "
                f"one of the failures {', '.join(get_args(Fault))}. Correct it.",
                parameter="faults",
            )
