"""ETags: a memory is changed only by who has seen it as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from scrubjay.domain.memory import Memory
from scrubjay.surfaces.http.problems import Problem
from scrubjay.surfaces.http.service import Service
from scrubjay.surfaces.operations import Call


def etag(memory: Memory) -> str:
    """A strong tag: no two states of a memory have the same."""
    return f'"{memory.number}.{memory.version}"'


def unchanged(request: Request, memory: Memory) -> bool:
    """Whether the client says it has exactly this already."""
    given = request.headers.get("if-none-match")
    return request.method == "GET" and given is not None and _names(given, memory, weak=True)


def guarding(
    service: Service, request: Request, call: Call, public_id: str, work: Callable[[], Any]
) -> Callable[[], Any]:
    """`work`, but only if the memory is as the client's If-Match says.

    Nobody else who comes through this service changes it between the look and the work.
    """
    given = request.headers.get("if-match")
    if given is None:
        raise Problem(
            428,
            "precondition_required",
            "Say which version you have seen.",
            hint="Send its ETag as If-Match, or If-Match: * for whichever it is.",
        )

    def checked() -> Any:
        with service.alone(call.scope, public_id):
            service.ready(call.scope, create=False)
            if given.strip() != "*":
                memory = call.engine.get(call.scope, public_id, actor=call.actor)
                if not _names(given, memory, weak=False):
                    raise Problem(412, "precondition_failed", "It has changed since you read it.")
            return work()

    return checked


def _names(given: str, memory: Memory, *, weak: bool) -> bool:
    if given.strip() == "*":
        return True
    tags = [tag.strip() for tag in given.split(",")]
    return etag(memory) in ([tag.removeprefix("W/") for tag in tags] if weak else tags)
