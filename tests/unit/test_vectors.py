"""The published vectors are what the code makes, and what an independent reader makes of the text.

Everything under "independent" follows docs/format.md with the standard library alone, except
AES-256-GCM itself, which the standard library does not have.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from scrubjay import vault
from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.scope import Scope
from scrubjay.vault import Purpose, Sealer

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "tests" / "vectors" / "cells.json"
VECTORS = json.loads(FILE.read_text(encoding="utf-8"))
CHUNK, OVERHEAD = 65_536, 34
Vector = dict[str, Any]


def test_the_file_is_what_the_code_makes() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "make_vectors.py"))["rendered"]()
    assert FILE.read_text(encoding="utf-8") == made, "the format changed: see tools/make_vectors.py"


def test_every_purpose_has_a_vector() -> None:
    assert {vector["purpose"] for vector in VECTORS["derive"]} == set(Purpose)


def test_no_two_derived_keys_are_equal() -> None:
    keys = [vector["out"] for vector in VECTORS["derive"]]
    assert len(set(keys)) == len(keys)


def test_refusals_cover_every_byte_of_every_field_and_every_length() -> None:
    why = [vector["why"] for vector in VECTORS["cell"]["refused"]]
    size = len(VECTORS["cell"]["refused"][0]["cell"]) // 2
    assert sum("flipped" in text for text in why) == size
    assert sum("cut" in text for text in why) == size
    for field, width in {"version": 1, "alg": 1, "epoch": 4, "nonce": 12, "tag": 16}.items():
        assert sum(text.startswith(f"{field}, byte") for text in why) == width


def ids(vectors: list[Vector]) -> list[str]:
    return [vector["why"].replace(" ", "-") for vector in vectors]


# -- what the code makes of them ------------------------------------------------------------


def sealer(vector: Vector) -> Sealer:
    scope = Scope(vector["tenant"], vector["owner"]) if vector["tenant"] else None
    secret = bytes.fromhex(vector["secret"])
    return Sealer(secret, Purpose(vector["purpose"]), scope, vector["collection"], vector["epoch"])


def unseal(vector: Vector) -> bytes:
    cell, row_id = bytes.fromhex(vector["cell"]), bytes.fromhex(vector["row_id"])
    return sealer(vector).unseal(cell, row_id=row_id, version=vector["version"])


def test_every_cell_opens_at_its_place() -> None:
    for vector in VECTORS["cell"]["opens"]:
        assert unseal(vector).hex() == vector["plaintext"]


@pytest.mark.parametrize("vector", VECTORS["cell"]["refused"], ids=ids(VECTORS["cell"]["refused"]))
def test_a_refused_cell_does_not_open(vector: Vector) -> None:
    with pytest.raises(SealBroken):
        unseal(vector)


def test_every_slot_opens_at_its_place() -> None:
    for vector in VECTORS["slot"]["opens"]:
        assert unwrap(vector).hex() == vector["key"]


@pytest.mark.parametrize("vector", VECTORS["slot"]["refused"], ids=ids(VECTORS["slot"]["refused"]))
def test_a_refused_slot_does_not_open(vector: Vector) -> None:
    with pytest.raises(SealBroken):
        unwrap(vector)


def unwrap(vector: Vector) -> bytes:
    return vault.unwrap(
        bytes.fromhex(vector["wrapping_key"]),
        bytes.fromhex(vector["slot"]),
        address=vector["address"],
        purpose=vector["purpose"],
    )


def test_every_stream_opens_at_its_place() -> None:
    for vector in VECTORS["stream"]["opens"]:
        stream, row_id = stream_of(vector), bytes.fromhex(vector["row_id"])
        chunks = sealer(vector).unseal_stream(stream, row_id=row_id, version=vector["version"])
        assert b"".join(chunks) == pattern("long body", vector["body_size"])


@pytest.mark.parametrize(
    "vector", VECTORS["stream"]["refused"], ids=ids(VECTORS["stream"]["refused"])
)
def test_a_refused_stream_does_not_open(vector: Vector) -> None:
    place = VECTORS["stream"]["opens"][0]
    stream = refused_stream(place, vector)
    assert hashlib.sha256(stream).hexdigest() == vector["stream_sha256"]
    with pytest.raises(SealBroken):
        list(
            sealer(place).unseal_stream(
                stream, row_id=bytes.fromhex(place["row_id"]), version=place["version"]
            )
        )


def test_every_bundle_opens_with_its_key_or_passphrase() -> None:
    for vector in VECTORS["bundle"]["opens"]:
        raw, phrase = bytes.fromhex(vector["file"]), vector.get("passphrase")
        key = None if phrase else bundle.print_key(bytes.fromhex(vector["key"]))
        secret = bundle.secret_of(raw, key, phrase)
        assert secret.hex() == vector["key"]
        assert str(bundle.unseal(raw, secret).scope) == "acme/alice"


@pytest.mark.parametrize(
    "vector", VECTORS["bundle"]["refused"], ids=ids(VECTORS["bundle"]["refused"])
)
def test_a_refused_bundle_does_not_open(vector: Vector) -> None:
    raw = bytes.fromhex(vector["file"])
    with pytest.raises((InvalidRequest, SealBroken)):
        bundle.unseal(raw, bundle.secret_of(raw, passphrase=vector["passphrase"]))


# -- independent ----------------------------------------------------------------------------


def pattern(label: str, size: int) -> bytes:
    return hashlib.shake_256(label.encode()).digest(size)


def lp(*parts: str | bytes | int) -> bytes:
    raw = [
        part.encode("utf-8")
        if isinstance(part, str)
        else part.to_bytes(8, "big")
        if isinstance(part, int)
        else part
        for part in parts
    ]
    return b"".join(len(part).to_bytes(4, "big") + part for part in raw)


def hkdf(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with a salt of 32 zero bytes and an output of one block."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def subkey(secret: bytes, vector: Vector) -> bytes:
    place = (vector["purpose"], vector["tenant"], vector["owner"], vector["epoch"])
    return hkdf(secret, lp("scrubjay/1", *place))


def seal(vector: Vector, row_id: bytes, nonce: bytes, plaintext: bytes) -> bytes:
    key = subkey(bytes.fromhex(vector["secret"]), vector)
    names = [vector[name] for name in ("purpose", "tenant", "owner", "collection")]
    aad = lp("scrubjay/1", *names, row_id, vector["epoch"], vector["version"])
    header = b"\x01\x01" + int(vector["epoch"]).to_bytes(4, "big")
    return header + nonce + AESGCM(key).encrypt(nonce, plaintext, aad)


def stream_of(vector: Vector) -> bytes:
    body = pattern("long body", vector["body_size"])
    pieces = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)] or [b""]
    return b"".join(
        chunk(vector, piece, number, number == len(pieces) - 1, number)
        for number, piece in enumerate(pieces)
    )


def chunk(vector: Vector, piece: bytes, number: int, last: bool, nonce: int) -> bytes:
    row_id = lp(bytes.fromhex(vector["row_id"]), number, int(last))
    return seal(vector, row_id, pattern(f"nonce {nonce}", 12), piece)


def refused_stream(place: Vector, vector: Vector) -> bytes:
    body = pattern("long body", 2 * CHUNK + 5)
    return b"".join(
        chunk(
            place,
            body[part["of_body"] * CHUNK :][:CHUNK],
            part["sealed_as"],
            bool(part["last"]),
            part["of_body"],
        )
        for part in vector["chunks"]
    )


def wrap(vector: Vector) -> bytes:
    secret = bytes.fromhex(vector["wrapping_key"])
    commitment = hkdf(secret, lp("scrubjay/1", "commit", "", "", 0))[:16]
    key = hkdf(secret, lp("scrubjay/1", "wrap", "", "", 0))
    aad = lp("scrubjay/1", "wrap", "", "", vector["address"], vector["purpose"], 0, 0)
    nonce = bytes.fromhex(vector["nonce"])
    sealed = AESGCM(key).encrypt(nonce, bytes.fromhex(vector["key"]), aad)
    return commitment + b"\x01\x01" + bytes(4) + nonce + sealed


def line(*words: str) -> str:
    text = " ".join(words)
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:8]}\n"


def test_join_agrees() -> None:
    for vector in VECTORS["join"]:
        parts = [
            bytes.fromhex(part["bytes"]) if isinstance(part, dict) else part
            for part in vector["parts"]
        ]
        assert lp(*parts).hex() == vector["out"] == vault.join(*parts).hex()


def test_derive_agrees() -> None:
    for vector in VECTORS["derive"]:
        assert subkey(bytes.fromhex(vector["secret"]), vector).hex() == vector["out"]


def test_keyed_hash_agrees() -> None:
    for vector in VECTORS["keyed_hash"]:
        key, message = bytes.fromhex(vector["key"]), bytes.fromhex(vector["message"])
        assert hmac.new(key, message, hashlib.sha256).digest()[:16].hex() == vector["out"]


def test_chain_agrees() -> None:
    for vector in VECTORS["chain"]:
        key, previous, cell = (bytes.fromhex(vector[name]) for name in ("key", "previous", "cell"))
        link = hmac.new(key, lp(previous, vector["count"], cell), hashlib.sha256).digest()
        assert link.hex() == vector["out"]


def test_padding_agrees() -> None:
    for vector in VECTORS["pad"]:
        padded = bytes.fromhex(vector["plaintext"]) + b"\x80"
        padded = padded.ljust(-(-len(padded) // 64) * 64, b"\x00")
        assert padded.hex() == vector["out"]


def test_cells_agree() -> None:
    for vector in VECTORS["cell"]["opens"]:
        row_id, nonce, plaintext = (
            bytes.fromhex(vector[name]) for name in ("row_id", "nonce", "plaintext")
        )
        assert seal(vector, row_id, nonce, plaintext).hex() == vector["cell"]


def test_an_independent_reader_refuses_the_same_cells() -> None:
    for vector in VECTORS["cell"]["refused"]:
        cell = bytes.fromhex(vector["cell"])
        header = b"\x01\x01" + vector["epoch"].to_bytes(4, "big")
        if len(cell) < OVERHEAD or cell[:6] != header:
            continue
        names = [vector[name] for name in ("purpose", "tenant", "owner", "collection")]
        row_id = bytes.fromhex(vector["row_id"])
        aad = lp("scrubjay/1", *names, row_id, vector["epoch"], vector["version"])
        key = subkey(bytes.fromhex(vector["secret"]), vector)
        with pytest.raises(InvalidTag):
            AESGCM(key).decrypt(cell[6:18], cell[18:], aad)


def test_streams_agree() -> None:
    for vector in VECTORS["stream"]["opens"]:
        stream = stream_of(vector)
        assert len(stream) == vector["stream_size"]
        assert stream[:64].hex() == vector["first_cell_begins"]
        assert hashlib.sha256(stream).hexdigest() == vector["stream_sha256"]


def test_slots_agree() -> None:
    for vector in VECTORS["slot"]["opens"]:
        assert wrap(vector).hex() == vector["slot"]


def test_key_files_agree() -> None:
    files = VECTORS["files"]
    assert files["key"]["file"] == line("scrubjay-key", "1", files["key"]["key"])
    later = files["later key"]
    assert later["file"] == line("scrubjay-key", "2", "2", later["key"])
    words = files["passphrase"]["file"].split()[2:-1]
    assert files["later passphrase"]["file"] == line("scrubjay-passphrase", "2", "3", *words)
    (slot,) = files["earlier master"]["file"].split()[2:-1]
    assert files["earlier master"]["file"] == line("scrubjay-master", "1", slot)
    for kind in ("passphrase", "recovery"):
        words = files[kind]["file"].split()
        assert files[kind]["file"] == line(*words[:-1])
        key = files[kind].get("wrapping_key") or files[kind]["recovery_key"]
        vector = {
            "wrapping_key": key,
            "address": kind,
            "purpose": "master",
            "nonce": pattern("nonce", 12).hex(),
            "key": pattern("wrapped", 32).hex(),
        }
        assert words[-2] == wrap(vector).hex()


def test_bundles_agree() -> None:
    for vector in VECTORS["bundle"]["opens"]:
        head, _, cell = bytes.fromhex(vector["file"]).partition(b"\n")
        header, key = json.loads(head), bytes.fromhex(vector["key"])
        if "argon2id" in header:
            given = header["argon2id"]
            derived = Argon2id(
                salt=bytes.fromhex(given["salt"]),
                length=32,
                iterations=given["passes"],
                lanes=given["lanes"],
                memory_cost=given["memory_kib"],
            ).derive(vector["passphrase"].encode())
            assert derived == key
        place = {"purpose": "bundle", "tenant": "", "owner": "", "epoch": 0}
        row_id = lp(header["name"], 0, 1)
        aad = lp("scrubjay/1", "bundle", "", "", "bundle", row_id, 0, 1)
        text = AESGCM(subkey(key, place)).decrypt(cell[6:18], cell[18:], aad)
        assert json.loads(text.splitlines()[-1]) == {"type": "end", "memories": 0}


def test_the_recovery_key_as_text_agrees() -> None:
    vector = VECTORS["files"]["recovery"]
    secret = bytes.fromhex(vector["recovery_key"])
    check = hashlib.sha256(b"scrubjay recovery key" + secret).digest()[:5]
    assert vector["text"].replace("-", "") == base64.b32encode(secret + check).decode()
