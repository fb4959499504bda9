"""The app folder for `flwr run`: two short modules and the settings of the run. Writing it needs no flwr."""

from __future__ import annotations

from pathlib import Path

from fedcdh._io.storage import write_atomically
from fedcdh.discovery.api import MAX_BYTES, MAX_ROUNDS
from fedcdh.discovery.settings import DEFAULT_MIN_ARROW_PROBABILITY, DEFAULT_MIN_EFFECT, DEFAULT_MIN_PROBABILITY
from fedcdh.errors import SettingsError

DEFAULTS: dict[str, str | int | float] = {
    "output": "",
    "study": "",
    "method": "auto",
    "alpha": -1.0,
    "max-conditioning-size": -1,
    "min-probability": DEFAULT_MIN_PROBABILITY,
    "min-arrow-probability": DEFAULT_MIN_ARROW_PROBABILITY,
    "min-effect": DEFAULT_MIN_EFFECT,
    "seed": 0,
    "rounds": "auto",
    "max-rounds": MAX_ROUNDS,
    "max-bytes": MAX_BYTES,
    "secure-sum": "no",
    "groups": "",
    "threshold": 0,
    "attempt": 1,
    "mixtures": 0,
    "minimum-sites": 2,
    "expected-sites": 0,
    "timeout": 600.0,
    "declaration": "",
    "accept-differences": "",
    "key": "",
    "site-keys": "",
}
"""All settings of a run, with their default values."""
_COMMENTS = {
    "output": "a folder on the machine of the SuperLink",
    "study": "its name, which distinguishes its messages from those of other studies",
    "method": "auto, evidence, constraint or paper",
    "alpha": "significance level of the tests of constraint and paper; -1: the default",
    "max-conditioning-size": "largest number of variables to condition on, or of causes; -1: no limit",
    "min-probability": "smallest probability of an edge or a difference that evidence draws",
    "min-arrow-probability": "smallest probability of an arrow; other edges are lines",
    "min-effect": "smallest share of variance that an edge of evidence explains",
    "rounds": "auto, one, residuals or adaptive: what sites are asked after their summaries (docs/rounds.md)",
    "max-rounds": "largest number of further rounds that a site answers; the plan states it",
    "max-bytes": "with adaptive: largest number of bytes that a site sends in them",
    "secure-sum": "yes: only sums over all sites are seen; every site needs a key",
    "groups": "a TOML file: client = group; with secure-sum, for sums of groups of three or more",
    "threshold": "number of sites that must cooperate to reveal the sum; 0: more than two thirds",
    "attempt": "number of the attempt at a secure sum; raise it after one that failed",
    "mixtures": "number of mixtures of sites that a secure sum opens, in the place of each site's means",
    "minimum-sites": "smallest number of sites in a result",
    "expected-sites": "number of sites to wait for at the start",
    "timeout": "seconds for each round",
    "declaration": "a TOML file with variables, clients and background knowledge",
    "accept-differences": "variables whose ranges or labels really differ, separated by commas",
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
    '"""The app of the coordinator."""\n\nfrom fedcdh.federation.flower import server_app\n\napp = server_app.app\n'
)
_CLIENT_MODULE = '"""The app of a site."""\n\nfrom fedcdh.federation.flower import client_app\n\napp = client_app.app\n'
_README = """\
# A study over Flower

Everywhere: `pip install 'fedcdh[flower]'`. At the coordinator, with a SuperLink running that is called `study` in
Flower's `config.toml`:

    flwr run . study --stream --run-config 'minimum-sites=3 timeout=900'

`pyproject.toml` lists all settings of a run. The settings of a site are in its own `site.toml`; its SuperNode is
started with `--node-config 'site="/path/to/site.toml"'`. The page on Flower in fedcdh's documentation has all steps.
"""


def write_app(folder: Path | str, output: Path | str | None = None) -> tuple[Path, ...]:
    """Write the app folder.

    Parameters
    ----------
    folder : Path or str
        The new folder.
    output : Path or str, optional
        The folder for results. By default one beside the app, because Flower sends everything in an app to the sites.

    Returns
    -------
    tuple of Path
        The files of the app.

    Raises
    ------
    SettingsError
        If the folder is not empty.

    Examples
    --------
    >>> import tempfile
    >>> [path.name for path in write_app(Path(tempfile.mkdtemp()) / "app")][-1]
    'pyproject.toml'
    """
    folder = Path(folder).absolute()
    if folder.exists() and any(folder.iterdir()):
        raise SettingsError(f"The folder {folder} is not empty. Expected a new folder. Choose another one.")
    result = Path(output).absolute() if output else folder.with_name(f"{folder.name}-result")
    contents = {
        "study/__init__.py": '"""An app for Flower; the code is in fedcdh."""\n',
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
    """Return a value as TOML."""
    if not isinstance(value, str):
        return repr(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
