"""Ten thousand mutations of a signed summary: none passes for another, none does worse than being refused."""

from __future__ import annotations

import ast
import json
import os
import random
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from redigested import redigested

import fedcdh
from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import FedCDHError, SignatureError, SummaryFormatError
from fedcdh.messages.signing import SigningKey, sign, verify
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, read_summary_header, unpack_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import GRID, Summary
from fedcdh.summaries.variables import Categorical, Continuous

resource = pytest.importorskip("resource", reason="limits of memory are those of POSIX")

PLAN = StudyPlan((Continuous("age", 60, 15), Categorical("sex", ("f", "m"))), ("north", "south"))
SITE, INTRUDER = (SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([k]) * 32)) for k in (1, 2))
MEGABYTE = 1 << 20


def summary_of(client: str, rows: int, seed: int) -> Summary:
    features = np.random.default_rng(seed).integers(-GRID, GRID + 1, (rows, PLAN.layout.n_columns))
    features[:, 0] = GRID
    return Summary(PLAN.fingerprint, (client,), features.T @ features, rows + 3, {"age": 3, "sex": 1})


ORIGINAL = SummaryMessage(summary_of("north", 50, 0))
BLOBS = [pack_summary(ORIGINAL, PLAN), pack_summary(SummaryMessage(summary_of("south", 50, 1), True), PLAN)]
BLOBS.append(pack_summary(SummaryMessage(summary_of("north", 3000, 2)), PLAN))
BLOB, SIGNATURE = BLOBS[0], sign(SITE, "summary", BLOBS[0])


# Mutations: a generator of random numbers in, a file and its signature out


def split(blob: bytes) -> tuple[dict, dict, bytes]:
    start = 8 + struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:start])
    return header, json.loads(header["__metadata__"]["fedcdh"]), blob[start:]


def joined(header: dict, inner: dict | str, data: bytes, spelled: Callable[..., str] = to_canonical_json) -> bytes:
    text = inner if isinstance(inner, str) else spelled(inner)
    padded = spelled({**header, "__metadata__": {"fedcdh": text}}).encode("utf-8", "surrogatepass")
    padded += b" " * (-len(padded) % 8)
    return struct.pack("<Q", len(padded)) + padded + data


def bits(rng: random.Random) -> bytes:
    damaged = bytearray(BLOB)
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def bits_in_header(rng: random.Random) -> bytes:
    damaged = bytearray(BLOB)
    damaged[rng.randrange(8 + struct.unpack("<Q", BLOB[:8])[0])] = rng.choice(b'0123456789{}[]",:\\ntfe\x00\xff ')
    return bytes(damaged)


def cut(rng: random.Random) -> bytes:
    start, stop = sorted(rng.choices(range(len(BLOB) + 1), k=2))
    return rng.choice((BLOB[:start], BLOB[start:], BLOB[:start] + BLOB[stop:]))


def grown(rng: random.Random) -> bytes:
    place, more = rng.randrange(len(BLOB) + 1), rng.randbytes(rng.choice((1, 7, 8, 100, 5000)))
    return BLOB[:place] + rng.choice((more, bytes(len(more)), b" " * len(more))) + BLOB[place:]


def spliced(rng: random.Random) -> bytes:
    one, two = rng.sample(BLOBS, k=2)
    place = rng.randrange(len(one) + 1)
    return one[:place] + two[rng.choice((place, rng.randrange(len(two) + 1))) :]


def parts_swapped(rng: random.Random) -> bytes:
    """The header of one valid file, the metadata of another, the data of a third."""
    (header, _, _), (_, inner, _), (_, _, data) = (split(rng.choice(BLOBS)) for _ in range(3))
    return joined(header, inner, data)


def announced(rng: random.Random) -> bytes:
    length = rng.choice((0, 1, 2**63, 2**64 - 1, len(BLOB), rng.randrange(2**16), rng.randrange(2**64)))
    return struct.pack("<Q", length) + BLOB[8:]


def value(rng: random.Random) -> object:
    scalars = (None, True, 0, -1, 1, 49, 51, 7, 2048, 2**53, 2**64, 50.0, 1e300, "", "north", "\ud800", "x" * 300)
    counts = ({}, {"age": 3}, {"age": 3, "sex": rng.randrange(5)}, {"age": 10**30, "sex": 1})
    return rng.choice((*scalars, *counts, [], [50], [[0] * 5] * 5))


