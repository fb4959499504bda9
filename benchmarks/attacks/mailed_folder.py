"""A folder that somebody mails, with more in it than a plan: python -m benchmarks.attacks.mailed_folder

The site unpacks the folder and runs its commands there. The folder has a `policy.toml` that lets everything leave, one
setting after the other, or a `site.key` that its sender knows as well. The attack succeeds if a summary leaves that the
policy of the site refuses, or if a message is signed with the sender's key. It ends with an error if one does.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from fedcdh.cli import main as run_command
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("x"), Continuous("y"), Categorical("g", ("a", "b"))), ("north", "south"))
ROWS = 60  # fewer than any plan needs, with two people of a rare level
POLICIES = (
    "disclosure_control = false",
    "min_rows = 1\nmin_cell_count = 1\nmax_leverage = 1.0",
    "min_rows = 1\nmin_cell_count = 1\nmax_leverage = 1.0\nmax_discrete_values = 0",
    'min_rows = 1\nmin_cell_count = 1\nmax_leverage = 1.0\nexcluded_variables = ["unrelated"]',
)
_SETTINGS = ("FEDCDH_POLICY", "FEDCDH_KEY", "FEDCDH_LEDGER")


@contextmanager
def unpacked(seed: int = 0) -> Iterator[Path]:
    """Yield the unpacked folder, which is the current one; the site has set up nothing."""
    rng = np.random.default_rng([seed, 20])
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as name, chdir(name):
        os.environ["XDG_CONFIG_HOME"] = home
        for variable in _SETTINGS:
            os.environ.pop(variable, None)
        folder = Path(name)
        x, y = rng.standard_normal((2, ROWS)).tolist()
        lines = [f"{x[k]},{y[k]},{'b' if k < 2 else 'a'}" for k in range(ROWS)]
        (folder / "data.csv").write_text("\n".join(["x,y,g", *lines]), encoding="utf-8")
        (folder / "study.plan.json").write_text(Study(PLAN).to_json(), encoding="utf-8")
        try:
            yield folder
        finally:
            os.environ.clear()
            os.environ.update(before)


def summarize(*options: str) -> int:
    """Run the site's command in the current folder, and return its exit code."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return run_command(["summarize", "study.plan.json", "data.csv", "--client", "north", *options])


def try_policy(text: str) -> bool:
    """Return whether a policy in the folder lets a summary leave that the site's own policy refuses."""
    with unpacked() as folder:
        assert summarize() != 0, "the site's own policy should refuse this table"
        (folder / "policy.toml").write_text(text, encoding="utf-8")
        return summarize() == 0 or (folder / "north.summary").exists()


def try_key() -> bool:
    """Return whether a message is signed with a key that lay in the folder."""
    with unpacked() as folder:
        (folder / "site.key").write_bytes(SigningKey.generate().to_pem())
        assert summarize("--no-disclosure-control") == 0
        return (folder / "north.summary.sig").exists()


def main() -> None:
    succeeded = []
    for text in POLICIES:
        left = try_policy(text)
        shown = text.replace("\n", ", ")
        print(f"{'leaves' if left else 'refused':>10}  policy.toml: {shown}")
        succeeded += [shown] if left else []
    signed = try_key()
    print(f"{'used' if signed else 'not used':>10}  site.key")
    succeeded += ["site.key"] if signed else []
    if succeeded:
        raise SystemExit("the attack succeeds with:\n- " + "\n- ".join(succeeded))


if __name__ == "__main__":
    main()
