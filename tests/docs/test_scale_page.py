"""docs/scale.md: what it says is what the files beside it say, and exponents are those of growth."""

import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_cost_profile import profile_costs
from benchmarks.scale.growth import CURVES, Point, fit_exponent
from benchmarks.scale.measure import Measured, measure_job
from benchmarks.scale.page import (
    growth_table,
    peers_table,
    read_besides,
    read_points,
    render_page,
    write_besides,
    write_points,
)
from benchmarks.scale.peers import CASES, PeerRatio, describe_faster
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

DOCS = Path(__file__).parents[2] / "docs"


@given(st.floats(0, 3), st.floats(0.01, 100), st.integers(3, 9))
def test_the_exponent_of_a_power_is_that_power(power, factor, count):
    sizes = [10 * 2**i for i in range(count)]
    assert fit_exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power, abs=1e-6)


def test_what_small_sizes_cost_anyway_does_not_count():
    sizes = [2**i for i in range(4, 14)]
    assert fit_exponent(sizes, [50 + size**2 for size in sizes]) == pytest.approx(2, abs=0.05)
    assert fit_exponent(sizes, [1e6 + 0 * size for size in sizes]) == pytest.approx(0, abs=1e-6)


def test_points_and_ratios_are_read_as_they_were_written(tmp_path):
    points = [Point("client", "rows", 2**i, Measured(0.125 * 2**i, 3.5)) for i in range(4)]
    write_points(points, tmp_path / "growth.csv")
    assert read_points(tmp_path / "growth.csv") == points
    beside = [PeerRatio("linear, d = 30", "a peer", 1000 + i, 0.25, 0.5 + i) for i in range(3)]
    write_besides(beside, tmp_path / "peers.csv")
    assert read_besides(tmp_path / "peers.csv") == beside
    assert list(growth_table(points))[-1] == "| client | rows n | 1 | 8 | 8.0 | 1.00 | 1 | 4 to 4 |\n"
    assert list(peers_table(beside))[-1] == "| linear, d = 30 | a peer | 3 | 6.00 (2.00 to 10) |\n"


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ({6: 0.3, 10: 0.6, 30: 1.2, 100: 8.0}, ("at d = 6 and 10 causal-learn's", "from d = 30 on ours")),
        ({6: 0.3, 10: 1.6, 30: 0.9, 100: 8.0}, ("at d = 6 and 30 causal-learn's", "from d = 100 on ours")),
        ({6: 0.3, 100: 0.8}, ("at d = 6 and 100 causal-learn's",)),
        ({30: 1.2, 100: 8.0}, ("from d = 30 on ours",)),
        ({}, ()),
    ],
)
def test_the_page_says_where_others_are_faster(ratios, said):
    found = [
        PeerRatio(str(case), program, 1000, 1.0, ratios[case.variables] if "fisherz" in program else 1e-3)
        for case in CASES
        if case.variables in ratios
        for program in case.programs
    ]
    sentence = describe_faster(found)
    assert all(part in sentence for part in said)
    assert sentence.count("d = ") == len(said)


def test_one_slower_program_is_enough_for_others_to_be_called_faster():
    case = next(str(case) for case in CASES if case.variables == 30)
    ratios = {"causal-learn cdnod fisherz": 2.0, "causal-learn pc fisherz": 0.9}
    found = [PeerRatio(case, program, 1000, 1.0, ratio) for program, ratio in ratios.items()]
    assert "at d = 30 causal-learn's" in describe_faster(found)


def test_work_is_measured_in_a_process_of_its_own():
    found = measure_job(__name__, "hoarding", {"megabytes": 64})
    assert found.seconds > 0
    assert found.megabytes == -1 or 60 < found.megabytes < 90


def hoarding(megabytes: int):
    return lambda: float(np.ones(megabytes << 17).sum())


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc is known to give freed memory back when asked"
)
def test_memory_that_preparation_freed_counts_when_work_takes_it_again():
    found = measure_job(__name__, "taking_again", {"megabytes": 64})
    assert found.megabytes == -1 or 60 < found.megabytes < 90


def taking_again(megabytes: int):
    def work():
        return [np.ones(1 << 12) for _ in range(megabytes << 5)]

    blocks = work()
    last = blocks.pop()  # above the freed ones, so that these do not leave by themselves
    del blocks
    return lambda: (len(work()), last)


def test_time_in_libraries_is_charged_to_who_called_them():
    plan = StudyPlan((Continuous("a"), Continuous("b")), ("one",))
    found = profile_costs(
        lambda: summarize(np.ones((100_000, 2)), plan, "one"), sys.maxsize
    )  # all: the clock orders them
    shares = [share for share, _ in found]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert any("_multiply" in name for _, name in found)
    assert not any("numpy" in name for _, name in found)


def test_curves_are_told_apart_and_grow():
    assert len({(curve.name, curve.varied) for curve in CURVES}) == len(CURVES)
    assert all(list(curve.values) == sorted(set(curve.values)) and len(curve.values) >= 4 for curve in CURVES)


def test_the_page_says_what_the_files_say():
    assert (DOCS / "scale.md").read_text(encoding="utf-8") == render_page(DOCS / "scale")
