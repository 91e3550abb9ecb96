"""Bytes that were written stay readable, and the same bytes are written today.

The vectors are fixed; the table of codecs in tests/record_codecs.py is what may follow the code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrubjay.model.errors import ScrubjayError
from scrubjay.model.memory import Memory, Provenance
from scrubjay.model.turns import Turn
from tests.record_codecs import CODECS

FILE = Path(__file__).parent.parent / "vectors" / "records.json"
VECTORS = json.loads(FILE.read_text(encoding="utf-8"))
READ = [*VECTORS["written"], *VECTORS["read"]]
Vector = dict[str, Any]


def ids(vectors: list[Vector]) -> list[str]:
    return [f"{one['type']}-{one['name']}".replace(" ", "-") for one in vectors]


def expected(vector: Vector) -> Any:
    """What reading gives: the value itself, or what can be seen of it."""
    value = CODECS[vector["type"]].build(vector["fields"])
    if vector["type"] == "session":
        return {name: seen for name, seen in value.items() if name != "now"}
    if vector["type"] == "timeline root":
        return {"size": len(value), "begins": value[0].moment().at}
    return value


@pytest.mark.parametrize("vector", VECTORS["written"], ids=ids(VECTORS["written"]))
def test_a_value_is_written_as_exactly_these_bytes(vector: Vector) -> None:
    codec = CODECS[vector["type"]]
    assert codec.encode(codec.build(vector["fields"])) == vector["bytes"].encode()


@pytest.mark.parametrize("vector", READ, ids=ids(READ))
def test_bytes_are_read_as_the_value_they_were_written_from(vector: Vector) -> None:
    assert CODECS[vector["type"]].decode(vector["bytes"].encode()) == expected(vector)


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=ids(VECTORS["refused"]))
def test_a_bad_record_is_refused_with_its_code(vector: Vector) -> None:
    with pytest.raises(ScrubjayError) as refusal:
        CODECS[vector["type"]].decode(vector["bytes"].encode())
    assert refusal.value.code == vector["code"]


def test_every_codec_has_a_vector() -> None:
    assert {vector["type"] for vector in VECTORS["written"]} == set(CODECS)


@pytest.mark.parametrize("name", ["memory", "turn"])
def test_every_field_of_a_cell_has_a_vector(name: str) -> None:
    """Those that a row says, and not its cell, are left out."""
    written = [one["fields"] for one in VECTORS["written"] if one["type"] == name]
    beside = {"memory": {"number", "version"}, "turn": {"number"}}[name]
    kinds = {"memory": Memory, "turn": Turn}
    assert {*kinds[name].__struct_fields__} - beside <= {key for one in written for key in one}
    if name == "memory":
        given = {key for one in written for key in one.get("provenance", {})}
        assert {*Provenance.__struct_fields__} <= given
