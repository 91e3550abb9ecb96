"""Codec: values of the model as JSON and back, and as JSON Schema, by their type hints.

A new field of a request or a result needs nothing here. A memory has the form of
`model/records.py`, the same as in a cell and in an export.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from enum import Enum, IntEnum
from functools import lru_cache, reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

from scrubjay.model import records as values
from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Memory, Provenance
from scrubjay.model.pages import Page
from scrubjay.model.records import from_record
from scrubjay.model.scope import Scope
from scrubjay.model.text import CONTENT_BYTES, METADATA_BYTES, CheckedRequest

_ESCAPED: Final = 8
"""Maximum ratio of a text's length in JSON to its own: six for escapes, and some spaces."""
REF: Final = "#/components/schemas/{name}"
"""JSON pointer to a schema in the OpenAPI document."""
_LISTS = (tuple, list, frozenset, set)
plain = values.plain
"""A value as plain JSON."""
SHORT: Final = {
    Provenance: frozenset[str](),
    Memory: frozenset({"origin", "number", "version", "edition"}),
}
"""Structs that leave out the fields at their default, but for these."""


# -- out -----------------------------------------------------------------------------------


def answer(result: Any) -> dict[str, Any]:
    """The JSON object that every door answers with; what is no object is its `data`."""
    content = plain(result)
    return content if isinstance(content, dict) else {"data": content}


def to_json(value: Any) -> bytes:
    """The value as the bytes of its JSON."""
    return msgspec.json.encode(plain(value))


# -- in ------------------------------------------------------------------------------------


def build(hint: Any, value: Any) -> Any:
    """The value of a type that JSON from our own service describes."""
    hint = bare(hint)
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
    if origin is Page:
        data = [build(arguments[0], one) for one in value["data"]]
        return Page(data=tuple(data), next_cursor=value["next_cursor"])
    return _build_one(hint, value)


def _build_list(origin: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(build(hint, one) for hint, one in zip(arguments, value, strict=True))
    return origin(build(arguments[0], one) for one in value)


def _build_one(hint: Any, value: Any) -> Any:
    if hint is Memory:
        return from_record({name: one for name, one in value.items() if name != "edition"})
    if hint is Scope:
        return Scope.parse(value)
    if hint in (datetime, date):
        return hint.fromisoformat(value)
    if hint is bytes:
        return base64.b64decode(value)
    if is_struct(hint):
        known = hints(hint)
        return hint(**{name: build(known[name], one) for name, one in value.items()})
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return hint[value.upper()]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value


@lru_cache(maxsize=256)
def hints(kind: Any) -> Mapping[str, Any]:
    """Type hints of a class or function, resolved, with their annotations."""
    return get_type_hints(kind, include_extras=True)


def help_of(hint: Any) -> str:
    """The help of a field, from its type hint."""
    said = (one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meta))
    return next((one.description for one in said if one.description), "")


def bare(hint: Any) -> Any:
    """A type hint without its annotations."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


# -- requests ------------------------------------------------------------------------------

request = text.made
"""A checked request; InvalidRequest if a field is wrong or unknown."""
Wanted = Mapping[str, tuple[Any, Any]]
"""The fields of a request: each by its type and its default, `...` where it is needed."""


def wanted(kind: type[Struct]) -> Wanted:
    """The fields of a request."""
    known = hints(kind)
    return {one.name: (known[one.name], default_of(one)) for one in fields(kind)}


def items(wanted: Wanted) -> set[type[Struct]]:
    """The requests in lists of a request, which are checked each by itself."""
    lists = (bare(hint) for hint, _ in wanted.values() if get_origin(bare(hint)) in _LISTS)
    return {one for hint in lists for one in get_args(hint) if _is_item(one)}


def _is_item(hint: Any) -> bool:
    return is_struct(hint) and issubclass(hint, CheckedRequest)


def form(name: str, wanted: Wanted) -> type[Struct]:
    """The Struct that checks a request: unknown fields are refused, what is not given is UNSET."""
    made: list[Any] = []
    for field, (hint, default) in wanted.items():
        shape = _shape(hint)
        made.append((field, shape) if default is ... else (field, shape | UnsetType, UNSET))
    return msgspec.defstruct(name, made, frozen=True, kw_only=True, forbid_unknown_fields=True)


def put_defaults(schema: dict[str, Any], wanted: Wanted) -> None:
    """Write into the schema of a form which fields are required, and the defaults of the others."""
    schema["required"] = [name for name, (_, default) in wanted.items() if default is ...]
    if not schema["required"]:
        del schema["required"]
    for name, one in schema.get("properties", {}).items():
        default = wanted[name][1]
        if default is not ... and not isinstance(default, datetime):
            one["default"] = plain(default)


def flat(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field as optional instead of nullable."""
    options = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    found = {**schema, **options[0]} if len(options) == 1 else dict(schema)
    if len(options) == 1:
        del found["anyOf"]
    if found.get("default", 0) is None:
        del found["default"]
    return found


def chosen(given: Struct, wanted: Wanted) -> dict[str, Any]:
    """The fields of a request that were given, in the types of the engine.

    Raises msgspec.ValidationError, as `form` does, for bytes that are not base64.
    """
    found = {name: getattr(given, name) for name in wanted}
    return {
        name: _native(name, bare(wanted[name][0]), value)
        for name, value in found.items()
        if value is not UNSET
    }


