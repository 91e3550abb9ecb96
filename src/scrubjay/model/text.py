"""Validation of texts, names, ids, tags, numbers and times that a caller supplies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from math import inf
from typing import TypeVar

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json

CONTENT_BYTES = 64 * 1024
METADATA_BYTES = 16 * 1024
METADATA_DEPTH = 200
"""Maximum nesting of metadata, far below the limits of JSON parsers."""
NAME_CHARS = 512
TAG_CHARS = 128
TAGS = 64
SOURCES = 256
DAYS = 36_500
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_STAMPED_KEY = re.compile(r"(once-[0-9a-f]{32})-[0-9a-f]{32}")
_Choice = TypeVar("_Choice", bound=StrEnum)


def _utf8(what: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise InvalidRequest(f"{what} must be text.")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{what} has half a surrogate pair at character {error.start}.",
            hint="Send valid Unicode text.",
        ) from error


def check_content(content: str) -> str:
    """Non-empty text of at most 64 KiB."""
    size = len(_utf8("The content", content))
    if not content.strip():
        raise InvalidRequest("The content is empty.", hint="Say what is to be remembered.")
    if size > CONTENT_BYTES:
        raise InvalidRequest(
            f"The content has {size:,} bytes; at most {CONTENT_BYTES:,} are kept in one memory.",
            hint="Split it into several memories.",
        )
    return content


def check_query(query: str) -> str:
    """Non-empty text; of a long one only the beginning is used, so there is no limit."""
    _utf8("The query", query)
    if not query.strip():
        raise InvalidRequest("The query is empty.", hint="Ask something, or browse instead.")
    return query


def check_name(what: str, name: str | None) -> str | None:
    """A session, key, speaker or channel name: None, or 1 to 512 characters."""
    if name is None:
        return None
    _utf8(what, name)
    if not name.strip() or len(name) > NAME_CHARS:
        raise InvalidRequest(f"{what} must have 1 to {NAME_CHARS} characters.")
    return name


def key_name(key: str) -> str:
    """The part of an idempotency key that names a write.

    A service appends a fingerprint of the request, to distinguish a repeat from another request
    under the same key.
    """
    stamped = _STAMPED_KEY.fullmatch(key)
    return key if stamped is None else stamped[1]


def check_id(public_id: str) -> str:
    """A public id: printable ASCII without spaces, at most 200 characters."""
    if not isinstance(public_id, str) or not _ID.fullmatch(public_id):
        raise InvalidRequest(
            "That is not a memory id.", hint="Ids look like mem- followed by a UUID."
        )
    return public_id


def each(what: str, texts: Iterable[str]) -> Iterator[str]:
    """The texts of a list, one by one."""
    if not isinstance(texts, Iterable):
        raise InvalidRequest(f"{what} must be a list of texts.")
    for text in texts:
        _utf8("A text in the list", text)
        yield text


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """At most 64 tags of 1 to 128 characters, each once, in the order given."""
    if isinstance(tags, str):
        raise InvalidRequest("Tags must be a list of texts.", hint='For example tags=["travel"].')
    unique = tuple(dict.fromkeys(each("Tags", tags))) if tags else ()
    for tag in unique:
        if not tag.strip() or len(tag) > TAG_CHARS:
            raise InvalidRequest(f"A tag must have 1 to {TAG_CHARS} characters.")
    if len(unique) > TAGS:
        raise InvalidRequest(f"A memory has at most {TAGS} tags.")
    return unique


def check_ids(what: str, ids: Iterable[str], limit: int = SOURCES) -> tuple[str, ...]:
    """A list of public ids, each once."""
    if isinstance(ids, str):
        raise InvalidRequest(f"{what} must be a list of ids.", hint='For example ["mem-…"].')
    unique = tuple(dict.fromkeys(map(check_id, each(what, ids)))) if ids else ()
    if len(unique) > limit:
        raise InvalidRequest(f"{what} may name at most {limit} ids.")
    return unique


def check_choice(what: str, value: str, choices: type[_Choice]) -> _Choice:
    """A member of an enumeration, by its value."""
    if value.__class__ is choices:
        return value
    try:
        return choices(value)
    except ValueError as error:
        known = ", ".join(choices)
        raise InvalidRequest(f"{what} is not known.", hint=f"Use one of: {known}.") from error


def check_choices(what: str, values: Iterable[str], choices: type[_Choice]) -> frozenset[_Choice]:
    """Members of an enumeration, by their values; one may be given by itself."""
    several = (values,) if isinstance(values, str) else values or ()
    named = each(f"{what.removeprefix('The ').capitalize()}s", several)
    return frozenset(check_choice(what, value, choices) for value in named)


def check_share(what: str, value: float) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidRequest(f"{what} must be a number from 0 to 1.")
    return float(value)


def check_count(what: str, value: int | None, *, least: int = 0) -> int | None:
    """None, or a whole number not below `least`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**53:
        raise InvalidRequest(f"{what} must be a whole number from {least}.")
    return value


def check_limit(limit: int, most: int) -> int:
    """How many are wanted at most: a number from 1 to `most`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise InvalidRequest(f"The limit is a number from 1 to {most:,}.")
    return limit


def check_days(what: str, value: int, *, least: int = 0) -> int:
    """A number of days, at most a hundred years of them."""
    days = check_count(what, value, least=least)
    if days is None or days > DAYS:
        raise InvalidRequest(f"{what} must be a number of days from {least} to {DAYS:,}.")
    return days


def check_seconds(what: str, value: float | None) -> float | None:
    """None, or a number of seconds above 0."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        raise InvalidRequest(f"{what} must be a number of seconds above 0.")
    return float(value)


def check_flag(what: str, value: bool) -> bool:
    """True or false, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise InvalidRequest(f"{what} must be true or false.")
    return value


def check_time(what: str, value: datetime | None) -> datetime | None:
    """None, or an aware time, as UTC."""
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidRequest(
            f"{what} must be a time with a time zone.",
            hint="For example datetime(2026, 5, 1, tzinfo=UTC).",
        )
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidRequest(f"{what} is outside the years 1 to 9999 in UTC.") from error


def check_metadata(metadata: Mapping[str, Json]) -> Mapping[str, Json]:
    """A JSON object of at most 16 KiB."""
    if not isinstance(metadata, Mapping) or not all(isinstance(name, str) for name in metadata):
        raise InvalidRequest("Metadata must be a mapping with text keys.")
    try:
        text = json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest("Metadata must be plain JSON values.") from error
    if _depth(metadata) > METADATA_DEPTH:
        raise InvalidRequest(f"Metadata may be nested at most {METADATA_DEPTH} levels deep.")
    if len(_utf8("Metadata", text)) > METADATA_BYTES:
        raise InvalidRequest(f"Metadata may have at most {METADATA_BYTES:,} bytes as JSON.")
    return metadata


def _depth(value: object) -> int:
    """How deep a JSON value is nested; what json.dumps has taken is not deeper than the stack."""
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0


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
