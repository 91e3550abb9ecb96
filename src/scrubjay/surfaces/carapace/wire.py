"""What goes over the wire: the message of the agent, the envelope around it, the reply's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from scrubjay.model.memory import Json
from scrubjay.surfaces.carapace.errors import Code, ToolError
from scrubjay.surfaces.carapace.schemas import PAYLOAD_BYTES

VERSION: Final = 1
CORE: Final = "core"
_CORRELATION_CHARS: Final = 512
_CORRELATION: Final = re.compile(rb'"correlation"\s*:\s*"([A-Za-z0-9_.:-]{1,512})"')
_HEAD_BYTES: Final = 4096
_BREAKING: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who calls, by the host's word: nothing an agent sends changes it."""

    id: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The three fields an agent sends; whatever else it sends is not looked at."""

    topic: str
    correlation: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A request with all that the host knows of it."""

    id: str
    topic: str
    source: str
    correlation: str
    timestamp: str
    group: str
    arguments: Mapping[str, Json]


def encode(value: Json) -> str:
    """JSON in one line, whatever the texts in it are, and always valid Unicode."""
    return _BREAKING.sub(lambda found: f"\\u{ord(found[0]):04x}", _compact(value))


def parse(raw: bytes | str) -> Json:
    """The JSON value of a text; ValueError if it is none, or one that no Python holds."""
    try:
        value: Json = json.loads(raw, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def read(raw: bytes) -> Wire:
    """The message in a frame; a ToolError says what is wrong with it."""
    if len(raw) > PAYLOAD_BYTES:
        raise _malformed(f"The message has {len(raw):,} bytes; {PAYLOAD_BYTES:,} at most.")
    try:
        value = parse(raw)
    except ValueError as error:
        raise _malformed("The message is not JSON.") from error
    if not isinstance(value, dict):
        raise _malformed("The message is not a JSON object.")
    return from_object(value)


def from_object(value: Mapping[str, Any]) -> Wire:
    """The message of an object with at least its three fields."""
    for name, kind in (("topic", str), ("correlation", str), ("arguments", dict)):
        if not isinstance(value.get(name), kind):
            what = "a text" if kind is str else "an object"
            raise _malformed(f"The message must have {name}, {what}.", field=name)
    if len(value["correlation"]) > _CORRELATION_CHARS:
        raise _malformed("The correlation is too long.", field="correlation")
    return Wire(**{name: value[name] for name in ("topic", "correlation", "arguments")})


def correlation_of(raw: bytes) -> str:
    """The correlation of a message that cannot be read otherwise, so that its sender learns why.

    It is only looked for at the beginning, where Carapace's client puts it.
    """
    found = _CORRELATION.search(raw[:_HEAD_BYTES])
    return found[1].decode("ascii") if found else ""


def _malformed(message: str, field: str | None = None) -> ToolError:
    return ToolError(Code.VALIDATION_FAILED, message, stage=1, field=field)
