"""Federated causal discovery from heterogeneous data.

>>> import fedcdh
>>> study = fedcdh.demo.hospital_study()
>>> result = fedcdh.discover(study.columns(), domain="hospital")
>>> sorted(result.changing)
['medication', 'systolic_pressure']
"""

from importlib.metadata import version

from fedcdh import demo
from fedcdh.cohort import Aggregate, Cohort, add_up
from fedcdh.discovery import discover, discover_from
from fedcdh.drift import Drift
from fedcdh.errors import FedCDHError
from fedcdh.exports import write_result
from fedcdh.features import Fourier, Hermite
from fedcdh.graph import PartialGraph
from fedcdh.knowledge import Knowledge
from fedcdh.metrics import compare
from fedcdh.online import simulate_federation
from fedcdh.plan import Categorical, Continuous, StudyPlan
from fedcdh.profile import Profile, profile
from fedcdh.questions import DOMAIN
from fedcdh.reading import CsvStyle, open_tables
from fedcdh.result import Discovery, Edge
from fedcdh.simulate import simulate
from fedcdh.stability import Stability
from fedcdh.summary import Summary
from fedcdh.summing import summarize
from fedcdh.taking_part import release

__version__ = version("fedcdh")

__all__ = [
    "DOMAIN",
    "Aggregate",
    "Categorical",
    "Cohort",
    "Continuous",
    "CsvStyle",
    "Discovery",
    "Drift",
    "Edge",
    "FedCDHError",
    "Fourier",
    "Hermite",
    "Knowledge",
    "PartialGraph",
    "Profile",
    "Stability",
    "StudyPlan",
    "Summary",
    "add_up",
    "compare",
    "demo",
    "discover",
    "discover_from",
    "open_tables",
    "profile",
    "release",
    "simulate",
    "simulate_federation",
    "summarize",
    "write_result",
]
