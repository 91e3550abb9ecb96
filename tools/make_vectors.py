"""Write tests/vectors/cells.json: what the vault makes of fixed keys and nonces.

Bytes are hexadecimal. Whatever stands under `refused` must not open. Run it again only after a
deliberate change of the format, which needs a new version of it:

    .venv/bin/python tools/make_vectors.py
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from scrubjay import vault
from scrubjay.adapters.keyrings.folder import write_line
from scrubjay.engine.transfer import bundle
from scrubjay.model.scope import Scope
from scrubjay.vault import (
    CHUNK_BYTES,
    OVERHEAD,
    Cost,
    Purpose,
    Sealer,
    recovery_text,
    stretch,
)

TARGET = Path(__file__).parent.parent / "tests" / "vectors" / "cells.json"
ALICE = Scope("acme", "alice")
Vector = dict[str, Any]


def pattern(label: str, size: int) -> bytes:
    """Bytes that look random and are the same everywhere: SHAKE-256 of a label."""
    return hashlib.shake_256(label.encode()).digest(size)


@dataclass(frozen=True)
class Place:
    """Everything a cell is bound to."""

    secret: bytes = pattern("secret", 32)
    purpose: Purpose = Purpose.CELL
    scope: Scope | None = ALICE
    collection: str = "memory"
    epoch: int = 3
    row_id: bytes = pattern("row id", 16)
    version: int = 2

    @property
    def sealer(self) -> Sealer:
        return Sealer(self.secret, self.purpose, self.scope, self.collection, self.epoch)

    def seal(self, plaintext: bytes, nonce: bytes = pattern("nonce", 12)) -> bytes:
        return self.sealer.seal(plaintext, row_id=self.row_id, version=self.version, nonce=nonce)

    def stream(self, body: bytes) -> bytes:
        nonces = (pattern(f"nonce {number}", 12) for number in range(10**6))
        return self.sealer.seal_stream(
            body, row_id=self.row_id, version=self.version, random=lambda _: next(nonces)
        )

    def vector(self) -> Vector:
        return {
            "secret": self.secret.hex(),
            "purpose": self.purpose.value,
            "tenant": self.scope.tenant if self.scope else "",
            "owner": self.scope.owner if self.scope else "",
            "collection": self.collection,
            "epoch": self.epoch,
            "row_id": self.row_id.hex(),
            "version": self.version,
        }


HERE = Place()
ELSEWHERE = {
    "moved to another row": replace(HERE, row_id=pattern("other row id", 16)),
    "given to another owner": replace(HERE, scope=Scope("acme", "bob")),
    "given to another tenant": replace(HERE, scope=Scope("umbrella", "alice")),
    "tenant and owner run together": replace(HERE, scope=Scope("acm", "ealice")),
    "put into another collection": replace(HERE, collection="turn"),
    "used for another purpose": replace(HERE, purpose=Purpose.VECTOR),
    "read as another epoch": replace(HERE, epoch=4),
    "an old version replayed": replace(HERE, version=3),
    "opened with another key": replace(HERE, secret=pattern("other secret", 32)),
}


def joins() -> Iterator[Vector]:
    for parts in ([], [""], ["a", "bc"], ["ab", "c"], ["Zoë"], [0], [1, 2**32], ["a", 1, b"\x00"]):
        written = [{"bytes": part.hex()} if isinstance(part, bytes) else part for part in parts]
        yield {"parts": written, "out": vault.join(*parts).hex()}


def derivations() -> Iterator[Vector]:
    for purpose in Purpose:
        for scope, epoch in ((None, 0), (ALICE, 0), (ALICE, 7)):
            place = replace(HERE, purpose=purpose, scope=scope, epoch=epoch)
            out = vault.derive(HERE.secret, purpose, scope, epoch)
            shown = {"secret", "purpose", "tenant", "owner", "epoch"}
            fields = {name: value for name, value in place.vector().items() if name in shown}
            yield {**fields, "out": out.hex()}


def keyed_hashes() -> Iterator[Vector]:
    for message in (b"", b"mem-00000000-0000-4000-8000-000000000000", "Zoë".encode(), bytes(100)):
        out = vault.keyed_hash(HERE.secret, message)
        yield {"key": HERE.secret.hex(), "message": message.hex(), "out": out.hex()}


def chains() -> Iterator[Vector]:
    previous = bytes(32)
    for count, cell in enumerate((b"first", b"second", HERE.seal(b"third")), start=1):
        out = vault.chain(vault.Mac(HERE.secret), previous, count, cell)
        yield {
            "key": HERE.secret.hex(),
            "previous": previous.hex(),
            "count": count,
            "cell": cell.hex(),
            "out": out.hex(),
        }
        previous = out


def paddings() -> Iterator[Vector]:
    for size in (0, 1, 62, 63, 64, 127, 128):
        plaintext = pattern("padded", size)
        yield {"plaintext": plaintext.hex(), "out": vault.pad(plaintext).hex()}


def cells() -> Iterator[Vector]:
    places = (HERE, *ELSEWHERE.values(), replace(HERE, scope=None, epoch=0))
    for place in places:
        for plaintext in (b"", b"The jay hid an acorn.", pattern("body", 200)):
            nonce = pattern(f"nonce of {len(plaintext)}", 12)
            yield {
                **place.vector(),
                "nonce": nonce.hex(),
                "plaintext": plaintext.hex(),
                "cell": place.seal(plaintext, nonce).hex(),
            }


def refused_cells() -> Iterator[Vector]:
    cell = HERE.seal(b"The jay hid an acorn.")
    for why, place in ELSEWHERE.items():
        yield {"why": why, **place.vector(), "cell": cell.hex()}
    relabeled = cell[:2] + (4).to_bytes(4) + cell[6:]
    yield {
        "why": "epoch rewritten in the header",
        **replace(HERE, epoch=4).vector(),
        "cell": relabeled.hex(),
    }
    yield {"why": "a byte appended", **HERE.vector(), "cell": (cell + b"\x00").hex()}
    for at in range(len(cell)):
        flipped = cell[:at] + bytes([cell[at] ^ 1]) + cell[at + 1 :]
        yield {
            "why": f"{field(cell, at)}, byte {at} flipped",
            **HERE.vector(),
            "cell": flipped.hex(),
        }
    for size in range(len(cell)):
        yield {"why": f"cut to {size} bytes", **HERE.vector(), "cell": cell[:size].hex()}


def field(cell: bytes, at: int) -> str:
    """Which field of a cell a byte belongs to."""
    ends = {"version": 1, "alg": 2, "epoch": 6, "nonce": 18, "ciphertext": len(cell) - 16}
    return next((name for name, end in ends.items() if at < end), "tag")


def streams() -> Iterator[Vector]:
    place = replace(HERE, purpose=Purpose.BLOB)
    for size in (0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 5):
        stream = place.stream(pattern("long body", size))
        yield {
            **place.vector(),
            "body_size": size,
            "stream_size": len(stream),
            "first_cell_begins": stream[:64].hex(),
            "stream_sha256": hashlib.sha256(stream).hexdigest(),
        }


def refused_streams() -> Iterator[Vector]:
    """Each is told as the chunks it is put together from: where, and under which place, sealed."""
    for why, chunks in {
        "the first two chunks in the other order": [(1, 1, 0), (0, 0, 0), (2, 2, 1)],
        "the first chunk dropped": [(1, 1, 0), (2, 2, 1)],
        "a middle chunk dropped": [(0, 0, 0), (2, 2, 1)],
        "the last chunk dropped": [(0, 0, 0), (1, 1, 0)],
        "every chunk dropped": [],
        "a chunk twice": [(0, 0, 0), (1, 1, 0), (1, 1, 0), (2, 2, 1)],
        "the last chunk twice": [(0, 0, 0), (1, 1, 0), (2, 2, 1), (2, 2, 1)],
        "the last chunk not marked as the last": [(0, 0, 0), (1, 1, 0), (2, 2, 0)],
        "a middle chunk marked as the last": [(0, 0, 0), (1, 1, 1), (2, 2, 1)],
        "a chunk of another number": [(0, 0, 0), (1, 3, 0), (2, 2, 1)],
    }.items():
        yield {
            "why": why,
            "chunks": [
                {"of_body": body, "sealed_as": number, "last": last}
                for body, number, last in chunks
            ],
            "stream_sha256": hashlib.sha256(assembled(chunks)).hexdigest(),
        }


def assembled(chunks: list[tuple[int, int, int]]) -> bytes:
    """A stream put together from (chunk of the body, number sealed as, marked as last)."""
    place = replace(HERE, purpose=Purpose.BLOB)
    body = pattern("long body", 2 * CHUNK_BYTES + 5)
    return b"".join(
        replace(place, row_id=vault.join(place.row_id, number, last)).seal(
            body[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES], pattern(f"nonce {index}", 12)
        )
        for index, number, last in chunks
    )


def slots() -> Iterator[Vector]:
    for address, purpose in (("scope", "lookup"), ("scope", "memory.3"), ("installation", "root")):
        yield slot_vector(HERE.secret, address, purpose)
    yield slot_vector(pattern("recovery", 20), "recovery", "master")


def slot_vector(wrapping_key: bytes, address: str, purpose: str) -> Vector:
    key, nonce = pattern("wrapped", 32), pattern("nonce", 12)
    slot = vault.wrap(wrapping_key, key, address=address, purpose=purpose, nonce=nonce)
    return {
        "wrapping_key": wrapping_key.hex(),
        "address": address,
        "purpose": purpose,
        "nonce": nonce.hex(),
        "key": key.hex(),
        "slot": slot.hex(),
    }


def refused_slots() -> Iterator[Vector]:
    good = slot_vector(HERE.secret, "scope", "memory.3")
    del good["nonce"], good["key"]
    slot = bytes.fromhex(good["slot"])
    yield {"why": "another address", **good, "address": "other"}
    yield {"why": "another purpose", **good, "purpose": "memory.4"}
    yield {"why": "another key", **good, "wrapping_key": pattern("other", 32).hex()}
    for at in range(len(slot)):
        flipped = slot[:at] + bytes([slot[at] ^ 1]) + slot[at + 1 :]
        yield {"why": f"byte {at} flipped", **good, "slot": flipped.hex()}
    for size in range(len(slot)):
        yield {"why": f"cut to {size} bytes", **good, "slot": slot[:size].hex()}


def key_files() -> Vector:
    cost = Cost(memory_kib=64, passes=2, lanes=2)
    phrase, salt, recovery = "caf\u00e9 au lait", pattern("salt", 16), pattern("recovery", 20)
    stretched = stretch(phrase, salt, cost)
    under_phrase = slot_vector(stretched, "passphrase", "master")["slot"]
    under_recovery = slot_vector(recovery, "recovery", "master")["slot"]
    words = ("argon2id", "64", "2", "2", salt.hex(), under_phrase)
    earlier = slot_vector(HERE.secret, "master.1", "master")["slot"]
    return {
        "later key": {
            "generation": 2,
            "key": HERE.secret.hex(),
            "file": write_line("key", "2", HERE.secret.hex(), version=2).decode(),
        },
        "later passphrase": {
            "generation": 3,
            "file": write_line("passphrase", "3", *words, version=2).decode(),
        },
        "earlier master": {
            "wrapping_key": HERE.secret.hex(),
            "file": write_line("master", earlier).decode(),
        },
        "key": {"key": HERE.secret.hex(), "file": write_line("key", HERE.secret.hex()).decode()},
        "passphrase": {
            "passphrase": phrase,
            "wrapping_key": stretched.hex(),
            "file": write_line("passphrase", *words).decode(),
        },
        "recovery": {
            "recovery_key": recovery.hex(),
            "text": recovery_text(recovery),
            "file": write_line("recovery", under_recovery).decode(),
        },
    }


def bundles() -> Vector:
    """An empty export under a key of its own and under a passphrase, and headers to refuse."""
    content = bundle.Content(scope=ALICE, made_at="2026-01-02T03:04:05+00:00", memories=())
    name, phrase = pattern("name", 16).hex(), "caf\u00e9 au lait"
    salt = pattern("salt", 16).hex()
    salted = bundle.SaltedCost(memory_kib=64, passes=2, lanes=2, salt=salt)

    def sealed(key: bytes, salted: bundle.SaltedCost | None = None) -> str:
        pieces = bundle.sealed_pieces(
            content, name=name, key=key, random=lambda size: pattern("nonce", size), salted=salted
        )
        return b"".join(pieces).hex()

    derived = salted.key_from(phrase)
    altered: dict[str, Vector] = {
        "another salt": {"salt": pattern("other", 16).hex()},
        "another cost": {"passes": 3},
        "too much memory": {"memory_kib": 2**20},
        "too many passes": {"passes": 2**31},
        "no lanes": {"lanes": 0},
        "a short salt": {"salt": "00"},
        "a salt that is no hexadecimal": {"salt": "x" * 32},
    }
    return {
        "opens": [
            {"key": HERE.secret.hex(), "file": sealed(HERE.secret)},
            {"key": derived.hex(), "passphrase": phrase, "file": sealed(derived, salted)},
        ],
        "refused": [
            {"why": "another passphrase", "passphrase": "tea", "file": sealed(derived, salted)},
            *(
                {
                    "why": why,
                    "passphrase": phrase,
                    "file": sealed(derived, msgspec.structs.replace(salted, **change)),
                }
                for why, change in altered.items()
            ),
        ],
    }


def vectors() -> Vector:
    """Everything the file says."""
    return {
        "about": "Known answers of the scrubjay format, version 1; see docs/format.md.",
        "join": list(joins()),
        "derive": list(derivations()),
        "keyed_hash": list(keyed_hashes()),
        "chain": list(chains()),
        "pad": list(paddings()),
        "cell": {"opens": list(cells()), "refused": list(refused_cells())},
        "stream": {
            "overhead": OVERHEAD,
            "opens": list(streams()),
            "refused": list(refused_streams()),
        },
        "slot": {"opens": list(slots()), "refused": list(refused_slots())},
        "files": key_files(),
        "bundle": bundles(),
    }


def rendered() -> str:
    """The file as it is written: one vector a line."""
    return "".join(_lines(vectors(), "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    nested = isinstance(value, dict) and any(isinstance(v, dict | list) for v in value.values())
    if isinstance(value, list) or (nested and "why" not in value and "parts" not in value):
        pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        yield opening
        for number, (name, item) in enumerate(pairs):
            yield f"{',' if number else ''}\n{indent}  "
            yield f"{json.dumps(name)}: " if name is not None else ""
            yield from _lines(item, indent + "  ")
        yield f"\n{indent}{closing}"
    else:
        yield json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(rendered(), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
