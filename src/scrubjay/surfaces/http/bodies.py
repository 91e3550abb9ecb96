"""Bodies: read whole, within a limit, and only as JSON."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request

from scrubjay.surfaces.bridge import Abandoned
from scrubjay.surfaces.http.problems import Problem


async def read(request: Request, most: int) -> bytes:
    """The body, or a Problem as soon as it is clear that it is too large or not JSON."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > most:
        raise _too_large(most)
    pieces, size = [], 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise _too_large(most)
            pieces.append(piece)
    except ClientDisconnect as error:
        raise Abandoned from error
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if size and kind != "application/json":
        raise Problem(415, "unsupported_media_type", "Send the body as application/json.")
    return b"".join(pieces)


async def disconnected(request: Request) -> None:
    """Return once the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        "too_large",
        f"The body may have at most {most:,} bytes.",
        headers={"Connection": "close"},
    )
