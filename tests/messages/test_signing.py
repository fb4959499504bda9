"""Signatures: one file, one kind, one key, one spelling."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import SignatureError
from fedcdh.messages import signing
from fedcdh.messages.signing import SIGNED_KINDS, SigningKey, is_private_file, key_fingerprint, sign, verify

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
BLOB = b"a summary"
DOCUMENT = sign(KEY, "summary", BLOB)
ORDER = 2**252 + 27742317777372353535851937790883648493  # of the group


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=100), st.sampled_from(SIGNED_KINDS))
def test_what_is_signed_is_verified_by_its_key_alone(blob, kind):
    document = sign(KEY, kind, blob)
    assert verify(kind, blob, document) == verify(kind, blob, document.encode()) == KEY.public
    assert document == sign(KEY, kind, blob)  # Ed25519 draws no random numbers
    other = SigningKey.generate()
    assert verify(kind, blob, sign(other, kind, blob)) == other.public != KEY.public


def test_a_signature_is_what_the_page_says():
    found = json.loads(DOCUMENT)
    assert json.dumps(found, sort_keys=True, separators=(",", ":")) == DOCUMENT
    raw = base64.b64decode(found["key"].removeprefix("ed25519:"))
    signed = b"fedcdh-signature-2\0summary\0" + hashlib.sha256(BLOB).digest()
    Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(found["signature"]), signed)
    assert found["digest"] == hashlib.sha256(BLOB).hexdigest()


def edited(**fields: object) -> str:
    return to_canonical_json({**json.loads(DOCUMENT), **fields})


def shifted(signature: str) -> str:
    """The same signature with S + L for S: it satisfies the equation, and must not pass for a second signature."""
    raw = base64.b64decode(signature)
    moved = int.from_bytes(raw[32:], "little") + ORDER
    return base64.b64encode(raw[:32] + moved.to_bytes(32, "little")).decode()


def spare_bits(text: str) -> str:
    """Another base64 text of the same bytes: the last digit before the padding has bits that are not used."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    bare = text.rstrip("=")
    return bare[:-1] + digits[digits.index(bare[-1]) ^ 1] + "=" * (len(text) - len(bare))


FIELDS = json.loads(DOCUMENT)
OTHER = json.loads(sign(SigningKey.generate(), "summary", BLOB))
small = [y.to_bytes(32, "little") for y in signing._SMALL_ORDER]
MALFORMED = {
    "nothing": "",
    "no JSON": "signed: me",
    "not an object": "[]",
    "a number": edited(key=7),
    "a field too many": edited(note="x"),
    "a field too few": to_canonical_json({name: FIELDS[name] for name in FIELDS if name != "kind"}),
    "another format": edited(format="fedcdh-signature-1"),
    "a space": DOCUMENT.replace(":", ": ", 1),
    "a line break": DOCUMENT + "\n",
    "another order": json.dumps(dict(reversed(FIELDS.items())), separators=(",", ":")),
    "an escape": DOCUMENT.replace("summary", "summar\\u0079"),
    "a key twice": DOCUMENT.replace("{", '{"kind":"plan",', 1),
    "half a pair": DOCUMENT.replace("summary", "\\ud800"),
    "very deep": "[" * 1000,
    "very long": DOCUMENT + " " * 2000,
    "no UTF-8": DOCUMENT.encode() + b"\xff",
    "no scheme": edited(key=FIELDS["key"].removeprefix("ed25519:")),
    "a short key": edited(key="ed25519:AAAA"),
    "a key in letters": edited(key="ed25519:" + "Ä" * 43 + "="),
    "spare bits in the key": edited(key="ed25519:" + spare_bits(FIELDS["key"].removeprefix("ed25519:"))),
    "spare bits in the signature": edited(signature=spare_bits(FIELDS["signature"])),
    "no padding": edited(signature=FIELDS["signature"].rstrip("=")),
    "breaks in base64": edited(signature=FIELDS["signature"][:40] + "\n" + FIELDS["signature"][40:]),
    "a point twice": edited(key="ed25519:" + base64.b64encode((2**255 - 19 + 3).to_bytes(32, "little")).decode()),
    **{f"order {k}": edited(key="ed25519:" + base64.b64encode(raw).decode()) for k, raw in enumerate(small)},
}


