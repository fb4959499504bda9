"""Studies with requests about residuals: sites with skewed noise, queries about y given x, and sources of sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import studies

from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.residual_score import ResidualScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.joint import DEFAULT_MAX_ROUNDS, JointRequest, JointSummary, LocalAnswerSource
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums, add_answers

SHAPE = ResidualQuery("y", ("x",), "shape", weights=(0.7,), widths=(1,), deviation=0.7)
SIZE = replace(SHAPE, about="size")
SIZED = replace(SHAPE, size=(0.1, 0.2, 0.0))
DIFFERING = replace(SHAPE, differs=True)
TIES = ResidualQuery("y", (), "ties", (), (), 1.0)
QUERIES = (SHAPE, SIZE, SIZED, DIFFERING, TIES)


def tables(rows: Sequence[int] = (800, 700), seed: int = 0) -> studies.Tables:
    rng = np.random.default_rng(seed)
    found = {}
    for number, count in enumerate(rows):
        x, noise = rng.standard_normal(count), rng.exponential(size=count) - 1
        found[f"site{number}"] = {"x": x, "y": x + noise}
    return found


def many_variables(rows: Sequence[int], seed: int = 0) -> studies.Tables:
    """Return x, y and four more variables, which have nothing to do with them."""
    rng, found = np.random.default_rng([seed, 7]), tables(rows, seed)
    return {
        client: {**table, **{name: rng.standard_normal(len(table["x"])) for name in "abcd"}}
        for client, table in found.items()
    }


def many_queries() -> list[ResidualQuery]:
    """Return a question about y given x and any of the other variables, the smaller ones first."""
    sets = [("x", *more) for size in range(5) for more in combinations("abcd", size)]
    plain = [
        ResidualQuery(
            "y",
            tuple(sorted(names)),
            "shape",
            tuple(0.7 * (name == "x") for name in sorted(names)),
            (1,) * len(names),
            0.7,
        )
        for names in sets
    ]
    return [*plain, *(replace(query, differs=True) for query in plain)]


def plan_of(data: Mapping[str, object], **budget: int) -> StudyPlan:
    return replace(studies.plan_of(data), **({"max_rounds": DEFAULT_MAX_ROUNDS, "max_bytes": 10**6} | budget))


def cohort_of(data: Mapping[str, object], plan: StudyPlan) -> Cohort:
    return add_up([summarize(table, plan, client) for client, table in data.items()], plan)


def coordinates_of(cohort: Cohort) -> dict[str, Coordinates]:
    """Return the standardised value of every variable, over all rows."""
    plan, total = cohort.plan, cohort.total
    scatter, found = total.scatter(slice(None)), {}
    for name in plan.names:
        place = plan.layout.spans[name]
        width, deviation = plan.layout.width(name), np.sqrt(scatter[place.start, place.start] / total.rows)
        weights = (1 / float(deviation), *(0.0,) * (width - 1))
        found[name] = Coordinates(tuple(map(float, total.means[place])), (weights,))
    return found


def request_for(cohort: Cohort, *queries: ResidualQuery, number: int = 1) -> ResidualRequest:
    ordered = tuple(sorted(queries or QUERIES, key=lambda query: query.key))
    return ResidualRequest(cohort.plan.fingerprint, number, coordinates_of(cohort), ordered)


PRODUCTS = ResidualQuery("y", ("a", "b"), "products", weights=(0.5, 0.4), widths=(1, 1), deviation=0.7)
WITH_PRODUCT = replace(PRODUCTS, about="shape", product=("a", "b"), product_weights=(0.3, 0.1, 0.2, 0.0))
PRODUCT_QUERIES = (PRODUCTS, WITH_PRODUCT, replace(WITH_PRODUCT, differs=True), replace(PRODUCTS, about="shape"))


def interacting_causes(rows: Sequence[int] = (800, 700), seed: int = 0, weight: float = 0.8) -> studies.Tables:
    """a → y ← b with a product of both causes, and correlated causes."""
    rng, found = np.random.default_rng([seed, 3]), {}
    for number, count in enumerate(rows):
        a, noise, b = rng.standard_normal((3, count))
        b = 0.3 * a + b
        found[f"site{number}"] = {"a": a, "b": b, "y": 0.7 * a - 0.6 * b + weight * a * b + 0.8 * noise}
    return found


class CountingSource:
    """Clients in this process; some may stay silent. Remembers the requests and the sums that each client sent."""

    def __init__(self, source: LocalAnswerSource, silent: Collection[str] = ()) -> None:
        self._source, self._silent = source, silent
        self.requests: list[ResidualRequest] = []
        self.sent: Counter[str] = Counter()
        self.closed = False

    def ask_residuals(self, request: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        assert not self.closed, "a client was asked once more"
        self.requests.append(request)
        answers = self._source.ask_residuals(request)
        self.sent.update({client: sum(len(one.sums) for one in found) for client, found in answers.items()})
        return {client: found for client, found in answers.items() if client not in self._silent}

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        return self._source.select_affordable(queries, coordinates)

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        raise AssertionError("joint features are not asked for")


def source_of(data: Mapping[str, object], cohort: Cohort, silent: Collection[str] = ()) -> CountingSource:
    return CountingSource(LocalAnswerSource(data, cohort.plan, cohort), silent)


def score_of(
    data: Mapping[str, object], silent: Collection[str] = (), plan: StudyPlan | None = None, **budget: int
) -> ResidualScore:
    """Return the score of a study whose clients are in this process."""
    cohort = cohort_of(data, plan or plan_of(data, **budget))
    basis = Basis.of(cohort)
    return ResidualScore(cohort, basis, FamilyScore.of(cohort, basis), source_of(data, cohort, silent))


def split_rows(table: studies.Table, clients: int) -> studies.Tables:
    """Deal the rows of a table out to clients."""
    return {
        f"site{number}": {name: column[number::clients] for name, column in table.items()} for number in range(clients)
    }


def draw_noise(rng: np.random.Generator, noise: str, rows: int) -> np.ndarray:
    """Draw noise of mean zero and variance one."""
    if noise == "two bumps":
        drawn = rng.choice([-1.0, 1.0], rows) + 0.4 * rng.standard_normal(rows)
    elif noise == "Student":
        drawn = rng.standard_t(5, rows)
    else:
        drawn = {
            "normal": rng.standard_normal,
            "exponential": rng.standard_exponential,
            "uniform": rng.random,
        }[noise](rows)
    return (drawn - drawn.mean()) / drawn.std()


def linear_pair(noise: str, seed: int, rows: int = 1000) -> studies.Table:
    """x → y, linear, with the same kind of noise in both."""
    rng = np.random.default_rng(seed)
    x = draw_noise(rng, noise, rows)
    return {"x": x, "y": 0.75 * x + 0.66 * draw_noise(rng, noise, rows)}


def varying_size_pair(seed: int, rows: int = 1000) -> studies.Table:
    """x → y, where the noise of y grows with x."""
    x, noise = np.random.default_rng(seed).standard_normal((2, rows))
    return {"x": x, "y": 0.6 * x + noise * np.exp(0.5 * x)}


def unlogged_pair(seed: int, rows: int = 1000) -> studies.Table:
    """x → log y, linear with uniform noise: post-nonlinear on the scale of y."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    return {"x": x, "y": np.exp(0.6 * (x + 0.7 * draw_noise(rng, "uniform", rows)))}


