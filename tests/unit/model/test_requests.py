"""Requests: each is checked as it is made, so that nothing bad reaches the engine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct, inspect

from scrubjay.model.conversations import NewEntry
from scrubjay.model.documents import Put
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import AGENT, Browse, Forget, Retain, Supersede
from scrubjay.model.text import CheckedRequest
from scrubjay.verbs import VERBS

NAIVE = datetime(2026, 5, 1)  # noqa: DTZ001
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

BAD_RETAINS: list[dict[str, Any]] = [
    {"content": ""},
    {"content": "x" * 65_537},
    {"content": 7},
    {"kind": "dream"},
    {"origin": "dream"},
    {"tags": "tea"},
    {"tags": 7},
    {"tags": ["x"] + [str(number) for number in range(64)]},
    {"sources": "mem-1"},
    {"sources": ["mem 1"]},
    {"importance": 2},
    {"importance": None},
    {"pinned": "yes"},
    {"key": ""},
    {"id": "mem 1"},
    {"id": ""},
    {"session": " "},
    {"speaker": "x" * 513},
    {"position": -1},
    {"channel": ""},
    {"message_id": 7},
    {"said_at": NAIVE},
    {"valid_from": NAIVE},
    {"valid_to": "tomorrow"},
    {"expires_at": NAIVE},
    {"metadata": {"a": object()}},
    {"metadata": None},
]
BAD_SUPERSEDES: list[dict[str, Any]] = [
    {"id": "mem 1"},
    {"id": None},
    {"content": " "},
    {"content": "x" * 65_537},
    {"kind": "dream"},
    {"tags": "tea"},
    {"importance": -1},
    {"key": ""},
    {"session": ""},
    {"reason": "x" * 513},
    {"origin": "dream"},
]
BAD_BROWSES: list[dict[str, Any]] = [
    {"kinds": ["dream"]},
    {"kinds": "dream"},
    {"kinds": 7},
    {"tags": "tea"},
    {"session": ""},
    {"since": NAIVE},
    {"before": "now"},
    {"as_of": NAIVE},
    {"superseded": "yes"},
    {"limit": 0},
    {"limit": 10_001},
    {"limit": None},
    {"limit": 1.0},
    {"cursor": -1},
    {"cursor": " "},
]
BAD_FORGETS: list[dict[str, Any]] = [
    {},
    {"ids": []},
    {"ids": "mem-1"},
    {"ids": ["mem 1"]},
    {"ids": [f"mem-{number}" for number in range(10_001)]},
    {"ids": ["mem-1"], "session": "s"},
    {"session": "s", "tags": ["t"]},
    {"tags": ["t"], "before": NOON},
    {"session": ""},
    {"tags": "t"},
    {"before": NAIVE},
    {"ids": ["mem-1"], "unseen": "yes"},
    {"session": "s", "unseen": True},
]


@pytest.mark.parametrize("fields", BAD_RETAINS)
def test_retain_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Retain(**{"content": "tea", **fields})


@pytest.mark.parametrize("fields", BAD_SUPERSEDES)
def test_supersede_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Supersede(**{"id": "mem-1", "content": "tea", **fields})


@pytest.mark.parametrize("fields", BAD_BROWSES)
def test_browse_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Browse(**fields)


@pytest.mark.parametrize("fields", BAD_FORGETS)
def test_forget_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Forget(**fields)


def test_words_are_turned_into_members() -> None:
    request: Any = Retain(content="tea", kind="preference", origin="web", tags=["a"])
    assert request.kind is Kind.PREFERENCE
    assert request.origin is Origin.WEB
    assert request.tags == ("a",)


def test_one_kind_may_be_asked_for_by_its_name_alone() -> None:
    assert Browse(kinds="fact").kinds == {Kind.FACT}  # type: ignore[arg-type]


def test_a_request_says_everything_its_memory_holds() -> None:
    request = Retain(
        content="tea", kind=Kind.PREFERENCE, tags=("a",), importance=0.9, pinned=True, key="k",
        session="s", speaker="Alice", position=3, origin=Origin.AGENT,
        channel="chat", message_id="m", said_at=NOON, sources=("mem-0",), valid_from=NOON,
        valid_to=NOON, expires_at=NOON, metadata={"a": 1},
    )  # fmt: skip
    memory = request.memory("mem-1", NOON, AGENT)
    assert (memory.id, memory.recorded_at) == ("mem-1", NOON)
    for name in ("content", "kind", "tags", "importance", "pinned", "key", "speaker", "position"):
        assert getattr(memory, name) == getattr(request, name), name
    for name in ("origin", "sources", "valid_from", "valid_to", "expires_at", "metadata"):
        assert getattr(memory, name) == getattr(request, name), name
    assert memory.provenance.actor is Actor.AGENT
    for name in ("session", "channel", "message_id", "said_at"):
        assert getattr(memory.provenance, name) == getattr(request, name), name


def test_metadata_the_caller_changes_later_does_not_change_the_memory() -> None:
    metadata: dict[str, Any] = {"a": 1}
    memory = Retain(content="tea", metadata=metadata).memory("mem-1", NOON, AGENT)
    metadata["a"] = 2
    assert memory.metadata == {"a": 1}


def test_what_a_supersession_does_not_say_is_taken_from_the_old_memory() -> None:
    old = Retain(content="tea", kind=Kind.PREFERENCE, tags=("a",), importance=0.9, key="k").memory(
        "mem-1", NOON, AGENT
    )
    new = Supersede(id="mem-1", content="coffee").memory(old, "mem-2", NOON, AGENT)
    assert (new.kind, new.tags, new.importance) == (old.kind, old.tags, old.importance)
    assert (new.supersedes, new.key, new.content) == ("mem-1", None, "coffee")


def test_what_a_supersession_says_takes_the_place_of_the_old() -> None:
    old = Retain(content="tea", tags=("a",), importance=0.9).memory("mem-1", NOON, AGENT)
    request = Supersede(
        id="mem-1", content="x", kind=Kind.CONTEXT, tags=(), importance=0.0, said_at=NOON
    )
    new = request.memory(old, "mem-2", NOON, AGENT)
    assert (new.kind, new.tags, new.importance) == (Kind.CONTEXT, (), 0.0)
    assert new.provenance.said_at == NOON


def test_filters_of_browse_all_have_to_hold() -> None:
    memory = Memory(id="m", kind=Kind.FACT, content="x", recorded_at=NOON, tags=("a", "b"))
    assert Browse(kinds=frozenset({Kind.FACT}), tags=frozenset({"a", "b"})).accepts(memory, NOON)
    assert not Browse(kinds=frozenset({Kind.FACT}), tags=frozenset({"c"})).accepts(memory, NOON)
    assert not Browse(tags=frozenset({"a"}), session="s").accepts(memory, NOON)


def test_since_takes_its_moment_in_and_before_leaves_it_out() -> None:
    memory = Memory(id="m", kind=Kind.FACT, content="x", recorded_at=NOON)
    assert Browse(since=NOON).accepts(memory, NOON)
    assert not Browse(before=NOON).accepts(memory, NOON)


@pytest.mark.parametrize("levels", [201, 500, 900])
def test_metadata_nested_too_deep_is_refused_however_deep_it_is(levels: int) -> None:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    with pytest.raises(InvalidRequest):
        Retain("tea", metadata=value)


def holds_enum(about: inspect.Type, found: dict[type, bool]) -> bool:
    """Whether a field is of an enum; of every Struct in it `found` has whether a field is."""
    match about:
        case inspect.Metadata():
            return holds_enum(about.type, found)
        case inspect.EnumType():
            return True
        case inspect.UnionType():
            return sum(holds_enum(one, found) for one in about.types) > 0
        case inspect.VarTupleType() | inspect.FrozenSetType():
            return holds_enum(about.item_type, found)
        case inspect.StructType() if about.cls not in found:
            found[about.cls] = False
            found[about.cls] = sum(holds_enum(one.type, found) for one in about.fields) > 0
    return False


def test_a_word_for_a_member_of_an_enum_becomes_the_member_wherever_it_stands() -> None:
    """The engine compares members by identity, so no Struct of a request may keep the word."""
    found = dict[type[Struct], bool]()
    for verb in VERBS.values():
        holds_enum(inspect.type_info(verb.request), found)
    kinds = [one for one, holds in found.items() if holds]
    assert {"KindLimit", "NewEntry", "Retain"} <= {one.__name__ for one in kinds}
    assert [one for one in kinds if not issubclass(one, CheckedRequest)] == []


@pytest.mark.parametrize("value", [{1: 2}, [{"a": {None: 1}}], {"1": 0, 1: 0}, {"a": {True: 1}}])
def test_a_member_whose_name_is_no_text_is_refused(value: Any) -> None:
    """The encoder would write the name as a text, of which there may be one already."""
    for wrong in (lambda: NewEntry(body=value), lambda: Put("a", value)):
        with pytest.raises(InvalidRequest, match="plain JSON"):
            wrong()
    with pytest.raises(InvalidRequest):
        Retain("tea", metadata={"a": value})
