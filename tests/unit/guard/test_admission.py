"""Every text that is stored is cleaned of secrets, unless it is an identifier with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, get_args, get_origin

import pytest
from msgspec import Struct

from scrubjay import codec
from scrubjay.guard.admission import IDENTIFIERS, admit
from scrubjay.model.conversations import Conversation, Entry
from scrubjay.model.documents import Document
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.requests import Retain, Supersede
from scrubjay.model.turns import Piece, Turn

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
BARE: dict[type[Any], dict[str, Any]] = {
    Memory: {"id": "mem-1", "kind": Kind.FACT, "content": "tea", "recorded_at": NOW},
    Provenance: {},
    Turn: {"id": "turn-1", "at": NOW},
    Retain: {"content": "tea"},
    Supersede: {"id": "mem-1", "content": "tea"},
    Piece: {"part": "model-0", "kind": Kind.FACT, "content": "tea"},
    Entry: {"id": "ent-1", "body": {}, "at": NOW, "conversation": "c"},
    Conversation: {
        "id": "conv-1", "name": "c", "revision": "1", "created_at": NOW, "updated_at": NOW,
    },
    Document: {"id": "doc-1", "name": ("a",), "created_at": NOW, "updated_at": NOW},
}  # fmt: skip


def parts(hint: Any) -> Iterator[Any]:
    """The types that a type hint is made of."""
    yield get_origin(hint) or hint
    for one in get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint):
        yield from parts(one)


def texts(kind: type[Struct]) -> Iterator[tuple[str, Any]]:
    """The fields that can hold text, each with a value that has a secret."""
    for name, hint in codec.hints(kind).items():
        found = set(parts(hint))
        if Mapping in found:
            yield name, {SECRET: [{"a": SECRET}], "pair": (SECRET,)}
        elif Any in found:
            yield name, {SECRET: [{"a": SECRET}], "text": f"it is {SECRET}"}
        elif str in found:
            yield name, (SECRET,) if tuple in found else SECRET


FIELDS = [(kind, name, value) for kind in BARE for name, value in texts(kind)]


@pytest.mark.parametrize(("kind", "name", "value"), FIELDS)
def test_every_text_is_cleaned_or_is_an_identifier(
    kind: type[Any], name: str, value: object
) -> None:
    written = kind(**BARE[kind] | {name: value})
    if kind is Provenance:
        written = Memory(**BARE[Memory], provenance=written)
    admitted, found = admit(written)
    assert (SECRET in repr(admitted)) is (name in IDENTIFIERS)
    assert bool(found) is (name not in IDENTIFIERS)


def test_the_texts_of_a_memory_and_a_turn_are_all_known_to_this_test() -> None:
    cleaned = {
        kind: {name for name, _ in texts(kind)} - IDENTIFIERS.keys()
        for kind in (Memory, Provenance, Turn, Entry, Conversation, Document)
    }
    assert cleaned == {
        Memory: {"content", "tags", "speaker", "metadata"},
        Provenance: {"reason"},
        Turn: {"user", "assistant", "metadata"},
        Entry: {"body"},
        Conversation: {"title", "metadata"},
        Document: {"value"},
    }


def test_an_identifier_is_a_field_and_has_its_reason() -> None:
    names = {name for _, name, _ in FIELDS}
    assert IDENTIFIERS.keys() <= names
    assert all(IDENTIFIERS.values())


def test_what_becomes_empty_is_as_if_it_were_not_given() -> None:
    nothing = "\u200b"
    memory, _ = admit(Retain("tea", speaker=nothing, tags=(nothing, "drink")))
    turn, _ = admit(Turn(id="turn-1", at=NOW, user=nothing, assistant="Hello."))
    assert (memory.speaker, memory.tags, turn.user) == (None, ("drink",), "")


def test_what_is_clean_stays_the_same() -> None:
    memory = Memory(**BARE[Memory], tags=("drink",), metadata={"a": ["b", 1, None]})
    assert admit(memory) == (memory, {})
    assert admit(memory)[0] is memory


def test_a_list_in_free_json_keeps_its_items_and_their_order() -> None:
    """Only tags are a set: what a document holds is not the guard's to shorten."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    value: Any = ("a", "a", "", ["x", ""], {"y": ["", ""]}, 1, None)
    document = Document(
        id="doc-1", name=("users", "users"), value=value, created_at=now, updated_at=now
    )
    assert admit(document, "[REDACTED]")[0] == document
