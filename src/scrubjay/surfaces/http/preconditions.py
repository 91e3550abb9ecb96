"""ETags: a memory is changed only by who has seen it as it is.

Whether it still is so the engine asks, in the transaction that changes it; here is only how HTTP
says which states are meant.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

from scrubjay.domain.memory import Edition, Memory
from scrubjay.surfaces.http.problems import Problem

_COUNT: Final = "(0|[1-9][0-9]{0,17})"
_STRONG: Final = re.compile(rf'"{_COUNT}\.{_COUNT}"')


def etag(memory: Memory) -> str:
    """A strong tag: no two states of a memory have the same."""
    return f'"{memory.number}.{memory.version}"'


def unchanged(request: Request, memory: Memory) -> bool:
    """Whether the client says it has exactly this already."""
    given = request.headers.get("if-none-match")
    if request.method != "GET" or given is None:
        return False
    return given.strip() == "*" or memory.edition in _editions(given.replace("W/", ""))


def expected(request: Request) -> frozenset[Edition] | None:
    """The states the client's If-Match allows; None for whichever it is."""
    given = request.headers.get("if-match")
    if given is None:
        raise Problem(
            428,
            "precondition_required",
            "Say which version you have seen.",
            hint="Send its ETag as If-Match, or If-Match: * for whichever it is.",
        )
    return None if given.strip() == "*" else _editions(given)


def _editions(given: str) -> frozenset[Edition]:
    """The states of the strong tags in a list; what is no tag of ours means none."""
    found = (_STRONG.fullmatch(tag.strip()) for tag in given.split(","))
    return frozenset((int(tag[1]), int(tag[2])) for tag in found if tag)
