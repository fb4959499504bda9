"""Damaged and forged summary files without the client's key: python -m benchmarks.attacks.mutated_files --help

The mutations are those of tests/laws/test_damage_is_refused.py: half of them are accidents, and half have a corrected
digest. A file "not signed by the site" is refused where a plan names the client's key, whatever the file has. Anything
but a refusal by name ends the run with a traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS / "laws"), str(TESTS / "support")]

_BLOCK = 10_000


def main() -> None:
    from test_damage_is_refused import REFUSALS, fuzz

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000, help="how many (default 100000)")
    parser.add_argument("--quick", action="store_true", help="10000 of them")
    options = parser.parse_args()
    number, seen = 10_000 if options.quick else options.files, Counter[str]()
    blocks = max(1, number // _BLOCK)
    for block in range(blocks):
        seen += fuzz(min(number, _BLOCK), seed=1000 + block)  # asserts that the signature holds for the true file only
        print(f"{(block + 1) * min(number, _BLOCK):8} files", file=sys.stderr, flush=True)
    changed = sum(seen[name] for name in (*REFUSALS, "accepted"))
    print(f"{changed + seen['unchanged']} files, seeds 1000..{999 + blocks}; {seen['unchanged']} came out as they were")
    print(f"changed: {changed}; accepted with the site's signature: 0; tracebacks: 0")
    for name in (*REFUSALS, "accepted"):
        print(f"  {name:20}{seen[name]:8}" + (" without a signature: sums of other rows" if name == "accepted" else ""))


if __name__ == "__main__":
    main()
