"""Write docs/api.md, the reference of the Python API, from the code; --check compares instead."""

from __future__ import annotations

import enum
import inspect
import re
import sys
import types
from collections.abc import Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

import scrubjay
from scrubjay import codec
from scrubjay.verbs import Verb, Verbs

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
_HEAD = """# The Python API

Made from the code by `tools/api_reference.py`; do not edit it. Every result can be
pickled, and its `to_dict()` is the JSON of the command line and the service. `AsyncJay` has the
same methods for `await`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_entrances(), *_verbs(), *_methods(), *_values(), *_errors()])


def _public() -> Iterator[tuple[str, Any]]:
    for name in scrubjay.__all__:
        yield name, getattr(scrubjay, name)


def _doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def _signature(thing: Any) -> str:
    """The parameters with their defaults; types as they are written."""
    text = str(inspect.signature(thing)).replace("'", "").removesuffix(" -> None")
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)
    return re.sub(r"<(\w+\.\w+): \w+>", r"\1", text)


def _entrances() -> Iterator[str]:
    yield "## Opening a memory\n"
    for name in ("open", "connect", "Engine", "AsyncJay"):
        thing = getattr(scrubjay, name)
        yield f"### `scrubjay.{name}{_signature(thing)}`\n\n{_doc(thing)}\n"


def _verbs() -> Iterator[str]:
    yield "## Verbs\n\nMethods of `Jay`, `AsyncJay` and `Client`.\n"
    for name, verb in vars(Verbs).items():
        if not isinstance(verb, Verb):
            continue
        yield f"### `{name}` → `{_said(verb.gives)}`\n\n{_doc(verb)}\n"
        yield from _fields(verb.request)


def _methods() -> Iterator[str]:
    yield "## Files, receipts and short forms\n\nMethods of `Jay`, `AsyncJay` and `Client`.\n"
    for name, method in vars(scrubjay.Jay).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield f"- `{name}{_signature(method)}`: {_doc(method).partition(chr(10))[0]}"
    yield ""


def _values() -> Iterator[str]:
    yield "## Results and values\n"
    for name, thing in _public():
        if isinstance(thing, type) and issubclass(thing, Struct):
            yield f"### `{name}`\n\n{_doc(thing)}\n"
            yield from _fields(thing)
        elif isinstance(thing, type) and issubclass(thing, enum.Enum):
            words = ", ".join(f"`{one}`" for one in thing)
            yield f"### `{name}`\n\n{_doc(thing)} One of {words}.\n"


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    for name, thing in _public():
        if isinstance(thing, type) and issubclass(thing, scrubjay.ScrubjayError):
            yield f"- `{name}` (`{thing.code}`): {_doc(thing)}"
    yield ""


def _fields(kind: type[Struct]) -> Iterator[str]:
    hints = codec.hints(kind)
    for one in fields(kind):
        default = codec.default_of(one)
        usual = "" if default is ... else f" (default `{codec.plain(default)}`)"
        about = codec.help_of(hints[one.name])
        yield f"- `{one.name}`: `{_said(hints[one.name])}`{usual}. {about}".rstrip()
    yield ""


def _plain(hint: Any) -> Any:
    """The type without limits and help, at every level."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return reduce(or_, map(_plain, get_args(hint)))
    if inner := get_args(hint):
        return get_origin(hint)[tuple(map(_plain, inner))]
    return hint


def _said(hint: Any) -> str:
    bare = _plain(hint)
    text = bare.__name__ if isinstance(bare, type) and not hasattr(bare, "__args__") else str(bare)
    text = re.sub(r"\b[a-z_]+\.(?=[\w.])", "", text)  # modules
    return text.replace("NoneType", "None")


def main() -> int:
    """Write the page, or say whether it is current."""
    if "--check" in sys.argv:
        if PAGE.read_text("utf-8") == page():
            return 0
        print("docs/api.md is not what the code says: run tools/api_reference.py")
        return 1
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
