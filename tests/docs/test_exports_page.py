"""The examples of docs/exports.md run; those whose library is not installed are skipped."""

import json
import re
from pathlib import Path

import pytest

import fedcdh
from fedcdh.errors import MissingDependencyError
from fedcdh.graphs import convert

DOCS = Path(fedcdh.__file__).parents[2] / "docs"
PAGE = (DOCS / "exports.md").read_text(encoding="utf-8")
FIRST, *BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def names():
    made: dict[str, object] = {}
    exec(compile(FIRST, "exports.md", "exec"), made)
    return made


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0][:40])
@pytest.mark.filterwarnings("ignore")
def test_examples_run(block, names, tmp_path, monkeypatch):
    if "plots" in block:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(block, "exports.md", "exec"), dict(names))
    except (ModuleNotFoundError, MissingDependencyError) as missing:
        pytest.skip(str(missing))


def test_the_page_names_every_conversion_and_convention():
    for name in (*convert.__all__, *convert.CONVENTIONS):
        assert name in PAGE or name == "CONVENTIONS", name


def test_the_example_of_a_graph_file_is_one():
    (text,) = re.findall(r"```json\n(.*?)```", (DOCS / "graph-json.md").read_text(encoding="utf-8"), re.DOTALL)
    assert json.loads(convert.to_json(convert.from_json(text))) == json.loads(text)
