"""From the proxy's requests to the engine's.

Of a history entry two things count: the last thing the user said in the request as it came, and
what the assistant answered. The request as the proxy sent it on holds what memory itself had put
in; it is read only to recognize an answer that merely repeats that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from scrubjay.conversation.streams import answer, text_of
from scrubjay.guard.clean import clean
from scrubjay.guard.secrets import redact
from scrubjay.model import echo
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json
from scrubjay.model.scope import Scope
from scrubjay.model.turns import TEXT_BYTES, Record
from scrubjay.surfaces.clawdapus.names import scope_of, turn_id

CHANNEL: Final = "clawdapus"
_QUERY_CHARS: Final = 4_000
_PRESENT: Final = 200
_PRESENT_CHARS: Final = 2_000
"""How much is looked at of what was said before: turns are known by how they begin."""
_NAME_CHARS: Final = 512
_MOST_REMOVED: Final = 1_000_000
_SECRET: Final = re.compile(r"sk-[A-Za-z0-9_-]{6,}")
_BEARER: Final = re.compile(r"(?i)\b(Bearer)[ \t]+[A-Za-z0-9._-]{8,}")
Fields = Mapping[str, Any]


class EntryRefused(Exception):  # it is what happened
    """The request is answered with status 400 and this text."""

    code = "400"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the proxy wants to know before a turn."""

    scope: Scope
    query: str
    """The last thing the user said; nothing if there is none."""
    present: tuple[str, ...]
    """What users said before that: the model has it before it, with what was answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the proxy reports after a turn; no record if there is nothing to be kept."""

    scope: Scope
    record: Record | None
    removed: int = 0
    """How many secrets were taken out: by the proxy, as it says, and here."""


def decode(raw: bytes, operation: str) -> Fields:
    """The JSON object of a body."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise EntryRefused(f"decode {operation} request: it is not JSON") from error
    if not isinstance(body, dict):
        raise EntryRefused(f"decode {operation} request: it is not a JSON object")
    return body


def asked(body: Fields) -> Asked:
    """A recall."""
    users = [echo.cut(_sound(one)) for one in _user_texts(body)]
    users = [one for one in users if one.strip()]
    return Asked(
        scope=_scope(body),
        query=pure(users[-1].strip()[:_QUERY_CHARS]) if users else "",
        present=tuple(pure(one[:_PRESENT_CHARS]) for one in users[-_PRESENT:-1]),
    )


def told(body: Fields) -> Told:
    """A retain; a turn that failed is no turn."""
    scope = _scope(body)
    entry = body.get("entry")
    entry_id = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(entry_id, str) or not entry_id.strip():
        raise EntryRefused("entry.id is required")
    if not _succeeded(entry):
        return Told(scope=scope, record=None)
    record, found = _record(entry, entry_id, body.get("metadata"))
    return Told(scope=scope, record=record, removed=found + _removed(body.get("metadata")))


def dropped(body: Fields) -> tuple[Scope, tuple[str, ...]]:
    """A forget: whose turns, and which."""
    scope = _scope(body)
    ids = _items(body.get("entry_ids"))
    named = [one for one in ids if isinstance(one, str) and one.strip()]
    if not named:
        raise EntryRefused("entry_ids is required")
    return scope, tuple(dict.fromkeys(map(turn_id, named)))


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _scope(body: Fields) -> Scope:
    agent, pod = body.get("agent_id"), body.get("pod")
    if not isinstance(agent, str) or not agent.strip():
        raise EntryRefused("agent_id is required")
    return scope_of(agent, pod if isinstance(pod, str) else "")


# -- entries ----------------------------------------------------------------------------------


def _succeeded(entry: Fields) -> bool:
    code = entry.get("status_code")
    failed = isinstance(code, int) and code != 0 and not 200 <= code < 300
    return entry.get("status") != "error" and not failed


def _record(entry: Fields, entry_id: str, metadata: object) -> tuple[Record, int]:
    """The turn of an entry, and how many secrets were taken out of it."""
    original = entry.get("request_original")
    users = [echo.cut(one).strip() for one in _user_texts(original)]
    said = next((one for one in reversed(users) if one), "")
    shown = _shown(entry)
    user, in_question = _kept(echo.without_quoted(said, shown))
    assistant, in_answer = _kept(echo.without_repeats(answer(entry.get("response")), shown))
    try:
        record = Record(
            id=turn_id(entry_id),
            at=_time(entry.get("ts")),
            user=user,
            assistant=assistant,
            model=_name(entry.get("effective_model")) or _name(entry.get("requested_model")),
            channel=CHANNEL,
            metadata=_notes(metadata),
        )
    except InvalidRequest as error:
        raise EntryRefused(f"entry: {error.message}") from error
    return record, in_question + in_answer


def _user_texts(request: object) -> Iterator[str]:
    """What users said in a request, oldest first; results of tools are not theirs."""
    messages = request.get("messages") if isinstance(request, Mapping) else None
    for message in _items(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            yield text_of(message.get("content"))


def _shown(entry: Fields) -> list[str]:
    """What the proxy had put before the model out of memory."""
    effective = entry.get("request_effective")
    if not isinstance(effective, dict):
        return []
    found = [one for one in _items(effective.get("messages")) if isinstance(one, dict)]
    texts = [text_of(effective.get("system")), *(text_of(one.get("content")) for one in found)]
    return [shown for text in texts for shown in echo.injected(text)]


def pure(text: str) -> str:
    """The text as a turn that says it is kept: without what the proxy or we take for a secret."""
    return redact(clean(_scrubbed(_sound(text))[0])).text


def _kept(text: str) -> tuple[str, int]:
    """The text as the proxy itself would have sent it live: a replay comes unscrubbed.

    Both then say the same, whichever arrives first; the engine looks for more.
    """
    return _scrubbed(_sound(text).encode()[:TEXT_BYTES].decode("utf-8", "ignore"))


def _scrubbed(text: str) -> tuple[str, int]:
    """The text without what the proxy takes for a secret, and how many of these it had."""
    secrets = tokens = 0
    if "sk-" in text:
        text, secrets = _SECRET.subn("[redacted-secret]", text)
    # A plain search is many times as fast as the pattern, and nearly always the last word.
    if "bearer" in text.lower():
        text, tokens = _BEARER.subn(r"\1 [redacted]", text)
    return text, secrets + tokens


def _sound(text: str) -> str:
    """The text without halves of characters, which JSON may carry."""
    return text.encode("utf-8", "replace").decode()


def _time(stamp: object) -> datetime | None:
    """When it was; None for now, if the entry does not say."""
    if not isinstance(stamp, str):
        return None
    try:
        at = datetime.fromisoformat(stamp)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _name(value: object) -> str | None:
    """The name as it can be kept; an odd one costs no turn."""
    sound = value.encode("utf-8", "ignore").decode()[:_NAME_CHARS] if isinstance(value, str) else ""
    return sound if sound.strip() else None


def _notes(metadata: object) -> dict[str, Json]:
    """What is worth keeping of the metadata: how much the proxy itself took out."""
    removed = _removed(metadata)
    return {"policy_removed": removed} if removed else {}


def _removed(metadata: object) -> int:
    """How much the proxy says it took out; what is no sound number is none."""
    removed = metadata.get("policy_removed") if isinstance(metadata, dict) else None
    is_count = isinstance(removed, int) and not isinstance(removed, bool)
    return removed if isinstance(removed, int) and is_count and 0 < removed <= _MOST_REMOVED else 0
