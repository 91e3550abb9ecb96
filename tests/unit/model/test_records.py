"""Records: one codec, without loss, and strict with what comes from outside."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import fields, replace

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.records import decode, encode, from_record, to_record
from tests.strategies import memories

PLAIN = Memory(
    id="mem-1", kind=Kind.FACT, content="tea", recorded_at=datetime(2026, 5, 1, tzinfo=UTC)
)


@given(memories())
def test_a_cell_has_the_bytes_of_the_standard_encoder(memory: Memory) -> None:
    """Old code wrote them, and vectors publish them: a faster encoder may not write others."""
    standard = json.dumps(to_record(memory), ensure_ascii=False, separators=(",", ":"))
    assert encode(memory) == standard.encode()


def test_every_character_is_written_as_the_standard_encoder_writes_it() -> None:
    points = [*range(0x80), 0xA0, 0xAD, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F600, 0x10FFFF]
    memory = replace(PLAIN, content="".join(map(chr, points)))
    standard = json.dumps(to_record(memory), ensure_ascii=False, separators=(",", ":"))
    assert encode(memory) == standard.encode()


WRONG: list[tuple[str, object]] = [
    ("id", None),
    ("id", "mem 1"),
    ("kind", "dream"),
    ("kind", None),
    ("kind", []),
    ("content", ""),
    ("content", None),
    ("content", "x" * 65_537),
    ("content", "\ud83d"),
    ("recorded_at", None),
    ("recorded_at", 1_777_000_000),
    ("recorded_at", "yesterday"),
    ("recorded_at", "2026-05-01T00:00:00"),
    ("recorded_at", "0001-01-01T00:00:00+14:00"),
    ("origin", "dream"),
    ("origin", None),
    ("provenance", None),
    ("provenance", []),
    ("provenance", {"actor": "nobody"}),
    ("provenance", {"session": ""}),
    ("provenance", {"said_at": "2026-05-01"}),
    ("provenance", {"mood": "good"}),
    ("tags", None),
    ("tags", "tea"),
    ("tags", {"tea": 1}),
    ("tags", [1]),
    ("tags", ["tea", "tea"]),
    ("sources", "mem-2"),
    ("sources", {"mem-2": 1}),
    ("sources", ["mem 2"]),
    ("sources", ["mem-2", "mem-2"]),
    ("importance", 2),
    ("importance", "0.5"),
    ("importance", None),
    ("pinned", 1),
    ("pinned", None),
    ("metadata", None),
    ("metadata", []),
    ("metadata", {"a": float("nan")}),
    ("number", -1),
    ("number", 1.5),
    ("number", None),
    ("version", 0),
    ("version", True),
    ("speaker", 7),
    ("speaker", ""),
    ("position", -1),
    ("approved", ""),
    ("approved", 7),
    ("key", ""),
    ("supersedes", ""),
    ("superseded_by", 7),
    ("retired_at", "now"),
    ("archived_at", "yesterday"),
    ("valid_from", 0),
    ("valid_to", "2026-13-01T00:00:00Z"),
    ("expires_at", "9999-12-31T23:59:59-12:00"),
    ("mood", "good"),
]


@given(memories())
def test_a_memory_comes_back_from_its_cell_as_it_was(memory: Memory) -> None:
    back = decode(encode(memory), number=memory.number, version=memory.version)
    assert back == memory


@given(memories())
def test_a_memory_comes_back_from_its_record_as_it_was(memory: Memory) -> None:
    record = {**to_record(memory), "number": memory.number, "version": memory.version}
    assert from_record(json.loads(json.dumps(record))) == memory


def test_defaults_are_left_out_of_a_record() -> None:
    assert set(to_record(PLAIN)) == {"id", "kind", "content", "recorded_at", "origin"}


def test_every_field_of_a_memory_has_its_check() -> None:
    """A field added to Memory without a check would be refused as unknown, or slip in."""
    names = {field.name for field in fields(Memory)}
    assert names <= {field for field, _ in WRONG}
    parts = {field.name for field in fields(Provenance)}
    assert parts == {"actor", "session", "channel", "key_id", "message_id", "said_at", "reason"}


def test_the_plain_record_is_taken() -> None:
    assert from_record(to_record(PLAIN)) == PLAIN


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_wrong_field_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=rf"^({field}: |There is no field {field}[.;])"):
        from_record({**to_record(PLAIN), field: value})


@pytest.mark.parametrize("field", ["id", "kind", "content", "recorded_at", "origin"])
def test_a_missing_field_is_refused_by_its_name(field: str) -> None:
    record = to_record(PLAIN)
    del record[field]
    with pytest.raises(InvalidRequest, match=rf"^({field}: |There is no field {field}[.;])"):
        from_record(record)


@pytest.mark.parametrize("record", [None, 7, "tea", [], [{}]])
def test_what_is_no_object_is_refused(record: Any) -> None:
    with pytest.raises(InvalidRequest, match="not a JSON object"):
        from_record(record)


def test_a_time_of_another_zone_is_read_as_utc() -> None:
    record = {**to_record(PLAIN), "recorded_at": "2026-05-01T02:00:00+02:00"}
    assert from_record(record) == PLAIN
