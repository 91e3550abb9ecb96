"""Conversations and documents do what the stores of agent frameworks do, step by step.

PydanticAI's own `ConversationStore` is run twice, over its memory and over our verbs; LangGraph's
`InMemoryStore` and our documents get the same calls.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, UserPromptPart

import scrubjay
from scrubjay import Jay, Scope
from scrubjay.model.errors import NotFound
from scrubjay.surfaces.initrunner.conversation_store import ScrubjayConversations
from tests.support.engines import MemoryHome

RUNS = settings(max_examples=300, deadline=None)
STEPS = 40
NAMES = ("one", "two", "three")
START = datetime(2026, 1, 1, tzinfo=UTC)


def jay() -> Jay:
    return Jay(MemoryHome().engine(), Scope("local", "alice"))


# -- conversations ---------------------------------------------------------------------------------


def message(number: int) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(f"message {number}", timestamp=START)])


_numbers = st.integers(0, 5)
_names = st.sampled_from(NAMES)
_scopes = st.none() | st.sampled_from(["a", "b"])
_talk = st.one_of(
    st.tuples(st.just("extend"), _names, st.lists(_numbers, max_size=3), _scopes),
    st.tuples(st.just("rewrite"), _names, st.lists(_numbers, max_size=4), _numbers),
    st.tuples(st.just("stale"), _names, _numbers),
    st.tuples(st.just("branch"), _names, _numbers),
    st.tuples(st.just("switch"), _names, _numbers),
    st.tuples(st.just("fork"), _names, _names, st.none() | _numbers),
    st.tuples(st.just("delete"), _names, _scopes),
)


async def talk(store: ConversationStore, step: tuple[Any, ...]) -> Any:
    """One step; what it says, without ids, which both make up."""
    verb, name, *rest = step
    try:
        if verb == "extend":
            begun = await store.load(name) or Conversation(conversation_id=name)
            begun.messages.extend(map(message, rest[0]))
            return len(await store.save(begun, scope=rest[1]))
        if verb == "rewrite":
            known = await store.load(name)
            if known is None:
                return None
            kept = known.messages[: rest[1]]
            other = Conversation(
                messages=[*kept, *map(message, rest[0])],
                conversation_id=name,
                revision=known.revision,
            )
            return len(await store.save(other))
        if verb == "stale":
            other = Conversation(messages=[message(rest[0])], conversation_id=name, revision="old")
            return len(await store.save(other))
        if verb in ("branch", "switch"):
            record = await store.read_record(name)
            revision = record.revision if record else "none"
            if verb == "branch":
                found = await store.branch(name, at=rest[0], expected_revision=revision)
            else:
                tips = record.branches if record else []
                entry = tips[rest[0] % len(tips)] if tips else "nothing"
                found = await store.branch(name, from_entry=entry, expected_revision=revision)
            return texts(found)
        if verb == "fork":
            return texts(await store.fork(name, new_conversation_id=rest[0], at=rest[1]))
        await store.delete(name, scope=rest[0])
    except (UserError, ConversationConflict) as error:
        return type(error).__name__
    return None


def texts(found: Conversation | None) -> list[str] | None:
    return None if found is None else [text(one) for one in found.messages]


def text(one: Any) -> str:
    """The text of a message's first part; other kinds of parts are not used here."""
    return str(one.parts[0].content)


async def state(store: ConversationStore) -> list[Any]:
    """All that can be read: records in their order, and every history and branch."""
    told = []
    for record in await store.list_conversations():
        line = texts(await store.load(record.conversation_id))
        tips = [tip for tip in record.branches if tip != record.head_id]
        left = [[text(e.message) for e in await store.read_history(t)] for t in tips]
        origin = (record.forked_from, record.forked_at is None)
        told.append((record.conversation_id, record.scope, origin, line, left))
    return told


@RUNS
@given(st.lists(_talk, min_size=STEPS, max_size=STEPS))
def test_conversations_do_what_pydantic_ai_does_in_memory(steps: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        ours, theirs = ScrubjayConversations(jay()), InMemoryConversationStore()
        for step in steps:
            assert await talk(ours, step) == await talk(theirs, step), step
            assert await state(ours) == await state(theirs), step

    asyncio.run(run())


# -- documents -------------------------------------------------------------------------------------

_namespaces = st.sampled_from([("a",), ("a", "b"), ("c", "c")])
_keys = st.sampled_from(["x", "y"])
_leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["s", "t"])
_values = st.fixed_dictionaries(
    {"n": st.integers(-2, 2)},
    optional={
        "m": _leaves,
        "d": st.dictionaries(_keys, _leaves),
        "l": st.lists(_leaves, max_size=2),
    },
)
_orders = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), st.integers(-2, 2), min_size=1
)
_wheres = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-2, 2)
        | _orders,  # every value has it: comparing nothing is an error there
        "m": _leaves | st.fixed_dictionaries({"$ne": _leaves}),
        "d": st.dictionaries(_keys, _leaves, max_size=1),
        "l": st.lists(_leaves, max_size=2),
    },
)
_papers = st.one_of(
    st.tuples(st.just("put"), _namespaces, _keys, _values),
    st.tuples(st.just("delete"), _namespaces, _keys),
    st.tuples(st.just("get"), _namespaces, _keys),
    st.tuples(st.just("search"), _namespaces | st.just(()), _wheres),
)


@RUNS
@given(st.lists(_papers, min_size=STEPS, max_size=STEPS))
def test_documents_do_what_langgraph_does_in_memory(steps: list[tuple[Any, ...]]) -> None:
    ours, theirs = jay(), InMemoryStore()
    ours.put("first", 1)  # so that there is a scope
    ours.remove("first")
    for verb, namespace, *rest in steps:
        if verb == "put":
            ours.put((*namespace, rest[0]), rest[1])
            theirs.put(namespace, rest[0], rest[1])
        elif verb == "delete":
            try:
                ours.remove((*namespace, rest[0]))
            except NotFound:
                assert theirs.get(namespace, rest[0]) is None
            theirs.delete(namespace, rest[0])
        elif verb == "get":
            item = theirs.get(namespace, rest[0])
            try:
                assert item is not None
                assert ours.document((*namespace, rest[0])).value == item.value
            except AssertionError:
                with pytest.raises(NotFound):
                    ours.document((*namespace, rest[0]))
        else:
            found = ours.documents(namespace, where=rest[0], limit=100).data
            items = theirs.search(namespace, filter=rest[0], limit=100)
            known = sorted(((*item.namespace, item.key), item.value) for item in items)
            assert [(one.name, one.value) for one in found] == sorted(known, key=lambda one: one[0])


def test_a_page_of_documents_ends_where_the_next_begins() -> None:
    ours = jay()
    for number in range(25):
        ours.put(("a", f"{number:02}"), number)
    seen = [one.value for one in scrubjay.every(ours.documents, prefix="a", limit=7)]
    assert seen == list(range(25))
