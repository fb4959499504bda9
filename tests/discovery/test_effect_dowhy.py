"""Effects against statsmodels and DoWhy on pooled rows with the same adjustment set (`make test-dowhy` has DoWhy)."""

import numpy as np
import pytest
from encoded_rows import encoded
from studies import cohort_of, numbers

from fedcdh.discovery.effect_estimation import estimate_effect
from fedcdh.graphs.partial_graph import PartialGraph

TABLES = numbers(4, sizes=(150, 120, 100))
COHORT = cohort_of(TABLES)
NAMES = COHORT.plan.names
DAG = PartialGraph.from_dag(NAMES, [("v1", "v2"), ("v2", "v3"), ("v1", "v3"), ("v3", "v4"), ("v1", "v4")])


def pooled_rows():
    """All rows as the plan encodes them, with an indicator of every site but the first."""
    by_client = [encoded(COHORT, TABLES[client], client) for client in COHORT.clients]
    columns = {name: np.concatenate([rows[name][0] for rows in by_client]) for name in NAMES}
    sizes = [rows[NAMES[0]].shape[1] for rows in by_client]
    for number, client in enumerate(COHORT.clients[1:], 1):
        columns[client] = np.repeat((np.arange(len(sizes)) == number).astype(float), sizes)
    return columns


@pytest.mark.parametrize(("cause", "outcome"), [("v2", "v3"), ("v3", "v4"), ("v2", "v4"), ("v1", "v4")])
@pytest.mark.parametrize("adjust", ["parents", "optimal"])
def test_statsmodels_gives_the_same_effect(cause, outcome, adjust):
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    effect = estimate_effect(COHORT, DAG, cause, outcome, adjust=adjust)
    columns = pooled_rows()
    names = [cause, *effect.adjusted_for, *COHORT.clients[1:]]
    design = np.column_stack([np.ones(len(columns[cause])), *(columns[name] for name in names)])
    fitted = api.OLS(columns[outcome], design).fit()
    assert effect.fixed.value == pytest.approx(fitted.params[1], rel=1e-9)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("cause", "outcome"), [("v2", "v3"), ("v3", "v4"), ("v2", "v4")])
def test_dowhy_finds_the_same_adjustment_set_valid_and_the_same_effect(cause, outcome):
    dowhy = pytest.importorskip("dowhy", reason="DoWhy is not installed")
    pandas, networkx = pytest.importorskip("pandas"), pytest.importorskip("networkx")
    columns = pandas.DataFrame(pooled_rows())
    sites = list(COHORT.clients[1:])
    arrows = sorted(DAG.arrows) + [(site, name) for site in sites for name in NAMES]
    model = dowhy.CausalModel(columns, cause, outcome, graph=networkx.DiGraph(arrows))
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    found = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
    own = estimate_effect(
        COHORT, DAG, cause, outcome, adjust=sorted(set(estimand.get_backdoor_variables()) - set(sites))
    )
    assert own.identifiable
    assert own.fixed.value == pytest.approx(found.value, rel=1e-9)
