"""Sessions: the message history of each conversation, so that an agent can go on where it was.

A session is a conversation of the scope. System prompts are not kept: the present ones count. What
this version of PydanticAI does not know is stored as it is and left out when it is read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse

from scrubjay import bootstrap
from scrubjay.handle import Jay
from scrubjay.model.conversations import APPEND_LIMIT, Conversation, NewEntry
from scrubjay.model.errors import NotFound

UNTITLED: Final = "Untitled"
_TITLE_CHARS: Final = 80
_ID_CHARS: Final = 12
_SYSTEM: Final = ("system-prompt", "instruction")
"""Kinds of parts, by their beginning, that come from the role and not from the conversation."""

log = logging.getLogger(__name__)


def new_id() -> str:
    """A new id of a session: twelve hexadecimal digits."""
    return bootstrap.clock().new_id().replace("-", "")[-_ID_CHARS:]


def trimmed(messages: Sequence[ModelMessage], most: int) -> list[ModelMessage]:
    """The last messages, beginning with a request."""
    if len(messages) <= most:
        return list(messages)
    return _from_request(messages[-most:])


def _from_request(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    place = next(
        (at for at, one in enumerate(messages) if not isinstance(one, ModelResponse)), None
    )
    return [] if place is None else list(messages[place:])


class Sessions:
    """The sessions of one agent, in a scope that it may share with others."""

    def __init__(self, jay: Jay, agent: str, *, most: int = 10, resumed: int = 20) -> None:
        self._jay = jay
        self._agent = agent
        self._most = most
        self._resumed = resumed

    def save(
        self, session: str, messages: Sequence[ModelMessage], *, after: str | None = None
    ) -> bool:
        """Add the messages of a turn to a session; returns whether it could be stored.

        A new session may go on `after` another one, whose history it then shares. Never raises.
        """
        try:
            entries = [NewEntry(body=one) for one in map(stored, messages) if one is not None]
            if after is not None and self._found(session) is None:
                self._jay.branch(after, into=session, metadata={"agent": self._agent})
            for at in range(0, len(entries), APPEND_LIMIT):
                self._jay.append(
                    session,
                    entries[at : at + APPEND_LIMIT],
                    title=None if self._title(session) else _title(entries),
                    metadata={"agent": self._agent},
                )
        except Exception as error:  # seam: a store that fails must not end the conversation
            code = getattr(error, "code", type(error).__name__)
            log.warning("Failed to save session", extra={"code": code})
            return False
        return True

    def load(self, session: str) -> list[ModelMessage]:
        """The last messages of a session, beginning with a request; none if it is not there."""
        try:
            found = self._jay.conversation(session, limit=self._resumed)
        except NotFound:
            return []
        messages = [one for entry in found.entries for one in _readable(entry.body)]
        return _from_request(messages)

    def latest(self) -> Conversation | None:
        """The session that was written to last."""
        return next(iter(self.listed(1)), None)

    def listed(self, limit: int = 20) -> Sequence[Conversation]:
        """The sessions of the agent, the last written first, with title, time and count."""
        try:
            where = {"agent": self._agent}
            return self._jay.conversations(where=where, limit=limit).data
        except NotFound:
            return ()

    def prune(self, most: int | None = None) -> int:
        """Erase all but the newest sessions; returns how many there were to erase. Never raises."""
        kept = self._most if most is None else most
        erased = 0
        try:
            while over := self.listed(kept + 100)[kept:]:
                for one in over:
                    self._jay.delete_conversation(one.name)
                    erased += 1
        except Exception as error:  # seam: what could not be erased now is erased next time
            code = getattr(error, "code", type(error).__name__)
            log.warning("Failed to prune sessions", extra={"code": code})
        return erased

    def restore(
        self, session: str, bodies: Sequence[Mapping[str, Any]], at: datetime, *, agent: str
    ) -> bool:
        """Write a session that another program kept; false if one of that name is there."""
        if self._found(session) is not None:
            return False
        told = [one for one in map(without_system, bodies) if one is not None]
        entries = [NewEntry(body=one, at=at, origin="import") for one in told]
        for begin in range(0, len(entries), APPEND_LIMIT):
            part = entries[begin : begin + APPEND_LIMIT]
            title = _title(entries)
            self._jay.append(session, part, title=title, metadata={"agent": agent})
        return bool(entries)

    def _title(self, session: str) -> str | None:
        found = self._found(session)
        return None if found is None else found.title

    def _found(self, session: str) -> Conversation | None:
        try:
            return self._jay.conversation(session, limit=0).conversation
        except NotFound:
            return None


def stored(message: ModelMessage) -> dict[str, Any] | None:
    """A message as JSON without system prompts; None if nothing is left of it."""
    (body,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    return without_system(body)


def without_system(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The JSON of a message without system prompts; None if nothing is left of it."""
    told = dict(body)
    if told.get("kind") != "request":
        return told
    told.pop("instructions", None)
    parts = [one for one in told.get("parts", ()) if not _kind(one).startswith(_SYSTEM)]
    return {**told, "parts": parts} if parts else None


def _readable(body: Any) -> list[ModelMessage]:
    """The message, without the parts that this version does not know; none if none is known."""
    try:
        return ModelMessagesTypeAdapter.validate_python([body])
    except ValidationError:
        parts = body.get("parts") if isinstance(body, dict) else None
        known = [one for one in parts or () if _is_known(body, one)]
        return ModelMessagesTypeAdapter.validate_python([{**body, "parts": known}]) if known else []


def _is_known(body: Mapping[str, Any], part: Any) -> bool:
    try:
        ModelMessagesTypeAdapter.validate_python([{**body, "parts": [part]}])
    except ValidationError:
        return False
    return True


def _kind(part: Any) -> str:
    return str(part.get("part_kind", "")) if isinstance(part, dict) else ""


def _title(entries: Sequence[NewEntry]) -> str:
    """The beginning of the first thing the user said."""
    for entry in entries:
        body: Any = entry.body
        for part in body.get("parts", ()):
            said = part.get("content") if _kind(part) == "user-prompt" else None
            if isinstance(said, str) and said.strip():
                return " ".join(said.split())[:_TITLE_CHARS]
    return UNTITLED
