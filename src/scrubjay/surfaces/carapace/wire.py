"""The wire: the message of an agent, error codes, and JSON both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NoReturn

from msgspec import Struct

from scrubjay.model import errors
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.memory import Json
from scrubjay.model.scope import LOCAL_TENANT, Scope
from scrubjay.surfaces.carapace.manifest import PAYLOAD_BYTES

VERSION: Final = 1
CORE: Final = "core"
DEFAULT_GROUP: Final = "main"
_GROUP: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}")
_CORRELATION_CHARS: Final = 512
_CORRELATION: Final = re.compile(rb'"correlation"\s*:\s*"([A-Za-z0-9_.:-]{1,512})"')
_HEAD_BYTES: Final = 4096
_BREAKING: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def scope_of(group: str) -> Scope:
    """The scope of a group; refuses whatever could be a path, an option or another's scope."""
    if not isinstance(group, str) or not _GROUP.fullmatch(group):
        raise InvalidRequest(
            "That is not the name of a group.",
            hint="Use 1 to 128 letters, digits, - and _, a letter or digit first.",
        )
    return Scope(LOCAL_TENANT, group)


# -- errors ---------------------------------------------------------------------------------------


class Code(StrEnum):
    """Every code of the protocol; the first six are the core's own."""

    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    UNAUTHORIZED = "UNAUTHORIZED"
    RATE_LIMITED = "RATE_LIMITED"
    CONFIRMATION_TIMEOUT = "CONFIRMATION_TIMEOUT"
    CONFIRMATION_DENIED = "CONFIRMATION_DENIED"
    PLUGIN_TIMEOUT = "PLUGIN_TIMEOUT"
    PLUGIN_UNAVAILABLE = "PLUGIN_UNAVAILABLE"
    PLUGIN_ERROR = "PLUGIN_ERROR"
    HANDLER_ERROR = "HANDLER_ERROR"


RESERVED: Final = frozenset(tuple(Code)[:6])
RETRIABLE: Final = frozenset(
    {Code.RATE_LIMITED, Code.CONFIRMATION_TIMEOUT, Code.PLUGIN_TIMEOUT, Code.PLUGIN_UNAVAILABLE}
)
_TRY_AGAIN: Final = (errors.Busy, errors.Full)
_BROKEN: Final = (
    *(errors.StoreError, errors.EmbedderError, errors.ExtractorError),
    *(errors.SealBroken, errors.KeyMissing, errors.Locked),
)


class ToolError(Exception):
    """Error reply of a call that was refused or failed."""

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        retriable: bool | None = None,
        stage: int | None = None,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retriable = code in RETRIABLE if retriable is None else retriable
        self._details = {"stage": stage, "field": field, "retry_after": retry_after}

    @classmethod
    def of(cls, error: ScrubjayError) -> ToolError:
        """An error of the engine in Carapace's terms: the caller's fault, or the plugin's."""
        if isinstance(error, _TRY_AGAIN):
            code = Code.PLUGIN_UNAVAILABLE
        else:
            code = Code.PLUGIN_ERROR if isinstance(error, _BROKEN) else Code.HANDLER_ERROR
        return cls(code, f"{error.message} {error.hint}")

    def payload(self) -> dict[str, Json]:
        """The error as it stands in a reply; what is not known is left out."""
        known = {name: value for name, value in self._details.items() if value is not None}
        told = {"code": self.code.value, "message": self.message, "retriable": self.retriable}
        return {**told, **known}


# -- messages -------------------------------------------------------------------------------------


class AgentSession(Struct, frozen=True, kw_only=True):
    """Session and group of a caller, set by the host; an agent cannot change them."""

    id: str
    group: str


class Wire(Struct, frozen=True, kw_only=True):
    """The three fields an agent sends; whatever else it sends is not looked at."""

    topic: str
    correlation: str
    arguments: Mapping[str, Json]

    @classmethod
    def read(cls, raw: bytes) -> Wire:
        """The message in a frame; a ToolError says what is wrong with it."""
        if len(raw) > PAYLOAD_BYTES:
            raise _malformed(f"The message has {len(raw):,} bytes; {PAYLOAD_BYTES:,} at most.")
        try:
            value: Any = parse(raw)
        except ValueError as error:
            raise _malformed("The message is not JSON.") from error
        if not isinstance(value, dict):
            raise _malformed("The message is not a JSON object.")
        for name, kind in (("topic", str), ("correlation", str), ("arguments", dict)):
            if not isinstance(value.get(name), kind):
                what = "a text" if kind is str else "an object"
                raise _malformed(f"The message must have {name}, {what}.", field=name)
        if len(value["correlation"]) > _CORRELATION_CHARS:
            raise _malformed("The correlation is too long.", field="correlation")
        return cls(**{name: value[name] for name in cls.__struct_fields__})


def encode(value: Json) -> str:
    """JSON in one line, whatever the texts in it are, and always valid Unicode."""
    return _BREAKING.sub(lambda found: f"\\u{ord(found[0]):04x}", _compact(value))


def parse(raw: bytes | str) -> Json:
    """The JSON value of a text; ValueError if it is none, or one that no Python holds."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        value: Json = json.loads(raw, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def stamp(time: datetime) -> str:
    """A time as JavaScript writes it: UTC, with milliseconds."""
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def correlation_of(raw: bytes) -> str:
    """The correlation of a message that cannot be read otherwise, so that its sender learns why.

    It is only looked for at the beginning, where Carapace's client puts it.
    """
    found = _CORRELATION.search(raw[:_HEAD_BYTES])
    return found[1].decode("ascii") if found else ""


def _malformed(message: str, field: str | None = None) -> ToolError:
    return ToolError(Code.VALIDATION_FAILED, message, stage=1, field=field)
