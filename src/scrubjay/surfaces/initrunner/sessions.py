"""Sessions: the message history of each conversation, so that an agent can go on where it was.

A session is a conversation of the scope. System prompts are not kept: the present ones count. What
this version of PydanticAI does not know is stored as it is and left out when it is read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest

from scrubjay import bootstrap
from scrubjay.conversation.taint import reads_web
from scrubjay.handle import Jay
from scrubjay.model.conversations import APPEND_LIMIT, Conversation, NewEntry
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Json
from scrubjay.model.origin import Origin
from scrubjay.model.pages import PAGE_LIMIT, every

UNTITLED: Final = "Untitled"
_TITLE_CHARS: Final = 80
_ID_CHARS: Final = 12
_OPEN: Final = "open"
"""Metadata key of a session that a process goes on with."""
_ABANDONED: Final = timedelta(days=1)
"""How long after its last turn an open session is taken for one whose process has died."""
_SYSTEM: Final = ("system-prompt", "instruction")
"""Kinds of parts, by their beginning, that come from the role and not from the conversation."""

log = logging.getLogger(__name__)


def new_id() -> str:
    """A new id of a session: twelve hexadecimal digits."""
    return bootstrap.clock().new_id().replace("-", "")[-_ID_CHARS:]


def trimmed(messages: Sequence[ModelMessage], most: int) -> list[ModelMessage]:
    """The last messages, beginning with a request that answers no tool call.

    A provider refuses a history that begins with the result of a call it does not show. So a turn
    of more messages than that, whose calls are all one chain, is kept whole.
    """
    first = max(0, len(messages) - most)
    asked = [at for at, one in enumerate(messages) if isinstance(one, ModelRequest)]
    begins = [at for at in asked if not any(map(_is_result, messages[at].parts))]
    if not begins or asked[-1] < first:
        return []
    return list(messages[next((at for at in begins if at >= first), begins[-1]) :])


def _is_result(part: object) -> bool:
    return getattr(part, "tool_name", None) is not None


class Sessions:
    """The sessions of one agent, in a scope that it may share with others."""

    def __init__(self, jay: Jay, agent: str, *, most: int = 10, resumed: int = 20) -> None:
        self._jay = jay
        self._agent = agent
        self._most = most
        self._resumed = resumed
        self._open: dict[str, None] = {}
        """The sessions that this process writes to, the one last written to at the end."""

    def go_on(self, session: str, after: str) -> bool:
        """Begin a session with the history of another one, and with its taint. Never raises."""
        try:
            if self._found(session) is None:
                self._jay.branch(after, into=session, metadata=self._about(is_open=True))
                self._open[session] = None
        except Exception as error:  # seam: a store that fails must not end the conversation
            return _failed("Failed to go on with a session", error)
        return True

    def save(self, session: str, messages: Sequence[ModelMessage]) -> bool:
        """Add the messages of a turn; returns whether they could be stored. Never raises."""
        try:
            entries = [NewEntry(body=one) for one in map(stored, messages) if one is not None]
            self._open.pop(session, None)
            self._open[session] = None
            for at in range(0, len(entries), APPEND_LIMIT):
                self._jay.append(
                    session,
                    entries[at : at + APPEND_LIMIT],
                    title=None if self._title(session) else _title(entries),
                    metadata=self._about(is_open=True),
                )
        except Exception as error:  # seam: a store that fails must not end the conversation
            return _failed("Failed to save session", error)
        return True

    def _about(self, *, is_open: bool) -> dict[str, Json]:
        return {"agent": self._agent} | ({_OPEN: True} if is_open else {})

    def load(self, session: str) -> list[ModelMessage]:
        """The last messages of a session, beginning with a request; none if it is not there."""
        most, messages = self._resumed, list[ModelMessage]()
        try:
            while not messages:
                found = self._jay.conversation(session, limit=min(most, PAGE_LIMIT))
                told = [one for entry in found.entries for one in _readable(entry.body)]
                messages = trimmed(told, self._resumed)
                if most >= PAGE_LIMIT or len(found.entries) < most:
                    break
                most *= 4  # the last ones are results of tools, all of one long turn
        except NotFound:
            return []
        return messages

    def latest(self) -> Conversation | None:
        """The session that was written to last."""
        return next(iter(self.listed(1)), None)

    def listed(self, limit: int = 20) -> Sequence[Conversation]:
        """The sessions of the agent, the last written first, with title, time and count."""
        try:
            return self._jay.conversations(where=self._where, limit=limit).data
        except NotFound:
            return ()

    def prune(self) -> int:
        """On leaving: erase all but the newest sessions; returns how many. Never raises.

        Those that other processes go on with stay.
        """
        erased = 0
        try:
            for session in [*self._open]:
                if self._found(session) is not None:
                    self._jay.append(session, metadata=self._about(is_open=False))
                del self._open[session]
            known = [*every(self._jay.conversations, where=self._where)]  # last written first
            for one in known[self._most :]:
                if _OPEN not in one.metadata or one.updated_at < known[0].updated_at - _ABANDONED:
                    self._jay.delete_conversation(one.name)
                    erased += 1
        except NotFound:  # nothing was ever stored
            pass
        except Exception as error:  # seam: what could not be erased now is erased next time
            _failed("Failed to prune sessions", error)
        return erased

    def clear(self) -> None:
        """Erase all sessions of the agent, whoever goes on with them."""
        for one in [*every(self._jay.conversations, where=self._where)]:
            self._jay.delete_conversation(one.name)

    def restore(
        self, session: str, bodies: Sequence[Mapping[str, Any]], at: datetime, *, agent: str
    ) -> bool:
        """Write a session that another program kept; false if one of that name is there."""
        if self._found(session) is not None:
            return False
        told = [one for one in map(without_system, bodies) if one is not None]
        entries = [NewEntry(body=one, at=at, origin=_origin(one)) for one in told]
        for begin in range(0, len(entries), APPEND_LIMIT):
            part = entries[begin : begin + APPEND_LIMIT]
            title = _title(entries)
            self._jay.append(session, part, title=title, metadata={"agent": agent})
        return bool(entries)

    @property
    def _where(self) -> dict[str, Json]:
        return {"agent": self._agent}

    def _title(self, session: str) -> str | None:
        found = self._found(session)
        return None if found is None else found.title

    def _found(self, session: str) -> Conversation | None:
        try:
            return self._jay.conversation(session, limit=0).conversation
        except NotFound:
            return None


def _failed(event: str, error: Exception) -> Literal[False]:
    log.warning(event, extra={"code": getattr(error, "code", type(error).__name__)})
    return False


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


def _origin(body: Mapping[str, Any]) -> Origin:
    """The origin of a message of another program: the web's, if a tool that reads it was called."""
    names = (str(one.get("tool_name") or "") for one in body["parts"] if isinstance(one, dict))
    return Origin.WEB if any(map(reads_web, names)) else Origin.IMPORT


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