def _native(name: str, hint: Any, value: Any) -> Any:
    if hint is bytes:
        try:
            return _decoded(value)
        except ValueError as error:
            raise msgspec.ValidationError(f"Invalid base64 - at `$.{name}`") from error
    if isinstance(value, list) and value and isinstance(value[0], Raw):
        return tuple(_item(get_args(hint)[0], one) for one in value)
    if isinstance(value, Raw):
        # Refused by its length before it is read: a million small values take far more room.
        if len(memoryview(value)) > _ESCAPED * METADATA_BYTES:
            raise InvalidRequest(f"Metadata may have at most {METADATA_BYTES:,} bytes as JSON.")
        try:
            return msgspec.json.decode(value, type=dict[str, Any])
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(f"{error} - at `$.{name}`") from error
    return tuple(value) if isinstance(value, list | frozenset) else value


def _item(kind: type[Struct], raw: Raw) -> Any:
    """The fields of one item of a batch in their types; as they came if one is wrong.

    The verb checks them once more and refuses such an item by itself.
    """
    if len(memoryview(raw)) > _ESCAPED * (CONTENT_BYTES + METADATA_BYTES):
        raise InvalidRequest("One of the items is longer than any memory may be.")
    known = wanted(kind)
    try:
        return chosen(msgspec.json.decode(raw, type=_item_form(kind)), known)
    except (msgspec.ValidationError, InvalidRequest):
        return msgspec.json.decode(raw)


@lru_cache(maxsize=16)
def _item_form(kind: type[Struct]) -> type[Struct]:
    return form(kind.__name__, wanted(kind))


def _decoded(text: str) -> bytes:
    """The bytes of a text in base64, piece by piece as in `_base64`; line ends are let pass."""
    try:
        pieces = (text[at : at + 4 * values.PIECE] for at in range(0, len(text), 4 * values.PIECE))
        return b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except ValueError:
        return base64.b64decode(text)


def _shape(hint: Any) -> Any:
    """The type as JSON has it: a scope is text, bytes are base64, numbered enums are words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[_shape(arguments[0]), *arguments[1:]]
    if origin in (Union, types.UnionType):
        return reduce(or_, (_shape(one) for one in arguments))
    if origin in _LISTS and (origin is not tuple or arguments[-1] is Ellipsis):
        if _is_item(arguments[0]):  # checked by itself
            place = REF.format(name=f"{arguments[0].__name__}Request")
            return list[Annotated[Raw, Meta(extra_json_schema={"$ref": place})]]
        return list[_shape(arguments[0])]  # type: ignore[misc]
    if origin is Mapping:
        return Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return Literal[tuple(one.name.lower() for one in hint)]
    return {
        Scope: str,
        bytes: Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})],
    }.get(hint, hint)


def is_struct(hint: Any) -> TypeGuard[type[Struct]]:
    """Whether a type is one of the model's."""
    return isinstance(hint, type) and issubclass(hint, Struct)


def default_of(one: FieldInfo) -> Any:
    """The default of a field; `...` if it has none."""
    if one.default is not NODEFAULT:
        return one.default
    return one.default_factory() if one.default_factory is not NODEFAULT else ...


def repeats(hint: Any) -> bool:
    """Whether a parameter of this type may be given several times."""
    return get_origin(bare(hint)) in _LISTS


def is_object(hint: Any) -> bool:
    """Whether a field of this type is a JSON object; in a query string it is written as JSON."""
    return get_origin(bare(hint)) is Mapping


def unwrapped(hint: Any, answer: Any) -> Any:
    """The value in an answer: the answer itself, or its `data` where the value is no object."""
    is_object = is_struct(hint) and hint is not Scope
    return answer if is_object or get_origin(hint) is Page else answer["data"]


# -- schemas -------------------------------------------------------------------------------


def schemas(types: Iterable[type[Struct]], template: str) -> tuple[list[Any], dict[str, Any]]:
    """The JSON Schemas of types, and the definitions they refer to, by their names.

    A Struct of ours is written whole, so that all its fields are required, but for those of
    `SHORT` and those that omit defaults.
    """
    types = tuple(types)
    omitting = {kind.__name__ for kind in types if kind.__struct_config__.omit_defaults}
    found, defined = msgspec.json.schema_components(types, ref_template=template)
    scope = template.format(name="Scope")
    short = {kind.__name__: kind for kind in SHORT}
    if Memory.__name__ in defined:
        about = "Number and version as one text, equal to the ETag: no two states have the same."
        edition = {"description": about, "type": "string"}
        defined[Memory.__name__]["properties"]["edition"] = edition
    for name, schema in defined.items():
        if "properties" in schema:
            schema["additionalProperties"] = False
            fields = list(schema["properties"])
            if name in short or name in omitting:
                kept = SHORT[short[name]] if name in short else frozenset()
                needed = kept | set(schema.get("required", ()))
                schema["required"] = [one for one in fields if one in needed]
            else:
                schema["required"] = fields
            if not schema["required"]:
                del schema["required"]
    for kind in IntEnum.__subclasses__():
        if kind.__name__ in defined:  # its numbers are for cells, and say nothing
            words = [one.name.lower() for one in kind]
            defined[kind.__name__] = {"title": kind.__name__, "enum": words}
    defined.pop("Scope", None)
    return list(found), {name: _words(one, scope) for name, one in defined.items()}


def _words(schema: Any, scope: str) -> Any:
    """A schema in which scopes are text."""
    if isinstance(schema, list):
        return [_words(one, scope) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("$ref") == scope:
        kept = {name: one for name, one in schema.items() if name != "$ref"}
        return kept | {"type": "string"}
    return {name: _words(one, scope) for name, one in schema.items()}
