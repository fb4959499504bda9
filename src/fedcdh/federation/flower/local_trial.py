"""A trial of Flower on one machine: a certificate authority, keys, a SuperLink and SuperNodes with TLS.

One program runs the commands that docs/flower.md describes for coordinators and sites. All processes listen on
127.0.0.1 only, and end with the trial.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from fedcdh._io.storage import write_atomically
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.federation.flower.app_folder import to_toml_value, write_app

QUIET_ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""Environment that switches off the telemetry and the update check of Flower."""
SUPERLINK_NAME = "study"
_START_TIMEOUT = 90.0  # seconds for a server to listen
_CERTIFICATE_DAYS = 30
_ANSI_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def find_program(name: str) -> str:
    """Return the path of one of Flower's programs, beside this Python."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise MissingDependencyError(
            f"There is no program {name} beside {sys.executable}. Install it with: pip install 'fedcdh[flower]'"
        )
    return str(path)


def find_free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def make_certificates(folder: Path) -> None:
    """Write ca.crt, server.pem and server.key: a certificate authority, and a server that is this machine."""
    now = datetime.datetime.now(datetime.UTC)
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    issuer, subject = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("trial", "localhost"))

    def certificate(name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=_CERTIFICATE_DAYS))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
            .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
        )

    here = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    own = certificate(issuer, authority.public_key()).add_extension(_ca_key_usage(), critical=True)
    its = certificate(subject, server.public_key()).add_extension(x509.SubjectAlternativeName(here), critical=False)
    write_atomically(folder / "ca.crt", own.sign(authority, SHA256()).public_bytes(Encoding.PEM))
    write_atomically(folder / "server.pem", its.sign(authority, SHA256()).public_bytes(Encoding.PEM))
    write_atomically(
        folder / "server.key", server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), private=True
    )


def _ca_key_usage() -> x509.KeyUsage:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only")
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, decipher_only=False, **dict.fromkeys(others, False)
    )


def make_node_key(path: Path) -> None:
    """Write the key pair of a SuperNode, as `ssh-keygen -t ecdsa -b 384` makes it."""
    key = ec.generate_private_key(ec.SECP384R1())
    write_atomically(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), private=True)
    write_atomically(
        path.with_name(f"{path.name}.pub"), key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    )


@dataclass
class LocalTrial:
    """A SuperLink with its app and SuperNodes with their sites, in one folder; a context that ends its processes."""

    folder: Path
    port: int = field(default_factory=find_free_port)
    report: Callable[[str], None] = lambda line: None
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.folder.absolute()

    @property
    def result(self) -> Path:
        """Return the folder of the result."""
        return self.folder / "result"

    def __enter__(self) -> LocalTrial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in reversed(list(self._processes)):
            self.stop(name)

    def prepare(self) -> None:
        """Write the app, the certificates, and Flower's configuration with the address of the SuperLink."""
        write_app(self.folder / "app", self.result)
        make_certificates(self.folder)
        lines = [
            f'[superlink]\ndefault = "{SUPERLINK_NAME}"\n\n[superlink.{SUPERLINK_NAME}]',
            f'address = "127.0.0.1:{self.port}"',
        ]
        root = f"root-certificates = {to_toml_value(str(self.folder / 'ca.crt'))}"
        write_atomically(self.folder / "flwr" / "config.toml", "\n".join([*lines, root, ""]))

    def start_link(self) -> None:
        """Start the SuperLink, which installs nothing and admits registered SuperNodes only."""
        files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.pem", "--ssl-keyfile": "server.key"}
        given = [part for option, file in files.items() for part in (option, str(self.folder / file))]
        self._start(
            "superlink",
            [
                *("flower-superlink", "--host", "127.0.0.1", "--port", str(self.port), *given),
                *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
                *("--database", str(self.folder / "state.db")),
            ],
        )
        self._wait_for_port()

    def add_node(self, name: str, settings: Path, *, register: bool = True) -> None:
        """Start a SuperNode for the site with this configuration, with a key of its own."""
        key = self.folder / "nodes" / name
        if not key.exists():
            make_node_key(key)
            if register:
                self.flwr("supernode", "register", f"{key}.pub", SUPERLINK_NAME)
        self._start(
            name,
            [
                *("flower-supernode", "--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1"),
                *("--port", str(find_free_port()), "--root-certificates", str(self.folder / "ca.crt")),
                *(
                    "--auth-supernode-private-key",
                    str(key),
                    "--node-config",
                    f"site={to_toml_value(str(settings.absolute()))}",
                ),
            ],
        )

    def run(self, settings: Mapping[str, str | int | float], app: Path | None = None) -> str:
        """Run the study to its end, and return the output of Flower."""
        given = " ".join(f"{name}={to_toml_value(value)}" for name, value in settings.items())
        return self.flwr("run", str(app or self.folder / "app"), SUPERLINK_NAME, "--stream", "--run-config", given)

    def flwr(self, *arguments: str) -> str:
        """Run one of Flower's commands to its end, and return its output."""
        command = ["flwr", *arguments]
        self.report(shlex.join(command))
        run = subprocess.run(
            [find_program("flwr"), *arguments],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if run.returncode:
            raise SettingsError(f"The command {shlex.join(command)} failed:\n{run.stdout[-2000:]}")
        return _ANSI_COLOURS.sub("", run.stdout)

    def log(self, name: str) -> str:
        """Return the log of a process."""
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def wait(self, name: str, timeout: float) -> int | None:
        """Return the exit code of a process that ends within the timeout; None for one that does not."""
        try:
            return self._processes[name].wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, name: str, *, at_once: bool = False) -> None:
        """End a process and those it started, which form a process group."""
        process = self._processes.pop(name)
        for number, patience in ((signal.SIGTERM, 0.0 if at_once else 10.0), (signal.SIGKILL, 10.0)):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            if patience:
                time.sleep(0.2)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        process.wait(10)

    def _start(self, name: str, command: list[str]) -> None:
        self.report(shlex.join(command))
        log = self.folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True, parents=True)
        with log.open("ab") as file:
            self._processes[name] = subprocess.Popen(
                [find_program(command[0]), *command[1:]],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        beside = str(Path(sys.executable).parent)  # Flower starts its own programs by name
        paths = {"PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', '')}", "FLWR_HOME": str(self.folder / "flwr")}
        return {**os.environ, **QUIET_ENVIRONMENT, **paths}

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < deadline and self._processes["superlink"].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise SettingsError(f"The SuperLink does not listen:\n{self.log('superlink')[-2000:]}")
