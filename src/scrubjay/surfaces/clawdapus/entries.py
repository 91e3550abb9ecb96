"""Translation of the proxy's requests to those of the engine, with the proxy's limits.

Of a history entry two texts are used: the last user message of the original request, and the
answer of the assistant. Of an entry that has only the effective request, as older histories do,
it is the last user message that the proxy did not add itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from scrubjay.conversation.capture import capture, purified, sound, users_said
from scrubjay.conversation.injection import PromptContext
from scrubjay.conversation.messages import answer_text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.scope import Scope
from scrubjay.model.text import zone
from scrubjay.model.turns import Record
from scrubjay.surfaces.clawdapus.names import scope_of, turn_id

CHANNEL: Final = "clawdapus"
_QUERY_CHARS: Final = 4_000
_PRESENT: Final = 200
_PRESENT_CHARS: Final = 2_000
"""Characters of earlier messages that are compared: a turn is recognized by its beginning."""
_NAME_CHARS: Final = 512
_MOST_REMOVED: Final = 1_000_000
_SECRET: Final = re.compile(r"sk-[A-Za-z0-9_-]{6,}")
_BEARER: Final = re.compile(r"(?i)\b(Bearer)[ \t]+[A-Za-z0-9._-]{8,}")
Fields = Mapping[str, Any]


class EntryRefused(Exception):  # it names an event, so it does not end in Error
    """The request is answered with status 400 and this text."""

    code = "400"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTurn:
    """A turn reported by the proxy; no record if there is nothing to store."""

    scope: Scope
    record: Record | None
    removed: int = 0
    """Number of removed secrets: by the proxy, as it reports, and here."""


def decode(raw: bytes, operation: str) -> Fields:
    """The JSON object of a body."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise EntryRefused(f"decode {operation} request: it is not JSON") from error
    if not isinstance(body, dict):
        raise EntryRefused(f"decode {operation} request: it is not a JSON object")
    return body


def asked(body: Fields) -> PromptContext:
    """Decode a recall."""
    users = users_said(body)
    metadata = body.get("metadata")
    named = metadata.get("timezone") if isinstance(metadata, dict) else None
    return PromptContext(
        scope=_scope(body),
        query=pure(users[-1].strip()[:_QUERY_CHARS]) if users else "",
        present=tuple(pure(one[:_PRESENT_CHARS]) for one in users[-_PRESENT:-1]),
        timezone=_known_zone(named),
    )


def told(body: Fields) -> ReportedTurn:
    """Decode a retain; a failed turn has no record."""
    scope, entry, metadata = _scope(body), body.get("entry"), body.get("metadata")
    entry_id = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(entry_id, str) or not entry_id.strip():
        raise EntryRefused("entry.id is required")
    code = entry.get("status_code")
    failed = isinstance(code, int) and code != 0 and not 200 <= code < 300
    if failed or entry.get("status") == "error":
        return ReportedTurn(scope=scope, record=None)
    response = entry.get("response")
    response = response if isinstance(response, dict) else {}
    is_text = response.get("format") == "sse" or "json" not in response
    answer = answer_text(response.get("text" if is_text else "json"))
    sent_on = entry.get("request_effective")
    said = capture(entry.get("request_original"), answer, sent_on=sent_on)
    # As the proxy itself would have sent them live, because a replay comes unscrubbed: both then
    # say the same, whichever arrives first. The engine looks for more.
    (user, in_question), (assistant, in_answer), (shown, _) = map(_scrubbed, said)
    removed = metadata.get("policy_removed") if isinstance(metadata, dict) else None
    if not isinstance(removed, int) or isinstance(removed, bool):
        removed = 0
    removed = removed if 0 < removed <= _MOST_REMOVED else 0
    try:
        record = Record(
            id=turn_id(entry_id),
            at=_time(entry.get("ts")),
            user=user,
            assistant=assistant,
            model=_name(entry.get("effective_model")) or _name(entry.get("requested_model")),
            channel=CHANNEL,
            metadata={"policy_removed": removed} if removed else {},
            shown=(shown,) if shown else (),
        )
    except InvalidRequest as error:
        raise EntryRefused(f"entry: {error.message}") from error
    return ReportedTurn(scope=scope, record=record, removed=in_question + in_answer + removed)


def dropped(body: Fields) -> tuple[Scope, tuple[str, ...]]:
    """Decode a forget: the agent, and the ids of the entries."""
    scope, ids = _scope(body), body.get("entry_ids")
    listed = ids if isinstance(ids, list) else []
    named = [one for one in listed if isinstance(one, str) and one.strip()]
    if not named:
        raise EntryRefused("entry_ids is required")
    return scope, tuple(dict.fromkeys(map(turn_id, named)))


def _scope(body: Fields) -> Scope:
    agent, pod = body.get("agent_id"), body.get("pod")
    if not isinstance(agent, str) or not agent.strip():
        raise EntryRefused("agent_id is required")
    return scope_of(agent, pod if isinstance(pod, str) else "")


def pure(text: str) -> str:
    """The text as it would be stored: without secrets by the rules of the proxy or ours."""
    return purified(_scrubbed(sound(text))[0])


def _scrubbed(text: str) -> tuple[str, int]:
    """The text without secrets by the rules of the proxy, and their number."""
    secrets = tokens = 0
    if "sk-" in text:
        text, secrets = _SECRET.subn("[redacted-secret]", text)
    # A plain search is many times as fast as the pattern, and nearly always the last word.
    if "bearer" in text.lower():
        text, tokens = _BEARER.subn(r"\1 [redacted]", text)
    return text, secrets + tokens


def _known_zone(name: object) -> str | None:
    """The name of a time zone; None (UTC) for one that is not known."""
    if not isinstance(name, str):
        return None
    with suppress(InvalidRequest):
        zone(name)
        return name
    return None


def _time(stamp: object) -> datetime | None:
    """Time of an entry; None (now) if it has none."""
    if not isinstance(stamp, str):
        return None
    try:
        at = datetime.fromisoformat(stamp)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _name(value: object) -> str | None:
    """A name in a valid form; an invalid one loses no turn."""
    sane = value.encode("utf-8", "ignore").decode()[:_NAME_CHARS] if isinstance(value, str) else ""
    return sane if sane.strip() else None
