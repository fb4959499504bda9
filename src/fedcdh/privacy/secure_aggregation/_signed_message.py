"""Bytes, digests and signatures that all messages of secure aggregation have in common."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import SignatureError
from fedcdh.messages.signing import SigningKey, is_signed_by, key_fingerprint, sign_raw
from fedcdh.messages.study_file import Study

FORMAT = "fedcdh-masking-2"


class SecAggMessage:
    """A message: one line of canonical JSON, followed by binary data only in a masked vector."""

    kind: ClassVar[str]

    def to_bytes(self) -> bytes:
        """Return the bytes of the message, which are unique."""
        return to_canonical_json(self.document()).encode()

    def document(self) -> dict[str, Any]:
        """Return the fields of the message and its kind as a JSON object."""
        values = {one.name: _to_json_value(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]
        return {"format": FORMAT, "round": self.kind, **values}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hexadecimal digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


class SignedMessage(SecAggMessage):
    """A message of a client, with its signature."""

    client: str
    signature: bytes

    def signed(self, key: SigningKey) -> Self:
        """Return the same message with a signature."""
        return replace(self, signature=sign_raw(key, "masking", self._unsigned()))  # type: ignore[type-var]

    def check_signature(self, study: Study) -> None:
        """Refuse a message that is not signed by the key that the plan file names for this client.

        Parameters
        ----------
        study : Study
            The plan file.

        Raises
        ------
        SignatureError
            If the key is missing in the plan file, or the signature is false.
        """
        expected = study.keys.get(self.client)
        if expected is None:
            raise SignatureError(
                f"There is a message of {self.client[:80]!r}, for which the plan file names no key. Expected a key of "
                "every client. Make the plan with the keys of all clients (fedcdh plan --site-key)"
            )
        if not is_signed_by(expected, "masking", self._unsigned(), self.signature):
            raise SignatureError(
                f"A message ({self.kind}) in the name of {self.client} has a false signature. Expected one by "
                f"{key_fingerprint(expected)}, the key that the plan file names. Do not go on, and ask both that "
                "client and the coordinator"
            )

    def _unsigned(self) -> bytes:
        return to_canonical_json({**self.document(), "signature": ""}).encode()


def _to_json_value(value: Any) -> Any:
    """Return a field as JSON."""
    if isinstance(value, SecAggMessage):
        return value.document()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {name: _to_json_value(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_to_json_value(one) for one in value]
    return None if isinstance(value, np.ndarray) else value