def skewed_chain(rows: Sequence[int] = (900, 800), seed: int = 1) -> studies.Tables:
    """a → b → c with exponential noise: only the shape of the noise directs it."""
    rng, found = np.random.default_rng(seed), {}
    for number, count in enumerate(rows):
        a, b, c = rng.exponential(size=(3, count)) - 1
        b = b + a
        found[f"site{number}"] = {"a": a, "b": b, "c": c + b}
    return found


class SummedSource(LocalAnswerSource):
    """Clients in this process of which only the sum of their answers is seen; from a request on, there is none."""

    def __init__(self, data: Mapping[str, object], plan: StudyPlan, failed: int = 10**9):
        super().__init__(data, plan, cohort_of(data, plan))
        self.failed = failed
        self.requests: list[ResidualRequest] = []

    def ask_residuals(self, request: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        self.requests.append(request)
        if request.number >= self.failed:
            return {"all clients": ()}
        answers = super().ask_residuals(request).values()
        return {"all clients": tuple(add_answers(parts) for parts in zip(*answers, strict=True))}

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        if all(request.number < self.failed for request in self.requests):
            return super().select_affordable(queries, coordinates)
        answered = {
            query.question for request in self.requests if request.number < self.failed for query in request.queries
        }
        return tuple(query for query in queries if query.question in answered)


def unequal_sites(noise: str = "exponential", rows: int = 300) -> studies.Tables:
    """x → y at three clients, of which the last has an x four times as large."""
    found = {}
    for number, times in enumerate((1.0, 1.0, 4.0)):
        table = linear_pair(noise, 10 + number, rows)
        found[f"site{number}"] = {"x": times * table["x"], "y": table["y"] + (times - 1) * 0.75 * table["x"]}
    return found
