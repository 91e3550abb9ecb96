"""Pipeline of a tool call and its reply.

group → topic → payload → authorize → confirm → route, then sanitize → log → forward. Each stage
is one method; the first that objects ends it with a ToolError. Whatever happens, there is a reply
and a record of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from math import ceil
from typing import Any, Final, TypeVar

from msgspec import Struct

from scrubjay.conversation.outgoing import sanitize
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.memory import Json
from scrubjay.ports import Clock
from scrubjay.surfaces.carapace import wire
from scrubjay.surfaces.carapace.call_audit import CallOutcome, CallRecord, Recorder, no_record
from scrubjay.surfaces.carapace.manifest import PAYLOAD_BYTES, PROVENANCE, TOPIC, Tool
from scrubjay.surfaces.carapace.plugin import MemoryPlugin, Reply
from scrubjay.surfaces.carapace.validation import faults, quoted
from scrubjay.surfaces.carapace.wire import (
    RESERVED,
    AgentSession,
    Code,
    ToolError,
    Wire,
    scope_of,
    stamp,
)

TOOL_SECONDS: Final = 30.0
_MOST_SESSIONS: Final = 10_000
_TOPIC_CHARS: Final = 200
"""Maximum length of the topic in a reply."""
_log = logging.getLogger(__name__)
Result = TypeVar("Result")

Confirm = Callable[[Tool, Wire, AgentSession], bool]
"""Ask a person about a call of high risk; TimeoutError if nobody answers."""


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool, and the plugin that carries it out."""

    tool: Tool
    plugin: MemoryPlugin


class Rules(Struct, frozen=True, kw_only=True):
    """Rules of a host; by default every low-risk call is allowed."""

    groups: Mapping[str, frozenset[str]] = {}
    """Which groups may use a tool; one that is not named here is for all."""
    calls_per_minute: int | None = None
    """Rate limit of one session."""
    confirm: Confirm | None = None
    tool_seconds: float = TOOL_SECONDS