def metadata(rng: random.Random) -> bytes:
    header, inner, data = split(BLOB)
    name = rng.choice([*inner, "note"])
    if rng.random() < 0.2:
        inner.pop(name, None)
    else:
        inner[name] = value(rng)
    if rng.random() < 0.3:  # with the lengths that go with it, and data to match
        columns = rng.choice((1, 2, 8, 9, 10, 1000))
        inner["columns"], size = columns, columns * (columns + 1) // 2
        header["moments"] |= {"shape": [6, size], "data_offsets": [0, 6 * size]}
        data = (data * 2)[: 6 * size]
    return joined(header, inner, data)


def tensors(rng: random.Random) -> bytes:
    header, inner, data = split(BLOB)
    tensor = header["moments"]
    match rng.randrange(5):
        case 0:
            header["more"] = dict(tensor)
        case 1:
            header["other"] = header.pop("moments")
        case 2:
            tensor["data_offsets"] = tensor["data_offsets"][::-1]
        case 3:
            tensor[rng.choice([*tensor, "note"])] = value(rng)
        case 4:
            length = len(data)
            header["more"] = {**tensor, "data_offsets": [length, 2 * length]}
            data += data
    return joined(header, inner, data)


def planes(rng: random.Random) -> bytes:
    """Whole planes or entries exchanged: of the right length, and still numbers."""
    header, inner, data = split(BLOB)
    width, count = header["moments"]["shape"]
    rows = [bytearray(data[k * count : (k + 1) * count]) for k in range(width)]
    if rng.random() < 0.5:
        rng.shuffle(rows)
    else:
        one, two = rng.randrange(count), rng.randrange(count)
        for row in rows:
            row[one], row[two] = row[two], row[one]
    return joined(header, inner, b"".join(rows))


def spelled(rng: random.Random) -> bytes:
    """The same content, written otherwise."""
    header, inner, data = split(BLOB)
    ways: list[Callable[..., str]] = [
        lambda found: json.dumps(found),
        lambda found: json.dumps(dict(reversed(found.items())), separators=(",", ":")),
        lambda found: json.dumps(dict(rng.sample(list(found.items()), len(found))), separators=(",", ":")),
        lambda found: to_canonical_json(found).replace("o", "\\u006f", 1),
        lambda found: to_canonical_json(found).replace("{", '{"rows":50,', 1),
        lambda found: " " * rng.randrange(1, 9) + to_canonical_json(found),
    ]
    return joined(header, inner, data, rng.choice(ways))


def bomb(rng: random.Random) -> bytes:
    header, _, data = split(BLOB)
    size = rng.choice((33, 500, 100_000))
    text = rng.choice(("[" * size, '{"a":' * size, "9" * size, "-1e" + "9" * size, '"' + "\\" * size, "[[]," * size))
    if rng.random() < 0.5:
        return joined(header, text, data)
    return struct.pack("<Q", len(text)) + text.encode() + data


REFUSALS = ("SummaryFormatError", "PlanMismatchError", "UnknownClientError", "RowCountError", "MomentBoundsError")
MUTATIONS = (
    bits,
    bits_in_header,
    cut,
    grown,
    spliced,
    parts_swapped,
    announced,
    metadata,
    tensors,
    planes,
    spelled,
    bomb,
)


def files(number: int, seed: int) -> Iterator[tuple[str, bytes]]:
    rng = random.Random(seed)
    for k in range(number):
        mutate = MUTATIONS[k % len(MUTATIONS)]
        yield mutate.__name__, mutate(rng)


def damaged_signature(rng: random.Random, blob: bytes) -> str:
    """Of another key or kind, with a mistake in it, or with the name of the right key on it."""
    document = json.loads(SIGNATURE)
    match rng.randrange(4):
        case 0:
            return sign(INTRUDER, "summary", blob)
        case 1:
            return sign(SITE, "result", blob)
        case 2:
            return to_canonical_json({**json.loads(sign(INTRUDER, "summary", blob)), "key": SITE.public})
    field = rng.choice(list(document))
    letters = list(document[field])
    letters[rng.randrange(len(letters))] = rng.choice("0aZ+/= \u00e9")
    return to_canonical_json({**document, field: "".join(letters)})


