"""From what a verb gives to an answer: made by the worker, so that the event loop only sends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from scrubjay.domain.memory import Memory
from scrubjay.domain.results import Outcome, Page, Recalled, Retained
from scrubjay.domain.turns import Recorded
from scrubjay.surfaces import wire
from scrubjay.surfaces.http import preconditions
from scrubjay.surfaces.http.service import Service
from scrubjay.surfaces.operations import BELOW, Call, Operation

VERSION: Final = "/v1"
PIECE: Final = 256 * 1024
_PLACES: Final = frozenset({"cursor", BELOW})


class Pieces(Response):
    """An answer that is sent in pieces, as the client takes them: between two others get a turn."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        if len(self.body) <= PIECE:
            await super().__call__(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        for at in range(0, len(self.body), PIECE):
            piece = bytes(self.body[at : at + PIECE])
            more = at + PIECE < len(self.body)
            await send({"type": "http.response.body", "body": piece, "more_body": more})


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Pieces(
        to_json(content),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )


def render(
    service: Service, operation: Operation, request: Request, call: Call, result: Any
) -> Response:
    """The answer of an operation, ready to be sent."""
    match result:
        case Recalled():
            blocks = [len(hit.memory.content.encode()) for hit in result]
            service.metrics.recalled(len(blocks), sum(blocks))
        case Memory():
            return _memory(request, operation, result)
        case Retained() | Recorded():
            return _written(service, operation, result)
        case Page():
            return _page(service, request, call, result)
    content = wire.plain(result)
    return as_json(content if isinstance(content, dict) else {"data": content}, operation.status)


def _memory(request: Request, operation: Operation, memory: Memory) -> Response:
    headers = {"ETag": preconditions.etag(memory)}
    if preconditions.unchanged(request, memory):
        return Response(status_code=304, headers=headers)
    return as_json(wire.plain(memory), operation.status, headers)


def _written(service: Service, operation: Operation, receipt: Retained | Recorded) -> Response:
    service.metrics.add("memory_redacted_total", sum(receipt.redacted.values()))
    status = operation.status if receipt.outcome is Outcome.STORED else 200
    place = f"{VERSION}/memories/{receipt.id}" if isinstance(receipt, Retained) else None
    return as_json(wire.plain(receipt), status, {"Location": place} if place else None)


def _page(service: Service, request: Request, call: Call, page: Page) -> Response:
    headers, cursor = dict[str, str](), None
    if page.next is not None:
        cursor = service.signer.cursor(call.scope, page.next)
        kept = [pair for pair in request.query_params.multi_items() if pair[0] not in _PLACES]
        query = urlencode([*kept, ("cursor", cursor)])
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    content = {"data": wire.plain(page.memories), "next_cursor": cursor}
    return as_json(content, headers=headers)
