"""Values as JSON and back, and as JSON schemas: one translation for every type of the engine.

It goes by the type hints, so that a new field of a result needs nothing here. A memory has the
form of `model/records.py`, the same as in a cell and in an export.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from enum import Enum, IntEnum
from functools import lru_cache, reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    JsonValue,
    WithJsonSchema,
    create_model,
)

from scrubjay.model.memory import Memory, Provenance
from scrubjay.model.records import from_record, to_record
from scrubjay.model.results import Hit
from scrubjay.model.scope import Scope

_LISTS = (tuple, list, frozenset, set)
_SHORT = {Provenance: frozenset[str](), Memory: frozenset({"origin", "number", "version"})}
"""What leaves out the fields that are at their default, but for these."""


def _decoded(text: str) -> bytes:
    """What a text in base64 says, piece by piece for the same reason; line ends are let pass."""
    try:
        pieces = (text[at : at + 4 * _PIECE] for at in range(0, len(text), 4 * _PIECE))
        return b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except ValueError:
        return base64.b64decode(text)


Base64 = Annotated[
    str,
    AfterValidator(_decoded),
    WithJsonSchema({"type": "string", "format": "base64"}),
]
"""Bytes in a request; they are bytes once it is checked."""


class Strict(BaseModel):
    """An object of a request: what is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=False)


# -- out -----------------------------------------------------------------------------------


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
    return record


def _hit(hit: Hit) -> Any:
    return {
        "memory": _memory(hit.memory),
        "score": hit.score,
        "why": dict(hit.why),
        "scope": str(hit.scope),
    }


def _time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _base64(value: bytes) -> str:
    """Base64, piece by piece: one call on a whole export would stop every other thread."""
    pieces = (value[at : at + _PIECE] for at in range(0, len(value), _PIECE))
    return b"".join(map(base64.b64encode, pieces)).decode("ascii")


def _mapping(value: Mapping[str, Any]) -> Any:
    return {name: plain(one) for name, one in value.items()}


def _list(value: Iterable[Any]) -> Any:
    return [plain(one) for one in value]


def _set(value: Iterable[Any]) -> Any:
    return sorted(map(plain, value))


_PIECE: Final = 3 * 64 * 1024
"""Bytes that are encoded, or a multiple of characters that are decoded, at once."""
_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys((str, int, float, bool, type(None)), _same),
    Memory: _memory,
    Hit: _hit,
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
    if not is_struct(kind):
        raise TypeError(kind)
    names: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]  # it is a Struct
    return lambda value: {name: plain(getattr(value, name)) for name in names}


# -- in ------------------------------------------------------------------------------------


def build(hint: Any, value: Any) -> Any:
    """The value of a type that JSON from our own service describes."""
    origin, arguments = get_origin(hint), get_args(hint)
    if value is None or hint in (Any, None, type(None)):
        return value
    if origin in (Union, types.UnionType):
        real = [one for one in arguments if one is not type(None)]
        return build(real[0], value) if len(real) == 1 else value  # several: any JSON there is
    if origin in _LISTS:
        return _build_list(origin, arguments, value)
    if origin in (dict, Mapping):
        return {name: build(arguments[1], one) for name, one in value.items()}
    return _build_one(hint, value)


def _build_list(origin: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(build(hint, one) for hint, one in zip(arguments, value, strict=True))
    return origin(build(arguments[0], one) for one in value)


def _build_one(hint: Any, value: Any) -> Any:
    if hint is Memory:
        return from_record(value)
    if hint is Scope:
        return Scope.parse(value)
    if hint in (datetime, date):
        return hint.fromisoformat(value)
    if hint is bytes:
        return base64.b64decode(value)
    if is_struct(hint):
        known = hints(cast(Any, hint))
        return hint(**{name: build(known[name], one) for name, one in value.items()})
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return hint[value.upper()]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value


@lru_cache(maxsize=256)
def hints(kind: Any) -> Mapping[str, Any]:
    """The type hints of a class or function, resolved."""
    return get_type_hints(kind)


# -- shapes --------------------------------------------------------------------------------


def shape(hint: Any) -> Any:
    """The type as pydantic is to see it: dataclasses become models, the rest JSON types."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return reduce(or_, (shape(one) for one in arguments))
    if origin in (tuple, list, frozenset, set):
        return _list_shape(origin, arguments)
    if origin in (dict, Mapping):
        deep = any(isinstance(part, ForwardRef) for part in _parts(hint))
        return dict[str, JsonValue if deep else shape(arguments[1])]  # type: ignore[misc]
    if is_struct(hint) and hint is not Scope:
        return model(cast(Any, hint))
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return Literal[tuple(one.name.lower() for one in hint)]
    return {Scope: str, bytes: Base64, datetime: AwareDatetime}.get(hint, hint)


def _list_shape(origin: Any, arguments: tuple[Any, ...]) -> Any:
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple[tuple(shape(one) for one in arguments)]  # type: ignore[misc]
    return list[shape(arguments[0])]  # type: ignore[misc]


def _parts(hint: Any) -> list[Any]:
    return [hint, *(part for one in get_args(hint) for part in _parts(one))]


@lru_cache(maxsize=256)
def model(kind: Any) -> type[BaseModel]:
    """A dataclass as a model; what a memory leaves out when it is the default may be missing."""
    known = hints(kind)
    made: dict[str, Any] = {}
    for one in fields(kind):
        left_out = kind in _SHORT and one.name not in _SHORT[kind]
        default = default_of(one) if left_out else ...
        made[one.name] = (shape(known[one.name]), default if default is ... else plain(default))
    return create_model(kind.__name__, __base__=Strict, __doc__=kind.__doc__, **made)


def is_struct(hint: Any) -> bool:
    """Whether a type is one of the model's."""
    return isinstance(hint, type) and issubclass(hint, Struct)


def default_of(one: FieldInfo) -> Any:
    """The default of a field; `...` if it has none."""
    if one.default is not NODEFAULT:
        return one.default
    return one.default_factory() if one.default_factory is not NODEFAULT else ...


def form(name: str, wanted: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    """A model of a request: each field by its type and its default, `...` where it is needed."""
    made: dict[str, Any] = {
        field: (shape(hint), default if default is ... else _shown(default))
        for field, (hint, default) in wanted.items()
    }
    return create_model(name, __base__=Strict, **made)


def _shown(default: Any) -> Any:
    """A default as the document shows it; only what was given is ever passed on."""
    return None if isinstance(default, datetime) else plain(default)


def chosen(given: BaseModel, wanted: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """The fields of a request that were given, in the types of the engine."""
    return {name: _native(wanted[name][0], getattr(given, name)) for name in given.model_fields_set}


def _native(hint: Any, value: Any) -> Any:
    if isinstance(value, BaseModel):
        return build(hint, value.model_dump(mode="json"))
    return tuple(value) if isinstance(value, list) else value


def repeats(hint: Any) -> bool:
    """Whether a parameter of this type may be given several times."""
    return get_origin(hint) in _LISTS


def unwrapped(hint: Any, answer: Any) -> Any:
    """What an answer holds: itself, or its `data` where the value is no object."""
    return answer if is_struct(hint) and hint is not Scope else answer["data"]
