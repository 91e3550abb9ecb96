"""Sessions: the message history of each conversation, so that an agent can go on where it was.

A session is a conversation of the scope. System prompts are not kept: the present ones count. What
this version of PydanticAI does not know is stored as it is and left out when it is read.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
)
from pydantic_core import PydanticSerializationError

from scrubjay import bootstrap
from scrubjay.conversation import capture
from scrubjay.conversation.taint import reads_web
from scrubjay.handle import Jay
from scrubjay.model.conversations import APPEND_LIMIT, Conversation, NewEntry
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import Json
from scrubjay.model.origin import Origin
from scrubjay.model.pages import PAGE_LIMIT, every

UNTITLED: Final = "Untitled"
_TITLE_CHARS: Final = 80
_ID_CHARS: Final = 12
_OPEN: Final = "open"
"""Metadata key of a session that a process goes on with."""
_UNFINISHED: Final = "unfinished"
"""Metadata key of a session that an import has not brought whole."""
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
    begins = [at for at in asked if not any(map(_is_half, messages[at].parts))]
    if not begins or asked[-1] < first:
        return []
    return list(messages[next((at for at in begins if at >= first), begins[-1]) :])


def sound(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages without calls that nothing answers, and answers to calls that are not there.

    A provider refuses both; a process that was killed, or another program, leaves them.
    """
    kept, answered = list[ModelMessage](), set[str]()
    for at, one in enumerate(messages):
        parts: list[Any] = [*one.parts]
        if isinstance(one, ModelResponse):
            after = (
                other for other in messages[at + 1 : at + 2] if isinstance(other, ModelRequest)
            )
            told = {getattr(part, "tool_call_id", "") for other in after for part in other.parts}
            answered = told & {call.tool_call_id for call in one.tool_calls}
        if parts := [part for part in parts if not _is_half(part) or part.tool_call_id in answered]:
            changed: Any = {"parts": parts}  # of the kind that the message has
            kept.append(replace(one, **changed))
        if isinstance(one, ModelRequest):
            answered = set()
    return kept


def whole(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """The messages with half surrogate pairs joined or replaced: no provider takes one.

    Streams are cut anywhere, so that the two halves of an emoji may come in two pieces.
    """
    try:
        ModelMessagesTypeAdapter.dump_json([*messages])
    except PydanticSerializationError:
        with suppress(PydanticSerializationError, ValidationError):
            bodies = ModelMessagesTypeAdapter.dump_python([*messages], mode="json")
            return ModelMessagesTypeAdapter.validate_python(without_halves(bodies))
    return messages


def without_halves(body: Any) -> Any:
    """JSON with half surrogate pairs joined or replaced."""
    return json.loads(capture.sound(json.dumps(body, ensure_ascii=False)))


def _is_half(part: object) -> bool:
    """Whether it is the call of a tool that is run here, or the answer to one."""
    native = isinstance(part, NativeToolCallPart | NativeToolReturnPart)
    return not native and getattr(part, "tool_name", None) is not None


class Sessions:
    """The sessions of one agent, in a scope that it may share with others."""

    def __init__(self, jay: Jay, agent: str, *, most: int = 10, resumed: int = 20) -> None:
        self._jay = jay
        self._agent = agent
        self._where: dict[str, Json] = {"agent": agent}
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
            found = self._found(session)
            for at in range(0, len(entries), APPEND_LIMIT):
                self._jay.append(
                    session,
                    entries[at : at + APPEND_LIMIT],
                    title=None if found is not None and found.title else _title(entries),
                    metadata=self._about(is_open=True),
                )
        except Exception as error:  # seam: a store that fails must not end the conversation
            return _failed("Failed to save session", error)
        return True

    def _about(self, *, is_open: bool) -> dict[str, Json]:
        return self._where | ({_OPEN: True} if is_open else {})

    def load(self, session: str) -> list[ModelMessage]:
        """The last messages of a session, beginning with a request; none if it is not there.

        InvalidRequest if another agent of the scope has it, or another program.
        """
        most, messages = self._resumed, list[ModelMessage]()
        try:
            while not messages:
                found = self._jay.conversation(session, limit=min(most, PAGE_LIMIT))
                about = found.conversation
                if about is not None and about.metadata.get("agent") != self._agent:
                    raise InvalidRequest(
                        f"The session {session} is not one of {self._agent}.",
                        hint="Choose another id, or go on with it in the agent that has it.",
                    )
                told = [one for entry in found.entries for one in _readable(entry.body)]
                messages = trimmed(sound(told), self._resumed)
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
        with suppress(NotFound):
            return self._jay.conversations(where=self._where, limit=limit).data
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
        except Exception as error:  # seam: what could not be erased now is erased next time
            if not isinstance(error, NotFound):  # nothing was ever stored
                _failed("Failed to prune sessions", error)
        return erased

    def clear(self) -> None:
        """Erase all sessions of the agent, whoever goes on with them."""
        for one in [*every(self._jay.conversations, where=self._where)]:
            self._jay.delete_conversation(one.name)

    def restore(
        self, session: str, bodies: Sequence[Mapping[str, Any]], at: datetime, *, agent: str
    ) -> bool:
        """Write a session that another program kept; false if one of that name is there.

        InvalidRequest if it cannot be kept. One that was cut off is brought again.
        """
        found = self._found(session)
        if found is not None and _UNFINISHED not in found.metadata:
            return False
        if found is not None:
            self._jay.delete_conversation(session)
        told = [one for one in map(without_system, bodies) if one is not None]
        entries = [NewEntry(body=one, at=at, origin=_origin(one)) for one in told]
        title, about = _title(entries), dict[str, Json](agent=agent)
        for begin in range(0, len(entries), APPEND_LIMIT):
            rest = {_UNFINISHED: True} if begin + APPEND_LIMIT < len(entries) else {}
            part = entries[begin : begin + APPEND_LIMIT]
            self._jay.append(session, part, title=title, metadata=about | rest)
        return bool(entries)

    def _found(self, session: str) -> Conversation | None:
        with suppress(NotFound):
            return self._jay.conversation(session, limit=0).conversation
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
    told: dict[str, Any] = without_halves(body)
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
    with suppress(ValidationError):
        return ModelMessagesTypeAdapter.validate_python([body])
    parts = body.get("parts") if isinstance(body, dict) else None
    if not isinstance(parts, list) or len(parts) < 2:
        return []
    known = [one for one in parts if _readable({**body, "parts": [one]})]
    return ModelMessagesTypeAdapter.validate_python([{**body, "parts": known}]) if known else []


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