# What happens to them


def outcome(blob: bytes) -> str:
    """The refusal by name. What is accepted must be the one file of what was found in it."""
    try:
        found = unpack_summary(blob, PLAN)
    except FedCDHError as refusal:
        return type(refusal).__name__
    assert pack_summary(found, PLAN) == blob
    assert (found == ORIGINAL) == (blob == BLOB)
    return "unchanged" if found == ORIGINAL else "accepted"


def vouched(blob: bytes, signature: str) -> bool:
    try:
        return verify("summary", blob, signature) == SITE.public
    except SignatureError:
        return False


def on_purpose(blob: bytes) -> bytes:
    """The same change by somebody who makes the digest right again, where there is one."""
    try:
        return redigested(blob)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error):
        return blob


def both(number: int, seed: int) -> Iterator[tuple[str, bytes, bool]]:
    """Every change as an accident, which is never accepted, and on purpose, which only a signature may tell."""
    for name, blob in files(number, seed):
        yield name, blob, True
        yield name, on_purpose(blob), False


def fuzz(number: int, seed: int = 20_260_101) -> Counter[str]:
    rng, seen = random.Random(7), Counter[str]()
    for name, blob, accident in both(number // 2, seed):
        result = outcome(blob)
        assert not accident or result != "accepted" or blob in BLOBS, name  # parts of one file make it again
        seen[result] += 1
        seen[f"{name} {result}"] += 1
        # with the site's signature: the very file that was signed, and nothing else
        assert vouched(blob, SIGNATURE) == (result == "unchanged")
        false = damaged_signature(rng, blob)
        assert not vouched(blob, false) or false == SIGNATURE
        try:
            assert read_summary_header(blob).columns >= 0
        except SummaryFormatError:
            assert result not in ("accepted", "unchanged")
    return seen


def capped() -> None:
    """The fuzzing itself, in a process that may grow by 64 MB and not a byte more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 64 * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with pytest.raises(MemoryError):
        bytearray(80 * MEGABYTE)  # the limit is real
    sys.stdout.write(json.dumps(fuzz(int(sys.argv[1]))))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of memory is that of Linux")
def test_ten_thousand_mutations():
    done = subprocess.run(
        [sys.executable, __file__, "10000"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    kinds = {name for name in seen if " " not in name}
    assert kinds == {*REFUSALS, "accepted", "unchanged"}
    assert sum(seen[name] for name in kinds) == 10_000
    assert {name.split()[0] for name in seen if name.endswith(REFUSALS)} == {
        mutate.__name__ for mutate in MUTATIONS
    } | {*REFUSALS}
    # bytes alone cannot tell other moments or counts from true ones; any other change is seen without a signature
    accepted = {name.split()[0] for name in seen if name.endswith(" accepted")}
    assert accepted <= {"bits", "bits_in_header", "cut", "spliced", "parts_swapped", "metadata", "planes"}


def test_the_original_is_accepted():
    assert outcome(BLOB) == "unchanged"
    assert vouched(BLOB, SIGNATURE)
    assert not vouched(BLOB, sign(INTRUDER, "summary", BLOB))
    assert all(not vouched(other, SIGNATURE) for other in BLOBS[1:])


AMONG_ONES_OWN = {"data/clusters/ray_source.py": {"pickle"}, "_runtime/worker_pool.py": {"joblib"}}
"""What hands work to the processes of one's own cluster, which run whatever they are sent; nothing of it is a file."""


def test_nothing_is_ever_unpickled():
    """No module that runs what it reads is imported anywhere in the package, and numpy's loader is not used."""
    package = Path(fedcdh.__file__).parent
    for path in package.rglob("*.py"):
        never = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
        never -= AMONG_ONES_OWN.get(path.relative_to(package).as_posix(), set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {alias.name.split(".")[0] for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)}
            module = str(getattr(node, "module", "")).split(".")[0] if isinstance(node, ast.ImportFrom) else ""
            assert not {*names, module} & never, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
                assert node.attr not in {"load", "fromfile", "loadtxt", "genfromtxt", "memmap"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "__import__"}, path


if __name__ == "__main__":
    capped()
