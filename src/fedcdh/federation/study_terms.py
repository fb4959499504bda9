"""The terms of a federated study, which the coordinator decides beforehand, and its outcome."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fedcdh.data.sources import ColumnKind
from fedcdh.discovery.api import MAX_BYTES, MAX_ROUNDS
from fedcdh.discovery.methods import check_rounds, get_method, resolve_rounds
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.settings import (
    DEFAULT_ALPHA,
    DEFAULT_MIN_ARROW_PROBABILITY,
    DEFAULT_MIN_EFFECT,
    DEFAULT_MIN_PROBABILITY,
    Settings,
)
from fedcdh.errors import SettingsError
from fedcdh.federation.participation import Participation
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.messages.envelope import ProfileRequest
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.summaries.absent_columns import AbsentRule


@dataclass(frozen=True)
class StudyTerms:
    """The decisions of the coordinator about a federated study.

    Parameters
    ----------
    method : str
        "auto", "evidence", "constraint" or "paper", as for `fedcdh.discover`.
    alpha : float, optional
        Significance level of the tests.
    max_conditioning_size : int, optional
        Largest number of variables to condition on, or of causes.
    seed : int
        Seed of the search.
    variables : tuple of str, optional
        Variables of the study. By default those of the declaration, or else those that the clients offer.
    kinds : mapping of str
        "continuous" or "categorical" for variables whose kind is not to be taken from the data.
    declaration : Declaration
        What is known beforehand. If it names clients, no others are admitted.
    accept_differences : collection of str
        Variables whose ranges or levels really differ between clients.
    absent : {"refuse", "allow"} or mapping from str to sequence of str
        Whether clients may lack variables, besides those that the declaration names.
    study : str
        Name of the study.
    key : SigningKey, optional
        The coordinator's key, which signs requests and the plan.
    site_keys : mapping of str
        Public keys of clients that were agreed on beforehand.
    minimum : int
        Smallest number of clients in a result.
    expected : int
        Number of clients to wait for at the start; at least the minimum and the number of declared clients.
    timeout : float
        Seconds to wait in each round.
    rounds : str
        What clients are asked after their summaries, as for `fedcdh.discover`: "auto", "one", "residuals" or
        "adaptive".
    max_rounds, max_bytes : int
        Number of further rounds that a client answers, and bytes that it sends in them. The plan states both. With 2
        rounds, the first request holds all questions that may matter, the second what the answers call for.
    secure_sum : SecureSumOptions, optional
        Add the summaries, and answers about residuals, by secure aggregation, so that only their sums are seen.
    min_probability, min_arrow_probability : float
        The smallest probability of an edge or a difference that is drawn, and that of an arrow.
    min_effect : float
        The smallest share of variance that a drawn edge explains.

    Raises
    ------
    SettingsError
        If a value is out of range, or if secure aggregation is combined with a method that needs single summaries.

    Examples
    --------
    >>> StudyTerms(minimum=3).rounds
    'auto'
    """

    method: str = "auto"
    alpha: float | None = None
    max_conditioning_size: int | None = None
    seed: int = 0
    variables: tuple[str, ...] | None = None
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    declaration: Declaration = field(default_factory=Declaration)
    accept_differences: Collection[str] = ()
    absent: AbsentRule = "refuse"
    study: str = ""
    key: SigningKey | None = None
    site_keys: Mapping[str, str] = field(default_factory=dict)
    minimum: int = 2
    expected: int = 0
    timeout: float = 600.0
    rounds: str = "auto"
    max_rounds: int = MAX_ROUNDS
    max_bytes: int = MAX_BYTES
    secure_sum: SecureSumOptions | None = None
    min_probability: float = DEFAULT_MIN_PROBABILITY
    min_arrow_probability: float = DEFAULT_MIN_ARROW_PROBABILITY
    min_effect: float = DEFAULT_MIN_EFFECT

    def __post_init__(self) -> None:
        alpha = DEFAULT_ALPHA if self.alpha is None else self.alpha
        knowledge = self.declaration.knowledge
        method = get_method(self.method)
        rounds = resolve_rounds(self.rounds, method.name)
        Settings(
            self.method,
            alpha,
            knowledge,
            self.max_conditioning_size,
            self.seed,
            rounds,
            min_probability=self.min_probability,
            min_arrow_probability=self.min_arrow_probability,
            min_effect=self.min_effect,
        )
        check_rounds(method.name, rounds)
        if self.minimum < 1 or not self.timeout > 0:
            raise SettingsError(
                f"The minimum number of clients is {self.minimum} and the timeout is {self.timeout:g} s. Expected a "
                "minimum of at least 1 and a positive timeout. Correct them."
            )
        if rounds != "one" and (self.max_rounds < 1 or self.max_bytes < 1):
            raise SettingsError(
                f"Clients may answer {self.max_rounds} further rounds with {self.max_bytes} bytes. Expected at least "
                "1 of each. Raise them, or use rounds = 'one'."
            )
        if self.secure_sum is not None and rounds == "adaptive":
            raise SettingsError(
                f"With rounds = {self.rounds!r}, the method {self.method!r} asks single clients for joint features. "
                "Secure aggregation reveals only sums over clients. Use rounds = 'residuals' or 'one'."
            )

    @property
    def asks_again(self) -> bool:
        """Return whether clients may be asked after their summaries."""
        return resolve_rounds(self.rounds, get_method(self.method).name) != "one"

    @property
    def expected_clients(self) -> int:
        """Return the number of clients to wait for at the start."""
        return max(self.expected, len(self.declaration.clients), self.minimum)

    @property
    def profile_request(self) -> ProfileRequest:
        """Return the request for profiles: the variables and their kinds."""
        declared = self.declaration.variables
        names = self.variables or tuple(one.name for one in declared) or None
        kinds = {**{one.name: one.kind for one in declared if one.kind is not None}, **self.kinds}
        return ProfileRequest(names, kinds, self.declaration.recipes)


@dataclass(frozen=True)
class StudyOutcome:
    """The outcome of a federated study.

    Parameters
    ----------
    result : Discovery
        The causal graph and its evidence.
    study : Study
        The study as it was planned.
    participation : Participation
        The clients that took part, and every message.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.demo.hospital_study().columns()
    >>> outcome = fedcdh.simulate_federation(study, domain="hospital")
    >>> dict(outcome.missing)
    {}
    """

    result: Discovery
    study: Study
    participation: Participation

    @property
    def missing(self) -> Mapping[str, str]:
        """Return the clients that are not in the result, with the reason."""
        return self.participation.missing
