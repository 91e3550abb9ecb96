"""Conversations and documents as JSON records and back, for cells, exports and bundles.

Defaults are left out, so that a short entry makes a short cell. The JSON of a caller is kept as it
came, whatever the size of its numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.memory import Json
from scrubjay.model.text import checked, lazy_pattern, no_field, refusal

Held = TypeVar("Held", bound=Struct)
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_LITERAL = lazy_pattern(r'"(?:[^"\\]|\\.)*+"')
"""A text in JSON, or the name of a member."""


@lru_cache(maxsize=16)
def _defaults(kind: type[Struct]) -> dict[str, Any]:
    """The default of each field that has one."""
    return {
        one.name: one.default_factory() if one.default is NODEFAULT else one.default
        for one in fields(kind)
        if not one.required
    }


def to_record(held: Struct) -> dict[str, Json]:
    """The value as a JSON object without the fields at their default."""
    defaults, found = _defaults(type(held)), dict[str, Json]()
    for name in held.__struct_fields__:
        value = getattr(held, name)
        if name not in defaults or value != defaults[name]:
            found[name] = msgspec.to_builtins(value)
    return found


def encode(held: Struct) -> bytes:
    """The bytes that go into a cell."""
    return _compact(to_record(held)).encode()


def decode(kind: type[Held], cell: bytes) -> Held:
    """The value a cell holds; SealBroken if it is none of this kind."""
    try:
        return msgspec.convert(json.loads(cell), kind)
    except msgspec.ValidationError as error:
        raise SealBroken(f"A cell holds no {kind.__name__} that is within its limits.") from error


def from_record(kind: type[Held], record: Json) -> Held:
    """The value a foreign record describes, every field checked; InvalidRequest names it."""
    if not isinstance(record, dict):
        raise InvalidRequest("The record is not a JSON object.")
    if unknown := record.keys() - set(kind.__struct_fields__):
        raise no_field(min(unknown), kind.__struct_fields__)
    try:
        made = msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise refusal(kind, error) from error
    return kind(**checked(kind, {name: getattr(made, name) for name in kind.__struct_fields__}))


def texts(value: Json, change: Callable[[str], str]) -> Json:
    """A JSON value with every text in it changed; names of members stay."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [texts(one, change) for one in value]
        case Mapping():
            return {name: texts(one, change) for name, one in value.items()}
    return value


def within_json(text: str, change: Callable[[str], str]) -> str:
    """A text changed; one that is JSON, such as the arguments of a tool call, stays JSON.

    What does not change in that stays as it is written.
    """

    def literal(found: re.Match[str]) -> str:
        told = json.loads(found[0])
        changed = within_json(told, change)
        escaped = "\\u" in found[0]
        return found[0] if changed == told else json.dumps(changed, ensure_ascii=escaped)

    if text.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            json.loads(text)
            text = _LITERAL.sub(literal, text)
    return change(text)


def words(value: Json) -> str:
    """Every text in a JSON value, one behind the other."""
    found: list[str] = []
    texts(value, lambda text: found.append(text) or text)  # type: ignore[func-returns-value]
    return "\n".join(found)
