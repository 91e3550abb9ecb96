"""JSON Schema validation of arguments: the keywords that tools use, and nothing lenient.

A schema with a keyword that is not known here is refused when a plugin is loaded, so that no rule
of a plugin can be passed over in silence. By hand, because the sentences are what an agent learns
from: the library `jsonschema` would need this table of sentences as well, passes over keywords it
does not know, and would bring five packages into every installation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from scrubjay.conversation.outgoing import one_line
from scrubjay.model.errors import InvalidRequest
from scrubjay.surfaces.carapace.manifest import Schema

QUOTED_CHARS: Final = 80


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
    """Foreign text quoted in a message: shortened, in one line."""
    return f'"{one_line(text, most=QUOTED_CHARS)}"'


_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "object": ((Mapping,), "an object"),
    "array": ((list,), "a list"),
    "string": ((str,), "text (leave it out if there is none)"),
    "boolean": ((bool,), "true or false"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
}
"""The types of JSON: what Python reads each as, and what a sentence calls it."""
_KNOWN: Final = frozenset(
    {"type", "enum", "maximum", "minimum", "maxLength", "minLength", "maxItems", "items"}
    | {"properties", "required", "additionalProperties"}
    | {"description", "default", "title", "examples", "$schema"}
)


def faults(value: Any, schema: Schema, path: str = "") -> Iterator[Fault]:
    """Everything that is wrong with a value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON does not tell 5 from 5.0
    if (expected := schema.get("type")) is not None:
        classes, called = _TYPES[expected]
        # A bool is an int to Python, and nothing but a boolean to JSON.
        if not isinstance(value, classes) or isinstance(value, bool) is not (bool in classes):
            yield Fault(path, f"must be {called}")
            return
    musts = (_broken(keyword, limit, value) for keyword, limit in schema.items())
    yield from (Fault(path, must) for must in musts if must is not None)
    if isinstance(value, Mapping):
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield Fault(path, f'must have the field "{name}"')
        for name, member in value.items():
            if name in known:
                yield from faults(member, known[name], f"{path}/{name}")
            elif schema.get("additionalProperties") is False:
                yield Fault(path, f"must not have the field {quoted(name)}")
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from faults(item, schema["items"], f"{path}/{place}")


def _broken(keyword: str, limit: Any, value: Any) -> str | None:
    """The failed requirement of one schema keyword; None if the value meets it."""
    match keyword, value:
        case "enum", _ if value not in limit:
            return f"must be one of {', '.join(map(str, limit))}"
        case "maximum", int() | float() if value > limit:
            return f"must be at most {limit}"
        case "minimum", int() | float() if value < limit:
            return f"must be at least {limit}"
        case "maxLength", str() if len(value) > limit:
            return f"must have at most {limit} characters, but has {len(value)}"
        case "minLength", str() if len(value) < limit:
            return f"must have at least {limit} characters"
        case "maxItems", list() if len(value) > limit:
            return f"must have at most {limit} items, but has {len(value)}"
    return None


def check_schema(schema: Schema, name: str) -> None:
    """Refuse a schema with keywords this validator does not know."""
    if unknown := sorted(set(schema) - _KNOWN):
        raise InvalidRequest(
            f"The schema of {name} uses {quoted(unknown[0])}, which is not understood.",
            hint=f"Use only: {', '.join(sorted(_KNOWN))}.",
        )
    if schema.get("type", "object") not in _TYPES:
        raise InvalidRequest(f"The schema of {name} has a type that is not understood.")
    inner = [*schema.get("properties", {}).values()]
    for one in [*inner, *([schema["items"]] if "items" in schema else [])]:
        check_schema(one, name)