@pytest.mark.parametrize("document", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_documents_are_refused(document):
    with pytest.raises(
        SignatureError, match=r"this is not a signature of fedcdh: .*(ask the sender|with this version)"
    ):
        verify("summary", BLOB, document)


@pytest.mark.parametrize(
    "document",
    [
        edited(signature=shifted(FIELDS["signature"])),
        edited(signature=base64.b64encode(bytes(64)).decode()),
        edited(signature=OTHER["signature"]),
        edited(key=OTHER["key"]),
        edited(kind="plan"),
    ],
)
def test_false_signatures_are_refused(document):
    with pytest.raises(SignatureError, match=r"the signature is false: the key [0-9a-f ]{39} did not sign this file"):
        verify(json.loads(document)["kind"], BLOB, document)


def test_each_refusal_has_its_words():
    with pytest.raises(SignatureError, match="belongs to another file, or the file was changed"):
        verify("summary", BLOB + b"!", DOCUMENT)
    with pytest.raises(SignatureError, match="signature of a 'summary' file, expected that of a 'plan' file"):
        verify("plan", BLOB, DOCUMENT)
    with pytest.raises(SignatureError, match="the kind of the file is 'letter'; expected one of summary"):
        sign(KEY, "letter", BLOB)


def test_points_of_small_order_are_all_there_are():
    """Of order 1, 2 and 4: y = 1, −1 and 0. Of order 8, whose double has y = 0: dy⁴ + 2y² = 1 on Edwards' curve."""
    prime = 2**255 - 19
    d = -121665 * pow(121666, -1, prime) % prime
    of_order_8 = signing._SMALL_ORDER - {0, 1, prime - 1}
    assert len(of_order_8) == 2
    assert all((d * y**4 + 2 * y**2 - 1) % prime == 0 for y in of_order_8)
    assert sum(of_order_8) == prime  # y and −y; the other two roots of the equation are on no point


# Keys


@pytest.mark.parametrize("passphrase", [None, "correct horse", "Größe"])
def test_keys_are_written_and_read_back(passphrase):
    pem = KEY.to_pem(passphrase)
    assert sign(SigningKey.from_pem(pem, passphrase), "plan", BLOB) == sign(KEY, "plan", BLOB)
    assert (b"ENCRYPTED" in pem) == (passphrase is not None)


def test_keys_that_cannot_be_used_are_refused_with_advice():
    plain, secret = KEY.to_pem(), KEY.to_pem("right")
    elliptic = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for pem, passphrase, complaint in [
        (secret, None, "is encrypted; give its passphrase"),
        (secret, "wrong", "not a private key in PEM, or the passphrase is wrong"),
        (plain, "any", "not encrypted; leave the passphrase out"),
        (b"rubbish", None, "not a private key in PEM"),
        (plain[:60], None, "not a private key in PEM"),
        (elliptic, None, "not an Ed25519 key"),
    ]:
        with pytest.raises(SignatureError, match=complaint):
            SigningKey.from_pem(pem, passphrase)
    with pytest.raises(SignatureError, match="passphrase is empty"):
        KEY.to_pem("")


def test_a_private_key_does_not_show_itself():
    secret = bytes(range(32))
    for shown in (repr(KEY), str(KEY), KEY.public, key_fingerprint(KEY.public), DOCUMENT):
        assert base64.b64encode(secret).decode() not in shown
        assert secret.hex() not in shown
        assert repr(secret) not in shown


def test_a_fingerprint_is_short_and_tells_keys_apart():
    raw = base64.b64decode(KEY.public.removeprefix("ed25519:"))
    found = key_fingerprint(KEY.public)
    assert found.replace(" ", "") == hashlib.sha256(raw).hexdigest()[:32]
    assert [len(group) for group in found.split(" ")] == [4] * 8
    assert key_fingerprint(SigningKey.generate().public) != found
    with pytest.raises(SignatureError, match="a public key starts with 'ed25519:'"):
        key_fingerprint("rsa:AAAA")


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
@pytest.mark.parametrize(
    ("mode", "private"), [(0o600, True), (0o400, True), (0o640, False), (0o604, False), (0o620, False)]
)
def test_private_is_what_no_other_may_read_or_write(tmp_path, mode, private):
    path = tmp_path / "key.pem"
    path.write_bytes(KEY.to_pem())
    path.chmod(mode)
    assert is_private_file(path) == private
