"""The folder that `flwr run` takes: two modules of one line, and the settings of the run. Making it needs no flwr."""

from __future__ import annotations

from pathlib import Path

from fedcdh._io.storage import write_atomically
from fedcdh.discovery.api import MAX_BYTES, MAX_ROUNDS
from fedcdh.errors import SettingsError

DEFAULTS: dict[str, str | int | float] = {
    "output": "",
    "study": "",
    "method": "auto",
    "alpha": -1.0,
    "max-conditioning-size": -1,
    "seed": 0,
    "rounds": "one",
    "max-rounds": MAX_ROUNDS,
    "max-bytes": MAX_BYTES,
    "masked": "no",
    "groups": "",
    "threshold": 0,
    "attempt": 1,
    "minimum-sites": 2,
    "expected-sites": 0,
    "timeout": 600.0,
    "declaration": "",
    "accept-differences": "",
    "key": "",
    "site-keys": "",
}
"""All that can be set for a run, with what it is otherwise."""
_COMMENTS = {
    "output": "a folder on the machine of the SuperLink",
    "study": "its name, to tell its messages from an older one's",
    "method": "auto, evidence, constraint or paper",
    "alpha": "the level of the tests of constraint and paper; -1: the usual one",
    "max-conditioning-size": "the most variables to condition on, or causes; -1: no limit",
    "rounds": "adaptive: tests of constraint ask sites again, how variables act together",
    "max-rounds": "the most further questions that a site answers, with adaptive; the plan says so",
    "max-bytes": "the most bytes that it sends in answer to them",
    "masked": "yes: only the sum of all summaries is seen; every site needs a key",
    "groups": "a TOML file: client = group; with masks, only sums of groups of three or more are known",
    "threshold": "so many sites have to open the sum; 0: more than two thirds",
    "attempt": "of the masked sum: the next number where one failed",
    "minimum-sites": "fewer give no result",
    "expected-sites": "so many are waited for at the start",
    "timeout": "seconds for each round",
    "declaration": "a TOML file with variables, clients and what is known",
    "accept-differences": "variables whose ranges really differ, separated by commas",
    "key": "the coordinator's private key, which signs requests and the plan",
    "site-keys": "a TOML file: client = public key",
}

_PYPROJECT_TEMPLATE = """\
[project]
name = "fedcdh-study"
version = "1.0.0"
description = "A federated causal discovery study"
license = "Apache-2.0"
dependencies = ["fedcdh[flower]"]

[tool.flwr.app]
publisher = "local"

[tool.flwr.app.components]
serverapp = "study.server_app:app"
clientapp = "study.client_app:app"

[tool.flwr.app.config]
{config}
"""
_SERVER_MODULE = (
    '"""What runs at the coordinator."""\n\nfrom fedcdh.federation.flower import server_app\n\napp = server_app.app\n'
)
_CLIENT_MODULE = (
    '"""What runs at a site."""\n\nfrom fedcdh.federation.flower import client_app\n\napp = client_app.app\n'
)
_README = """\
# A study over Flower

Everywhere: `pip install 'fedcdh[flower]'`. At the coordinator, with a SuperLink running that is called `study` in
Flower's `config.toml`:

    flwr run . study --stream --run-config 'minimum-sites=3 timeout=900'

`pyproject.toml` lists all settings of a run. Settings of a site are in its own `site.toml`, which its SuperNode is told
of with `--node-config 'site="/path/to/site.toml"'`. The page on Flower in fedcdh's documentation has all steps.
"""


def write_app(folder: Path | str, output: Path | str | None = None) -> tuple[Path, ...]:
    """Writes the app; results go to `output`, or into a folder beside it, for Flower sends all that lies in an app."""
    folder = Path(folder).absolute()
    if folder.exists() and any(folder.iterdir()):
        raise SettingsError(f"{folder} is not empty; choose another folder")
    result = Path(output).absolute() if output else folder.with_name(f"{folder.name}-result")
    contents = {
        "study/__init__.py": '"""An app for Flower; what it does is in fedcdh."""\n',
        "study/server_app.py": _SERVER_MODULE,
        "study/client_app.py": _CLIENT_MODULE,
        "README.md": _README,
        "pyproject.toml": _PYPROJECT_TEMPLATE.format(
            config="\n".join(_config_lines({**DEFAULTS, "output": str(result)}))
        ),
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return tuple(folder / name for name in contents)


def _config_lines(settings: dict[str, str | int | float]) -> list[str]:
    return [
        f"{name} = {to_toml_value(value)}" + (f"  # {_COMMENTS[name]}" if name in _COMMENTS else "")
        for name, value in settings.items()
    ]


def to_toml_value(value: str | int | float) -> str:
    """A value as TOML writes it."""
    if not isinstance(value, str):
        return repr(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
