"""Keys of sites: making one, signing a file, checking who signed it."""

from __future__ import annotations

from getpass import getpass
from pathlib import Path
from typing import Annotated

import typer

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import find_signer, load_signing_key, read_public_key, signature_path
from fedcdh.cli._options import AsJson, KeyFile, Quiet
from fedcdh.errors import SettingsError, SignatureError
from fedcdh.messages.signing import SIGNED_KINDS, SigningKey, key_fingerprint, sign

MAX_FILE_BYTES = 1 << 31
KindOption = Annotated[
    str | None, typer.Option(help=f"{', '.join(SIGNED_KINDS)}; else by the name of the file.", metavar="KIND")
]


@report_errors
def new_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The private key; never leaves you.")] = Path(
        "site.key"
    ),
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Ask for a passphrase that protects it.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys. The public one goes to the coordinator, once, over a way you trust.

    Examples:

      fedcdh keygen

      fedcdh keygen -o ~/.config/fedcdh/site.key --passphrase
    """
    out, public = Output(quiet, as_json), output.with_name(output.name.removesuffix(".key") + ".pub")
    for path in (output, public):
        if path.exists():
            raise SettingsError(f"{path} is there already and is not overwritten; choose another name with -o")
    secret = _ask_passphrase_twice() if passphrase else None
    key = SigningKey.generate()
    write_atomically(output, key.to_pem(secret), private=True)
    write_atomically(public, f"{key.public}\n")
    out.say(
        f"Wrote the private key {output} and the public key {public}.",
        f"Fingerprint: {key_fingerprint(key.public)}",
        "Profiles and summaries made here are signed with it from now on.",
    )
    out.result({"public": key.public, "fingerprint": key_fingerprint(key.public), "files": [str(output), str(public)]})


@report_errors
def sign_command(
    file: Annotated[Path, typer.Argument(help="A summary, plan, profile or result.", metavar="FILE")],
    kind: KindOption = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Sign a file; the signature stands beside it in FILE.sig.

    Example:

      fedcdh sign study.plan.json
    """
    out = Output(quiet, as_json)
    signing = load_signing_key(key, out)
    if signing is None:
        raise SignatureError("there is no key to sign with; make one with `fedcdh keygen`, or name it with --key")
    content = read_regular_file(file, MAX_FILE_BYTES, "a file to sign", refuse=SignatureError)
    write_atomically(signature_path(file), sign(signing, _find_kind(file, kind), content))
    out.say(f"Wrote {signature_path(file)}, signed by {key_fingerprint(signing.public)}.")
    out.result({"signature": str(signature_path(file)), "signed_by": signing.public})


@report_errors
def verify_command(
    file: Annotated[Path, typer.Argument(help="The file; its signature is FILE.sig.", metavar="FILE")],
    by: Annotated[
        str | None, typer.Option(help="The public key expected: a file, or ed25519:...", metavar="KEY")
    ] = None,
    kind: KindOption = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check who signed a file, and that it was not changed since.

    Example:

      fedcdh verify north.summary --by north.pub
    """
    out = Output(quiet, as_json)
    content = read_regular_file(file, MAX_FILE_BYTES, "a signed file", refuse=SignatureError)
    signer = find_signer(file, content, _find_kind(file, kind))
    if signer is None:
        raise SignatureError(f"{file} is not signed: there is no {signature_path(file).name} beside it")
    if by is not None and signer != (expected := read_public_key(by)):
        raise SignatureError(f"{file} is signed by {key_fingerprint(signer)}, not by {key_fingerprint(expected)}")
    out.say(f"{file} is as it was when the key {key_fingerprint(signer)} signed it.")
    if by is None:
        out.say("Whose key that is, compare with what its owner told you; or name the key you expect with --by.")
    out.result({"signed_by": signer, "fingerprint": key_fingerprint(signer)})


def _find_kind(file: Path, kind: str | None) -> str:
    if kind is not None:
        if kind not in SIGNED_KINDS:
            raise SettingsError(f"--kind {kind}: choose one of {', '.join(SIGNED_KINDS)}")
        return kind
    endings = {
        ".summary": "summary",
        ".aggregate": "aggregate",
        ".plan.json": "plan",
        ".profile.json": "profile",
        "result.json": "result",
    }
    found = next((meant for ending, meant in endings.items() if file.name.endswith(ending)), None)
    if found is None:
        raise SettingsError(f"{file.name} does not say what it is; name it with --kind ({', '.join(SIGNED_KINDS)})")
    return found


def _ask_passphrase_twice() -> str:
    first, second = getpass("Passphrase: "), getpass("Once more: ")
    if first != second:
        raise SignatureError("the two passphrases differ; nothing was written")
    return first
