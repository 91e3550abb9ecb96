"""Admission: removes invisible characters and secrets from a text before it is stored.

All else is stored as written. Filters cannot tell a lie from the truth, so trust is decided by
origin alone: see `model/origin.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from scrubjay.guard import PLACEHOLDER
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json, Memory
from scrubjay.model.requests import Retain, Supersede
from scrubjay.model.turns import Piece, Turn

if TYPE_CHECKING:
    from scrubjay.guard.secrets import Redacted

_Pure = Callable[[str], str]
Written = TypeVar("Written", Retain, Supersede, Memory)


def admit(written: Written, placeholder: str = PLACEHOLDER) -> tuple[Written, Mapping[str, int]]:
    """The same without invisible characters and secrets, and how many of which secrets it had."""
    found: Counter[str] = Counter()

    def pure(text: str) -> str:
        redacted = _redacted(text, placeholder)
        found.update(redacted.found)
        return redacted.text

    fields: dict[str, object] = {"content": pure(written.content)}
    if written.tags:
        tags = (pure(tag) for tag in written.tags)
        fields["tags"] = tuple(dict.fromkeys(tag for tag in tags if tag.strip()))
    for name in ("speaker", "reason"):
        if value := getattr(written, name, None):
            fields[name] = pure(value) or None
    if metadata := getattr(written, "metadata", None):
        fields["metadata"] = {pure(name): _json(value, pure) for name, value in metadata.items()}
    changed = {name: value for name, value in fields.items() if value != getattr(written, name)}
    if not changed:
        return written, dict(found)
    if not str(fields["content"]).strip():
        raise InvalidRequest(
            "Nothing is left of the content without its invisible characters.",
            hint="Say what is to be remembered.",
        )
    return replace(written, **changed), dict(found)


def admit_turn(turn: Turn, placeholder: str = PLACEHOLDER) -> tuple[Turn, Mapping[str, int]]:
    """The turn without invisible characters and secrets, and how many of which secrets it had."""
    found: Counter[str] = Counter()

    def pure(text: str) -> str:
        redacted = _redacted(text, placeholder)
        found.update(redacted.found)
        return redacted.text

    metadata = {pure(name): _json(value, pure) for name, value in turn.metadata.items()}
    user, assistant = pure(turn.user), pure(turn.assistant)
    return replace(turn, user=user, assistant=assistant, metadata=metadata), dict(found)


def admit_piece(piece: Piece, placeholder: str = PLACEHOLDER) -> Piece:
    """What was found in a turn, without invisible characters and secrets."""

    def pure(text: str) -> str:
        return _redacted(text, placeholder).text

    slot = None if piece.slot is None else pure(piece.slot)
    tags = tuple(filter(str.strip, map(pure, piece.tags)))
    return replace(piece, content=pure(piece.content), slot=slot, tags=tags)


def _redacted(text: str, placeholder: str) -> Redacted:
    """The text without invisible characters and secrets; their patterns are compiled at first."""
    from scrubjay.guard.clean import clean
    from scrubjay.guard.secrets import redact

    return redact(clean(text), placeholder)


def _json(value: Json, pure: _Pure) -> Json:
    if isinstance(value, str):
        return pure(value)
    if isinstance(value, list):
        return [_json(one, pure) for one in value]
    if isinstance(value, dict):
        return {pure(name): _json(one, pure) for name, one in value.items()}
    return value