class Pipeline:
    """Answers the calls of all sessions of one host."""

    def __init__(
        self,
        offers: Mapping[str, OfferedTool],
        clock: Clock,
        record: Recorder = no_record,
        rules: Rules | None = None,
    ) -> None:
        self._offers = offers
        self._clock = clock
        self._record = record
        self._rules = rules or Rules()
        self._paces: dict[str, tuple[float, float]] = {}
        self._mutex = threading.Lock()

    def answer(self, message: Wire, session: AgentSession) -> dict[str, Json]:
        """The envelope of the reply to a message."""
        try:
            self._check_group(session)
            offer = self._topic(message)
            self._payload(message, offer.tool)
            self._authorize(session, offer.tool)
            self._confirm(message, session, offer.tool)
        except ToolError as error:
            return self._forward(message, session, error, CallOutcome.REJECTED)
        try:
            result = self._route(message, session, offer)
        except ToolError as error:
            return self._forward(message, session, error, CallOutcome.ERROR)
        return self._forward(message, session, result, CallOutcome.ROUTED)

    def invoke(self, tool: str, arguments: Mapping[str, Json], session: AgentSession) -> Reply:
        """The plugin's reply to a call whose stages before route are somebody else's to pass."""
        message = Wire(topic=TOPIC + tool, correlation="", arguments=arguments)
        try:
            if tool not in self._offers:
                raise ToolError(Code.HANDLER_ERROR, f"Unknown tool: {quoted(tool)}")
            result = self._route(message, session, self._offers[tool])
        except ToolError as error:
            envelope = self._forward(message, session, error, CallOutcome.ERROR)
        else:
            envelope = self._forward(message, session, result, CallOutcome.ROUTED)
        payload: Any = envelope["payload"]
        if payload["error"] is not None:
            return {"ok": False, "error": payload["error"]}
        return {"ok": True, "result": payload["result"]}

    def refuse(self, raw: bytes, session: AgentSession, error: ToolError) -> dict[str, Json]:
        """The envelope of the reply to what is no message at all."""
        broken = Wire(topic="", correlation=wire.correlation_of(raw), arguments={})
        return self._forward(broken, session, error, CallOutcome.REJECTED)

    # -- there ---------------------------------------------------------------------------

    def _check_group(self, session: AgentSession) -> None:
        """The group's name is checked before anything else."""
        try:
            scope_of(session.group)
        except InvalidRequest as error:
            told = f"{error.message} {error.hint}"
            raise ToolError(Code.VALIDATION_FAILED, told, stage=1, field="group") from error

    def _topic(self, message: Wire) -> OfferedTool:
        name = message.topic.removeprefix(TOPIC)
        if name == message.topic or not name:
            told = f'Malformed topic: {quoted(message.topic)} (write "{TOPIC}<name>")'
            raise ToolError(Code.UNKNOWN_TOOL, told, stage=2)
        if name not in self._offers:
            known = ", ".join(self._offers)
            told = f"Unknown tool: {quoted(name)} (there are {known})"
            raise ToolError(Code.UNKNOWN_TOOL, told, stage=2)
        return self._offers[name]

    def _payload(self, message: Wire, tool: Tool) -> None:
        strict = {**tool.arguments, "additionalProperties": False}
        wrong = list(faults(message.arguments, strict))
        if not wrong:
            return
        filled_in = tuple(f'field "{name}"' for name in PROVENANCE)
        told = "; ".join(
            f"{fault}; the host fills it in" if fault.must.endswith(filled_in) else str(fault)
            for fault in wrong
        )
        raise ToolError(
            Code.VALIDATION_FAILED,
            f"Argument validation failed: {told}",
            stage=3,
            field=wrong[0].field,
        )

    def _authorize(self, session: AgentSession, tool: Tool) -> None:
        """Whether the group may; only then it costs the session a call."""
        allowed = self._rules.groups.get(tool.name)
        if allowed is not None and session.group not in allowed:
            message = f'Group {quoted(session.group)} may not use "{tool.name}".'
            raise ToolError(Code.UNAUTHORIZED, message, stage=4)
        if (most := self._rules.calls_per_minute) is None:
            return
        # A token bucket for each session, refilled as time passes.
        now = self._clock.monotonic()
        with self._mutex:
            left, then = self._paces.pop(session.id, (float(most), now))
            left = min(float(most), left + (now - then) * most / 60)
            self._paces[session.id] = (left - 1 if left >= 1 else left, now)
            if len(self._paces) > _MOST_SESSIONS:
                del self._paces[next(iter(self._paces))]  # the one that was silent for longest
        if left < 1:
            wait = ceil((1 - left) * 60 / most)
            raise ToolError(
                Code.RATE_LIMITED,
                f"This session calls too fast; wait {wait} s.",
                stage=4,
                retry_after=wait,
            )

    def _confirm(self, message: Wire, session: AgentSession, tool: Tool) -> None:
        if tool.risk == "low":
            return
        asked = self._rules.confirm
        try:
            agreed = asked is not None and asked(tool, message, session)
        except TimeoutError as error:
            told = f'Nobody answered whether "{tool.name}" may be carried out.'
            raise ToolError(Code.CONFIRMATION_TIMEOUT, told, stage=5) from error
        if not agreed:
            told = f'"{tool.name}" needs the consent of a person, and did not get it.'
            raise ToolError(Code.CONFIRMATION_DENIED, told, stage=5)

    def _route(self, asked: Wire, session: AgentSession, offer: OfferedTool) -> Json:
        """Have the plugin carry it out; what it raises is told without anything of its inside."""
        name, seconds = offer.tool.name, self._rules.tool_seconds

        def invoke() -> Any:
            return offer.plugin.invoke(
                name, asked.arguments, session=session.id, group=session.group
            )

        try:
            reply = within(seconds, invoke)
        except TimeoutError as error:
            message = f'"{name}" did not end within {seconds:g} s; it may still be carried out.'
            raise ToolError(Code.PLUGIN_TIMEOUT, message) from error
        except ToolError as error:
            raise _of_plugin(error) from error
        except ScrubjayError as error:
            raise ToolError.of(error) from error
        except Exception as error:  # seam: a defect of a plugin must not end the host
            _log.warning("carapace.plugin_failed", extra={"tool": name, "error": type(error)})
            message = f'The plugin of "{name}" failed. Go on without it, or tell the operator.'
            raise ToolError(Code.PLUGIN_ERROR, message) from error
        match reply:
            case {"ok": True, "result": result}:
                told: Json = result
                return told
            case {"ok": False, "error": {"code": str(code), "message": str(message)} as failed}:
                known = Code(code) if code in set(Code) else Code.HANDLER_ERROR
                retriable = failed.get("retriable")
                refused = ToolError(
                    known, message, retriable=retriable if isinstance(retriable, bool) else None
                )
                # A plugin has limits of its own, and says so with this code; the other reserved
                # ones are the core's.
                raise refused if known is Code.RATE_LIMITED else _of_plugin(refused)
        message = f'The plugin of "{name}" answered with something that is no reply.'
        raise ToolError(Code.PLUGIN_ERROR, message)

    # -- and back ------------------------------------------------------------------------

    def _forward(
        self,
        message: Wire,
        session: AgentSession,
        answer: Json | ToolError,
        outcome: CallOutcome,
    ) -> dict[str, Json]:
        """Send the reply, without secrets, and record the outcome."""
        code: Code | None = None
        payload: dict[str, Json] = {"result": None, "error": None}
        if not isinstance(answer, ToolError):
            payload["result"], places = sanitize(answer)
            outcome = CallOutcome.SANITIZED if places else outcome
            if len(wire.encode(payload["result"]).encode()) > PAYLOAD_BYTES:
                too_long = "The reply is too long. Ask for less, with a lower limit."
                answer, outcome = ToolError(Code.HANDLER_ERROR, too_long), CallOutcome.ERROR
        if isinstance(answer, ToolError):
            code, payload = answer.code, {"result": None, "error": sanitize(answer.payload())[0]}
        name = message.topic.removeprefix(TOPIC)
        record = CallRecord(
            group=session.group,
            session=session.id,
            tool=name if name in self._offers else "",
            outcome=outcome,
            code=code,
        )
        try:
            self._record(record)
        except Exception as error:  # seam: a recorder that fails must not undo what was done
            _log.warning("carapace.not_recorded", extra={"error": type(error)})
        return {
            "id": self._clock.new_id(),
            "version": wire.VERSION,
            "type": "response",
            "topic": message.topic[:_TOPIC_CHARS],
            "source": wire.CORE,
            "correlation": message.correlation,
            "timestamp": stamp(self._clock.now()),
            "group": session.group,
            "payload": payload,
        }


def _of_plugin(error: ToolError) -> ToolError:
    """The error of a plugin, which cannot pass for one of the core's."""
    if error.code in RESERVED:
        return ToolError(Code.HANDLER_ERROR, error.message)
    return ToolError(error.code, error.message, retriable=error.retriable)


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` returns or raises; TimeoutError if it takes too long.

    Python cannot stop a thread: late work goes on until it ends, and its result is dropped.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # seam: whatever it was is raised again by who waits
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="carapace plugin").start()
    return future.result(timeout=seconds)
