"""Limits of what a caller supplies: the types its fields are made of, and their one check.

A limit stands in the `Meta` of a field's type, beside its help. `checked` holds values against it,
and adds what a `Meta` cannot say: a size in bytes, valid Unicode, times in UTC, lists without
repeats, metadata that is JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Annotated, Any, Final, TypeVar, cast, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct, ValidationError
from msgspec.structs import astuple, fields, force_setattr

from scrubjay.model.errors import InvalidRequest

CONTENT_BYTES = 64 * 1024
TURN_BYTES = 8 * 1024 * 1024
"""The most that either side of a turn may say."""
METADATA_BYTES = 16 * 1024
NOTED_BYTES = 2 * METADATA_BYTES
"""Maximum size of the metadata of a stored memory: the engine notes things beside the caller's."""
METADATA_DEPTH = 200
"""Maximum nesting of metadata, far below the limits of JSON parsers."""
NAME_CHARS = 512
TAGS = 64
SOURCES = 256
_MOST_BYTES = "most_bytes"
_JSON = "json"
"""In the `extra` of a field: it holds any JSON value of at most so many bytes."""
_REPEATS = "repeats"
"""In the `extra` of a list: what stands in it twice is kept twice."""
_BLANK: Final = r"\S"
_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$(?!\n)"
_STAMPED_KEY = re.compile(r"(once-[0-9a-f]{32})-[0-9a-f]{32}")
_PLACE: Final = re.compile(r"`\$\.(\w+)|field `(\w+)`")
"""Where msgspec says which field is wrong."""


def doc(description: str, **limits: Any) -> Meta:
    """Help and limits of a field, to annotate its type with."""
    return Meta(description=description, **limits)


# -- regular expressions -------------------------------------------------------------------

_SEARCHES: Final = ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")


class _LazyPattern:
    """Regular expression that is compiled when it is first used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        for method in _SEARCHES:  # from now on as quick as those of the compiled one
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that a command pays for only if it uses it."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


# -- the types of fields -------------------------------------------------------------------

Words = Annotated[str, Meta(min_length=1, pattern=_BLANK)]
Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=CONTENT_BYTES,
        pattern=_BLANK,
        extra={
            _MOST_BYTES: CONTENT_BYTES,
            "hint": "Say what is to be remembered. Split a longer text into several memories.",
        },
    ),
]
Speech = Annotated[str, Meta(max_length=TURN_BYTES, extra={_MOST_BYTES: TURN_BYTES})]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS, pattern=_BLANK)]
Tag = Annotated[str, Meta(min_length=1, max_length=128, pattern=_BLANK)]
Id = Annotated[str, Meta(pattern=_ID)]
Tags = Annotated[tuple[Tag, ...], Meta(max_length=TAGS)]
Ids = Annotated[tuple[Id, ...], Meta(max_length=SOURCES)]
Time = Annotated[datetime, Meta(tz=True)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Days = Annotated[int, Meta(ge=0, le=36_500)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]


class CheckedRequest(Struct, frozen=True):
    """Base of requests: the fields are checked as one is made, however it is made."""

    def __post_init__(self) -> None:
        # A default needs no check: what the caller left out costs a look at its name.
        given = {
            name: value
            for (name, default), value in zip(_defaults(type(self)), astuple(self), strict=True)
            if value is not default and (default is not _NONE or value != {})
        }
        for name, value in checked(type(self), given).items() if given else ():
            if value is not given[name]:
                force_setattr(self, name, value)


# -- the check -----------------------------------------------------------------------------


def check(name: str, hint: Any, value: Any) -> Any:
    """One value, checked by a type of fields; InvalidRequest calls it by the name."""
    return _convert({name: value}, *_single(name, hint))[name]


def checked(kind: type[Struct], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given fields of a Struct in their types; InvalidRequest names the first wrong one."""
    return _convert(given, *_form(kind))


