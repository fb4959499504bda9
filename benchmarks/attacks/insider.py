"""False sums, packed and signed by a site that means harm: python -m benchmarks.attacks.insider --help

The kinds of change, and their repair by somebody who knows all checks, are those of benchmarks.bench_validation. Here
they go the whole way of a file: packed, signed with the client's key, verified, unpacked and admitted with the other
client's.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.bench_validation import FALSE_SUMMARIES, UNDETECTABLE_CHANGES, Change, repair_moments, simulate_sums
from fedcdh.errors import FedCDHError
from fedcdh.messages.signing import SigningKey, sign, verify
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([3]) * 32))


def judge_change(change: Change, seed: int, labels: int) -> tuple[str, float] | None:
    """The name of the error, or "admitted", and the largest change as a share of the bound; None without a change."""
    sums = simulate_sums(seed, Hermite(), labels)
    moments = repair_moments(change(sums, np.random.default_rng([seed, 1])), sums.plan)
    if np.array_equal(moments, sums.moments):
        return None
    largest = float(np.abs(moments - sums.moments).max() / sums.moments[0, 0])
    honest = summarize(sums.other, sums.plan, "there")
    nothing = dict.fromkeys(sums.plan.names, 0)
    try:
        false = Summary(sums.plan.fingerprint, ("here",), moments, int(moments[0, 0]) // GRID**2, nothing)
        blob = pack_summary(SummaryMessage(false), sums.plan)
        if verify("summary", blob, sign(KEY, "summary", blob)) != KEY.public:
            return "not signed", largest
        admit_summaries([unpack_summary(blob, sums.plan).summary, honest], sums.plan)
    except FedCDHError as refused:
        return type(refused).__name__, largest
    return "admitted", largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 of every kind")
    parser.add_argument("--each", type=int, default=100, help="files of every kind (default 100)")
    parser.add_argument("--labels", type=int, default=0, help="labels among the 6 variables (default 0)")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (5 if options.quick else options.each))
    total, slipped = 0, 0
    for title, kinds in (("detectable", FALSE_SUMMARIES), ("valid by construction", UNDETECTABLE_CHANGES)):
        print(f"\n{title}: {len(kinds)} kinds, 6 variables ({options.labels} labels), seeds {seeds[0]}..{seeds[-1]}")
        for name, change in kinds.items():
            every = [said for seed in seeds if (said := judge_change(change, seed, options.labels)) is not None]
            found = Counter(who for who, _ in every)
            false = max((by for who, by in every if who == "admitted"), default=0.0)
            total, slipped = total + found.total(), slipped + found["admitted"] * (kinds is FALSE_SUMMARIES)
            refused = ", ".join(f"{who} {many}" for who, many in found.most_common() if who != "admitted")
            by = f"(false by {false:.0e} of the bound) " if false else ""
            print(f"  {name:34}admitted {found['admitted']:4} of {found.total():<6}{by}{refused}", flush=True)
    print(f"\n{total} files; of the detectable kinds {slipped} were admitted")


if __name__ == "__main__":
    main()
