"""Damaged files: the place is named, and nothing of them is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scrubjay import vault
from scrubjay.engine import Kernel
from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import Conflict, InvalidRequest, SealBroken, WrongKey
from scrubjay.model.requests import Export, Load
from scrubjay.vault import Purpose, Sealer
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, BOB, LONG, address, contents, head, retain

Damage = Callable[[dict[str, Any]], object]


def drop(name: str) -> Damage:
    return lambda document: document.pop(name)


def put(name: str, value: object) -> Damage:
    return lambda document: document.update({name: value})


def in_memory(name: str, value: object) -> Damage:
    return lambda document: document["memories"][1].update({name: value})


def twice(document: dict[str, Any]) -> None:
    document["memories"][1] = document["memories"][0]


def cycle(document: dict[str, Any]) -> None:
    first, second, *_ = document["memories"]
    first.update(supersedes=second["id"], superseded_by=second["id"])
    second.update(supersedes=first["id"], superseded_by=first["id"])


def one_sided(document: dict[str, Any]) -> None:
    first, second, *_ = document["memories"]
    first["superseded_by"] = second["id"]


def two_successors(document: dict[str, Any]) -> None:
    first, second, third = document["memories"]
    first["superseded_by"] = second["id"]
    second["supersedes"] = third["supersedes"] = first["id"]


def itself(document: dict[str, Any]) -> None:
    first = document["memories"][0]
    first.update(supersedes=first["id"], superseded_by=first["id"])


DAMAGES: list[tuple[str, Damage, str]] = [
    ("no format", drop("format"), "format"),
    ("another format", put("format", "mem0"), "format"),
    ("no version", drop("version"), "version"),
    ("a later version", put("version", 3), "version"),
    ("no scope", drop("scope"), "scope"),
    ("a bad scope", put("scope", "a/b/c"), "scope"),
    ("no memories", drop("memories"), "memories"),
    ("memories of another shape", put("memories", {}), "memories"),
    ("a count too high", put("count", 4), "memories"),
    ("a count too low", put("count", 2), "memories"),
    ("no count", drop("count"), "memories"),
    ("a memory cut out", lambda document: document["memories"].pop(), "memories"),
    ("a memory that is no object", lambda d: d["memories"].__setitem__(1, 7), r"memories\[1\]"),
    ("a memory that stands there twice", twice, r"memories\[1\]"),
    ("a bad id", in_memory("id", "a b"), r"memories\[1\]: id"),
    ("a bad kind", in_memory("kind", "dream"), r"memories\[1\]: kind"),
    ("an empty content", in_memory("content", ""), r"memories\[1\]: content"),
    ("a content too long", in_memory("content", "x" * 65_537), r"memories\[1\]: content"),
    ("half a surrogate", in_memory("content", "\ud800"), r"memories\[1\]: content"),
    ("a bad time", in_memory("recorded_at", "noon"), r"memories\[1\]: recorded_at"),
    ("a time out of range", in_memory("recorded_at", "0001-01-01T00:00:00+14:00"), "recorded_at"),
    ("a bad origin", in_memory("origin", "god"), r"memories\[1\]: origin"),
    ("bad tags", in_memory("tags", None), r"memories\[1\]: tags"),
    ("a bad number", in_memory("number", None), r"memories\[1\]: number"),
    ("a bad version", in_memory("version", 0), r"memories\[1\]: version"),
    ("an unknown field", in_memory("mood", "good"), r"memories\[1\]: There is no field mood"),
    ("a memory that supersedes itself", itself, r"memories\[0\]"),
    ("a circle of versions", cycle, "memories"),
    ("a successor that knows nothing of it", one_sided, r"memories\[0\]"),
    ("two successors", two_successors, r"memories\[2\]"),
]


@pytest.mark.parametrize(
    ("damage", "place"),
    [(damage, place) for _, damage, place in DAMAGES],
    ids=[name for name, _, _ in DAMAGES],
)
def test_a_damaged_file_is_refused_by_the_place_and_nothing_is_loaded(
    home: MemoryHome, engine: Kernel, damage: Damage, place: str
) -> None:
    for content in "abc":
        retain(engine, content)
    document = json.loads(engine.export(ALICE).content)
    damage(document)
    engine.open(BOB)
    before = head(home, BOB)
    with pytest.raises(InvalidRequest, match=place):
        engine.load(BOB, Load(json.dumps(document).encode()))
    assert head(home, BOB) == before


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b"", "line 1, column 1"),
        (b"tea", "line 1, column 1"),
        (b"\x00\x01\x02", "line 1"),
        (b"\xff\xfe\xfd", "byte"),
        (b'{"format": "scrubjay-export",\n "version": ', "line 2, column 13"),
        (b'{"a": "\xff"}', "byte 7"),
        (b"[" * 100_000, "the beginning"),
        (b'{"a": ' + b"9" * 5000 + b"}", "the beginning"),
        (b"[" * 1000, "the beginning|line 1"),
        (b"[]", "format"),
        (b"7", "format"),
        (b'{"format": "scrubjay-bundle", "version": 1, "name": 7}\n', "format"),
    ],
    ids=range(12),
)
def test_what_is_no_export_is_refused_by_the_place(
    home: MemoryHome, engine: Kernel, raw: bytes, place: str
) -> None:
    engine.open(BOB)
    before = head(home, BOB)
    with pytest.raises(InvalidRequest, match=place):
        engine.load(BOB, Load(raw))
    assert head(home, BOB) == before


def test_a_file_cut_short_anywhere_is_refused(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea", tags=("a",))
    raw = engine.export(ALICE).content.rstrip()
    engine.open(BOB)
    before = head(home, BOB)
    for end in range(len(raw)):
        with pytest.raises(InvalidRequest, match="damaged at"):
            engine.load(BOB, Load(raw[:end]))
    assert head(home, BOB) == before


def test_a_sealed_file_cut_short_or_altered_anywhere_is_refused(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    exported = engine.export(ALICE, Export(sealed=True))
    raw = exported.content
    engine.open(BOB)
    before = head(home, BOB)
    altered = [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in range(len(raw))]
    for damaged in (*(raw[:end] for end in range(len(raw))), *altered):
        with pytest.raises((InvalidRequest, SealBroken)):
            engine.load(BOB, Load(damaged, key=exported.key))
    assert head(home, BOB) == before


def test_damage_behind_the_first_chunk_is_named_by_its_byte(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, LONG)
    exported = engine.export(ALICE, Export(sealed=True))
    raw = bytearray(exported.content)
    raw[-1] ^= 1
    second = exported.content.index(b"\n") + 1 + 64 * 1024 + 34
    with pytest.raises(InvalidRequest, match=f"byte {second:,}"):
        engine.load(BOB, Load(bytes(raw), key=exported.key))


@pytest.mark.parametrize("key", ["", "tea", "AAAA-BBBB", "ä", "1" * 52, 7])
def test_what_is_no_key_is_refused(engine: Kernel, key: Any) -> None:
    retain(engine, "tea")
    with pytest.raises(InvalidRequest):
        engine.load(BOB, Load(engine.export(ALICE, Export(sealed=True)).content, key))


def test_a_sealed_file_without_its_key_is_refused(engine: Kernel) -> None:
    retain(engine, "tea")
    with pytest.raises(WrongKey):
        engine.load(BOB, Load(engine.export(ALICE, Export(sealed=True)).content))


def test_a_key_may_be_typed_in_small_letters_and_with_blanks(engine: Kernel) -> None:
    retain(engine, "tea")
    exported = engine.export(ALICE, Export(sealed=True))
    assert exported.key is not None
    typed = f" {exported.key.lower().replace('-', ' ')} "
    assert engine.load(BOB, Load(exported.content, key=typed)).loaded == 1


def test_a_conflict_in_the_last_memory_loads_none(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, LONG)
    retain(engine, "tea", key="k")
    retain(engine, "coffee", scope=BOB, key="k")
    with pytest.raises(Conflict):
        engine.load(BOB, Load(engine.export(ALICE).content))
    assert contents(engine, scope=BOB) == ["coffee"]
    engine.purge(BOB)
    assert home.blobs.names(address(home, BOB)) == []


@pytest.mark.parametrize(
    "body",
    [b"", b"tea", b"7", b"[]", b"{}", b'{"scope": "alice"}', b"\xff",
     b'{"scope": "alice", "made_at": "", "lookup": "xyz"}',
     b'{"scope": "alice", "made_at": "", "lookup": null}\n{"type": "memory"}',
     b'{"scope": "alice", "made_at": "", "lookup": null}\n[]', b"[" * 5000],
    ids=range(11),
)  # fmt: skip
def test_a_bundle_somebody_else_made_up_is_refused(engine: Kernel, body: bytes) -> None:
    """Who makes a bundle has its key: that it opens does not say that it can be believed."""
    key = bytes(vault.KEY_BYTES)
    sealer = Sealer(key, Purpose.BUNDLE, None, "bundle")
    stream = sealer.seal_stream(body, row_id=b"n", version=1, random=bytes)
    header = json.dumps({"format": bundle.BUNDLE, "version": 1, "name": "n"}).encode()
    with pytest.raises(InvalidRequest, match="damaged at"):
        engine.load(BOB, Load(header + b"\n" + stream, key=bundle.print_key(key)))