@lru_cache(maxsize=256)
def _defaults(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """The fields of a Struct, each with its default, NODEFAULT if there is none.

    An empty dict stands for the ones that are made for each.
    """
    return tuple(
        (one.name, _NONE if one.default_factory is dict else one.default) for one in fields(kind)
    )


_PLAIN: Final = frozenset(
    {str, int, float, bool, type(None), tuple, list, dict, frozenset, datetime}
)
"""Types that need no look at the abstract classes, which takes longer than the whole conversion."""


_Extras = Mapping[str, Mapping[str, Any]]


def _convert(given: Mapping[str, Any], form: type[Struct], extras: _Extras) -> dict[str, Any]:
    listed = {
        name: value
        if type(value) in _PLAIN or not isinstance(value, Iterator | KeysView | ValuesView)
        else tuple(value)
        for name, value in given.items()
    }
    try:
        made = msgspec.convert(listed, form, builtin_types=(datetime, bytes))
    except ValidationError as error:
        raise refusal(form, error) from error
    except UnicodeEncodeError:  # half a surrogate pair where a number, a time or a word belongs
        for name, value in listed.items():
            if isinstance(value, str):
                _utf8(name, value)
        raise InvalidRequest("A field has half a surrogate pair.") from None
    return {name: _settled(name, getattr(made, name), extras.get(name, _NONE)) for name in listed}


_NONE: Final[Mapping[str, Any]] = {}


@lru_cache(maxsize=256)
def _form(kind: type[Struct]) -> tuple[type[Struct], _Extras]:
    """A Struct with the same fields and no `__post_init__`, and the limits no `Meta` knows."""
    hints = get_type_hints(kind, include_extras=True)
    needed, optional = list[Any](), list[Any]()
    for one in fields(kind):
        if one.required:
            needed.append((one.name, hints[one.name]))
        else:
            given: dict[str, Any] = {"default": one.default}
            if one.default is NODEFAULT:
                given = {"default_factory": one.default_factory}
            optional.append((one.name, hints[one.name], msgspec.field(**given)))
    return _made(kind.__name__, [*needed, *optional])


@lru_cache(maxsize=64)
def _single(name: str, hint: Any) -> tuple[type[Struct], _Extras]:
    return _made("Value", [(name, hint)])


def _made(title: str, wanted: list[Any]) -> tuple[type[Struct], _Extras]:
    form = msgspec.defstruct(title, wanted, kw_only=True, forbid_unknown_fields=True)
    metas = (
        (name, one.extra)
        for name, hint, *_ in wanted
        for one in getattr(hint, "__metadata__", ())
        if isinstance(one, Meta) and one.extra
    )
    return form, dict(metas)


def _settled(name: str, value: Any, extra: Mapping[str, Any]) -> Any:
    """A converted value as it is kept; InvalidRequest for what no `Meta` refuses."""
    match value:
        case str():
            size = len(_utf8(name, value))
            if size > (most := extra.get(_MOST_BYTES, size)):
                raise InvalidRequest(
                    f"{name}: it has {size:,} bytes; at most {most:,} are kept.",
                    hint="Split it into several.",
                )
        case _ if _JSON in extra:
            _check_json(name, value, extra[_MOST_BYTES])
        case datetime():
            try:
                return value.astimezone(UTC)
            except OverflowError as error:
                raise InvalidRequest(
                    f"{name}: it is outside the years 1 to 9999 in UTC."
                ) from error
        case tuple() | frozenset():
            for one in value:
                if isinstance(one, str):
                    _utf8(name, one)
            once = isinstance(value, tuple) and _REPEATS not in extra
            return tuple(dict.fromkeys(value)) if once else value
        case dict() if value:
            _check_json(name, value, extra.get(_MOST_BYTES, METADATA_BYTES))
    return value


def _utf8(name: str, value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{name}: it has half a surrogate pair at character {error.start}.",
            hint="Send valid Unicode text.",
        ) from error


def _check_json(name: str, value: Any, most: int) -> None:
    try:
        written, depth = json.dumps(value, allow_nan=False, ensure_ascii=False), _depth(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{name}: it must be plain JSON values.") from error
    if depth > METADATA_DEPTH:
        raise InvalidRequest(f"{name}: it may be nested at most {METADATA_DEPTH} levels deep.")
    if len(_utf8(name, written)) > most:
        raise InvalidRequest(f"{name}: it may have at most {most:,} bytes as JSON.")


def _depth(value: object) -> int:
    """How deep a JSON value is nested: layer by layer, since a recursion may exceed the stack.

    TypeError for a member whose name is no text: the encoder would write it as one.
    """
    depth, layer = 0, [value]
    while layer := [one for one in layer if isinstance(one, Mapping | list | tuple)]:
        depth += 1
        names = (name for one in layer if isinstance(one, Mapping) for name in one)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(value)
        layer = [
            inner for one in layer for inner in (one.values() if isinstance(one, Mapping) else one)
        ]
    return depth


Made = TypeVar("Made", bound=Struct)


def made(kind: type[Made], given: Mapping[str, Any]) -> Made:
    """A request of these fields; InvalidRequest if one is wrong, unknown or missing."""
    try:
        return kind(**given)
    except TypeError as error:
        if unknown := given.keys() - set(kind.__struct_fields__):
            raise no_field(min(map(str, unknown)), kind.__struct_fields__) from None
        raise InvalidRequest(f"{error}.".replace("argument", "field")) from None


def no_field(name: str, fields: Iterable[str]) -> InvalidRequest:
    """The error of a field that there is not, with the one that is nearest to it."""
    from difflib import get_close_matches  # as `inspect` below

    near = get_close_matches(name, [*fields], n=1)
    return InvalidRequest(
        f"There is no field {name}{f'; did you mean {near[0]}?' if near else '.'}"
    )


# -- refusals ------------------------------------------------------------------------------


def refusal(form: type[Struct], error: ValidationError) -> InvalidRequest:
    """The error of msgspec as a sentence about the field: its limits, never its value."""
    from msgspec import inspect  # loaded by a refusal, and by no command that goes well

    found = _PLACE.search(str(error))
    name = (found[1] or found[2]) if found else "request"
    if name not in form.__struct_fields__:
        return no_field(name, form.__struct_fields__)
    about = inspect.type_info(dict(get_type_hints(form, include_extras=True))[name])
    hint = None
    if isinstance(about, inspect.Metadata):
        hint = (about.extra or {}).get("hint") or (about.extra_json_schema or {}).get("description")
    return InvalidRequest(f"{name}: it must be {_wanted(about)}.", hint=hint)


def _wanted(about: Any) -> str:
    """The values a type allows, in words."""
    from msgspec import inspect

    match about:
        case inspect.Metadata():
            return _wanted(about.type)
        case inspect.UnionType():
            return " or ".join(_wanted(one) for one in about.types)
        case inspect.StrType(pattern=pattern) if pattern == _ID:
            return "an id, such as mem- and a UUID"
        case inspect.StrType():
            most = f"to {about.max_length:,}" if about.max_length else "or more"
            blank = ", not blank" if about.pattern == _BLANK else ""
            return f"text of {about.min_length or 0} {most} characters{blank}"
        case inspect.IntType() | inspect.FloatType():
            least = f"above {about.gt}" if about.gt is not None else f"from {about.ge or 0}"
            most = f" to {about.le:,}" if about.le and about.le < 2**53 - 1 else ""
            return f"a {'whole ' * isinstance(about, inspect.IntType)}number {least}{most}"
        case inspect.EnumType():
            return f"one of {', '.join(one.value for one in about.cls)}"
        case inspect.VarTupleType() | inspect.FrozenSetType():
            most = f" of at most {about.max_length:,}" if about.max_length else ""
            return f"a list{most}, each {_wanted(about.item_type)}"
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, about.values))}"
    return _PLAIN_WORDS.get(type(about).__name__, "what this field holds")


_PLAIN_WORDS: Final = {
    "NoneType": "null",
    "BoolType": "true or false",
    "DateTimeType": "a time with a time zone",
    "DictType": "an object with text keys",
    "BytesType": "bytes",
}


_CHARS_PER_TOKEN: Final = 4
"""Approximate characters per token in an alphabet; in other scripts each is a token."""


def tokens(text: str) -> int:
    """Approximate number of tokens of a text."""
    ascii_chars = sum(char.isascii() for char in text) if not text.isascii() else len(text)
    return -(-ascii_chars // _CHARS_PER_TOKEN) + len(text) - ascii_chars


def key_name(key: str) -> str:
    """The part of an idempotency key that names a write.

    A service appends a fingerprint of the request, to distinguish a repeat from another request
    under the same key.
    """
    stamped = _STAMPED_KEY.fullmatch(key)
    return key if stamped is None else stamped[1]


def zone(name: str | None) -> tzinfo:
    """The time zone of an IANA name, UTC for None; refuses one that is not known."""
    if name is None:
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, TypeError, OSError, KeyError) as error:
        raise InvalidRequest(
            "The time zone is not known.", hint="Give an IANA name such as Europe/Berlin."
        ) from error
