"""`fedcdh keys`: make a pair of keys, sign a file, check who signed it."""

from __future__ import annotations

import os
from getpass import getpass
from pathlib import Path
from typing import Annotated, Literal

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, Quiet
from fedcdh.errors import SettingsError, SignatureError

MAX_FILE_BYTES = 1 << 31
FileKind = Literal["summary", "plan", "profile", "result", "request", "answer", "masking", "aggregate", "release"]
KindOption = Annotated[
    FileKind | None,
    typer.Option(
        "--kind",
        help="What the file is: summary, plan, profile, result, request, answer, masking, aggregate or release.",
        metavar="KIND",
        show_default="by the name of the file",
    ),
]
_KINDS_BY_SUFFIX: dict[str, FileKind] = {
    ".summary": "summary",
    ".aggregate": "aggregate",
    ".plan.json": "plan",
    ".profile.json": "profile",
    "result.json": "result",
}


@report_errors
def new_command(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File of the private key; it stays with you. The public key is written beside it.",
            metavar="FILE",
            show_default="site.key in ~/.config/fedcdh, with site.pub in this folder",
        ),
    ] = None,
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase that protects the private key.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys.

    Send the public key to the coordinator once, over a channel you trust. The private key never leaves this site.

    For example:

      fedcdh keys new

      fedcdh keys new -o north.key --passphrase
    """
    from fedcdh._io.storage import write_atomically
    from fedcdh.messages.signing import SigningKey, key_fingerprint
    from fedcdh.privacy.ledger.ledger_file import settings_folder

    out = Output(quiet, as_json)
    private, public = _key_files(output)
    if output is not None and not output.parent.is_dir() and output.parent != settings_folder():
        raise SettingsError(
            f"The folder {output.parent} does not exist, so no key is written there: a private key belongs to a place "
            "that you chose. Correct the path, or make the folder first."
        )
    for path in (private, public):
        if os.path.lexists(path):
            raise SettingsError(f"{path} exists already and is not overwritten. Choose another name with -o.")
    secret = _ask_passphrase_twice() if passphrase else None
    key = SigningKey.generate()
    write_atomically(private, key.to_pem(secret), private=True)
    write_atomically(public, f"{key.public}\n")
    out.say(
        f"Wrote the private key {private} and the public key {public}.",
        f"Fingerprint: {key_fingerprint(key.public)}",
        "From now on, profiles and summaries that are made here are signed with it."
        if output is None
        else f"Name it with --key {private} where files are to be signed with it.",
    )
    out.result({"public": key.public, "fingerprint": key_fingerprint(key.public), "files": [str(private), str(public)]})


@report_errors
def sign_command(
    file: Annotated[Path, typer.Argument(help="Summary, plan, profile or result to sign.", metavar="FILE")],
    kind: KindOption = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Sign a file.

    The signature is written beside the file, as FILE.sig.

    For example:

      fedcdh keys sign study.plan.json
    """
    from fedcdh._io.storage import read_regular_file, write_atomically
    from fedcdh.cli._keys import load_signing_key, signature_path
    from fedcdh.messages.signing import key_fingerprint, sign

    out = Output(quiet, as_json)
    signing = load_signing_key(key, out)
    if signing is None:
        raise SignatureError("There is no key to sign with. Make one with `fedcdh keys new`, or name it with --key.")
    content = read_regular_file(file, MAX_FILE_BYTES, "a file to sign", refuse=SignatureError)
    write_atomically(signature_path(file), sign(signing, kind or _find_kind(file), content))
    out.say(f"Wrote {signature_path(file)}, signed by {key_fingerprint(signing.public)}.")
    out.result({"signature": str(signature_path(file)), "signed_by": signing.public})


@report_errors
def verify_command(
    file: Annotated[Path, typer.Argument(help="File to check; its signature is FILE.sig.", metavar="FILE")],
    by: Annotated[
        str | None, typer.Option(help="Public key that you expect: a file, or ed25519:...", metavar="KEY")
    ] = None,
    kind: KindOption = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check who signed a file.

    The check also shows that the file is unchanged since.

    For example:

      fedcdh keys verify study.plan.json --by site.pub
    """
    from fedcdh._io.storage import read_regular_file
    from fedcdh.cli._keys import find_signer, read_public_key, signature_path
    from fedcdh.messages.signing import key_fingerprint

    out = Output(quiet, as_json)
    content = read_regular_file(file, MAX_FILE_BYTES, "a signed file", refuse=SignatureError)
    signer = find_signer(file, content, kind or _find_kind(file))
    if signer is None:
        raise SignatureError(
            f"{file} is not signed: there is no {signature_path(file).name} beside it. Ask its sender for that file."
        )
    if by is not None and signer != (expected := read_public_key(by)):
        raise SignatureError(
            f"{file} is signed by {key_fingerprint(signer)}. Expected {key_fingerprint(expected)}. Ask its sender."
        )
    out.say(f"{file} is unchanged since the key {key_fingerprint(signer)} signed it.")
    if by is None:
        out.say("Compare this fingerprint with the one that the owner gave you, or name the expected key with --by.")
    out.result({"signed_by": signer, "fingerprint": key_fingerprint(signer)})


def _key_files(output: Path | None) -> tuple[Path, Path]:
    """Return where the private and the public key are written; by default only the one to send is in this folder."""
    if output is None:
        from fedcdh.cli._site_settings import KEY_FILE_NAME
        from fedcdh.privacy.ledger.ledger_file import settings_folder

        return settings_folder() / KEY_FILE_NAME, Path(KEY_FILE_NAME).with_suffix(".pub")
    return output, output.with_name(output.name.removesuffix(".key") + ".pub")


def _find_kind(file: Path) -> FileKind:
    found = next((kind for suffix, kind in _KINDS_BY_SUFFIX.items() if file.name.endswith(suffix)), None)
    if found is None:
        raise SettingsError(f"The name {file.name} does not say what kind of file this is. Say it with --kind.")
    return found


def _ask_passphrase_twice() -> str:
    first, second = getpass("Passphrase: "), getpass("Once more: ")
    if first != second:
        raise SignatureError("The two passphrases differ. No key was written; run the command again.")
    return first
