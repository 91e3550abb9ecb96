"""PydanticAI's `ConversationStore` over the conversations of a scope.

Each message is stored once, sealed; branches and forks share entries. `delete` erases the entries
that no other conversation needs, for good. Calls run in threads beside the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.usage import RunUsage

from scrubjay.handle import Jay
from scrubjay.model.conversations import Conversation, Entry
from scrubjay.model.documents import NO_REVISION
from scrubjay.model.errors import Conflict, InvalidRequest, NotFound, Stale
from scrubjay.model.memory import Json
from scrubjay.model.pages import PAGE_LIMIT, every
from scrubjay.surfaces.initrunner.sessions import without_halves

_USAGE = TypeAdapter(RunUsage)
_DEFERRED = TypeAdapter(DeferredToolRequests)
R = TypeVar("R")


class ScrubjayConversations(ConversationStore):
    """A store for the conversations of PydanticAI; `scope` of its methods is a label within it."""

    def __init__(self, jay: Jay) -> None:
        if not isinstance(jay, Jay):
            raise InvalidRequest("It wraps a handle: ScrubjayConversations(scrubjay.open(…)).")
        self._jay = jay

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation; None if there is none."""
        try:
            found = await self._run(self._jay.conversation, conversation_id, limit=0)
        except NotFound:
            return None
        assert found.conversation is not None
        return _record(found.conversation)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records, or those with a label, the last written first."""
        where: Mapping[str, Json] = {} if scope is None else {"scope": scope}
        try:
            found = await self._run(self._listed, where, limit)
        except NotFound:  # nothing was ever written
            return []
        return [_record(one) for one in found]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries, both or neither; ConversationConflict if it moved."""
        name = record.conversation_id
        try:
            if record.forked_from is not None and expected_revision is None:
                kept: Any = {"at": 0} if record.head_id is None else {"entry": record.head_id}
                await self._run(
                    self._jay.branch,
                    record.forked_from,
                    into=name,
                    metadata=_metadata(record),
                    revision=record.revision,
                    **kept,
                )
                return
            parent = new_entries[0].parent_id if new_entries else record.head_id
            await self._run(
                self._jay.append,
                name,
                [{"id": one.id, "body": _body(one)} for one in new_entries],
                parent=parent,
                root=parent is None,
                metadata=_metadata(record),
                revision=record.revision,
                expected_revision=expected_revision or NO_REVISION,
            )
        except (Conflict, NotFound) as error:  # Stale is a Conflict
            raise ConversationConflict(name) from error

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erase a conversation, and the entries that no other one shares."""
        delete = self._jay.delete_conversation
        try:
            await self._run(delete, conversation_id, expected_revision=expected_revision)
        except (Stale, NotFound) as error:
            raise ConversationConflict(conversation_id) from error

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with this id; LookupError if there is none."""
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The entries up to one, or the last of them, in as few reads as possible."""
        entries: list[ConversationEntry] = []
        while head_id is not None and (limit is None or len(entries) < limit):
            most = PAGE_LIMIT if limit is None else min(limit - len(entries), PAGE_LIMIT)
            try:
                found = await self._run(self._jay.conversation, entry=head_id, limit=most)
            except NotFound as error:
                raise LookupError(head_id) from error
            entries = [*map(_entry, found.entries), *entries]
            head_id = found.entries[0].parent
        return entries

    def _listed(self, where: Mapping[str, Json], limit: int | None) -> list[Conversation]:
        return list(islice(every(self._jay.conversations, where=where, limit=PAGE_LIMIT), limit))

    async def _run(self, verb: Callable[..., R], *args: Any, **fields: Any) -> R:
        return await asyncio.to_thread(partial(verb, *args, **fields))


def _body(entry: ConversationEntry) -> Any:
    return without_halves(ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")[0])


def _entry(found: Entry) -> ConversationEntry:
    (message,) = ModelMessagesTypeAdapter.validate_python([found.body])
    return ConversationEntry(id=found.id, parent_id=found.parent, message=message)


def _metadata(record: ConversationRecord) -> dict[str, Json]:
    """What a record carries besides its history."""
    told: dict[str, Json] = {
        "scope": record.scope,
        "usage": _USAGE.dump_python(record.usage, mode="json"),
    }
    if record.deferred_tool_requests is not None:
        told["deferred"] = _DEFERRED.dump_python(record.deferred_tool_requests, mode="json")
    return told


def _record(found: Conversation) -> ConversationRecord:
    told: Any = found.metadata
    deferred = told.get("deferred")
    return ConversationRecord(
        conversation_id=found.name,
        head_id=found.head,
        usage=_USAGE.validate_python(told.get("usage") or {}),
        deferred_tool_requests=None if deferred is None else _DEFERRED.validate_python(deferred),
        scope=told.get("scope"),
        forked_from=found.forked_from,
        forked_at=found.forked_at,
        branches=list(found.branches),
        revision=found.revision,
        updated_at=found.updated_at,
    )
