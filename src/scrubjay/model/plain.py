"""Values of the model as plain JSON: the one form of a result on every surface.

A memory has the form of `model/records.py`, the same as in a cell and in an export.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Any, Final

from msgspec import Struct

from scrubjay.model.memory import Memory
from scrubjay.model.records import to_record
from scrubjay.model.scope import Scope


def plain(value: Any) -> Any:
    """The value as JSON."""
    kind = type(value)
    encode = _ENCODERS.get(kind)
    if encode is None:
        encode = _ENCODERS[kind] = _encoder(kind)
    return encode(value)


def _same(value: Any) -> Any:
    return value


def _memory(memory: Memory) -> Any:
    record = to_record(memory)
    record["number"] = memory.number
    record["version"] = memory.version
    record["edition"] = "{}.{}".format(*memory.edition)
    return record


def _time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _base64(value: bytes) -> str:
    """Base64 in pieces: one call on a whole export would hold the GIL for long."""
    pieces = (value[at : at + PIECE] for at in range(0, len(value), PIECE))
    return b"".join(map(base64.b64encode, pieces)).decode("ascii")


def _mapping(value: Mapping[str, Any]) -> Any:
    return {name: plain(one) for name, one in value.items()}


def _list(value: Iterable[Any]) -> Any:
    return [plain(one) for one in value]


def _set(value: Iterable[Any]) -> Any:
    return sorted(map(plain, value))


PIECE: Final = 3 * 64 * 1024
"""Bytes encoded at a time."""
_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys((str, int, float, bool, type(None)), _same),
    Memory: _memory,
    Scope: str,
    datetime: _time,
    date: date.isoformat,
    bytes: _base64,
    dict: _mapping,
    types.MappingProxyType: _mapping,
    tuple: _list,
    list: _list,
    frozenset: _set,
    set: _set,
}


def _encoder(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, IntEnum):
        return lambda value: value.name.lower()  # its numbers are for cells, and say nothing
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, Mapping):
        return _mapping
    if not issubclass(kind, Struct):
        raise TypeError(kind)
    names: tuple[str, ...] = kind.__struct_fields__
    return lambda value: {name: plain(getattr(value, name)) for name in names}
