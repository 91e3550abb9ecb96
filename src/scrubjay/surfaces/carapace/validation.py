"""Arguments against a JSON Schema: the part of the standard that tools use, and nothing lenient.

A schema with a word that is not known here is refused when a plugin is loaded, so that no rule
of a plugin can be passed over in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from scrubjay.guard.clean import one_line
from scrubjay.model.errors import InvalidRequest

QUOTED_CHARS: Final = 80
_NOTES: Final = frozenset({"description", "default", "title", "examples", "$schema"})


class Fault(NamedTuple):
    """One thing that is wrong: where, and what it must be instead."""

    path: str
    must: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.must}"

    @property
    def field(self) -> str | None:
        """The place without its first slash; None for the whole."""
        return self.path.removeprefix("/") or None


def quoted(text: str) -> str:
    """Somebody else's text as it may stand within a message: short, and one line."""
    return f'"{one_line(text, most=QUOTED_CHARS)}"'


def faults(value: object, schema: Mapping[str, Any], path: str = "") -> Iterator[Fault]:
    """Everything that is wrong with a value."""
    expected = schema.get("type")
    if expected is not None and not _TYPES[expected](value):
        yield Fault(path, f"must be {_CALLED[expected]}")
        return
    for word in schema.keys() & _RULES.keys():
        yield from (Fault(path, must) for must in _RULES[word](value, schema[word]))
    if isinstance(value, Mapping):
        yield from _members(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from faults(item, schema["items"], f"{path}/{place}")


def _members(value: Mapping[str, object], schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Fault(path, f'must have the field "{name}"')
    for name, member in value.items():
        if name in known:
            yield from faults(member, known[name], f"{path}/{name}")
        elif schema.get("additionalProperties") is False:
            yield Fault(path, f"must not have the field {quoted(name)}")


def check_schema(schema: Mapping[str, Any], name: str) -> None:
    """Refuse a schema with words this validator does not know."""
    known = {*_RULES, *_NOTES, "type", "properties", "required", "additionalProperties", "items"}
    if unknown := sorted(set(schema) - known):
        raise InvalidRequest(
            f"The schema of {name} uses {quoted(unknown[0])}, which is not understood.",
            hint=f"Use only: {', '.join(sorted(known))}.",
        )
    if schema.get("type", "object") not in _TYPES:
        raise InvalidRequest(f"The schema of {name} has a type that is not understood.")
    inner = [*schema.get("properties", {}).values()]
    for one in [*inner, *([schema["items"]] if "items" in schema else [])]:
        check_schema(one, name)


# -- the words ----------------------------------------------------------------------------------


def _is_integer(value: object) -> bool:
    whole = isinstance(value, float) and value.is_integer()  # JSON does not tell 5 from 5.0
    return (isinstance(value, int) and not isinstance(value, bool)) or whole


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[Mapping[str, Callable[[object], bool]]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
}
_CALLED: Final = {
    "object": "an object",
    "array": "a list",
    "string": "text (leave it out if there is none)",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


def _one_of(value: object, choices: list[str]) -> Iterator[str]:
    if value not in choices:
        yield f"must be one of {', '.join(map(str, choices))}"


def _at_most(value: object, most: float) -> Iterator[str]:
    if isinstance(value, int | float) and value > most:
        yield f"must be at most {most}"


def _at_least(value: object, least: float) -> Iterator[str]:
    if isinstance(value, int | float) and value < least:
        yield f"must be at least {least}"


def _not_longer(value: object, most: int) -> Iterator[str]:
    if isinstance(value, str) and len(value) > most:
        yield f"must have at most {most} characters, but has {len(value)}"


def _not_shorter(value: object, least: int) -> Iterator[str]:
    if isinstance(value, str) and len(value) < least:
        yield f"must have at least {least} characters"


def _not_more(value: object, most: int) -> Iterator[str]:
    if isinstance(value, list) and len(value) > most:
        yield f"must have at most {most} items, but has {len(value)}"


_RULES: Final[Mapping[str, Callable[[object, Any], Iterator[str]]]] = {
    "enum": _one_of,
    "maximum": _at_most,
    "minimum": _at_least,
    "maxLength": _not_longer,
    "minLength": _not_shorter,
    "maxItems": _not_more,
}
