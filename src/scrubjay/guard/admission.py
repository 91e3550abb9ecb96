"""Admission: removes invisible characters and secrets from a text before it is stored.

All else is stored as written. Filters cannot tell a lie from the truth, so trust is decided by
origin alone: see `model/origin.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import astuple, fields, replace

from scrubjay.guard import PLACEHOLDER
from scrubjay.model.conversations import Conversation, Entry
from scrubjay.model.documents import Document
from scrubjay.model.errors import Forbidden, InvalidRequest
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Retain, Supersede
from scrubjay.model.text import CONTENT_BYTES, CheckedRequest, checked
from scrubjay.model.turns import Piece, Turn

if TYPE_CHECKING:
    from scrubjay.guard.secrets import Redacted

_Pure = Callable[[str], str]
Written = TypeVar("Written", Retain, Supersede, Memory, Turn, Piece, Entry, Conversation, Document)
_Told: Final = Retain | Supersede | Memory
_WHOLE: Final = frozenset({"content", "body", "value"})
"""Fields that may become empty."""
IDENTIFIERS: Final = {
    "id": "it is looked up by the whole of it",
    "key": "a repeated write is known by it",
    "session": "a conversation is forgotten and revoked by it",
    "channel": "what came in by it is revoked by it",
    "key_id": "the service gives it, and revoke undoes what was written with it",
    "message_id": "the channel gives it, and knows the message by it",
    "model": "the name of a product, given by the program that asked it",
    "sources": "the ids of memories",
    "supersedes": "the id of a memory",
    "superseded_by": "the id of a memory",
    "approved": "a signature, made here",
    "part": "made here, and the id of a memory is derived from it",
    "parent": "the id of an entry",
    "head": "the id of an entry",
    "branches": "the ids of entries",
    "forked_at": "the id of an entry",
    "forked_from": "the name of a conversation",
    "conversation": "the name of a conversation, which is also that of its session",
    "name": "a conversation or document is looked up by the whole of it",
    "revision": "compared as a whole, and given by the program that writes",
}
"""The fields of text that are stored as they came, each with the reason; all others are cleaned."""


def check_claim(claimed: Origin, ceiling: Origin) -> None:
    """Forbidden if a text claims an origin that is more trusted than its writer's ceiling."""
    if claimed.trust > ceiling.trust:
        raise Forbidden(
            f"This key may not write with the origin {claimed}.",
            hint=f"Leave the origin out, or use {ceiling} or a lower one.",
        )


def admit(written: Written, placeholder: str = PLACEHOLDER) -> tuple[Written, Mapping[str, int]]:
    """The same without invisible characters and secrets, and how many of which secrets it had.

    Every text in it is cleaned, but for `IDENTIFIERS`; InvalidRequest if no content is left, or if
    a placeholder, longer than what it stands for, brings a field beyond its limit. A piece is cut.
    """
    clean, redact = _filters()
    found = dict[str, int]()

    def pure(text: str) -> str:
        redacted = redact(clean(text), placeholder)
        if redacted.found:
            for kind, number in redacted.found.items():
                found[kind] = found.get(kind, 0) + number
        return redacted.text

    cleaned: Written = _cleaned(written, pure)
    if isinstance(cleaned, _Told) and not cleaned.content.strip():
        raise InvalidRequest(
            "Nothing is left of the content without its invisible characters.",
            hint="Say what is to be remembered.",
        )
    if isinstance(cleaned, Piece) and len(cleaned.content) > CONTENT_BYTES // 4:
        whole = cleaned.content.encode()[:CONTENT_BYTES]
        cleaned = replace(cleaned, content=whole.decode(errors="ignore"))
    return cleaned, found


@cache
def _filters() -> tuple[_Pure, Callable[[str, str], Redacted]]:
    """Both filters; their patterns are compiled by the first write, not by every command."""
    from scrubjay.guard.secrets import redact
    from scrubjay.model.clean import clean

    return clean, redact


def _cleaned(value: Any, pure: _Pure) -> Any:
    """The value with every text in it made pure, or the same if it was."""
    match value:
        case str():
            return value if isinstance(value, Enum) else pure(value)
        case float() | int() | datetime():  # they need no look at an abstract class
            return value
        case list() | tuple():
            return [_cleaned(one, pure) for one in value]
        case Struct():
            return _cleaned_fields(value, pure)
        case Mapping():
            return {pure(name): _cleaned(one, pure) for name, one in value.items()}
    return value


def _cleaned_fields(written: Struct, pure: _Pure) -> Struct:
    """A field of which nothing is left is as if it had not been given; content stays empty."""
    changed = dict[str, Any]()
    for name, value in zip(written.__struct_fields__, astuple(written), strict=True):
        if not value or name in IDENTIFIERS:
            continue
        cleaned = _cleaned(value, pure)
        if isinstance(value, tuple):
            cleaned = tuple(cleaned)
            if name == "tags":  # a list in free JSON may hold a text twice, or an empty one
                cleaned = tuple(dict.fromkeys(one for one in cleaned if one.strip()))
        elif cleaned == "" and name not in _WHOLE:
            cleaned = next(one.default for one in fields(written) if one.name == name)
        if cleaned != value:
            changed[name] = cleaned
    if not changed:
        return written
    made = replace(written, **changed)
    if not isinstance(made, CheckedRequest | Piece):  # a request has checked itself
        checked(type(made), {name: getattr(made, name) for name in made.__struct_fields__})
    return made
